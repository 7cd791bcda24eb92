"""Where users' mail goes: mailboxes of one file, and .forward."""
import grp
import os
import re
import subprocess

from accounts import Accounts
from case import SystemTest, needs_root
from instance import BIN, but_file_systems, wait

HELLO = b"Subject: hello\n\nhello\nFrom here\n"


@needs_root
class Mailboxes(SystemTest):
    def accounts(self, i, *names):
        try:
            made = Accounts(i, *names)
        except OSError as error:
            self.skipTest(f"no mount namespace: {error}")
        self.addCleanup(made.end)
        return made

    def send(self, i, name):
        i.inject(HELLO, f"{name}@test.example", sender="s@far.test", face="queue-inject")

    # mutation: deliver-local/child.c, spool_group() is always -1; put_mbox() is put_maildir().
    def test_P1_a_spool_of_mailboxes(self):
        i = self.instance(aliases="")
        spool = i.dir / "spool"
        spool.mkdir()
        mail = grp.getgrnam("staff").gr_gid  # mail is the group of the queues in these tests
        os.chown(spool, 0, mail)
        os.chmod(spool, 0o2775)
        made = self.accounts(i, "alice", "bob")
        i.write_conf(maildir_user="", maildir_path=f"mbox:{spool}/%u")
        (spool / "bob").touch()
        os.chmod(spool / "bob", 0o660)
        i.start(prefix=made.prefix)
        for _ in range(20):
            self.send(i, "alice")
        self.send(i, "bob")
        sent = r"to=<alice@test\.example>, relay=local, .*status=sent \(delivered to mailbox "
        wait(lambda: len(re.findall(sent, i.log())) == 20, what="20 messages")
        text = (spool / "alice").read_text()
        self.assertEqual(len(re.findall(r"(?m)^From s@far\.test ", text)), 20)
        self.assertEqual(text.count("\nSubject: hello\n\nhello\n>From here\n\n"), 20)
        st = (spool / "alice").stat()
        self.assertEqual((st.st_uid, st.st_gid, st.st_mode & 0o7777), (made.uids["alice"], mail, 0o660))
        wait(lambda: i.log_has(r"to=<bob@test\.example>, .*status=deferred \(mailbox .*: it belongs to another user"),
             what="the refusal")
        os.chown(spool / "bob", made.uids["bob"], mail)
        i.flush()
        wait(lambda: i.log_has(r"to=<bob@test\.example>, .*status=sent"), what="bob's mail")
        self.assertEqual(sorted(p.name for p in spool.iterdir()), ["alice", "bob"])
        i.stop()

    def check(self, i, made):
        done = subprocess.run([*made.prefix, BIN / "qscheduler", "-c", i.conf_file, "--check"], capture_output=True,
                              text=True, env=i.environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.removeprefix("qscheduler: warning: ") for line in but_file_systems(done.stderr)]

    # mutation: qscheduler/supervisor/warn_host.c, look_at() finds nothing.
    def test_check_counts_homes_with_forward(self):
        i = self.instance(aliases="")
        made = self.accounts(i, "alice", "bob", "carl", "dora", "eve")
        i.write_conf(maildir_user="", maildir_path="%h/Maildir/", admin_recipient="alice")
        def of_homes():
            return [line for line in self.check(i, made) if "home directories" in line]
        self.assertEqual(of_homes(), [])
        for name, file in (("alice", ".forward"), ("bob", ".qmail"), ("carl", ".forward"), ("eve", ".forward")):
            (made.home / name / file).write_text("x@far.test\n")
        (made.home / "dora" / ".forward").touch()
        h = made.home
        self.assertEqual(of_homes(), [
            f"4 files in home directories that direct mail elsewhere are not read: {h}/alice/.forward, {h}/bob/.qmail, "
            f"{h}/carl/.forward, …: set forward_path for .forward, or write aliases in {i.alias_file}"])
        i.write_conf(forward_path="%h/.forward")
        self.assertEqual(of_homes(), [
            f"1 file in home directories that directs mail elsewhere is not read: {h}/bob/.qmail: "
            f"set forward_path for .forward, or write aliases in {i.alias_file}"])
        i.write_conf(maildir_path="/var/mail/%u")
        self.assertIn("maildir_path: /var/mail/%u is a maildir for each user; for mailboxes of one file write "
                      "mbox:/var/mail/%u", self.check(i, made))
