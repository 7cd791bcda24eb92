"""What a user has in the system is within the user's shares, whichever process wrote it (docs/DOOR.md, "Shares")."""
import contextlib
import json
import re
import subprocess
import threading
import time

from case import SystemTest, cost, needs_root
from instance import wait

HELLO = b"Subject: hello\n\nhello\n"
MALLORY, OTHER = 65534, 60123
MEGABYTE = 1 << 20
HOUR = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
STATES = ("gate/maildrop", "prepared", "incoming", "active", "deferred", "hold")


class Watch:
    """The most bytes that a user's messages, and those of the system, had at once."""

    def __init__(self, instance):
        self.instance = instance
        self.most = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _run(self):
        while not self._end.wait(0.02):
            sizes = {}  # a file that moves meanwhile is one
            for path in self.instance.files(*STATES):
                with contextlib.suppress(FileNotFoundError):
                    st = path.stat()
                    sizes[st.st_ino] = st.st_size
            self.most = max(self.most, sum(sizes.values()))


@needs_root
class Shares(SystemTest):
    def submit(self, i, *rcpts, content=HELLO, uid=MALLORY, sender="s@test.example"):
        """The exit code, and what it said."""
        done = i.inject(content, *rcpts, sender=sender, uid=uid, check=False)
        return done.returncode, done.stderr.decode()

    def others_go_on(self, i):
        """An honest user's mail and root's, through an alias and without one."""
        for user, uid in (("honest", OTHER), ("root2", None)):
            before, at_ann = len(i.maildir(user)), len(i.maildir("ann"))
            self.assertEqual(self.submit(i, f"{user}@test.example", uid=uid), (0, ""))
            self.assertEqual(self.submit(i, "ann-too@test.example", uid=uid), (0, ""))
            i.wait_delivered(user, before + 1)
            i.wait_delivered("ann", at_ann + 1)

    def deliver_all(self, i):
        """With a new routing, whenever it is in force."""
        i.write_conf(minimal_backoff_time="1s", maximal_backoff_time="2s")
        i.reload()

        flushed = 0

        def is_empty():
            nonlocal flushed
            if time.monotonic() > flushed + 0.5:
                i.flush()
                flushed = time.monotonic()
            # A message that moves can pass behind one look.
            return not i.files(*STATES) and not i.files(*STATES)
        wait(is_empty, 40, "empty queues")

    @cost(30)
    def test_X20_expansions_stay_within_the_share(self):
        i = self.instance(queues=2, routing="later.example smtp:127.0.0.1:1\n* local\n", conf=HOUR | {
            "user_size_limit": "24m", "admin_recipient": None, "mydestination": "test.example"})
        names = i.dir / "names"
        names.write_text("".join(f"x{n}@later.example\n" for n in range(100)))
        i.alias_file.write_text(f"many: :include:{names}\nowner-many: ann\nmore: y@later.example\nowner-more: ann\n"
                                "both: many, more\nowner-both: ann\nann-too: ann\n")
        i.start()
        big = b"Subject: big\n\n" + (b"x" * 79 + b"\n") * (4 * MEGABYTE // 80)
        codes = []
        with Watch(i) as watch:
            for n in range(24):
                codes.append(self.submit(i, ("both", "many", "more")[n % 3] + "@test.example", content=big))
            wait(lambda: not i.files("incoming", "active", "prepared"), what="all that can be expanded")
            # Drops of the last moment are expanded, too.
            wait(lambda: not i.files("gate/maildrop", "incoming", "active", "prepared"), what="the rest")
        accepted = [c for c, _ in codes].count(0)
        self.assertEqual({c for c, _ in codes}, {0, 75})
        for code, said in codes:
            if code == 75:
                self.assertRegex(said, r"4\.7\.1 \d+ bytes of uid 65534 wait with this message, the limit is 25165824 \(user_size_limit\); see \"qctl shares\"")
        self.assertGreaterEqual(accepted, 3)
        # A share and one expansion, which makes two messages.
        self.assertLessEqual(watch.most, 24 * MEGABYTE + 2 * len(big) + 64 * 1024)
        self.others_go_on(i)
        # Nothing is lost: with room again, each of the messages is expanded, once.
        i.routing_file.write_text("later.example discard\n* local\n")
        self.deliver_all(i)
        sent = re.findall(r"([0-9A-F]{20,}): to=<(x7|y)@later\.example>.*status=sent", i.log())
        self.assertEqual(len(sent), len(set(sent)))
        want = {"x7": 0, "y": 0}
        for n, (code, _) in enumerate(codes):
            if code == 0:
                want["x7"] += n % 3 in (0, 1)
                want["y"] += n % 3 in (0, 2)
        self.assertEqual({key: [k for _, k in sent].count(key) for key in want}, want)
        i.stop()

    @cost(15)
    def test_X20_an_expansion_waits_for_room(self):
        """Deferred with 4.7.1, and expanded when there is room."""
        i = self.instance(queues=1, routing="later.example smtp:127.0.0.1:1\n* local\n",
                          conf=HOUR | {"user_message_limit": 100, "admin_recipient": None,
                                       "mydestination": "test.example"})
        names = i.dir / "names"
        i.alias_file.write_text(f"now: x@later.example\nmany: :include:{names}\nann-too: ann\n")
        i.start()
        for rcpt in ("now", "now", "many"):
            self.assertEqual(self.submit(i, f"{rcpt}@test.example"), (0, ""))
        # Two expansions, and a message whose include file is not there yet.
        wait(lambda: i.log_has(r"to=<many@test\.example>.*dsn=4\.2\.4, status=deferred"), what="no include file")
        wait(lambda: len(i.files("deferred")) == 3 and not i.files("incoming", "active"), what="three that wait")
        names.write_text("z@later.example\n")
        i.stop()
        i.write_conf(user_message_limit=3)
        i.start()
        wait(lambda: self.submit(i, "bob@test.example")[0] == 75, what="the counts of the new process")
        i.flush()
        wait(lambda: i.log_has(r"to=<many@test\.example>.*dsn=4\.7\.1, status=deferred \(alias many: \d+ messages of uid 65534 "
                               r"wait, the limit is 3 \(user_message_limit\); see \"qctl shares\"\)"), 60, "the deferral")
        self.others_go_on(i)
        i.routing_file.write_text("later.example discard\n* local\n")
        self.deliver_all(i)
        sent = re.findall(r"to=<(x|z)@later\.example>.*status=sent", i.log())
        self.assertEqual(sorted(sent), ["x", "x", "z"])
        i.stop()

    @cost(15)
    def test_X21_reports_count_for_who_submitted(self):
        i = self.instance(queues=1, routing='bad.example error:"5.1.1 no such host"\n* local\n', aliases="ann-too: ann\n",
                          conf=HOUR | {"user_message_limit": 20, "admin_recipient": None,
                                       "mydestination": "test.example"})
        (i.mail / "mallory").write_text("no maildir\n")
        i.start()
        sender = lambda n: f"mallory+{n}@test.example"
        for n in range(20):
            # A message that has gone counts beside its report until the next walk.
            wait(lambda: self.submit(i, "a@bad.example", sender=sender(n))[0] == 0, what=f"message {n}")
        wait(lambda: not i.files("gate/maildrop", "incoming", "active"), what="reports that wait")
        table = i.queue(1) / "gate/waiting"
        wait(lambda: time.time() - table.stat().st_mtime > 3, what="the walk behind the last change")
        code, said = self.submit(i, "a@bad.example", sender=sender("x"))
        self.assertEqual(code, 75)
        self.assertRegex(said, r"4\.7\.1 \d+ messages of uid 65534 wait, the limit is 20 \(user_message_limit\); see \"qctl shares\"")
        wait(lambda: not i.files("gate/maildrop", "incoming", "active"), what="reports that wait")
        # None was refused: each failure has its report, which waits, or its message.
        failed = len(re.findall(r"to=<a@bad\.example>.*status=bounced", i.log()))
        self.assertEqual(len(i.files("deferred")), failed)
        self.assertGreaterEqual(failed, 20)
        self.others_go_on(i)
        i.stop()

    def counted(self, i):
        """Messages of the user in the tables of all queues."""
        rows = [row.split() for number in i.numbers for row in (i.queue(number) / "gate/waiting").read_text().splitlines()[1:]]
        return sum(int(row[1]) for row in rows if int(row[0]) == MALLORY)

    @cost(15)
    def test_X6_mail_that_is_deferred_at_once_counts_once(self):
        """Walks begin with messages, and meet them in incoming/, active/ and deferred/; of ten about one."""
        limit = 48
        i = self.instance(queues=8, routing="later.example smtp:127.0.0.1:1\n* local\n",
                          conf=HOUR | {"user_message_limit": limit}).start()
        wait(lambda: all((i.queue(n) / "gate/waiting").exists() for n in i.numbers), what="the first walks")
        for n in range(limit):
            self.assertEqual(self.submit(i, "x@later.example"), (0, ""), f"message {n}")
            until = time.monotonic() + 0.2
            # A walk that the message begins has ended within this time.
            while len(i.files("deferred")) <= n or self.counted(i) <= n or time.monotonic() < until:
                self.assertLessEqual(self.counted(i), n + 1)
                time.sleep(0.01)  # between two looks
        code, said = self.submit(i, "x@later.example")
        self.assertEqual(code, 75)
        self.assertIn(f"{limit} messages of uid 65534 wait, the limit is {limit} (user_message_limit); see \"qctl shares\"", said)
        i.stop()

    def shares(self, i, *words, **how):
        return self.run_shares(i, *words, **how).stdout

    def complaint(self, i, *words, **how):
        return self.run_shares(i, *words, **how).stderr

    def run_shares(self, i, *words, user=None, groups=(), status=0, name="qctl"):
        who = {} if user is None else {"user": user, "group": "nogroup", "extra_groups": groups}
        done = subprocess.run([name, "shares", *words], executable=i.dir / "qctl", env=i.environment(),
                              capture_output=True, text=True, check=False, **who)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done

    def rows(self, i, *words, **who):
        return [json.loads(line) for line in self.shares(i, "--json", *words, **who).splitlines()]

    def no_face_shows_more(self, i):
        """The caller of queue-look chooses the name, and with it how the words are read."""
        for name in ("mailq", "sendmail", "postqueue", "postsuper", "qread", "x", "/qctl/mailq", ""):
            for words in (["shares"], ["shares", "--json"]):
                done = subprocess.run(["queue-look", str(i.base), name, *words], executable=i.dir / "queue-look",
                                      capture_output=True, text=True, check=False, user=OTHER, group="nogroup",
                                      extra_groups=[])
                self.assertEqual((done.returncode, done.stdout), (77, ""), f"{name} {words}: {done.stderr}")

    @cost(10)
    def test_X24_who_sees_which_shares(self):
        i = self.instance(queues=2, routing="later.example smtp:127.0.0.1:1\n* local\n", conf=HOUR | {
            "reader_group": "operator", "operator_group": "games", "user_message_limit": 100,
            "user_message_rate": 3}).start()
        i.looker()
        for _ in range(3):
            self.assertEqual(self.submit(i, "x@later.example"), (0, ""))
        self.assertEqual(self.submit(i, "x@later.example", uid=OTHER), (0, ""))
        self.assertEqual(self.submit(i, "x@later.example", uid=None), (0, ""))
        wait(lambda: len(i.files("deferred")) == 5 and not i.files("incoming", "active"), what="five messages")
        ours = lambda rows: {r["uid"]: r for r in rows}
        wait(lambda: [ours(self.rows(i)).get(uid, {}).get("messages") for uid in (MALLORY, OTHER)] == [3, 1],
             what="the counts of a walk")
        for who in ({}, {"user": OTHER, "groups": ["operator"]}, {"user": OTHER, "groups": ["games"]}):
            rows = self.rows(i, **who)
            self.assertEqual([r["uid"] for r in rows if r["uid"]], [MALLORY, OTHER], "the fullest first")
            one = rows[0]
            self.assertEqual((one["user"], one["messages"], one["messages_limit"], one["files"]), ("nobody", 3, 100, 3))
            self.assertGreater(one["bytes"], 500)
            self.assertEqual((one["bytes_limit"], one["under_way_limit"], one["running"]), (1 << 30, 20, True))
            self.assertEqual((one["rate"], one["under_way"]), (None, None) if who else (one["rate"], 0))
        # Each of the three counts for twenty seconds.
        self.assertIn(self.rows(i)[0]["rate"], (1, 2, 3))
        self.assertEqual([r["uid"] for r in self.rows(i, "nobody")], [MALLORY])
        self.assertEqual([r["messages"] for r in self.rows(i, "4711")], [0])
        self.assertEqual(self.complaint(i, "no-such-user\x1b", status=67), "qctl: no such user: no-such-user?\n")
        # Everybody else sees the own row, and gets no other by any words.
        self.assertEqual([r["uid"] for r in self.rows(i, user=OTHER)], [OTHER])
        said = self.shares(i, user=OTHER)
        self.assertIn(" RATE LEVEL ", said.splitlines()[0])
        self.assertIn("60123\n", said)
        for words in (["60123"], ["--json", "60123"]):
            self.assertIn("60123", self.shares(i, *words, user=OTHER))
        for words in (["nobody"], ["65534"], ["nobody", "--json"]):
            self.assertIn("nobody", self.shares(i, *words, user=MALLORY))
        self.shares(i, "60123", user=MALLORY, status=77)
        self.assertNotIn("nobody", said)
        for words in (["nobody"], ["--json", "nobody"], ["65534"], ["--", "nobody"], ["-c", str(i.conf_file), "nobody"]):
            self.shares(i, *words, user=OTHER, status=77)
        self.no_face_shows_more(i)
        i.stop()
        self.assertIn("The instance does not run.", self.shares(i))
        # Drops of a time when nothing runs are counted beside the last walk.
        self.assertEqual(self.submit(i, "x@later.example", uid=OTHER), (0, ""))
        mine = ours(self.rows(i))[OTHER]
        self.assertEqual((mine["messages"], mine["running"]), (2, False))
        self.assertLess(abs(mine["counted_at"] - time.time()), 300)
