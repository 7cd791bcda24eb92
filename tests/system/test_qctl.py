"""Messages in the queues, as an operator reads them (qctl(8))."""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

from case import SystemTest, cost, needs_root
from hung_disk import HungDisk, missing
from instance import AS_ROOT, BIN, HANG, USERS, wait

HELLO = b"Subject: hello\n\nhello\n"
LATER = 'later.example smtp:127.0.0.1:1\nbad.example error:"no"\n* local\n'  # 1: refused


def records(listed):
    """Of qread, whose order is that of the loads: one message each."""
    return sorted(re.split(r"^(?=\d)", listed, flags=re.M))


class Queues(SystemTest):
    def call(self, i, *words, name="qctl", status=0, text=None, **options):
        done = subprocess.run([name, *words], executable=BIN / "qctl", input=text, text=True,
                              capture_output=True, check=False, env=i.environment(), **options)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done

    def rows(self, i, *words):
        return [json.loads(line) for line in self.call(i, "list", "--json", *words).stdout.splitlines()]

    def waiting(self, count=4, **options):
        """An instance with so many messages that wait, in two queues, and one
        that has failed; nothing of it moves any more."""
        i = self.instance(queues=2, routing=LATER, conf={
            "minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}, **options)
        i.start()
        i.stop()
        self.fail_by_hand(i)
        i.start()
        for n in range(count):
            i.inject(HELLO, f"r{n}@later.example", "b@bad.example", sender=f"s{n}@test.example")
            i.wait_delivered(f"s{n}", 1)  # the report
        wait(lambda: len(i.files("deferred")) == count and len(i.files("hold")) == 1 and
             not i.files("active", "incoming", "prepared"), what="all deferred")
        return i

    @staticmethod
    def fail_by_hand(i):
        """A message in hold/ that has failed, as versions without reports left it."""
        i.inject(HELLO, "b@bad.example", sender="")
        [message] = i.files("incoming")
        at = message.read_bytes().rindex(b"R.")
        with open(message, "r+b") as f:
            f.seek(at + 1)
            f.write(b"F")
        queue, split = message.parents[2], message.parent.name
        message.rename(queue / "hold" / message.name)
        reason = queue / "bounce" / split / message.name
        reason.write_text(f"0\t{int(time.time())}\t5.1.1\tnone\tb@bad.example\tno such user\n")
        shutil.chown(reason, (queue / "bounce").owner(), (queue / "bounce").group())


class Lists(Queues):
    def test_empty(self):
        i = self.running()
        self.assertEqual(self.call(i, "list").stdout, "Mail queue is empty\n")
        self.assertEqual(self.call(i, "-p", name="postqueue").stdout, "Mail queue is empty\n")
        self.assertEqual(self.call(i, "-j", name="postqueue").stdout, "")

    def test_forms_of_the_list(self):
        i = self.waiting()
        listed = self.call(i, "-p", name="/usr/sbin/postqueue").stdout
        self.assertEqual(listed.count("Request"), 1, "one total, however many queues")
        self.assertRegex(listed.splitlines()[0], r"^-Queue ID-  +--Size-- ")
        self.assertRegex(listed, r"-- \d+ Kbytes in 5 Requests\.\n$")
        rows = self.rows(i)
        self.assertEqual({row["queue"] for row in rows} | {1, 2}, {1, 2})
        self.assertEqual([row["queue_name"] for row in rows].count("deferred"), 4)
        for row in rows:
            self.assertIn(row["queue_id"], listed)
            for name in ("arrival_time", "message_size", "forced_expire", "sender"):
                self.assertIn(name, row)
            for rcpt in row["recipients"]:
                self.assertIn(rcpt["address"], listed)
                self.assertRegex(rcpt["delay_reason"], r"^[45]\.\d+\.\d+ ")
        # sendmail -bp, with qctl beside it as it is installed
        shutil.copy(BIN / "qctl", i.dir / "qctl")
        done = subprocess.run([i.face("sendmail"), "-bp"], capture_output=True, text=True,
                              check=False, env=i.environment())
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(listed.splitlines()), done.stderr)
        i.face("sendmail").rename(i.dir / "mailq")
        done = subprocess.run([i.dir / "mailq", "-Ac"], capture_output=True, text=True, check=False,
                              env=i.environment())
        self.assertIn("in 5 Requests.", done.stdout, done.stderr)

    def test_qread(self):
        i = self.waiting()
        ids = {row["queue_id"]: row for row in self.rows(i, "state=deferred")}
        listed = self.call(i, name="qread").stdout
        found = re.findall(r"^\d+ \w{3} \d{4} \d\d:\d\d:\d\d GMT  #(\w+)  (\d+)  <(\S*)>  bouncing\n"
                           r"\tremote\t(\S+)\n  done\tlocal\t(\S+)\n", listed, re.M)
        self.assertEqual({row[0] for row in found}, set(ids), listed)
        for id, size, sender, *rcpts in found:
            self.assertEqual((int(size), sender), (ids[id]["message_size"], ids[id]["sender"]))
            self.assertEqual(rcpts, [r["address"] for r in ids[id]["recipients"]])
        self.assertEqual(listed.count("\n"), 12)
        self.assertEqual(re.findall("\n.*\t.*", self.call(i, "-l", name="qread").stdout),
                         ["\n  done\tlocal\tb@bad.example"] * 4)
        self.assertEqual(self.call(i, "-cs", name="qread").stdout,
                         "Total Messages in local  queue: 0\nTotal Messages in remote queue: 4\n"
                         "Total Messages in bounce queue: 4\n")
        wait(lambda: not any(i.page(n)[name] for n in i.numbers for name in ("local_used", "remote_used")),
             what="pages without deliveries")
        queues = self.call(i, "-i", name="qread").stdout.splitlines()
        self.assertEqual(queues[0], "queue      local  Remote   +/- flag")
        for line in queues[1:3]:
            self.assertRegex(line, r"^queue[12]   +0/\d+ +0/\d+ +- enabled$")
        self.assertRegex(queues[3], r"^threshold = \d+\.00 , qcount = 2, qconf = 2, ")
        i.stop()
        self.assertEqual(records(self.call(i, name="qread").stdout), records(listed))
        self.assertIn("no supervisor", self.call(i, "-i", name="qread", status=69).stderr)
        i.inject(HELLO, "x@later.example", "y@test.example", sender="t@test.example")
        self.assertEqual(self.call(i, "-t", name="qread").stdout.splitlines()[1:],
                         ["\ttodo\tx@later.example", "\ttodo\ty@test.example"])

    def test_filters(self):
        i = self.waiting()
        for words, count in ((["sender=s1@*"], 1), (["sender=<>"], 1), (["sender=s1@*", "sender=s2@*"], 2),
                             (["domain=later.example"], 4), (["domain=bad.example"], 5),
                             (["domain=later.example", "recipient=b@bad.example"], 0),
                             (["reason=refused", "domain=later.example"], 4),
                             (["state=hold"], 1), (["state=active,incoming"], 0), (["queue=1-2"], 5),
                             (["older=1h"], 0), (["younger=1h"], 5), (["larger=1m"], 0),
                             (["smaller=1m", "ALL"], 5)):
            self.assertEqual(len(self.rows(i, *words)), count, words)
        for verb in ("list", "show", "explain"):
            self.assertEqual(self.call(i, verb, "older=1h").stdout, "No message fits\n")
            self.assertEqual(self.call(i, verb, "id=nonsense").stdout, "No message fits\n")
        for verb in ("list", "shape", "retry"):
            done = self.call(i, verb, "queue=9,11", status=65)
            self.assertEqual((done.stdout, done.stderr), ("", "qctl: no queue that queue= names is there\n"))
        self.assertEqual(len(self.rows(i, "queue=2-9")), len(self.rows(i, "queue=2")), "some are there")
        for words, count in ((["sender!=s1@*"], 4), (["sender!=s1@*", "sender!=<>"], 3), (["domain!=later.example"], 1),
                             (["recipient!=r2@*", "state=deferred"], 3), (["reason!=refused"], 1),
                             (["id=" + self.rows(i, "sender=s3@*")[0]["queue_id"][:-1] + "*"], 1)):
            self.assertEqual(len(self.rows(i, *words)), count, words)
        for words, count in ((["-qSs1@"], 1), (["-qS!s1@"], 4), (["-q!Rr2@", "-Ac", "-qRlater"], 3), (["-qI"], 5)):
            listed = self.call(i, *words, name="mailq").stdout
            self.assertRegex(listed, rf"in {count} Request", words)
        ids = [row["queue_id"] for row in self.rows(i)]
        some = self.call(i, "list", "--json", "-", "state=deferred",
                         text="".join(f"{id}*  x\n" for id in ids))
        self.assertEqual(some.stdout.count("\n"), 4)
        self.assertEqual(self.call(i, "list", "-", text="").stdout, "", "no id is not every id")
        shape = self.call(i, "shape").stdout.splitlines()
        self.assertEqual([line.split()[:3] for line in shape],
                         [["T", "5", "10"], ["TOTAL", "9", "9"], ["bad.example", "5", "5"],
                          ["later.example", "4", "4"]])

    def test_show_finds_a_message_wherever_it_is(self):
        i = self.waiting()
        i.stop()
        row = self.rows(i, "sender=s0@*")[0]
        shown = self.call(i, "show", row["queue_id"], "--content").stdout
        self.assertIn("Recipient (pending): <r0@later.example>", shown)
        self.assertIn("Recipient (failed): <b@bad.example>", shown)
        self.assertRegex(shown, r"Due: .* \(in \d+m\)")
        self.assertIn(f"id {row['queue_id']};", shown, "the content")
        (path,) = [p for p in i.files("deferred") if f"File: {p}\n" in shown]
        for state in (f"incoming/{path.parent.name}", "hold", "corrupt"):
            there = i.queue(3 - row["queue"]) / state / path.name
            path.rename(there)
            path = there
            shown = self.call(i, "show", row["queue_id"]).stdout
            self.assertIn(f"File: {path}\n", shown)
        other = row["queue_id"][:-1] + ("E" if row["queue_id"].endswith("F") else "F")
        self.call(i, "show", other, status=65)
        self.assertEqual(len(self.rows(i)), 5, "corrupt is listed, too")
        self.assertEqual(len(self.rows(i, "state=corrupt")), 1)

    def test_stopped_with_a_wrong_configuration(self):
        i = self.waiting()
        i.stop()
        i.write_conf(queue_count="many")
        done = self.call(i, "list")
        self.assertIn("in 5 Requests.", done.stdout)
        self.assertIn("the configuration in force is used", done.stderr)

    def test_A7_escapes_and_damage_are_harmless(self):
        i = self.waiting(count=2)
        i.stop()
        for path in i.files("defer"):
            text = path.read_bytes()
            path.write_bytes(text.replace(b"connect", b"\033[2J\x9b1m\xc2\x9b") +
                             b"0\t" * 5 + b"x" * 100000 + b"\nhalf a line")
        broken = i.files("deferred")[0]
        with open(broken, "r+b") as f:
            f.seek(-20, os.SEEK_END)
            f.write(b"\033]0;x\007")
        (i.queue(1) / "hold" / "\033[2J").write_bytes(b"no message")
        for words in (["list"], ["list", "--json"], ["show", "ALL"], ["shape"]):
            done = subprocess.run([BIN / "qctl", *words], capture_output=True, check=False,
                                  env=i.environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            said = done.stdout + done.stderr
            self.assertFalse(re.search(rb"[\x00-\x08\x0b-\x1f\x7f\x9b]", said), said)
            if words != ["shape"]:
                self.assertIn(b"trailer", said)
        self.assertIn("[2J", self.call(i, "list").stdout)

    @needs_root
    def test_permission(self):
        i = self.waiting(count=1)
        nobody = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        qctl = shutil.copy(BIN / "qctl", i.dir / "qctl")
        done = subprocess.run([qctl, "list"], capture_output=True, text=True, check=False,
                              env=i.environment(), **nobody)
        self.assertEqual((done.returncode, done.stdout), (77, ""))
        self.assertRegex(done.stderr, r"^qctl: no permission to read the queues; .*\n$")
        nobody["extra_groups"] = [USERS["qmail_group"]]
        done = subprocess.run([qctl, "list"], capture_output=True, text=True, check=False,
                              env=i.environment(), **nobody)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("in 2 Requests.", done.stdout)
        self.assertIn("refused)", done.stdout, "a member of the group reads the reasons")

    @needs_root
    @cost(30)
    def test_a_disk_that_hangs_hides_no_other_queue(self):
        reason = missing()
        if reason:
            self.skipTest(reason)
        i = self.instance(queues=2, routing=LATER, conf={
            "minimal_backoff_time": "1h", "maximal_backoff_time": "1h", "disk_time_limit": "5s"})
        with contextlib.closing(HungDisk(i.dir / "disk", i.queue(2))) as disk:
            i.start()
            while {path.parts[-4] for path in i.files("incoming", "active", "deferred")} != {"queue1", "queue2"}:
                i.inject(HELLO, "r@later.example")  # each where chance puts it
            wait(lambda: not i.files("incoming", "active"), what="all deferred")
            i.stop()
            disk.remount()
            disk.hang()
            done = self.call(i, "list", "--json", status=75)
            self.assertEqual({json.loads(line)["queue"] for line in done.stdout.splitlines()}, {1})
            self.assertEqual(done.stderr, "qctl: queue 2: its disk does not answer; what it holds is "
                                          "not shown\n")


class Acts(Queues):
    def counts(self, i):
        return tuple(len(i.files(state)) for state in ("deferred", "hold", "deleted"))

    def act(self, i, *words, **options):
        """The number of messages that it was done with."""
        said = self.call(i, *words, **options).stderr
        return int(re.search(r": [A-Z][a-z]+: (\d+) messages?\n", said).group(1))

    def test_each_act_while_the_queue_runs(self):
        i = self.waiting()
        self.assertEqual(self.call(i, "hold", "ALL", "--dry-run").stdout, "would hold 4 messages\n")
        self.assertEqual(self.counts(i), (4, 1, 0))
        self.assertEqual(self.act(i, "hold", "sender=s1@*", "sender=s2@*"), 2)
        self.assertEqual(self.counts(i), (2, 3, 0))
        self.assertEqual(self.act(i, "release", "domain=later.example"), 2)
        self.assertEqual(self.act(i, "delete", "domain=later.example"), 4)
        self.assertEqual(self.counts(i), (0, 1, 4))
        self.assertEqual(len(self.rows(i)), 1, "what is deleted does not wait")
        self.assertEqual(self.act(i, "undelete", "sender=s3@*"), 1)
        self.assertEqual(self.act(i, "undelete", "ALL"), 3)
        self.assertEqual(self.counts(i), (0, 5, 0))
        self.assertEqual(self.act(i, "requeue", "domain=later.example"), 4)
        wait(lambda: self.counts(i) == (4, 1, 0), what="tried again")
        i.stop()
        self.assertRegex(i.log(), r"operator uid=\d+: hold \d messages? \(hold sender=s1@\* sender=s2@\*\)")

    def test_retry_delivers_at_once(self):
        i = self.waiting()
        i.routing_file.write_text("* local\n")
        i.reload()
        wait(lambda: i.log_has("reloaded"), what="the reload")
        for words, name in ((["retry", "sender=s0@*"], "qctl"), (["-i", self.rows(i, "sender=s1@*")[0]["queue_id"]],
                            "postqueue"), (["-s", "later.example"], "postqueue"), (["-f"], "postqueue")):
            self.act(i, *words, name=name)
        for n in range(4):
            i.wait_delivered(f"r{n}", 1)

    def test_A10_ids_are_taken_as_they_are_printed(self):
        """By each face, as mailq, qread and the log print them."""
        i = self.waiting()
        name, *_ = [row["queue_id"] for row in self.rows(i, "sender=s0@*")]
        forms = (name, name + "*", name + "!", name + "!#", name.lower(), name + "\n", " " + name, "#" + name, name + ":")
        for form in forms:
            self.assertIn(f"ID: {name}\n", self.call(i, "show", form).stdout, repr(form))
            self.call(i, "-h", form, name="postsuper")
            self.call(i, "-H", form, name="postsuper")
            self.call(i, "-h", "-", name="postsuper", text=form + "\n")
            self.call(i, "-H", "-", name="postsuper", text=form.rstrip() + "  260 Sun\r\n\n")
        i.stop()
        for form in forms:
            self.call(i, "-h", form, name="postsuper")
            self.call(i, "-H", form, name="postsuper")
            self.call(i, "-i", form, name="postqueue")
        for wrong in (name + "x", "*" + name, name[:-1] + "*Z", "#", "!", name + "/1"):
            self.call(i, "show", wrong, status=64)

    def test_A10_qread_without_messages_prints_counts(self):
        i = self.waiting()
        said = self.call(i, "-s", name="qread").stdout
        self.assertRegex(said, r"^Total Messages in .*: \d+\n")
        self.assertNotIn("#", said)
        self.assertEqual(said, self.call(i, "-sc", name="qread").stdout)
        i.stop()

    # mutation: send_answer() of operators_acts.c counts an answer, not its messages.
    def test_retry_all_logs_the_number(self):
        i = self.waiting()
        self.assertEqual(self.act(i, "retry", "ALL"), 4)
        said = r"queue-send/\d+.*operator uid=\d+: retry (\d+) messages? \(retry ALL\)"
        wait(lambda: sum(map(int, re.findall(said, i.log()))) == 4, what="the log of all, by each queue")

    def due_times(self, i):
        return sorted(row["due_time"] for row in self.rows(i, "state=deferred"))

    def test_a_rate_is_kept_by_times_on_disk(self):
        i = self.waiting()
        before = time.time()
        done = self.call(i, "retry", "ALL", "--rate=6/h")
        self.assertIn("4 messages at this rate: the last in 30m", done.stderr)
        # The first one is tried at once, and waits for its hour again.
        wait(lambda: len(due := self.due_times(i)) == 4 and due[0] > before + 5, what="deferred again")
        due = [t - before for t in self.due_times(i)]
        used = len({row["queue"] for row in self.rows(i, "state=deferred")})
        self.assertEqual(len([t for t in due if 5 < t < 2100]), 4 - used, due)
        self.assertIn("would retry 4", self.call(i, "retry", "ALL", "--rate=6/h", "--dry-run").stdout)
        self.assertEqual(self.act(i, "hold", "domain=later.example"), 4)
        done = self.call(i, "release", "domain=later.example", "--rate=1/h", status=65)
        self.assertIn("longer than maximal_backoff_time", done.stderr)
        self.assertEqual(self.counts(i)[:2], (0, 5))
        i.stop()
        self.call(i, "release", "domain=later.example", "--rate=6/h")
        due = [t - before for t in self.due_times(i)]
        self.assertTrue(all(t < 2400 for t in due), due)
        i.routing_file.write_text("* local\n")
        i.start()
        wait(lambda: 1 <= self.counts(i)[0] <= 3, what="those that are due, and no others")
        self.assertLessEqual(max(self.due_times(i)) - before, 2400, "a restart keeps the times")

    def test_requests_of_sendmail(self):
        i = self.waiting()
        i.routing_file.write_text("* local\n")
        i.reload()
        wait(lambda: i.log_has("reloaded"), what="the reload")
        shutil.copy(BIN / "qctl", i.dir / "qctl")
        id2 = self.rows(i, "sender=s2@*")[0]["queue_id"]
        for words, names in (("-q30m", ()), ("-qSs0@ -qRr1@", ()), ("-qRr9@ -q", ()), ("-bp -q", ()), ("-q -bp", ()),
                             ("-qSs0@", "0"), (f"-qI{id2}", "02"), ("-q!Rr3@later", "012"), ("-q", "0123")):
            done = subprocess.run([i.face("sendmail"), *words.split()], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=False, env=i.environment())
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            self.assertEqual(done.stdout != "", "-bp" in words, words)
            for n in names:
                i.wait_delivered(f"r{n}", 1)
            self.assertEqual(self.counts(i)[0], 4 - len(names), words)

    def test_requeue_with_failed_recipients(self):
        i = self.waiting()
        i.routing_file.write_text("* local\n")
        i.reload()
        wait(lambda: i.log_has("reloaded"), what="the reload")
        self.assertEqual(self.act(i, "requeue", "ALL", "--failed"), 5)
        i.wait_delivered("b", 5)
        i.wait_empty()
        self.assertEqual(i.files("hold", "defer", "bounce"), [])

    # mutation: qctl/select/match.c, fits_attempts() compares with >; fits_attempted() reads no number.
    def test_attempts_choose(self):
        i = self.waiting(count=3)
        self.assertEqual(self.act(i, "retry", "sender=s0@*"), 1)
        wait(lambda: any(text.startswith("attempt\t2\n") for text in i.texts("defer")), what="the second attempt")
        wait(lambda: self.counts(i)[0] == 3, what="deferred again")
        later = "state=deferred"
        for words, count in ((["attempts=1", later], 3), (["attempts=2", later], 1), (["attempts=3"], 0),
                             (["fewer=2", later], 2), (["fewer=1"], 1), (["attempts=1", "fewer=2"], 2),
                             (["attempts=2", "sender=s1@*"], 0), (["attempts=2", "domain=later.example"], 1)):
            self.assertEqual(len(self.rows(i, *words)), count, words)
        self.assertEqual([row["sender"] for row in self.rows(i, "attempts=2")], ["s0@test.example"])
        self.assertEqual(self.call(i, "shape", "attempts=2").stdout.splitlines()[1].split()[:2], ["TOTAL", "2"])
        self.assertIn("2 times", self.call(i, "explain", "attempts=2").stdout)
        self.assertEqual(self.act(i, "hold", "attempts=2"), 1)
        self.assertEqual(self.counts(i), (2, 2, 0))
        self.assertIn("mail to come has no age, place or attempts yet",
                      self.call(i, "hold", "--rule", "attempts=2", status=64).stderr)
        self.assertIn("attempts takes a number of attempts, from 1",
                      self.call(i, "delete", "attempts=0", status=64).stderr)
        i.stop()
        i.inject(HELLO, "new@later.example", sender="new@test.example")
        self.assertEqual({row["sender"] for row in self.rows(i, "fewer=1")}, {"new@test.example", "MAILER-DAEMON"})
        self.assertEqual(self.act(i, "delete", "fewer=2", later), 2)
        self.assertEqual(self.act(i, "release", "attempts=2"), 1)
        self.assertEqual([row["sender"] for row in self.rows(i, later)], ["s0@test.example"])
        self.assertEqual(self.counts(i), (1, 1, 2))

    def test_stopped(self):
        i = self.waiting()
        i.stop()
        self.assertEqual(self.act(i, "hold", "ALL"), 4)
        self.assertEqual(self.act(i, "delete", "sender=s0@*"), 1)
        self.assertEqual(self.act(i, "release", "domain=later.example"), 3)
        self.assertEqual(self.act(i, "retry", "ALL"), 3)
        self.assertEqual(self.counts(i), (3, 1, 1))
        owners = {p.stat().st_uid for p in i.files("defer")}
        self.assertEqual(len(owners), 1, "files of one user")
        i.routing_file.write_text("* local\n")
        i.start()
        for n in (1, 2, 3):
            i.wait_delivered(f"r{n}", 1)
        self.assertEqual(self.act(i, "undelete", "ALL"), 1)
        self.assertEqual(self.act(i, "release", "sender=s0@*"), 1)
        i.wait_delivered("r0", 1)

    def test_faces_of_postsuper(self):
        i = self.waiting()
        links = i.dir / "bin"
        links.mkdir()
        for name in ("postsuper", "postqueue"):
            (links / name).symlink_to(BIN / "qctl")
        env = i.environment() | {"PATH": f"{links}:{os.environ['PATH']}"}
        done = subprocess.run("postqueue -p | tail -n +2 | awk 'BEGIN { RS = \"\" } $7 == \"s2@test.example\" "
                              "{ print $1 }' | tr -d '*!' | postsuper -d -",
                              shell=True, env=env, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "postsuper: Deleted: 1 message\n")
        self.assertEqual(self.act(i, "-h", "ALL", "deferred", name="postsuper"), 3)
        self.assertEqual(self.act(i, "-H", self.rows(i, "sender=s1@*")[0]["queue_id"], name="postsuper"), 1)
        self.assertEqual(self.act(i, "-r", "ALL", name="postsuper"), 4)
        self.call(i, "-d", "nonsense", name="postsuper", status=64)
        self.assertEqual(self.call(i, "-d", "ALL", "nowhere", name="postsuper", status=64).stderr,
                         "postsuper: `nowhere': state takes maildrop, incoming, active, deferred, hold, deleted, corrupt\n")
        self.call(i, "-p", name="postsuper", status=69)

    # mutation: qctl/routing/route.c, is_open() is always false; add_route() passes over AGENT_ERROR.
    def test_route_says_where_mail_goes(self):
        i = self.instance(routing='far.example smtp:[127.0.0.1]:25\n.far.example discard\ngone.example error:"5.1.1 no"\n',
                          aliases="cat: |/bin/cat, club, /dev/null\nclub: b@far.example, :include:/no/file, daemon, club\n"
                                  "owner-club: daemon\ngone: nobody-there, x@gone.example, y@none.example\n@gone.example: cat\n")
        i.write_conf(mydestination="test.example", maildir_user=None, maildir_path=None, admin_recipient="daemon")
        i.base.mkdir()
        routing, aliases = i.routing_file, i.alias_file
        self.assertEqual(self.call(i, "route", "c@sub.Far.example", "gone@far.example").stdout,
                         f"c@sub.Far.example: discard:sub.far.example ({routing}:2)\n"
                         f"gone@far.example: smtp:[127.0.0.1]:25 ({routing}:1)\n")
        self.assertEqual(self.call(i, "route", "cat", "Root@test.example", status=67).stdout,
                         f"cat: alias cat ({aliases}:1)\n"
                         "  |/bin/cat: program\n"
                         f"  club: list club ({aliases}:2)\n"
                         f"    b@far.example: smtp:[127.0.0.1]:25 ({routing}:1)\n"
                         "    :include:/no/file: file of members, which is not read here\n"
                         "    daemon: local:daemon (mydestination)\n"
                         "    club: NOT DELIVERABLE: local:club (mydestination): there is no such account\n"
                         "  /dev/null: nothing\n"
                         "Root@test.example: alias root (admin_recipient)\n"
                         "  daemon: local:daemon (mydestination)\n")
        rows = [json.loads(row) for row in self.call(i, "route", "--json", "gone", "z@gone.example", status=67).stdout.splitlines()]
        self.assertEqual([(r["address"], r["depth"], r.get("line"), r["deliverable"]) for r in rows[:4]],
                         [("gone", 0, 4, True), ("nobody-there", 1, None, False), ("x@gone.example", 1, 5, True),
                          ("cat", 2, 1, True)])
        self.assertEqual(rows[1]["reason"], "there is no such account")
        i.routing_file.write_text('never.example error:"5.1.2 no"\n')
        self.assertEqual(self.call(i, "route", "x@never.example", status=67).stdout,
                         f"x@never.example: NOT DELIVERABLE: error:5.1.2 no ({routing}:1): the routing refuses it\n")
        self.call(i, "route", "a\nb", status=64)
        for word in ("@", "friend@", "@test.example", ""):
            self.assertEqual(self.call(i, "route", "cat", word, status=64).stderr, f"qctl: `{word}': no address\n")
        self.assertEqual(self.call(i, "route", status=64).stderr, "qctl: route needs an address\n")
        i.routing_file.write_text("far.example nowhere\n")
        self.assertIn(f"{routing}:1: ", self.call(i, "route", "cat", status=78).stderr)

    # mutation: qctl/routing/route.c, add_alias() passes over a wrong line; add_route() names no forward_path.
    def test_route_names_a_wrong_alias_and_the_forward_file(self):
        i = self.instance(aliases="boss: daemon\npostmaster: a b\n")
        i.write_conf(mydestination="test.example", maildir_user=None, maildir_path=None, forward_path="%h/.forward")
        i.base.mkdir()
        said = self.call(i, "route", "postmaster", status=67).stdout
        self.assertRegex(said, rf"^postmaster: NOT DELIVERABLE: alias postmaster \({i.alias_file}:2\): .+; mail waits "
                               r"until the line is mended\n$")
        self.assertEqual(self.call(i, "route", "daemon").stdout,
                         f"daemon: local:daemon ({i.routing_file}:1), or as %h/.forward says where it is a file\n")
        row = json.loads(self.call(i, "route", "--json", "daemon").stdout)
        self.assertEqual(row["forward"], "%h/.forward")

    # mutation: qctl/routing/address.c, address_complete() takes each address as it was written.
    def test_route_puts_the_domain_behind_names(self):
        i = self.instance(routing="vm local\n* smtp:[localhost]:1\n", aliases="root: club, x@vm\nclub: y@far.example\n")
        i.write_conf(myhostname="vm", mydestination="", maildir_path="/nowhere/%u/", admin_recipient="")
        i.base.mkdir()
        routing, aliases = i.routing_file, i.alias_file
        self.assertEqual(self.call(i, "route", "root").stdout.splitlines()[:3],
                         [f"root: alias root ({aliases}:1)", f"  club: alias club ({aliases}:2)",
                          f"    y@far.example: smtp:[localhost]:1 ({routing}:2)"])
        i.write_conf(mydomain="else.example")
        self.assertEqual(self.call(i, "route", "root", "root@vm").stdout.splitlines()[:3],
                         [f"root: smtp:[localhost]:1 ({routing}:2)", f"root@vm: alias root ({aliases}:1)",
                          f"  club: smtp:[localhost]:1 ({routing}:2)"])
        self.assertEqual(self.call(i, "route", "n" * 510, status=67).stdout,
                         f"{'n' * 510}: NOT DELIVERABLE: no address: with its domain it is too long\n")

    # mutation: qctl/routing/route.c, answer() with options.sender.
    def test_route_puts_the_domain_behind_the_sender(self):
        i = self.instance(routing="home.example local\n", aliases="",
                          conf={"relayhost": "default.example", "mydomain": "home.example"})
        senders = i.dir / "senders"
        senders.write_text("alice@home.example relay.example\n@ü.example other.example\n")
        i.write_conf(sender_dependent_relayhost=senders)
        i.base.mkdir()
        for sender, said in (("alice", f"relay.example ({senders}:1)"),
                             ("bob@Ü.example.", f"other.example ({senders}:2)"),
                             ("bob", "default.example (relayhost)"), ("<>", "default.example (relayhost)")):
            self.assertEqual(self.call(i, "route", "--sender", sender, "x@far.example").stdout,
                             f"x@far.example: smtp:{said}\n")
        no_label = "the domain has an empty label, or a character that no domain has"
        for sender, why in (("@", "no address"), ("alice@", "no address"), ("@home.example", "no address"),
                            ("a@ü..example", "the domain is not a valid internationalized domain name"),
                            ("a@b..example", no_label), ("<alice@home.example>", no_label),
                            ("a" * 505, "with its domain it is too long")):
            said = self.call(i, "route", "--sender", sender, "x@far.example", status=64)
            shown = sender if len(sender) < 50 else "a" * 48 + "..."
            self.assertEqual((said.stdout, said.stderr), ("", f"qctl: --sender `{shown}': {why}\n"))

    # mutation: qctl/routing/route.c, answer() without address_add_rewrite(), or without over_smtp.
    def test_route_shows_the_other_address_of_a_sender(self):
        i = self.instance(routing="here.example local\nlmtp.example lmtp:[127.0.0.1]:24\n* smtp:[127.0.0.1]:25\n",
                          aliases="", conf={"mydomain": "home.example"})
        rewrites = i.dir / "rewrites"
        rewrites.write_text("root@home.example cron@relay.example\n@home.example @relay.example\n")
        i.write_conf(sender_rewrite=rewrites)
        i.base.mkdir()

        def said(sender, *addresses):
            return self.call(i, "route", *sender, *addresses).stdout.splitlines()
        far = f"x@far.example: smtp:[127.0.0.1]:25 ({i.routing_file}:3)"
        for sender, other in (("root", f"root@home.example is sent as cron@relay.example ({rewrites}:1)"),
                              ("Bob+x@HOME.example", f"Bob+x@HOME.example is sent as Bob+x@relay.example ({rewrites}:2)")):
            self.assertEqual(said(["--sender", sender], "x@far.example"), [far, "sender " + other])
            self.assertEqual(len(said(["--sender", sender], "x@here.example", "x@lmtp.example")), 2, "not over SMTP")
            self.assertEqual(len(said(["--sender", sender], "x@far.example", "y@far.example")), 3)
        for sender in ([], ["--sender", "<>"], ["--sender", "root@else.example"]):
            self.assertEqual(said(sender, "x@far.example"), [far])
        self.assertEqual(json.loads(said(["--json", "--sender", "root"], "x@far.example")[-1]),
                         {"sender": "root@home.example", "sent_as": "cron@relay.example", "file": str(rewrites), "line": 1})
        rewrites.write_text("root cron\n")
        self.assertEqual(said([], "x@far.example"), [far])
        wrong = self.call(i, "route", "--sender", "root", "x@far.example", status=78)
        self.assertEqual((wrong.stdout, wrong.stderr), (
            "", f"qctl: {rewrites}:1: \"root\" is not user@domain or @domain; add the domain\n"))

    # mutation: qctl/routing/address.c, address_complete() without judge_domain(); judge_domain() without
    # nexthop_fits_domain().
    def test_route_refuses_a_domain_that_is_none(self):
        i = self.instance(routing="* smtp:[localhost]:1\n", aliases="")
        i.base.mkdir()
        no_label = "the domain has an empty label, or a character that no domain has"
        for address, why in (
                ("a@ü..example", "the domain is not a valid internationalized domain name"),
                ("a@-ü.example", "a label of the domain begins or ends with a hyphen"),
                ("a@💩.example", "the domain has a character that IDNA 2008 does not allow"),
                ("a@b..example", no_label), ("a@.example", no_label), ("a@b c.example", no_label)):
            self.assertEqual(self.call(i, "route", address, status=67).stdout,
                             f"{address}: NOT DELIVERABLE: no address: {why}\n")
        for address in ("a@ü.example", "a@ü.example.", "a@B_c.example", "a@[192.0.2.1]", "a@[IPv6:2001:db8::1]",
                        "a b@c"):
            self.assertEqual(self.call(i, "route", address).stdout,
                             f"{address}: smtp:[localhost]:1 ({i.routing_file}:1)\n")

    # mutation: common/config/account.c, conf_is_private() asks geteuid() alone.
    def test_route_knows_whose_instance_takes_mail_for_all(self):
        i = self.instance(routing="* local\n", aliases="")
        i.write_conf(maildir_user=None)
        i.base.mkdir()
        if AS_ROOT:
            shutil.chown(i.base, USERS["maildir_user"])
        routing = i.routing_file
        self.assertEqual(self.call(i, "route", "friend@example.net").stdout,
                         f"friend@example.net: local:friend ({routing}:1)\n")
        i.write_conf(maildir_path="%h/Maildir/")
        refused = f"friend@example.net: NOT DELIVERABLE: local:friend ({routing}:1): there is no such account\n"
        self.assertEqual(self.call(i, "route", "friend@example.net", status=67).stdout, refused)
        # A directory of root, whoever asks.
        i.write_conf(queue_base="/usr", maildir_path=f"{i.mail}/%u/", admin_recipient="")
        self.assertEqual(self.call(i, "route", "friend@example.net", "postmaster@example.net", status=67).stdout,
                         refused + f"postmaster@example.net: local:postmaster ({routing}:1)\n")

    def test_a_hold_has_a_reason_and_an_end(self):
        i = self.waiting()
        self.assertEqual(self.act(i, "hold", "sender=s0@*", "--reason=new \033[2Jdisk", "--for=1d"), 1)
        self.assertEqual(self.act(i, "hold", "sender=s1@*", "--for=1s"), 1)
        (row,) = self.rows(i, "sender=s0@*")
        shown = self.call(i, "show", row["queue_id"]).stdout
        self.assertRegex(shown, r"Held by: \S+\nHeld since: .* ago\)\n"
                                r"Held until: .*\(in 2[34]h.*\)\nHeld because: new \?\[2Jdisk\n")
        self.assertRegex(self.call(i, "explain", row["queue_id"]).stdout,
                         r"by an operator \(\S+: new \?\[2Jdisk\)\. Next: it is released on .* \(in 2[34]h\)\.\n")
        wait(lambda: i.log_has("released: the time of its hold is over"), what="its end")
        wait(lambda: self.counts(i)[:2] == (3, 2), what="deferred again")
        # mutation: qctl/act/targets.c, is_meant() is act_applies() alone; queue-send/operators/acts.c, may_be_done() is.
        self.assertEqual(self.act(i, "hold", "sender=s0@*", "--reason=not meant"), 0, "a filter passes it by")
        self.assertEqual(self.act(i, "hold", "sender=s0@*", "state=hold"), 0, "without a note")
        self.assertEqual(self.act(i, "hold", row["queue_id"], "--reason=other"), 1)
        self.assertRegex(self.call(i, "show", row["queue_id"]).stdout, r"Held since: .* ago\)\nHeld because: other\n")
        self.assertEqual(self.act(i, "hold", "sender=s0@*", "state=hold", "--for=2d"), 1)
        self.assertRegex(self.call(i, "show", row["queue_id"]).stdout, r"Held until: .*\(in (47|48)h.*\)\nSize")
        i.stop()
        self.assertEqual(self.act(i, "hold", row["queue_id"], "--reason=offline"), 1)
        self.assertRegex(self.call(i, "show", row["queue_id"]).stdout, r"Held since: .* ago\)\nHeld because: offline\n")
        self.assertEqual(self.act(i, "hold", row["queue_id"], "--reason=mine", "--for=1d"), 1)
        self.assertEqual(self.act(i, "hold", "sender=s2@*", "--for=1s", "--reason=x"), 1)
        self.assertIn("Held because: x\n", self.call(i, "show", "sender=s2@*").stdout)
        i.routing_file.write_text("* local\n")
        i.start()
        i.wait_delivered("r2", 1)
        self.assertEqual(len(self.rows(i, "sender=s0@*", "state=hold")), 1, "its day is not over")

    def test_undeleted_mail_stays_on_hold(self):
        """A hold that has ended in the meantime does not send it."""
        i = self.instance(queues=1, routing=LATER, conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        i.start()
        for n in range(3):
            i.inject(HELLO, f"r{n}@later.example", sender=f"s{n}@test.example")
        wait(lambda: len(i.files("deferred")) == 3, what="all deferred")
        ids = {row["sender"][:2]: row["queue_id"] for row in self.rows(i)}
        for n in (0, 1):
            self.act(i, "hold", ids[f"s{n}"], "--for=1s")
            self.act(i, "delete", ids[f"s{n}"])
        end = time.time() + 2
        wait(lambda: time.time() > end, what="the ends of both")
        self.assertEqual(self.act(i, "undelete", ids["s0"]), 1)
        i.stop()
        self.assertEqual(self.act(i, "undelete", ids["s1"]), 1)
        i.start()
        for n in (1, 2):  # hold/ was walked
            self.act(i, "hold", ids["s2"], "--for=1s")
            wait(lambda n=n: i.log().count("released: the time of its hold is over") >= n, what="its end")
        self.assertEqual({row["queue_id"] for row in self.rows(i, "state=hold")}, {ids["s0"], ids["s1"]})

    def test_given_up_mail_is_returned(self):
        i = self.waiting()
        rows = self.rows(i)
        self.assertEqual({row["forced_expire"] for row in rows}, {False})
        ids = {row["sender"]: row["queue_id"] for row in rows}
        self.assertEqual(self.act(i, "-h", ids["s0@test.example"], name="postsuper"), 1)
        self.assertEqual(self.act(i, "-e", ids["s0@test.example"], name="postsuper"), 1)
        self.assertEqual([row["forced_expire"] for row in self.rows(i, ids["s0@test.example"])], [True])
        self.assertIn(ids["s0@test.example"] + "!# ", self.call(i, "list").stdout)
        self.assertEqual(self.act(i, "-e", "-", name="postsuper", text=ids["s1@test.example"] + "\n"), 1)
        i.wait_delivered("s1", 2)
        self.assertEqual(self.counts(i), (2, 2, 0), "what is on hold stays there")
        self.assertEqual(self.act(i, "-f", ids["s0@test.example"], name="postsuper"), 1)
        i.wait_delivered("s0", 2)
        self.assertIn("expired by an operator: 4.4.1",
                      re.sub(r"\s+", " ", "".join(path.read_text() for path in i.maildir("s0"))))
        i.stop()
        done = self.call(i, "expire", "sender=s2@*", "sender=s3@*")
        self.assertIn("Expired: 2 messages\nqctl: 2 messages are due at once for a last attempt: ", done.stderr)
        i.routing_file.write_text(LATER.replace("later.example smtp", "other.example smtp"))
        i.start()  # r2 and r3 can be delivered now, and are
        i.wait_delivered("r2", 1)
        i.wait_delivered("r3", 1)
        self.assertEqual(self.counts(i), (0, 1, 0))
        # A message goes before its reasons.
        wait(lambda: len(i.files("bounce")) == 1, what="reasons of the one on hold alone")

    def slow(self, count=1, rcpts=("a@slow.example", "b@test.example")):
        """An instance whose program delivers when there is a file to say so."""
        i = self.instance(queues=1, routing="slow.example pipe:slow\n* local\n",
                          conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        go = i.dir / "go"
        i.programs_file.write_text(f"slow {USERS['maildir_user'] if AS_ROOT else '-'} /bin/sh -c "
                                   f'"until test -e {go}; do sleep 0.1; done"\n')
        i.start()
        for n in range(count):
            i.inject(HELLO, *rcpts, sender=f"s{n}@test.example")
        i.wait_delivered("b", count)
        wait(lambda: len(i.files("active")) == count, what="in delivery")
        return i, go

    def test_what_is_in_delivery_is_held_when_that_has_ended(self):
        i, go = self.slow(rcpts=("a@slow.example", "b@test.example", "c@slow.example"))
        (row,) = self.rows(i)
        acting = subprocess.Popen([BIN / "qctl", "hold", row["queue_id"]], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env=i.environment())
        wait(lambda: i.log_has(r"operator uid=\d+: hold 1 message "), what="the act")
        self.assertEqual(len(self.rows(i, "state=active")), 1, "still there")
        go.touch()
        out, err = acting.communicate(timeout=HANG)
        # Deliveries to the program that ran have ended, others were not started.
        self.assertEqual(acting.returncode, 0, err)
        held = re.search(r"was being delivered: 2 recipients have it, 1 does not", out)
        self.assertTrue(held or "had been delivered" in out, out)
        self.assertEqual(len(i.files("hold")), 1 if held else 0)
        self.assertEqual(i.files("active"), [])

    def test_what_is_in_delivery_is_requeued_without_a_wait(self):
        # It is tried again at once, so nobody could see it waiting.
        i, go = self.slow()
        i.write_conf(disk_time_limit="2s")
        self.assertEqual(self.act(i, "requeue", self.rows(i)[0]["queue_id"]), 1)
        self.assertEqual(len(i.files("active")), 1)
        go.touch()
        i.wait_empty()

    def test_P_a_kill_between_act_and_move_is_told(self):
        i, go = self.slow()
        (row,) = self.rows(i)
        i.write_conf(disk_time_limit="2s")
        acting = subprocess.Popen([BIN / "qctl", "delete", row["queue_id"]], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env=i.environment())
        # Whenever it comes: what qctl says is so.
        os.kill(i.pids("queue-send")[0], signal.SIGKILL)
        out, err = acting.communicate(timeout=HANG)
        # The next queue-send may move it while it is counted.
        wait(lambda: len(i.files("incoming", "active", "deferred", "deleted")) == 1, what=f"one file: {out + err}")
        if acting.returncode == 0:
            self.assertEqual(len(i.files("deleted")), 1)
        else:
            self.assertEqual(acting.returncode, 75)
            self.assertEqual(i.files("deleted"), [])
        go.touch()

    @cost(20)
    def test_P_kills_of_queue_send_lose_nothing_of_a_bulk_act(self):
        i = self.waiting(count=60)
        for n, words in enumerate((["hold", "domain=later.example"], ["release", "domain=later.example"],
                                   ["delete", "domain=later.example"], ["undelete", "ALL"])):
            acting = subprocess.Popen([BIN / "qctl", *words], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, env=i.environment())
            for pid in i.pids("queue-send"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            acting.communicate(timeout=HANG)
            # What goes on its road while it is counted may be missed for once.
            wait(lambda: len(i.files("incoming", "active", "deferred", "hold", "deleted")) == 61,
                 what=f"all of them after {words}")

            def done():
                subprocess.run([BIN / "qctl", *words], capture_output=True, check=False, env=i.environment())
                return self.counts(i) == ((0, 61, 0), (60, 1, 0), (0, 1, 60), (0, 61, 0))[n]
            wait(done, what=f"{words} in the end")

    def test_A3_two_operators_at_once(self):
        """Each message is acted on once, whoever was first; the same act again finds nothing to do."""
        i = self.waiting(count=20)
        acting = [subprocess.Popen([BIN / "qctl", "delete", "domain=later.example", "--yes"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=i.environment()) for _ in range(3)]
        said = [(p.communicate(timeout=HANG)[1], p.returncode) for p in acting]
        done = [int(re.search(r"Deleted: (\d+) message", err).group(1)) for err, _ in said]
        self.assertEqual(sum(done), 20, said)
        for err, code in said:  # a message that another one had is named
            self.assertEqual(code, 75 if "no such" in err or "is not where" in err else 0, err)
        self.assertEqual(self.counts(i), (0, 1, 20))
        self.assertEqual(self.act(i, "delete", "domain=later.example"), 0)
        (first, *_) = self.rows(i, "state=deleted")
        self.assertIn("is in deleted: it cannot be deleted", self.call(i, "delete", first["queue_id"], status=75).stderr)

    def test_what_was_done_and_what_comes_next_is_said(self):
        i = self.waiting(count=2)
        rows = {row["sender"]: row["queue_id"] for row in self.rows(i)}
        one = rows["s0@test.example"]
        self.assertEqual(self.act(i, "hold", one), 1)
        self.assertIn(f"{one}: is in hold: it cannot be retried; `qctl release' makes it due",
                      self.call(i, "retry", one, status=75).stderr)
        self.assertIn("it is on hold already; `qctl hold --reason'", self.call(i, "hold", one, status=75).stderr)
        self.assertIn("it is not on hold: `qctl retry' makes it due",
                      self.call(i, "release", rows["s1@test.example"], status=75).stderr)
        self.assertIn("qctl: Expired: 1 message\nqctl: 1 message is on hold: marked for a last attempt, which comes "
                      "with `qctl release'", self.call(i, "expire", one).stderr)

    def test_a_connection_that_ends_is_no_answer(self):
        """mutation: act() tells nothing of it."""
        i = self.waiting(count=6)
        of_queue = {n: [row["queue_id"] for row in self.rows(i, "domain=later.example", f"queue={n}")] for n in (1, 2)}
        queue, ids = max(of_queue.items(), key=lambda item: len(item[1]))
        i.stop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.bind(f"/proc/self/fd/{os.open(i.queue(queue) / 'lock', os.O_RDONLY)}/operate")
            door.listen()
            os.chmod(i.queue(queue) / "lock/operate", 0o666)
            acting = subprocess.Popen([BIN / "qctl", "hold", *ids], stderr=subprocess.PIPE, text=True,
                                      env=i.environment())
            peer = door.accept()[0]
            peer.recv(4096)  # the words of the command
            peer.recv(4096)
            peer.close()
            said = acting.communicate(timeout=HANG)[1]
        self.assertEqual(acting.returncode, 75, said)
        self.assertIn("queue-send ended the connection", said)
        self.assertRegex(said, rf"Held: 0 messages\nqctl: {len(ids)} messages? (is|are) without an answer, and may still be "
                         "held: run the command again")

    def test_each_name_has_its_help(self):
        i = self.instance(queues=1)
        for name in ("mailq", "postqueue", "postsuper", "qread", "qctl"):
            said = self.call(i, "--help", name=name).stdout
            self.assertTrue(said.startswith(f"usage: {name} "), said)

    def test_attack_9_bytes_on_the_socket_of_operators(self):
        """By one who may connect: frames that are none, frames of other links, numbers without meaning."""
        i = self.waiting(count=1)
        dice = random.Random(9)
        pids = i.pids("queue-send")
        head = [struct.pack("<II", 0x0403, 0x0401)[:4], b""]
        for n in range(200):
            body = dice.randbytes(dice.choice([0, 1, 7, 29, 33, 400]))
            kind = dice.choice([0x0001, 0x0101, 0x0201, 0x0301, 0x0401, 0x0401, 0x0401, 0x0402, 0x0403, 0x0406,
                                0x0407, 0xffff])
            frame = struct.pack("<II", len(body) + 8, kind) + body if n % 4 else head[n % 2] + body
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s, contextlib.suppress(OSError):
                s.connect(str(i.base / f"queue{1 + n % 2}/lock/operate"))
                s.send(frame)
                s.send(frame)
        self.assertEqual(self.act(i, "hold", "ALL"), 1)
        self.assertEqual(i.pids("queue-send"), pids)

    def test_A1_A2_arguments(self):
        i = self.instance(queues=1, routing=LATER)
        for words in ([], ["nonsense"], ["list", "--nonsense"], ["list", "-c"], ["list", "sender"], ["hold"],
                      ["hold", "older=1000000y"], ["list", "queue=0"], ["list", "queue=99999999999"],
                      ["show", "../../../etc/passwd"], ["show", "/etc/passwd"], ["show", "0"], ["delete", "a\nb"],
                      ["show", "0" * 100000], ["show"] + ["x"] * 100000, ["check", "ALL", "sender=x"]):
            done = self.call(i, *words, status=64)
            self.assertEqual(done.stdout, "", words[:3])
            self.assertEqual(len(done.stderr.splitlines()), 1, words[:3])
            self.assertNotIn("passwd:", done.stderr)

    def test_A6_output_that_cannot_be_written(self):
        i = self.waiting(count=3)
        for words in (["list"], ["list", "--json"], ["shape"], ["check"], ["hold", "ALL", "--dry-run"], ["--help"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([BIN / "qctl", *words], stdout=full, stderr=subprocess.PIPE, text=True,
                                      check=False, env=i.environment())
            self.assertEqual(done.returncode, 74, f"{words}: {done.stderr}")
        early = subprocess.run(f"'{BIN}/qctl' list | head -n 1", shell=True, env=i.environment(),
                               capture_output=True, text=True, check=True)
        self.assertTrue(early.stdout.startswith("-Queue ID-"))
        self.assertEqual(len(i.files("deferred")), 3)

    @needs_root
    def test_operators_are_members_of_the_group(self):
        i = self.instance(queues=1, routing=LATER, conf={
            "operator_group": "operator", "minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        i.start()
        i.inject(HELLO, "r@later.example")
        wait(lambda: len(i.files("deferred")) == 1, what="deferred")
        qctl = shutil.copy(BIN / "qctl", i.dir / "qctl")
        for groups, status in (([USERS["qmail_group"]], 77), ([USERS["qmail_group"], "operator"], 0)):
            done = subprocess.run([qctl, "hold", "ALL"], capture_output=True, text=True, check=False,
                                  env=i.environment(), user="nobody", group="nogroup", extra_groups=groups)
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(self.counts(i), (0, 1, 0))
        for _ in range(5):  # as often as they like
            done = subprocess.run([qctl, "release", "ALL"], capture_output=True, text=True, check=False,
                                  env=i.environment(), user="nobody", group="nogroup",
                                  extra_groups=[USERS["qmail_group"]])
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertIn("operator_group", done.stderr)
        i.stop()
        done = subprocess.run([qctl, "release", "ALL"], capture_output=True, text=True, check=False,
                              env=i.environment(), user="nobody", group="nogroup", extra_groups=groups)
        self.assertEqual(done.returncode, 77, "a stopped queue is root's")
        self.assertEqual(self.counts(i), (0, 1, 0))
        lines = len(re.findall(r"operator uid=\d+: refused: not a member", i.log()))
        self.assertIn(lines, (1, 2), "once a minute")

    def test_X5_idle_connections_keep_no_operator_out(self):
        i = self.instance(queues=1, routing=LATER, conf={
            "minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        i.start()
        i.inject(HELLO, "r@later.example")
        wait(lambda: len(i.files("deferred")) == 1, what="deferred")
        with contextlib.ExitStack() as stack:
            for _ in range(17):
                idle = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                idle.connect(str(i.base / "queue1/lock/operate"))
            first = subprocess.run([BIN / "qctl", "hold", "ALL"], capture_output=True, text=True, check=False,
                                   env=i.environment())
            # On a slow machine the first of them may have been silent for long enough by now.
            if first.returncode != 0:
                self.assertEqual(first.returncode, 75, first.stderr)
                self.assertIn("too many operators are connected", first.stderr)
            wait(lambda: self.counts(i) == (0, 1, 0) or subprocess.run(
                [BIN / "qctl", "hold", "ALL"], capture_output=True, check=False, env=i.environment()
            ).returncode == 0, what="the place of a silent one")
        self.assertEqual(self.counts(i), (0, 1, 0))
