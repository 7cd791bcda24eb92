"""What users can fill: mailboxes, the file systems of queues and mailboxes, and shares
by subordinate uids."""
import os
import pathlib
import re
import shutil
import subprocess

from accounts import Accounts
from case import SystemTest, needs_root
from instance import USERS, wait

HELLO = b"Subject: hello\n\nhello\n"
MALLORY, OTHER = 60124, 60123


def content(size):
    return b"Subject: x\n\n" + (b"x" * 71 + b"\n") * (size // 72)


def free(path):
    v = os.statvfs(path)
    return v.f_bavail * v.f_frsize


@needs_root
class FullMailboxes(SystemTest):
    def accounts(self, i, *names):
        try:
            made = Accounts(i, *names)
        except OSError as error:
            self.skipTest(f"no mount namespace: {error}")
        self.addCleanup(made.end)
        return made

    # mutation: deliver-local/alias.c, alias_deliver_mailbox() has no limit.
    def test_X25_a_flood_of_mail_to_root_ends_at_the_limit(self):
        i = self.instance(aliases="", conf={"message_size_limit": "100k", "mailbox_size_limit": "1m"})
        made = self.accounts(i, "alice")
        i.write_conf(maildir_user="", maildir_path="%h/Maildir/", admin_recipient=None)
        i.start(prefix=made.prefix)
        for _ in range(40):
            i.inject(content(60000), "root@test.example", uid=MALLORY)
        full = (rf"to=<root@test\.example>, .*dsn=4\.2\.2, status=deferred \(maildir {i.base}/mailbox: the mailbox is full: "
                r"\d+ octets, and this message would exceed mailbox_size_limit \(1048576\); remove mail ")
        wait(lambda: i.log_has(full), what="the limit")
        i.inject(HELLO, "alice@test.example", uid=OTHER)
        wait(lambda: made.maildir("alice"), what="honest mail")
        new = i.base / "mailbox" / "new"
        def delivered():
            return [path for path in new.iterdir() if path.stat().st_size > 0]
        wait(lambda: len(delivered()) + len(i.files("active", "deferred")) == 40, what="40 messages")
        size = sum(path.stat().st_size for path in delivered())
        self.assertLessEqual(size, (1 << 20) + 1000)  # the fields of the last one are not counted before
        self.assertGreater(size, 900_000)
        i.write_conf(mailbox_size_limit="4m")
        i.reload()
        wait(lambda: i.log_has("configuration reloaded|reloaded"), what="the reload")
        i.flush()
        wait(lambda: len(delivered()) == 40, what="each message of the flood")
        i.wait_empty()
        self.assertFalse(i.log_has("status=bounced"))
        i.stop()

    # mutation: deliver-local/task.c, make_plan() sets no reserve.
    def test_D49_a_mailbox_on_a_full_disk_waits_for_room(self):
        i = self.instance(queues=1, aliases="", conf={"queue_minfree_bytes": "8m"})
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "tmpfs", i.mail], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", i.mail], check=False)
        shutil.chown(i.mail, USERS["maildir_user"])
        i.start()
        filler = i.mail / "filler"
        filler.write_bytes(b"x" * (12 << 20))
        i.inject(HELLO, "alice@test.example")
        wait(lambda: i.log_has(rf"to=<alice@test\.example>, .*dsn=4\.3\.1, status=deferred \(maildir {i.mail}/alice: "
                               r"mail system full: the file system has \d+ [MK]B free, queue_minfree_bytes wants 6 MB "
                               r"even of deliveries and reports\)"), what="the reason")
        self.assertEqual(i.maildir("alice"), [])
        filler.unlink()
        i.flush()
        i.wait_delivered("alice", 1)
        i.stop()


