"""One account's own processes and mailbox against the local mail of the others."""
import os
import pathlib
import statistics
import subprocess
import time

from accounts import Accounts
from case import SystemTest, cost, needs_root
from instance import HANG, USERS, Failed, status_of, wait

HELLO = b"Subject: hello\n\nhello\n"
OWN = {"maildir_user": "", "maildir_path": "%h/Maildir"}


@needs_root
class Local(SystemTest):
    def accounts(self, i, *names, **options):
        try:
            made = Accounts(i, *names, **options)
        except OSError as error:
            self.skipTest(f"no mount namespace, or no fuse: {error}")
        self.addCleanup(made.end)
        return made

    def stopper(self, uid):
        """Stops all processes of that user, again and again."""
        made = subprocess.Popen(
            ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "/usr/bin/python3", "-c",
             "import os, signal\nprint(flush=True)\n"
             "while True:\n"
             "    try:\n        os.kill(-1, signal.SIGSTOP)\n"
             "    except ProcessLookupError:\n        pass\n"], stdout=subprocess.PIPE)
        self.addCleanup(made.stdout.close)
        self.addCleanup(made.wait)
        self.addCleanup(made.kill)
        made.stdout.readline()

    def agent(self, i):
        """Children of the agent have its command line, too."""
        [pid] = [p for p in i.pids("deliver-local")
                 if f"\nPPid:\t{i.process.pid}\n" in status_of(p)]
        return pid

    def waits(self, uid, states):
        """Processes of that user in these states: T is stopped, S waits for a file
        system, D does so with SIGKILL pending."""
        found = 0
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                status = (entry / "status").read_text()
            except OSError:
                continue
            found += f"\nUid:\t{uid}\t" in status and status.split("\nState:\t")[1][0] in states
        return found

    def start(self, i, made):
        """With the time that mail takes on this machine when nobody attacks."""
        i.start(prefix=made.prefix)
        self.usual = statistics.median(self.delays(i, made, "alice", 15))

    def attack(self, i, name="mallory"):
        """Three messages to a hundred extensions each."""
        for n in range(3):
            i.inject(HELLO, *[f"{name}+{n}x{k}@test.example" for k in range(100)], face="queue-inject")

    def delays(self, i, made, name, count):
        """Seconds from the end of each submission to the file in the maildir."""
        found, there = [], len(made.maildir(name))
        for n in range(there, there + count):
            i.inject(HELLO, f"{name}@test.example", face="queue-inject")
            began = time.monotonic()
            while len(made.maildir(name)) <= n:
                if time.monotonic() - began > HANG:
                    raise Failed(f"message {n} for {name} waits")
                time.sleep(0.002)  # between two looks
            found.append(time.monotonic() - began)
        return sorted(found)

    def honest(self, i, made, count=50):
        """What the attack holds up, it holds up again and again, for the time of a limit, or for
        ever; a machine that is busy with something else makes single messages late."""
        delays = self.delays(i, made, "alice", count)
        self.assertLess(statistics.median(delays), 1.0 + 3 * self.usual, delays[-5:])

    # mutation: common/route/target.c, mailbox_of() takes the whole local part; or queue-send/message/recipients.c
    # gives the address to sched_rcpt_add() for local mail.
    @cost(20)
    def test_X12_attack_10_stopped_children_of_one_account(self):
        i = self.instance(queues=1, conf=OWN)
        made = self.accounts(i, "alice", "mallory")
        self.start(i, made)
        self.stopper(made.uids["mallory"])
        self.attack(i)
        wait(lambda: self.waits(made.uids["mallory"], "T") >= 2, what="stopped children")
        self.honest(i, made)

    # The same.
    @cost(20)
    def test_X12_attack_10_a_mailbox_that_never_answers(self):
        i = self.instance(queues=1, conf=OWN)
        made = self.accounts(i, "alice", "mallory", hang="mallory")
        self.start(i, made)
        self.attack(i)
        wait(lambda: self.waits(made.uids["mallory"], "SD") >= 2, what="children that wait")
        self.honest(i, made)

    # mutation: deliver-local/watch.c, begin_time() gives a maildir the time of a program.
    @cost(10)
    def test_P14_X12_stopped_children_are_given_up(self):
        i = self.instance(queues=1, conf=OWN | {"maildir_time_limit": "1s"})
        made = self.accounts(i, "alice", "mallory")
        self.start(i, made)
        self.stopper(made.uids["mallory"])
        self.attack(i)
        wait(lambda: i.log().count("dsn=4.3.0, status=deferred (the delivery was given up: no progress in 1 s)") >= 2,
             what="two that were stopped, and deferred")
        self.honest(i, made, 20)
        self.assertFalse(i.log_has("cannot be ended"), "SIGKILL ends stopped processes")

    # mutation: deliver-local/watch.c, time_is_over() returns when killed is set; or stray.c,
    # strays_allow() returns true always.
    @cost(30)
    def test_P14_X12_children_that_cannot_be_killed_lose_their_slots(self):
        i = self.instance(queues=1, conf=OWN | {"maildir_time_limit": "1s"})
        made = self.accounts(i, "alice", "mallory", hang="mallory")
        self.start(i, made)
        uid = made.uids["mallory"]
        i.inject(HELLO, *[f"mallory+{k}@test.example" for k in range(12)], face="queue-inject")
        wait(lambda: i.log_has("4 such processes"), what="four that cannot be ended")
        wait(lambda: i.log_has("earlier deliveries to mallory hang and cannot be ended"), what="no fifth")
        self.assertEqual(self.waits(uid, "D"), 4)
        self.honest(i, made, 20)
        agent = self.agent(i)
        made.end()
        wait(lambda: i.log_has("has ended after all.*: 0 such processes"), what="their end")
        self.assertEqual(self.agent(i), agent, "the agent went on")
        i.stop()


