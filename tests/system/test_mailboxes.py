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