@needs_root
class FullDisks(SystemTest):
    def on_disk(self, options, **conf):
        """Queues and maildirs on a small file system."""
        i = self.instance(queues=1, aliases="", routing="dead.example smtp:[127.0.0.1]:1\n* local\n", conf=conf)
        disk = i.dir / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"{options},mode=755", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        i.base, i.mail = disk / "queue", disk / "mail"
        i.mail.mkdir()
        shutil.chown(i.mail, USERS["maildir_user"])
        i.write_conf(queue_base=i.base, maildir_path=f"{i.mail}/%u/", minimal_backoff_time="1h",
                     maximal_backoff_time="1h", user_message_rate=0)
        return i.start_open()

    def fill(self, i, size, uid):
        """Mail that stays in the queue, until there is no room for more of this user: the refusal."""
        for _ in range(2000):
            done = i.inject(content(size), "x@dead.example", uid=uid, check=False)
            if done.returncode != 0:
                self.assertEqual(done.returncode, 75, done.stderr)
                return done.stderr.decode()
        return self.fail("no end")

    # mutation: common/submit/accept.c, submit_writer() is ROOM_USER; common/spool/room.c, each writer
    # has a half.
    def test_D48_root_submits_when_users_have_filled_the_disk(self):
        i = self.on_disk("size=16m", queue_minfree_bytes="4m")
        self.assertRegex(self.fill(i, 300_000, MALLORY),
                         r"4\.3\.1 mail system full: .* free, queue_minfree_bytes wants 4 MB")
        self.assertRegex(self.fill(i, 3000, MALLORY), r"queue_minfree_bytes wants 4 MB\n$")
        self.assertEqual(i.inject(HELLO, "alice@test.example", uid=OTHER, check=False).returncode, 75)
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        self.assertRegex(self.fill(i, 100_000, None), r"queue_minfree_bytes wants 2 MB even of root")
        self.assertLess(free(i.base), (2 << 20) + 300_000)
        self.assertGreater(free(i.base), 1 << 20)
        i.stop()

    # mutation: common/spool/room.c, lacks_inodes() keeps the whole reserve.
    def test_D48_root_submits_when_users_have_taken_the_inodes(self):
        i = self.on_disk("size=64m,nr_inodes=500", queue_minfree_inodes=100)
        self.assertRegex(self.fill(i, 100, MALLORY),
                         r"4\.3\.1 mail system full: .* inodes free, queue_minfree_inodes wants 100\n$")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        self.assertRegex(self.fill(i, 100, None), r"queue_minfree_inodes wants 50 even of root")
        i.stop()


@needs_root
class SubordinateUids(SystemTest):
    # mutation: queue-drop/count.c, count_account() is the user.
    def test_X26_subordinate_uids_take_the_shares_of_their_owner(self):
        if not pathlib.Path("/etc/subuid").exists():
            self.skipTest("no /etc/subuid to put another file on")
        i = self.running(queues=1, conf={"user_message_rate": 3})
        subuid = i.dir / "subuid"
        subuid.write_text(f"# a line that is wrong\n{MALLORY}:200000:65536\n")
        subuid.chmod(0o644)
        i.door()

        def submit(uid):
            command = (f"mount --bind {subuid} /etc/subuid && exec setpriv --reuid={uid} --regid={uid} --clear-groups "
                       f"{i.face('sendmail')} -i -f s@test.example bob@test.example")
            done = subprocess.run(["unshare", "--mount", "--", "sh", "-c", command], input=HELLO,
                                  env=i.environment(), capture_output=True, check=False)
            return done.returncode, done.stderr.decode()
        for uid in MALLORY, 200000, 265535:
            self.assertEqual(submit(uid), (0, ""))
        for uid in 200001, MALLORY:
            code, why = submit(uid)
            self.assertEqual(code, 75, why)
            self.assertRegex(why, rf"4\.7\.1 uid {MALLORY} submits more than 3 messages a minute")
        for uid in 265536, OTHER:
            self.assertEqual(submit(uid), (0, ""))
        i.wait_delivered("bob", 5)
        users = {path.name for path in (i.base / "users").iterdir() if re.fullmatch(r"\d+", path.name)}
        self.assertEqual(users, {str(MALLORY), "265536", str(OTHER)}, "one file for an owner")
        i.stop()