@needs_root
class Links(SystemTest):
    """maildir_user and %h: a process that may write all maildirs, and users who
    put links into theirs."""

    OLD = "1754000000.M000042P123Q7R0.test.example"

    def prepare(self, link):
        i = self.instance(queues=1, conf={"maildir_path": "%h/Maildir"})
        try:
            made = Accounts(i, "alice", "mallory")
        except OSError as error:
            self.skipTest(f"no mount namespace: {error}")
        self.addCleanup(made.end)
        import pwd
        owner = pwd.getpwnam(USERS["maildir_user"])
        for name in made.uids:
            (made.home / name).chmod(0o755)
            maildir = made.home / name / "Maildir"
            for path in (maildir, maildir / "tmp", maildir / "new", maildir / "cur"):
                path.mkdir()
                if name == "alice":
                    os.chown(path, owner.pw_uid, owner.pw_gid)
                    path.chmod(0o700)
                else:
                    os.chown(path, made.uids[name], made.uids[name])
                    path.chmod(0o777)
        mail = made.home / "alice/Maildir/new" / self.OLD
        mail.write_bytes(b"Subject: three days ago\n\n")
        os.chown(mail, owner.pw_uid, owner.pw_gid)
        os.utime(mail, (time.time() - 3 * 86400,) * 2)
        subprocess.run(["setpriv", "--reuid", str(made.uids["mallory"]), "--regid",
                        str(made.uids["mallory"]), "--clear-groups", "/bin/sh", "-c",
                        'cd "$1" && rmdir "$2" && ln -s "$3" "$2"', "sh", made.home / "mallory/Maildir", link,
                        made.home / "alice/Maildir/new"], check=True)
        i.start(prefix=made.prefix)
        i.inject(HELLO, "mallory@test.example", face="queue-inject")
        wait(lambda: i.log_has(r"to=<mallory@test\.example>.*status="), what="an attempt")
        return i, made

    # mutation: deliver-local/maildir.c, DIR_FLAGS without O_NOFOLLOW.
    def test_X13_attack_7_tmp_is_a_link_to_anothers_mail(self):
        i, made = self.prepare("tmp")
        self.assertEqual([p.name for p in made.maildir("alice")], [self.OLD], "her unread mail is there")
        self.assertTrue(i.log_has(r"to=<mallory@test\.example>.*dsn=4\.2\.0, status=deferred"))
        i.inject(HELLO, "alice@test.example", face="queue-inject")
        wait(lambda: len(made.maildir("alice")) == 2, what="her own next mail")
        i.stop()

    def test_X13_attack_7_new_is_a_link_to_anothers_mail(self):
        i, made = self.prepare("new")
        self.assertEqual([p.name for p in made.maildir("alice")], [self.OLD], "nothing was put there")
        self.assertTrue(i.log_has(r"to=<mallory@test\.example>.*dsn=4\.2\.0, status=deferred"))
        i.stop()
