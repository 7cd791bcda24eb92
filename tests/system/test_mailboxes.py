"""Where users' mail goes: mailboxes of one file, and .forward."""
import grp
import os
import re
import shutil
import stat
import subprocess

from accounts import Accounts
from case import SystemTest, needs_root
from instance import BIN, but_file_systems, wait

HELLO = b"Subject: hello\n\nhello\nFrom here\n"


@needs_root
class Mailboxes(SystemTest):
    def accounts(self, i, *names, hang=None):
        try:
            made = Accounts(i, *names, hang=hang)
        except OSError as error:
            self.skipTest(f"no mount namespace: {error}")
        self.addCleanup(made.end)
        return made

    def send(self, i, name):
        i.inject(HELLO, f"{name}@test.example", sender="s@far.test", face="queue-inject")

    # mutation: deliver-local/child.c, spool_group() is always -1; put_mbox() is put_maildir().
    def test_D47_a_spool_of_mailboxes(self):
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

    def forwards(self, *names, hang=None, **conf):
        """An instance whose accounts may have forward files; and their homes."""
        i = self.instance(aliases="", routing="far.test discard\n* local\n")
        made = self.accounts(i, *names, hang=hang)
        i.write_conf(**{"maildir_user": "", "maildir_path": "%h/Maildir/", "forward_path": "%h/.forward",
                        "admin_recipient": None, "mydestination": "test.example", **conf})
        i.start(prefix=(*made.prefix, "setpriv", "--groups", "0,6"))
        return i, made

    def put_forward(self, made, name, text, mode=0o600):
        path = made.home / name / ".forward"
        path.write_text(text)
        os.chown(path, made.uids[name], made.uids[name])
        os.chmod(path, mode)

    # mutation: deliver-local/forward.c, find_loop() is always MESSAGE_NO_LOOP;
    # deliver-local/child.c, may_deliver() without `returned`.
    def test_X19_a_forward_file_directs_the_mail_of_its_user(self):
        i, made = self.forwards("alice", "bob", "carl", "dora", "eve")
        self.put_forward(made, "alice", "\\alice, bob # a copy\nx@far.test\n")
        self.put_forward(made, "bob", "alice, carl\n")
        self.put_forward(made, "dora", f'"|id -u >{made.home}/dora/uid; cat >>{made.home}/dora/mail"\n{made.home}/dora/mbox\n')
        self.put_forward(made, "eve", "")
        for name in ("alice+list", "dora", "eve"):
            self.send(i, name)
        wait(lambda: len(made.maildir("alice")) == 2, what="alice's own copy, and that of bob's file")
        wait(lambda: len(made.maildir("carl")) == 1, what="carl's copy")
        wait(lambda: len(made.maildir("eve")) == 1, what="an empty file")
        wait(lambda: i.log_has(r"to=<x@far\.test>, relay=discard, .*status=sent"), what="the far copy")
        wait(lambda: i.log_has(r"to=<alice\+list@test\.example>, relay=local, .*status=sent "
                               r"\(forward file of alice: 3 recipients as "), what="the expansion")
        mbox = made.home / "dora" / "mbox"
        wait(lambda: mbox.exists() and mbox.read_text().count("From s@far.test") == 1, what="the mailbox")
        wait(lambda: (made.home / "dora" / "mail").exists(), what="the program")
        self.assertEqual((made.home / "dora" / "uid").read_text(), f"{made.uids['dora']}\n")
        i.wait_empty()
        self.assertEqual(made.maildir("bob"), [])
        self.assertEqual(len(made.maildir("alice")), 2)
        self.assertEqual(len(re.findall(r"to=<x@far\.test>, relay=discard", i.log())), 1)

    # mutation: deliver-local/forward.c, forward_open() does not look at the owner.
    def test_X19_a_forward_file_that_is_wrong_waits(self):
        i, made = self.forwards("alice", "bob", "carl", "dora")
        self.put_forward(made, "alice", "x@far.test\n", 0o666)
        self.put_forward(made, "bob", "x@far.test\n")
        os.chown(made.home / "bob" / ".forward", made.uids["carl"], -1)
        os.chmod(made.home / "bob" / ".forward", 0o644)
        self.put_forward(made, "carl", "x@far.test\ntwo words\n")
        secret = i.dir / "secret"
        secret.write_text("x@far.test\n")
        secret.chmod(0o600)
        self.put_forward(made, "dora", f":include:{secret}\n")
        for name, why in (("alice", "forward file .*: others than its owner may write it"),
                          ("bob", "forward file .*: it belongs to another user"),
                          ("carl", r"forward file of carl: include file .*\.forward: line 2: a blank within"),
                          ("dora", f"forward file of dora: include file {secret}: Permission denied")):
            self.send(i, name)
            wait(lambda n=name, w=why: i.log_has(rf"to=<{n}@test\.example>, .*dsn=4\.2\.4, status=deferred \({w}"), what=why)
        self.assertFalse(i.log_has(r"to=<x@far\.test>"))
        for name in made.uids:
            (made.home / name / ".forward").unlink()
        i.flush()
        for name in made.uids:
            wait(lambda n=name: len(made.maildir(n)) == 1, what=name)
        i.stop()

    def expect_deferred(self, i, name, why):
        self.send(i, name)
        wait(lambda: i.log_has(rf"to=<{name}@test\.example>, .*dsn=4\.\d\.\d, status=deferred \(.*{why}"),
             what=f"{name}: {why}")

    # mutation: deliver-local/include.c, FILE_FLAGS without O_NOFOLLOW, or
    # without O_NONBLOCK; judge() takes every kind of file; deliver-local/expand.c,
    # tell_failed() returns mail for a file that is too large.
    def test_X19_a_forward_file_of_another_kind_waits(self):
        kinds = {"link": "a link on its path", "fifo": "not a regular file", "device": "not a regular file",
                 "directory": "not a regular file", "group": "others than its owner may write it",
                 "large": "too large for 1000 recipients"}
        i, made = self.forwards(*kinds, maildir_time_limit="30s")
        files = {name: made.home / name / ".forward" for name in kinds}
        target = made.home / "link" / "target"
        target.write_text("x@far.test\n")
        os.chown(target, made.uids["link"], -1)
        files["link"].symlink_to(target)
        os.mkfifo(files["fifo"], 0o600)
        os.mknod(files["device"], stat.S_IFCHR | 0o600, os.makedev(1, 5))
        files["directory"].mkdir()
        self.put_forward(made, "group", "x@far.test\n", 0o660)
        self.put_forward(made, "large", "x@far.test\n")
        os.truncate(files["large"], 1 << 30)
        for name in kinds:
            os.chown(files[name], made.uids[name], made.uids[name], follow_symlinks=False)
        for name, why in kinds.items():
            self.expect_deferred(i, name, why)
        self.assertFalse(i.log_has(r"to=<x@far\.test>|status=bounced"))
        for name in kinds:
            files[name].rmdir() if name == "directory" else files[name].unlink()
        i.flush()
        for name in kinds:
            wait(lambda n=name: len(made.maildir(n)) == 1, what=name)
        i.stop()

    # mutation: deliver-local/privileges.c, account_become() keeps the groups.
    def test_X19_a_forward_file_runs_programs_as_the_user_alone(self):
        i, made = self.forwards("alice", "bob", "gone")
        out = made.home / "alice" / "ids"
        self.put_forward(made, "alice", f'"|id -u >{out}; id -g >>{out}; id -G >>{out}; grep Cap[PE] /proc/self/status >>{out}"\n')
        self.put_forward(made, "bob", "Bob+x@test.example, bob, BOB@test.example, \\bob\n")
        shutil.rmtree(made.home / "gone")
        for name in ("alice", "bob"):
            self.send(i, name)
        wait(lambda: i.log_has(r"to=<:forward:alice:.*status=sent"), what="the program")
        uid = str(made.uids["alice"])
        words = out.read_text().split()
        self.assertEqual(words[:3], [uid, uid, uid])
        self.assertEqual(words[3:], ["CapPrm:", "0" * 16, "CapEff:", "0" * 16])
        wait(lambda: len(made.maildir("bob")) == 2, what="bob's own addresses")
        self.expect_deferred(i, "gone", "No such file or directory")
        (made.home / "gone").mkdir()
        os.chown(made.home / "gone", made.uids["gone"], made.uids["gone"])
        i.flush()
        wait(lambda: len(made.maildir("gone")) == 1, what="the home that is there again")
        i.wait_empty()
        self.assertEqual(len(made.maildir("bob")), 2)
        i.stop()

    # mutation: deliver-local/resident.c, the limit of a delivery is not looked at.
    def test_X19_a_home_that_does_not_answer_holds_up_its_user_alone(self):
        i, made = self.forwards("alice", "mallory", hang="mallory", maildir_time_limit="2s",
                                forward_path="%h/Maildir/.forward", maildir_path="%h/inbox/")
        self.send(i, "mallory")
        for _ in range(3):
            self.send(i, "alice")
        wait(lambda: len(list((made.home / "alice" / "inbox").glob("new/*"))) == 3, what="alice's mail")
        wait(lambda: i.log_has(r"to=<mallory@test\.example>, relay=local, .*dsn=4\.\d\.\d, status=deferred"), what="the limit")
        self.assertFalse((made.home / "mallory" / "inbox").exists())
        made.end()
        i.stop()
