"""What a reader may do with the set-group-id process of his own: nothing that holds up the mail (docs/QCTL.md)."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from case import SystemTest, needs_root
from instance import BIN, USERS, status_of, wait

HELLO = b"Subject: hello\n\nhello\n"
LATER = "later.example smtp:127.0.0.1:1\n* local\n"
HOUR = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []}
RCPTS = 5000  # their lines fill two pipes
READERS = 12
LOCKS = re.compile(r"flock\(|F_SETLK|F_OFD_SETLK|F_SETLEASE|F_NOTIFY")
CHANGES = re.compile(r"\b(rename|unlink|link|symlink|mkdir|rmdir|mknod|chmod|fchmod|chown|fchown|lchown|utime|truncate|"
                     r"ftruncate|setxattr|mq_open|bind|ptrace|execve)\w*\(")


@needs_root
class StoppedReaders(SystemTest):
    def qctl(self, i, *words, who=None):
        done = subprocess.run([BIN / "qctl", *words], env=i.environment(), capture_output=True, text=True, check=False,
                              **who or {})
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def ids(self, i, *words):
        return [json.loads(line)["queue_id"] for line in self.qctl(i, "list", "--json", *words).splitlines()]

    def later(self, **conf):
        i = self.running(queues=1, routing=LATER, conf=HOUR | {"reader_group": "nogroup"} | conf)
        i.looker()
        return i

    def delivers(self, i, user):
        before = len(i.maildir(user))
        i.inject(HELLO, f"{user}@test.example")
        i.wait_delivered(user, before + 1)

    def start_reader(self, i, pipe):
        reader = subprocess.Popen(["queue-look", str(i.base), "qctl", "list"], executable=i.dir / "queue-look",
                                  stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.DEVNULL, **NOBODY)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        return reader

    def worker(self, reader, name):
        """The process that reads the queue, once it waits with the message open."""
        def found():
            path = pathlib.Path(f"/proc/{reader.pid}/task/{reader.pid}/children")
            for pid in path.read_text().split():
                links = []
                with contextlib.suppress(OSError):  # what is on its way there opens and closes others
                    links = [os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
                if any(link.endswith(f"/{name}") for link in links) and "State:\tS" in status_of(pid):
                    return int(pid)
            return None
        return wait(found, what="a reader that waits within a message")

    def test_attack_8_stopped_readers_hold_up_nothing(self):
        i = self.later()
        i.inject(HELLO, *[f"rcpt{n}@later.example" for n in range(RCPTS)])
        i.inject(HELLO, "other@later.example")
        wait(lambda: len(i.files("deferred")) == 2, what="deferred")
        [large] = self.ids(i, "recipient=rcpt7@*")
        [other] = self.ids(i, "recipient=other@*")
        [path] = [p for p in i.files("deferred") if p.stat().st_size > RCPTS]
        ends = os.pipe()
        self.addCleanup(os.close, ends[0])
        readers = [self.start_reader(i, ends[1]) for _ in range(READERS)]
        os.close(ends[1])
        workers = [self.worker(r, path.name) for r in readers]
        for pid in workers:  # a stopped one does not see that its parent has ended
            self.addCleanup(subprocess.run, ["kill", "-KILL", str(pid)], check=False)
        pids = workers + [r.pid for r in readers]
        for pid in pids:  # by the user, at the place where each is
            subprocess.run(["kill", "-STOP", str(pid)], check=True, **NOBODY)
        locked = {line.split()[4] for line in pathlib.Path("/proc/locks").read_text().splitlines()
                  if line.split()[1] != "->"}
        self.assertEqual(locked & {str(pid) for pid in pids}, set())
        self.delivers(i, "alice")
        for verb in ("hold", "release", "requeue", "hold", "delete", "undelete", "release", "hold"):
            self.qctl(i, verb, large)
        self.qctl(i, "expire", other)
        i.stop()
        i.start()
        self.delivers(i, "bob")
        self.qctl(i, "delete", large)
        self.qctl(i, "check")
        for pid in pids:  # nor does the user get at anything
            self.assertEqual(subprocess.run(["ls", f"/proc/{pid}/fd"], capture_output=True, check=False,
                                            **NOBODY).stdout, b"")
        i.stop()

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_attack_8_a_reader_locks_and_changes_nothing(self):
        """Every system call of every verb: no lock, no change, nothing opened to write, no name service."""
        i = self.later(operator_group="nogroup")
        i.inject(HELLO, "secret@later.example")
        i.inject(HELLO, "held@later.example")
        wait(lambda: len(i.files("deferred")) == 2, what="deferred")
        [one], [held] = self.ids(i, "recipient=secret@*"), self.ids(i, "recipient=held@*")
        # By a user whom no file names.
        self.qctl(i, "hold", held, who={"user": 54321, "group": "nogroup", "extra_groups": [USERS["qmail_group"]]})
        for words in (["list"], ["list", "--json"], ["show", one], ["show", held], ["explain", one], ["explain", held],
                      ["shape"], ["sites"]):
            for running in (True, False):
                if running == (i.process is None):
                    continue
                self.audit(i, "qctl", *words)
        self.assertIn("uid 54321", self.audit(i, "qctl", "show", held))
        for name, *words in (["mailq"], ["postqueue", "-p"], ["postqueue", "-j"], ["qread", "-a"]):
            self.audit(i, name, *words)
        i.stop()
        self.audit(i, "qctl", "explain", one)

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_X24_attack_8_names_of_users(self):
        """The names of users of `shares` and `shape` come from /etc/passwd, by no name service."""
        for group in ("nogroup", ""):  # a reader, and who is none
            i = self.later(reader_group=group)
            i.inject(HELLO, "secret@later.example", uid=54321)
            wait(lambda: len(i.files("deferred")) == 1, what="deferred")
            wait(lambda: '"uid": 54321' in self.qctl(i, "shares", "--json"), what="the counts of a walk")
            for words in ([], ["--json"]) if group == "" else ([], ["--json"], ["nobody"], ["54321"]):
                said = self.audit(i, "qctl", "shares", *words)
                self.assertIn("54321" if group and "nobody" not in words else "nobody", said)
            if group:
                self.assertIn("54321", self.audit(i, "qctl", "shape", "--by", "uid"))
                self.assertIn("54321", self.audit(i, "qctl", "shape", "--by", "uid", "--json"))
            i.stop()

    def audit(self, i, name, *words):
        trace = i.dir / "trace"
        done = subprocess.run(["strace", "-f", "-u", "nobody", "-o", trace, "-e", "signal=none", i.dir / "queue-look",
                               i.base, name, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{name} {words}: {done.stderr}")
        for line in trace.read_text().splitlines()[1:]:  # behind the execve
            self.assertNotRegex(line, LOCKS)
            if "execve(" not in line or "queue-look" not in line:
                self.assertNotRegex(line, CHANGES)
            if re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TMPFILE|O_TRUNC", line):
                self.assertIn('"/dev/null"', line)
            self.assertNotIn("nsswitch", line)
            if "connect(" in line:
                self.assertIn("/operate", line)
        return done.stdout
