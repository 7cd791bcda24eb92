"""Who looks at the queues without being a member of their group: reader_group and queue-look (docs/QCTL.md)."""
import json
import os
import pathlib
import shutil
import subprocess

from case import SystemTest, needs_root
from instance import BIN, USERS, wait

HELLO = b"Subject: hello\n\nhello\n"
LATER = "later.example smtp:127.0.0.1:1\n* local\n"
HOUR = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
READERS = "operator"  # a group of every Debian


@needs_root
class Readers(SystemTest):
    def later(self, **conf):
        i = self.running(queues=2, routing=LATER, conf=HOUR | {"reader_group": READERS} | conf)
        i.inject(HELLO, "secret@later.example", sender="s@test.example")
        wait(lambda: len(i.files("deferred")) == 1, what="deferred")
        i.looker()
        listed = subprocess.run([BIN / "qctl", "list", "--json"], env=i.environment(), capture_output=True,
                                text=True, check=True)
        return i, json.loads(listed.stdout)["queue_id"]

    def call(self, i, *words, name="qctl", status=0, groups=(READERS,), group="nogroup", program="qctl", **options):
        done = subprocess.run([name, *words], executable=i.dir / program, capture_output=True, text=True,
                              check=False, env=i.environment(), user="nobody", group=group, extra_groups=groups,
                              **options)
        if status is not None:
            self.assertEqual(done.returncode, status, f"{name} {words}: {done.stdout}{done.stderr}")
        return done

    def reads(self, i, one, **options):
        """All that shows; the words that have to be in it."""
        for name, words, said in (
                ("qctl", ["list"], "secret@later.example"), ("qctl", ["list", "--json"], one),
                ("mailq", [], "secret@later.example"), ("postqueue", ["-p"], one), ("postqueue", ["-j"], one),
                ("qctl", ["show", one], "secret@later.example"), ("qctl", ["shape"], "later.example"),
                ("qctl", ["list", "recipient=secret@*"], one), ("qread", [], "secret@later.example"),
                ("qctl", ["explain", one], "1 recipient at later.example"), ("qctl", ["sites"], "127.0.0.1:1")):
            self.assertIn(said, self.call(i, *words, name=name, **options).stdout, f"{name} {words}")
        self.assertIn(one, self.call(i, "list", "-", input=f"{one}\n", **options).stdout)

    def refused(self, i, *words, **options):
        done = self.call(i, *words, status=77, **options)
        self.assertIn("reader_group", done.stderr, words)
        self.assertNotIn("example", done.stdout + done.stderr, words)

    def test_a_member_of_the_group_looks(self):
        i, one = self.later()
        self.reads(i, one)
        self.reads(i, one, groups=(), group=READERS)  # as the group of the process
        said = self.call(i, "explain", one).stdout
        self.assertNotIn("could not be asked", said)
        self.refused(i, "list", groups=())
        i.stop()
        self.assertIn(one, self.call(i, "list").stdout)
        self.refused(i, "list", groups=())

    def test_everyone_and_nobody(self):
        i, one = self.later(reader_group="everyone")
        self.reads(i, one, groups=())
        i.write_conf(reader_group="")
        i.reload()
        wait(lambda: self.status(i, "list") == 77, what="nobody may look")
        self.refused(i, "list")
        i.write_conf(reader_group="there-is-no-such-group")
        i.reload()
        wait(lambda: "there-is-no" in (i.base / "conf").read_text(), what="the next one")
        self.refused(i, "list")
        for group in (USERS["qmail_group"],):  # directly
            self.call(i, "list", groups=(group,))

    def status(self, i, *words):
        return subprocess.run(["qctl", *words], executable=i.dir / "qctl", capture_output=True, check=False,
                              env=i.environment(), user="nobody", group="nogroup", extra_groups=[READERS]).returncode

    def test_operators_look_and_readers_do_not_act(self):
        i, one = self.later(reader_group="", operator_group=READERS)
        self.reads(i, one)
        i, one = self.later()
        for words in (["show", "--content", one], ["hold", one], ["delete", "ALL", "--yes"],
                      ["expire", one], ["requeue", "--failed", one]):
            self.refused(i, *words)
        for words in (["check"], ["retry", "ALL"]):
            self.call(i, *words, status=77)
        self.assertEqual(len(i.files("deferred")), 1)

    def look(self, i, *words, **options):
        return self.call(i, *words, name="queue-look", program="queue-look", **options)

    def test_attack_5_by_queue_look_itself(self):
        """Arguments of any kind: nothing is acted on, and no other file is read."""
        i, one = self.later()
        base = str(i.base)
        self.assertIn(one, self.look(i, base, "qctl", "list").stdout)
        for name, *words in (["qctl", "hold", one], ["qctl", "delete", "ALL", "--yes"], ["postsuper", "-d", "ALL"],
                             ["postqueue", "-f"], ["qctl", "check", "--repair"], ["qctl", "retry", "ALL"],
                             ["qctl", "show", "--content", one], ["qctl", "hold", one, "--dry-run"]):
            for called in ("queue-look", "qctl", "x"):
                self.refused(i, base, name, *words, name=called, program="queue-look")
        for words in ((), (base,)):
            self.look(i, *words, status=64)
        secret = i.dir / "secret"
        secret.write_text("PASSWORD secret\n")
        shutil.chown(secret, "root", USERS["qmail_group"])
        secret.chmod(0o640)
        for name in ("qctl", "qread"):
            words = ["list"] if name == "qctl" else []
            done = self.look(i, base, name, *words, "-c", str(secret), status=0 if name == "qctl" else None)
            self.assertNotIn("PASSWORD", done.stdout + done.stderr)
        self.assertEqual(len(i.files("deferred")), 1)

    def test_attack_7_another_base(self):
        i, one = self.later()
        link = i.dir / "link"
        link.symlink_to(i.base)
        own = pathlib.Path(i.dir / "own")
        own.mkdir()
        shutil.copy(i.base / "conf", own / "conf")
        for base in (link, own, f"{i.base}/../{i.base.name}", "/nonexistent", "relative", ""):
            done = subprocess.run(["queue-look", str(base), "qctl", "list"], executable=i.dir / "queue-look",
                                  capture_output=True, text=True, check=False, user="nobody", group="nogroup",
                                  extra_groups=[READERS])
            self.assertIn(done.returncode, (77, 78), f"{base}: {done.stdout}{done.stderr}")
            self.assertNotIn(one, done.stdout)
        shutil.chown(own, "nobody")
        self.look(i, str(own), "qctl", "list", status=77)

    def test_attack_6_the_process_is_not_the_callers(self):
        """One that waits for its reader is looked at by the user who started it."""
        i, _ = self.later()
        ends = os.pipe()
        with subprocess.Popen(["queue-look", str(i.base), "qctl", "list", "-"], executable=i.dir / "queue-look",
                              stdin=ends[0], stdout=subprocess.PIPE, env=i.environment() | {"SECRET": "1"},
                              user="nobody", group="nogroup", extra_groups=[READERS]) as process:
            os.close(ends[0])
            wait(lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text() == "queue-look\n", what="the program")
            done = subprocess.run(
                ["/usr/bin/python3", "-c", """
import os, sys
for name in ("environ", "mem", "fd", "cwd"):
    try:
        os.listdir(f"/proc/{sys.argv[1]}/fd") if name == "fd" else os.readlink(f"/proc/{sys.argv[1]}/cwd") \
            if name == "cwd" else open(f"/proc/{sys.argv[1]}/{name}", "rb").close()
        print("DONE", name)
    except PermissionError:
        pass
""", str(process.pid)], capture_output=True, text=True, check=True, user="nobody", group="nogroup", extra_groups=[])
            self.assertEqual(done.stdout, "")
            os.close(ends[1])
            process.communicate()
            self.assertEqual(process.returncode, 0)

    def test_without_the_group_it_says_so(self):
        i, _ = self.later()
        (i.dir / "queue-look").chmod(0o755)
        done = self.call(i, "list", status=77)
        self.assertIn("is not set-group-id", done.stderr)
        (i.dir / "queue-look").unlink()
        self.refused(i, "list")

    def test_operators_set_loads(self):
        i = self.running(queues=2, conf={"operator_group": READERS, "reader_group": "everyone"})
        tool = shutil.copy(BIN / "setqload", i.dir / "setqload")

        def ask(groups, *words):
            return subprocess.run([tool, *words], capture_output=True, text=True, check=False, env=i.environment(),
                                  user="nobody", group="nogroup", extra_groups=groups)
        done = ask([READERS], "--disable", "-q", "2", "--reason", "new disk")
        self.assertEqual(done.returncode, 0, done.stderr)
        wait(lambda: i.log_has(r"queue 2: disabled for ever \(asked by uid 65534, pid \d+: new disk\)"), what="the log")
        for groups in ([], [USERS["qmail_group"]]):
            done = ask(groups, "--enable", "-q", "2")
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertIn("operator_group", done.stderr)
            self.assertIn("queue 2: disabled", ask(groups, "--list").stdout)
        os.unlink(f"/dev/shm/{i.name}.qscheduler.ask")  # made again, for the same
        wait(lambda: ask([READERS], "--enable", "-q", "2").returncode == 0, what="the socket, again")

    def test_attack_9_operators_flood_the_socket_of_requests(self):
        """Bytes, descriptors, as fast as they can: the supervisor takes root's request, and mail goes on."""
        i = self.running(queues=2, conf={"operator_group": READERS})
        floods = [subprocess.Popen(["/usr/bin/python3", "-c", """
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(sys.argv[1])
null = os.open("/dev/null", os.O_RDONLY)
print("begun", flush=True)
n = 0
while True:
    n += 1
    try:
        socket.send_fds(s, [os.urandom(n % 4000 + 1)], [null] * (n % 50 // 49 * 5))
    except OSError:
        pass
""", f"/dev/shm/{i.name}.qscheduler.ask"], stdout=subprocess.PIPE, user="nobody", group="nogroup",
            extra_groups=[READERS]) for _ in range(2)]
        for flood in floods:
            self.addCleanup(flood.stdout.close)
            self.addCleanup(flood.wait)
            self.addCleanup(flood.kill)
            flood.stdout.readline()
        held = len(os.listdir(f"/proc/{i.process.pid}/fd"))
        for load in range(10, 20):
            words = [BIN / "setqload", "-q", "1", str(load)]
            wait(lambda w=words: subprocess.run(w, env=i.environment(), capture_output=True,
                                                check=False).returncode == 0, what="root is heard")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        # Those of a request that is being read, and of a look at a disk, are there for a moment.
        wait(lambda: len(os.listdir(f"/proc/{i.process.pid}/fd")) <= held + 4, what="no more descriptors than before")
        self.assertTrue(all(flood.poll() is None for flood in floods))
        i.stop()
