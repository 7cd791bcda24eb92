"""The world of docs/WHEN-MAIL-WAITS.md: an instance in which mail waits for each
of the reasons of that page, and a shell in it."""
import os
import shutil
import subprocess

from instance import BIN, HANG, Instance, wait

ROUTING = 'example.org smtp:127.0.0.1:1\ngone.example error:"5.1.1 no such user here"\nhost.example.com local\n'
NAMES = ("qctl", "qtop", "setqload", "qscheduler", "mailq", "postqueue", "postsuper")


class World:
    def __init__(self):
        self.i = i = Instance(queues=3, routing=ROUTING, aliases="root: alice\nteam: alice, bob\n", conf={
            "myhostname": "host.example.com", "minimal_backoff_time": "1h", "maximal_backoff_time": "1h",
            # No destination dies: whether it would open before a message is due depends on chance.
            "smtp_destination_concurrency_failed_cohort_limit": "0"})
        i.start().stop()
        lock = i.queue(3) / "lock/todo-proc"  # queue 3 cannot run
        lock.unlink()
        lock.mkdir()
        i.start()
        wait(lambda: i.log_has("queue 3 is quarantined"), what="the quarantine")
        self.links()
        for sender, rcpt, text in (
                ("alice", "carol@example.org", "one"), ("alice", "dave@example.org", "two"),
                ("shop", "erin@example.org", "three"), ("bob", "frank@nowhere.example", "four"),
                ("bob", "heidi@example.org", "five"), ("bob", "ivan@example.org", "six"),
                ("alice", "judy@gone.example", "seven"), ("cron", "root@host.example.com", "eight")):
            i.inject(f"Subject: {text}\n\n{text}\n".encode(), rcpt, sender=f"{sender}@host.example.com")
        i.wait_delivered("alice", 2)  # cron's mail, and a report
        wait(lambda: len(i.files("deferred")) == 6 and not i.files("incoming", "active", "prepared"), what="what waits")
        for line in ("qctl hold recipient=heidi@* --yes", "qctl delete recipient=ivan@* --yes",
                     "setqload --disable -q 2 --reason 'new disk at noon'"):
            done = self.shell(line)
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"

    def links(self):
        """The programs under their names, with the paths of an installation."""
        self.bin = self.i.dir / "bin"
        self.bin.mkdir()
        for name in NAMES:
            (self.bin / name).symlink_to(BIN / name)
        for name in ("sendmail", "newaliases", "queue-inject"):
            shutil.copy(self.i.face(name), self.bin)
        shutil.copy(self.i.door(), self.bin)

    def shell(self, line):
        env = self.i.environment() | {"PATH": f"{self.bin}:{os.environ['PATH']}", "BASE": str(self.i.base),
                                      "LOG": str(self.i.log_file), "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
        return subprocess.run(["/bin/sh", "-c", line], env=env, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=HANG)
