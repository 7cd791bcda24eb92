"""D rows: what the disk does, and what lies in it, as a whole instance sees it."""
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile

from case import SystemTest, needs_root
from instance import AS_ROOT, BIN, HANG, wait

HELLO = b"Subject: hello\n\nhello\n"


class Damage(SystemTest):
    def stopped_with_mail(self, count=3, **options):
        """An instance that was stopped with messages in incoming/."""
        i = self.running(queues=1, **options)
        i.stop()
        for n in range(count):
            i.inject(HELLO + b"%d\n" % n, "alice@test.example")
        files = sorted(i.files("incoming"))
        self.assertEqual(len(files), count)
        return i, files

    def damaged(self, harm, reason):
        """One file is damaged: kept, named with the reason, neighbours pass."""
        i, files = self.stopped_with_mail()
        harm(files[1])
        i.start()
        i.wait_delivered("alice", 2)
        wait(lambda: i.files("corrupt"), what="the file in corrupt/")
        wait(lambda: i.log_has(reason), what=f"the reason in the log: {reason}\n")
        i.wait_empty()
        i.stop()
        self.assertEqual(len(i.maildir("alice")), 2)
        return i

    def test_D13_empty_file(self):
        self.damaged(lambda f: os.truncate(f, 0), r"corrupt")

    def test_D13_no_trailer(self):
        self.damaged(lambda f: os.truncate(f, f.stat().st_size - 1), r"corrupt.*trailer|trailer.*corrupt")

    def test_D14_one_bit_of_the_content(self):
        def flip(f):
            with open(f, "r+b") as file:
                file.seek(40)
                byte = file.read(1)[0]
                file.seek(40)
                file.write(bytes([byte ^ 4]))
        self.damaged(flip, r"checksum")

    def test_D14_an_old_deferred_file(self):
        i = self.running(queues=1, routing="later.example smtp:127.0.0.1:1\n* local\n",
                         conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        i.inject(HELLO, "x@later.example")
        [f] = wait(lambda: i.files("deferred"), what="a deferred message")
        with open(f, "r+b") as file:
            file.seek(30)
            file.write(b"\xff\xff")
        i.flush()
        wait(lambda: i.files("corrupt"), what="corrupt/")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_D15_trailing_garbage(self):
        def append(f):
            with open(f, "ab") as file:
                file.write(b"more")
        self.damaged(append, r"corrupt")

    def test_D15_unknown_version(self):
        def newer(f):
            with open(f, "r+b") as file:
                file.seek(8)
                file.write(b"\x63")
        self.damaged(newer, r"corrupt")

    def test_D16_more_than_one_link(self):
        i, files = self.stopped_with_mail()
        os.link(files[1], i.dir / "elsewhere")
        i.start()
        i.wait_delivered("alice", 2)
        wait(lambda: i.files("corrupt"), what="corrupt/")
        i.stop()
        self.assertEqual(len(i.maildir("alice")), 2)

    def test_D16_mode_that_others_can_write(self):
        self.damaged(lambda f: os.chmod(f, 0o666), r"corrupt")

    @needs_root
    def test_D16_wrong_owner(self):
        self.damaged(lambda f: os.chown(f, 65534, 65534), r"corrupt")

    def test_D16_not_regular_files(self):
        i, files = self.stopped_with_mail(1)
        incoming = files[0].parents[1]
        target = i.dir / "secret"
        target.write_bytes(files[0].read_bytes())

        def place(inode):  # where a file of that name belongs
            return incoming / str(inode % len(list(incoming.iterdir()))) / str(inode)
        os.mkfifo(place(1001))
        os.symlink(target, place(1002))
        os.mkdir(place(1003))
        with socket.socket(socket.AF_UNIX) as s:
            here = os.getcwd()
            os.chdir(place(1004).parent)
            s.bind("1004")
            os.chdir(here)
        i.start()
        i.wait_delivered("alice", 1)
        for inode in (1001, 1002, 1004):
            wait(lambda n=inode: not os.path.lexists(place(n)), what=f"{inode} out of the way")
        self.assertTrue(target.exists())
        i.inject(HELLO, "bob@test.example")
        i.wait_delivered("bob", 1)
        i.stop()
        self.assertEqual(len(i.maildir("alice")), 1)

    def test_D17_foreign_names(self):
        i, files = self.stopped_with_mail(1)
        split = files[0].parent
        names = ["core", ".hidden", "with blank", "0", "007", "-1", "x" * 255, "99999999999999999999999"]
        for name in names:
            (split / name).write_bytes(b"x")
        i.start()
        i.wait_delivered("alice", 1)
        i.inject(HELLO, "bob@test.example")
        i.wait_delivered("bob", 1)
        i.stop()
        for name in names:
            self.assertTrue((split / name).exists(), name)
        self.assertLessEqual(i.log().count("core"), 2, "one warning, not one a scan")

    def test_D18_file_removed_during_delivery(self):
        i = self.instance(queues=1)
        gate, began = i.mail / "gate", i.mail / "started"  # its user may write there
        os.mkfifo(gate)
        os.chmod(gate, 0o666)
        i.programs_file.write_text(
            f"slow {'games' if AS_ROOT else '-'} /bin/sh -c \"touch {began}; read x <{gate}; cat >/dev/null\"\n")
        i.routing_file.write_text("* pipe:slow\n")
        i.start()
        i.inject(HELLO, "alice@test.example")
        wait(began.exists, what="the program to run")
        [f] = i.files("active")
        f.unlink()
        gate.write_text("go\n")
        wait(lambda: i.log_has(r"to=<alice@test\.example>.*status=sent"), what="the delivery")
        i.inject(HELLO, "bob@test.example")
        wait(lambda: i.files("active"), what="the next message")
        wait(lambda: i.log().count("queue active") >= 2, what="life goes on")
        gate.write_text("go\n")
        i.wait_empty()
        i.stop()

    def test_D19_a_queue_that_is_not_mounted(self):
        i = self.running(queues=2)
        i.stop()
        away = i.base / "away"
        i.queue(1).rename(i.dir / "away")
        i.start()
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        self.assertTrue(i.log_has(r"queue ?1\b"))
        i.stop()
        self.assertFalse((i.queue(1) / "incoming").exists(), "not made again on the root file system")
        self.assertFalse(away.exists())

    def test_D20_queues_beyond_the_count_that_hold_mail(self):
        i = self.running(queues=3)
        i.stop()
        count = 0
        while {p.parents[2].name for p in i.files("incoming")} != {"queue1", "queue2", "queue3"}:
            i.inject(HELLO, "alice@test.example")  # queues are taken at random while nothing runs
            count += 1
        i.write_conf(queue_count=1)
        i.start()
        i.wait_delivered("alice", count)
        i.stop()
        self.assertEqual(i.files(), [])

    def test_D22_a_restored_backup_is_delivered_under_another_id(self):
        i, [f] = self.stopped_with_mail(1)
        original = f.read_bytes()
        i.start()
        i.wait_delivered("alice", 1)
        i.stop()
        again = pathlib.Path(f.parent) / "new"
        again.write_bytes(original)
        inode = again.stat().st_ino
        mode = stat.S_IMODE(0o660 if AS_ROOT else 0o600)
        os.chmod(again, mode)
        if AS_ROOT:
            shutil.chown(again, "uucp", "mail")
        again.rename(f.parents[1] / str(inode % len(list(f.parents[1].iterdir()))) / str(inode))
        i.start()
        i.wait_delivered("alice", 2)
        i.stop()


class FileSystem(SystemTest):
    """Rows that need a file system of their own."""

    def mounted(self, i, options):
        i.base.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", i.base], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", i.base], check=False)

    @needs_root
    def test_D1_D5_a_full_disk_is_a_temporary_refusal(self):
        i = self.instance(queues=1, conf={"queue_minfree_bytes": "1m"})
        self.mounted(i, "size=4m,mode=755")
        i.start()
        accepted = 0
        for _ in range(400):
            done = i.inject(b"Subject: x\n\n" + b"x" * 60000, "alice@nowhere.example", check=False)
            if done.returncode != 0:
                break
            accepted += 1
            if accepted == 1:
                os.kill(*i.pids("queue-send"), 19)
        os.kill(*i.pids("queue-send"), 18)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn(b"4.3.1", done.stderr)
        i.wait_delivered("alice", accepted)
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", accepted + 1)
        i.stop()

    @needs_root
    def test_D5_no_inodes(self):
        i = self.instance(queues=1, conf={"queue_minfree_inodes": "100"})
        self.mounted(i, "size=64m,nr_inodes=300,mode=755")
        i.start()
        free = os.statvfs(i.base).f_favail
        for n in range(free - 40):
            (i.base / f"filler{n}").touch()
        done = i.inject(HELLO, "alice@test.example", check=False)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertEqual(i.files(), [])
        i.stop()

    @needs_root
    def test_D9_a_disk_that_becomes_read_only_under_a_delivery(self):
        """ext4 after an error of its own, which a remount does not end: what was
        under way may come twice, nothing else, and nothing is lost."""
        i = self.instance(queues=1, conf={"error_interval": "1s"}, routing="slow.example pipe:slow\n* local\n",
                          programs=f"slow games /bin/sh {self.slow_program()}\n")
        image, loop = i.dir / "image", None
        with open(image, "wb") as f:
            f.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        i.base.mkdir(exist_ok=True)

        def mount():
            subprocess.run(["mount", "-o", "loop,nodiscard,errors=remount-ro", image, i.base], check=True)
            source = subprocess.run(["findmnt", "-no", "SOURCE", i.base], capture_output=True, text=True, check=True)
            return pathlib.Path(source.stdout.strip()).name
        loop = mount()
        self.addCleanup(subprocess.run, ["umount", "-l", i.base], check=False)
        i.start()
        i.inject(HELLO, "one@slow.example")
        wait((self.place / "begun").exists, what="the delivery")
        pathlib.Path(f"/sys/fs/ext4/{loop}/trigger_fs_error").write_text("1")
        (self.place / "go").touch()
        wait(lambda: i.log_has("no delivery starts until marks can be written"), what="it is seen")
        done = i.inject(HELLO, "alice@test.example", check=False)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertFalse(i.log_has("status=sent"), "told before it was recorded")
        i.stop()
        subprocess.run(["umount", i.base], check=True)
        # Tests beside this one have mounts of their own, and this one among them.
        wait(lambda: not pathlib.Path(f"/sys/fs/ext4/{loop}").exists(), what="the end of the file system")
        subprocess.run(["fsck.ext4", "-fy", image], capture_output=True, check=False)
        mount()
        i.start()
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.wait_empty()
        self.assertEqual((self.place / "begun").read_text(), "x\nx\n", "the one that was under way, twice")
        i.stop()

    def slow_program(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="qsched-slow-"))
        self.addCleanup(shutil.rmtree, self.place)
        os.chmod(self.place, 0o777)
        script = self.place / "slow"
        script.write_text(f"echo x >>{self.place}/begun\n"
                          f"until test -e {self.place}/go; do sleep 0.05; done\ncat >/dev/null\n")
        return script

    def remount(self, i, how):
        """Refused while a file is open for writing: the look at the disk has one for a moment."""
        wait(lambda: subprocess.run(["mount", "-o", f"remount,{how}", i.base], check=False,
                                    capture_output=True).returncode == 0, what="a remount")

    def hold(self, i):
        return subprocess.run([BIN / "qctl", "hold", "ALL"], env=i.environment(), capture_output=True, text=True,
                              check=False, timeout=HANG)

    @needs_root
    def test_D54_operators_come_back_without_a_restart(self):
        i = self.instance(queues=1, conf={"error_interval": "1s"}, routing="* smtp:127.0.0.1:1\n")
        self.mounted(i, "size=16m,mode=755")
        i.start_open()
        i.inject(HELLO, "alice@test.example")
        wait(lambda: i.files("deferred"), what="a deferred message")
        self.remount(i, "ro")
        for pid in i.pids("queue-send"):
            os.kill(pid, signal.SIGKILL)
        wait(lambda: i.log_has("operators can act only while this queue is stopped; tried again"), what="a start")
        done = self.hold(i)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.remount(i, "rw")
        wait(lambda: i.log_has("operators can act on messages of this queue again"), what="the socket")
        self.assertEqual(i.log().count("operators can act only"), 1, "said once")
        done = self.hold(i)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(i.files("hold")), 1)
        i.stop()

    @needs_root
    def test_D9_read_only_and_back_without_a_restart(self):
        i = self.instance(queues=1)
        self.mounted(i, "size=16m,mode=755")
        i.start()
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        self.remount(i, "ro")
        done = i.inject(HELLO, "alice@test.example", check=False)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.remount(i, "rw")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 2)
        i.stop()
