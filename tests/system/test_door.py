"""The door for local mail (docs/DOOR.md): every user's mail is accepted, and nothing
that a user does to queue-drop harms anybody else."""
import contextlib
import fcntl
import os
import pwd
import random
import resource
import shutil
import signal
import struct
import subprocess
import termios
import time

from case import SystemTest, needs_root
from instance import BIN, USERS, wait

HELLO = b"Subject: hello\n\nhello\n"
MALLORY, OTHER = 65534, 60123  # the second has no passwd entry


def record(kind, data=b""):
    return kind + struct.pack("<I", len(data)) + data


def message(content=HELLO, sender=b"s@test.example", rcpts=(b"bob@test.example",)):
    return (record(b"C", content) + record(b"F", sender) + b"".join(record(b"T", r) for r in rcpts)
            + record(b"E"))


def unread(pipe):
    """Bytes in it that nobody has read."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


class Doors(SystemTest):
    def running_shared(self, **kwargs):
        i = self.running(**kwargs)
        i.door()
        return i

    def door(self, i, data, uid=MALLORY, queue=1, base=None, argv=None, preexec=None, env=None, start=False):
        command = argv if argv is not None else [str(i.door()), str(base or i.base), str(queue)]
        process = subprocess.Popen(
            command, executable=str(i.door()), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, user=uid, group=uid, extra_groups=[], preexec_fn=preexec, env=env or {})
        if start:
            return process
        said, why = process.communicate(data)
        return process.returncode, said.decode().strip(), why.decode().strip()

    def accepts(self, i, uid=OTHER, rcpt="honest@test.example"):
        """Mail of an honest user comes through."""
        before = len(i.maildir("honest"))
        i.inject(HELLO, rcpt, uid=uid)
        i.wait_delivered("honest", before + 1)


class Libraries(SystemTest):
    def test_no_loop_of_events_in_what_is_started_for_each_message(self):
        for name in ("queue-inject", "queue-drop"):
            needed = subprocess.run(["readelf", "-dW", BIN / name], capture_output=True, text=True, check=True).stdout
            self.assertIn("libc.so", needed)
            self.assertNotIn("libevent", needed, name)


@needs_root
class Protocol(Doors):
    def test_S13_what_is_not_as_agreed_is_refused_and_nothing_is_kept(self):
        i = self.running_shared(queues=1, conf={"message_size_limit": "64k", "message_recipient_limit": "100"})
        c, f, t, e = record(b"C", HELLO), record(b"F", b"s@x.example"), record(b"T", b"bob@test.example"), record(b"E")
        m, n = record(b"M", b"HQQ+2B1"), record(b"N", b"\4rfc822;bob+40test.example")
        for data, code in (
                (b"", "5.5.2"), (b"C", "5.5.2"), (c, "5.5.2"), (c + f, "5.5.2"), (c + f + t, "5.5.2"),
                (c + f + t + e + b"x", "5.5.2"), (c + f + t + e + e, "5.5.2"), (c + f + t + record(b"E", b"x"), "5.5.2"),
                (t + e, "5.5.2"), (c + t + e, "5.5.2"), (f + c + t + e, "5.5.2"), (c + f + f + t + e, "5.5.2"),
                (c + f + t + c + e, "5.5.2"), (c + f + t + f + e, "5.5.2"), (e, "5.5.2"), (b"\0" * 100, "5.5.2"),
                (b"X" + c[1:] + f + t + e, "5.5.2"), (c + f + e, "5.5.1"), (c + e, "5.5.2"),
                (c + f + record(b"T", b"a\nb@x") + e, "5.1.3"), (c + f + record(b"T") + e, "5.1.3"),
                (c + f + record(b"T", b"a\0b@x") + e, "5.1.3"), (c + record(b"F", b"a\rb") + t + e, "5.1.3"),
                (c + f + record(b"T", b"a" * 513) + e, "5.5.2"), (c + f + b"T\xff\xff\xff\xff", "5.5.2"),
                (record(b"C", b"x" * (130 << 10)) + f + t + e, "5.3.4"), (c * 10000 + f + t + e, "5.3.4"),
                (b"C\xff\xff\xff\xff" + b"x" * (200 << 10), "5.3.4"), (c + f + t * 101 + e, "5.5.3"),
                (c + f + t * 1000000 + e, "5.5.3"),
                (c + f + m + m + t + e, "5.5.2"), (c + f + t + m + e, "5.5.2"), (c + m + f + t + e, "5.5.2"),
                (c + f + n + t + e, "5.5.2"), (c + f + t + n + n + e, "5.5.2"), (c + f + m + e, "5.5.1"),
                (c + f + record(b"M") + t + e, "5.5.2"), (c + f + t + record(b"N") + e, "5.5.2"),
                (c + f + record(b"M", b"Xid") + t + e, "5.5.4"), (c + f + record(b"M", b"Fi\nd") + t + e, "5.5.4"),
                (c + f + record(b"M", b"F" + b"x" * 101) + t + e, "5.5.4"),
                (c + f + record(b"M", b"F" + b"x" * 600) + t + e, "5.5.2"),
                (c + f + t + record(b"N", b"\3") + e, "5.5.4"), (c + f + t + record(b"N", b"\0bob") + e, "5.5.4"),
                (c + f + t + record(b"N", b"\0rfc822;" + b"x" * 494) + e, "5.5.2")):
            exit_code, said, why = self.door(i, data)
            self.assertEqual((exit_code, said, why.split()[0]), (65, "", code), data[:80])
        self.assertEqual(i.files(), [])
        self.assertEqual(self.door(i, message(sender=b""))[0], 0)
        self.assertEqual(self.door(i, record(b"C") + f + t + e)[0], 0, "no content is no mistake")
        self.assertEqual(self.door(i, c + f + m + t + n + t + n + e)[0], 0)
        i.wait_delivered("bob", 4)
        i.stop()

    def test_X10_arguments_and_environment(self):
        i = self.running_shared(queues=1)
        mine = i.dir / "mine"
        def copy_if_there(source, target, **options):
            with contextlib.suppress(FileNotFoundError):  # one that was renamed meanwhile
                shutil.copy2(source, target, **options)
        shutil.copytree(i.base, mine, symlinks=True, copy_function=copy_if_there,
                        ignore=lambda d, names: [n for n in names if n in ("lock", "users")])
        for path in [mine, *mine.rglob("*")]:
            os.chown(path, MALLORY, MALLORY)
        link = i.dir / "link"
        link.symlink_to(i.base)
        copy = i.dir / "copy"  # of root, and of another instance
        copy.mkdir(mode=0o755)
        shutil.copy(i.base / "conf", copy / "conf")
        os.chmod(copy / "conf", 0o644)
        door = str(i.door())
        for argv, want in (
                ([door], 64), ([door, str(i.base)], 64), ([door, str(i.base), "1", "2"], 64), ([], 64), ([""], 64),
                ([door, "queue", "1"], 64), ([door, "", "1"], 64), ([door, str(i.base), "0"], 64),
                ([door, str(i.base), "1/../1"], 64), ([door, str(i.base), "4096"], 64), ([door, str(i.base), "-1"], 64),
                ([door, str(i.base), "9"], 75), ([door, str(mine), "1"], 75), ([door, str(link), "1"], 75),
                ([door, f"{i.dir}/../{i.dir.name}/queue", "1"], 75), ([door, str(copy), "1"], 75),
                ([door, "/", "1"], 75), ([door, "/etc", "1"], 75), ([door, "/nonexistent", "1"], 75),
                ([door, "/" + "x" * 5000, "1"], 75), ([door, "/dev/stdin", "1"], 75), ([door, str(i.conf_file), "1"], 75)):
            exit_code, said, why = self.door(i, message(), argv=argv)
            self.assertEqual((exit_code, said), (want, ""), (argv, why))
        hostile = {"QSCHED_CONF": str(mine / "conf"), "QUEUE_BASE": str(mine), "QSCHED_CONF_IN_FORCE": str(mine / "conf"),
                   "LD_PRELOAD": "/nonexistent.so", "LD_LIBRARY_PATH": str(mine), "TZ": ":/etc/shadow", "LANG": "xx",
                   "MALLOC_PERTURB_": "7", "GLIBC_TUNABLES": "glibc.malloc.check=3", "LC_ALL": "x" * 100000,
                   "MYHOSTNAME": "x"}
        exit_code, said, why = self.door(i, message(), env=hostile)
        self.assertEqual((exit_code, why), (0, ""))
        [mail] = i.wait_delivered("bob", 1)
        head = mail.read_bytes()
        self.assertIn(b"Received: by test.example (qscheduler, from uid 65534)\n\tid " + said.encode() + b";", head)
        wait(lambda: not i.files(), what="nothing is left of it")
        i.stop()

    def test_X10_descriptors_limits_signals(self):
        """Things that a caller can leave in a process before it runs the door."""
        i = self.running_shared(queues=1)
        accepted = 0

        def closing(*fds):
            return lambda: [os.close(fd) for fd in fds]

        def limit(which, value):
            return lambda: resource.setrlimit(which, (value, value))

        def ignoring():
            for number in set(range(1, 65)) - {9, 19, 32, 33}:
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))

        def many_open():
            for _ in range(200):
                os.dup(0)

        for preexec, wants in (
                (closing(0), (65, 75)), (closing(1), (0,)), (closing(2), (0,)), (closing(1, 2), (0,)),
                (closing(0, 1, 2), (65, 75)), (limit(resource.RLIMIT_FSIZE, 0), (75,)), (limit(resource.RLIMIT_FSIZE, 200), (75,)),
                (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)), (0,)),
                (limit(resource.RLIMIT_NOFILE, 3), (75, -6, 127)), (limit(resource.RLIMIT_NOFILE, 6), (75,)),
                (limit(resource.RLIMIT_NOFILE, 31), (75,)), (limit(resource.RLIMIT_NOFILE, 32), (0,)),
                (limit(resource.RLIMIT_AS, 3 << 20), (0, 75, 127, -11, -9)), (limit(resource.RLIMIT_MEMLOCK, 0), (0,)),
                (limit(resource.RLIMIT_CORE, 0), (0,)), (limit(resource.RLIMIT_STACK, 64 << 10), (0, 75, -11, -9)),
                (ignoring, (0,)), (many_open, (0,)), (lambda: os.umask(0o777), (0,)), (lambda: os.chdir("/proc"), (0,)),
                (os.setsid, (0,)), (lambda: os.nice(19), (0,))):
            try:
                exit_code, _, why = self.door(i, message(), preexec=preexec)
            except OSError:  # the limit keeps the program from being run
                continue
            self.assertIn(exit_code, wants, (why, preexec, accepted))
            accepted += exit_code == 0
        i.wait_delivered("bob", accepted)
        i.wait_empty()
        self.assertEqual(len(i.maildir("bob")), accepted)
        self.assertEqual(i.files(), [])
        self.accepts(i)
        i.stop()

    def test_X11_the_door_is_killed_at_any_point(self):
        i = self.running_shared(queues=1, conf={"user_message_rate": "0"})
        dice = random.Random(4)
        told = 0
        data = message(b"Subject: x\n\n" + b"x" * 300000)
        for n in range(120):
            process = self.door(i, None, start=True)
            cut = dice.choice((0, 1, 7, 65536, len(data) - 6, len(data) - 1, len(data)))
            try:
                process.stdin.write(data[:cut])
                process.stdin.flush()
                if cut == len(data):
                    process.stdin.close()
            except BrokenPipeError:
                pass
            time.sleep(dice.random() * 0.006)  # anywhere in its work, whatever it does then
            process.kill()
            told += bool(process.stdout.read().strip())
            process.wait()
            process.stdout.close()
            process.stderr.close()
            if not process.stdin.closed:
                try:
                    process.stdin.close()
                except BrokenPipeError:
                    pass
        self.accepts(i)
        i.wait_empty()
        self.assertGreaterEqual(len(i.maildir("bob")), told, "what was told is delivered")
        self.assertEqual([p for p in i.files() if "maildrop" in str(p)], [], "nothing is left of the others")
        self.assertEqual(i.files("corrupt"), [])
        i.stop()

    def test_X5_slow_and_stopped_doors_hold_up_nobody_else(self):
        i = self.running_shared(queues=1, conf={"user_process_limit": "3"})
        held = [self.door(i, None, start=True) for _ in range(3)]
        try:
            for number, process in enumerate(held):
                process.stdin.write(record(b"C", HELLO))
                process.stdin.flush()
            # They have read what came: the slots are taken by then.
            wait(lambda: not any(unread(p.stdin) for p in held), what="doors that read")
            for process in held:
                process.send_signal(signal.SIGSTOP)
            for _ in range(5):
                self.accepts(i)
            exit_code, said, why = self.door(i, message())
            self.assertEqual((exit_code, said), (75, ""))
            self.assertIn('3 submissions of uid 65534 are under way, and there may be no more (user_process_limit); try again when one has ended', why)
        finally:
            for process in held:
                process.kill()
                process.communicate()
        self.assertEqual(self.door(i, message())[0], 0, "slots of the killed are free")
        i.stop()


@needs_root
class Shares(Doors):
    def counted(self, i, uid, number):
        """The figures of todo-proc for a user in all queues, until they are so high."""
        def said():
            total = 0
            for path in i.base.glob("queue*/gate/waiting"):
                total += sum(int(line.split()[1]) for line in path.read_text().splitlines()[1:]
                             if int(line.split()[0]) == uid)
            return total == number
        wait(said, what=f"{number} messages of {uid} in gate/waiting")

    def refused(self, i, what, uid=MALLORY, content=HELLO):
        done = i.inject(content, "bob@test.example", uid=uid, check=False)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn(what, done.stderr.decode())
        self.assertIn(b" 4.7.1 ", done.stderr)
        done = i.inject(content, "bob@test.example", uid=uid, check=False, face="queue-inject")
        self.assertEqual(done.returncode, 75)
        self.assertEqual(done.stdout, b"")

    def test_X6_messages(self):
        i = self.running_shared(queues=2, conf={"user_message_limit": "5", "trusted_users": "games, 60200",
                                                "minimal_backoff_time": "1h", "maximal_backoff_time": "1h"},
                                routing="later.example smtp:127.0.0.1:1\n* local\n")
        for _ in range(3):
            i.inject(HELLO, "x@later.example", uid=MALLORY)
        wait(lambda: len(i.files("deferred")) == 3, what="three that wait")
        self.counted(i, MALLORY, 3)
        i.stop()
        for _ in range(2):  # while it is stopped: the last count and the drops
            i.inject(HELLO, "x@later.example", uid=MALLORY)
        self.refused(i, "5 messages of uid 65534 wait, the limit is 5 (user_message_limit)")
        i.start()
        wait(lambda: len(i.files("deferred")) == 5, what="five that wait")
        self.counted(i, MALLORY, 5)
        self.refused(i, "(user_message_limit)")
        for uid in (OTHER, 0, pwd.getpwnam("games").pw_uid, 60200):
            for _ in range(6 if uid != OTHER else 1):
                i.inject(HELLO, "honest@test.example", uid=uid)
        i.wait_delivered("honest", 19)
        i.write_conf()
        i.routing_file.write_text("* local\n")
        i.reload()
        # A flush can come before the routes of the reload, which defers the mail again.
        wait(lambda: i.flush() or i.inject(HELLO, "bob@test.example", uid=MALLORY, check=False).returncode == 0,
             what="room for the user again")
        i.stop()

    def test_X6_X11_bytes(self):
        i = self.running_shared(queues=1, conf={"user_size_limit": "3m"}, routing="later.example smtp:127.0.0.1:1\n* local\n")
        big = b"Subject: x\n\n" + b"x" * (2 << 20)
        i.inject(big, "x@later.example", uid=MALLORY)
        self.counted(i, MALLORY, 1)
        self.refused(i, "(user_size_limit)", content=big)
        i.inject(HELLO, "x@later.example", uid=MALLORY)
        # One stream that does not end is refused while it is read.
        process = self.door(i, None, uid=OTHER, start=True)
        chunk = record(b"C", b"x" * 65536)
        sent = 0
        try:
            while sent < 100 << 20:
                process.stdin.write(chunk)
                process.stdin.flush()
                sent += len(chunk)
        except BrokenPipeError:
            pass
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        self.assertEqual(process.wait(), 75)
        self.assertIn(b"(user_size_limit)", process.stderr.read())
        self.assertLess(sent, 6 << 20)
        process.stdout.close()
        process.stderr.close()
        # Messages that are read at the same time count together.
        held = [self.door(i, None, uid=60300, start=True) for _ in range(2)]
        for process in held:
            process.stdin.write(record(b"C", b"x" * (1200 << 10)))
            process.stdin.flush()

        def told():
            file = i.base / "users/60300"
            data = file.read_bytes()[64:384] if file.exists() else b""
            return sum(struct.unpack("<40Q", data.ljust(320, b"\0")))
        wait(lambda: told() > 2 << 20, what="two that are counted")
        exit_code, _, why = self.door(i, message(b"x" * (1500 << 10)), uid=60300)
        self.assertEqual(exit_code, 75)
        self.assertIn("(user_size_limit)", why)
        for process in held:
            process.kill()
            process.communicate()
        self.assertEqual(self.door(i, message(b"x" * (1500 << 10)), uid=60300)[0], 0, "the killed do not count")
        i.stop()

    def test_X6_inodes_and_rate(self):
        i = self.running_shared(queues=1, conf={"user_inode_limit": "2", "user_message_rate": "0"},
                                routing="later.example smtp:127.0.0.1:1\n* local\n")
        i.inject(HELLO, "x@later.example", uid=MALLORY)
        i.inject(HELLO, "x@later.example", uid=MALLORY)
        self.counted(i, MALLORY, 2)
        self.refused(i, "2 files of uid 65534 wait, the limit is 2 (user_inode_limit)")
        i.write_conf(user_inode_limit="0", user_message_rate="2")
        i.reload()
        wait(lambda: "user_message_rate = 2" in (i.base / "conf").read_text(), what="the reload")
        sent = 0
        while sent < 10 and i.inject(HELLO, "bob@test.example", uid=OTHER, check=False).returncode == 0:
            sent += 1
        self.assertEqual(sent, 2)  # the third has half a minute to be refused in
        self.refused(i, f"uid {OTHER} submits more than 2 messages a minute (user_message_rate); try again in a minute", uid=OTHER)
        i.inject(HELLO, "bob@test.example", uid=MALLORY)
        i.stop()


@needs_root
class Promises(Doors):
    def everybody(self):
        """Users and groups of each kind."""
        import grp
        return {"root": (0, []), "no passwd entry": (OTHER, []), "nobody": (MALLORY, []),
                "member": (60400, [grp.getgrnam(USERS["qmail_group"]).gr_gid])}

    def submit(self, i, face, uid, groups, user, limit=None):
        command = {"qmail-queue": [str(i.face("qmail-queue"))],
                   "sendmail": [str(i.face("sendmail")), "-f", "s@test.example", f"{user}@test.example"]}[face]
        extra = {}
        if face == "qmail-queue":
            envelope = i.dir / "envelope"
            envelope.write_bytes(b"Fs@test.example\0T" + user.encode() + b"@test.example\0\0")
            os.chmod(envelope, 0o644)
            extra["stdout"] = open(envelope, "rb")
        try:
            done = subprocess.run(command, input=HELLO, stderr=subprocess.PIPE, user=uid, group=uid, extra_groups=groups,
                                  env=i.environment(), check=False, **extra)
        finally:
            if extra:
                extra["stdout"].close()
        self.assertEqual(done.returncode, 0, (face, uid, done.stderr))

    def test_X10_everybody_has_the_same_promises(self):
        """Faces and kinds of users, while it runs and while it is stopped."""
        i = self.running_shared(queues=2)
        sent = 0
        for round_ in ("runs", "stopped"):
            if round_ == "stopped":
                i.stop()
            for uid, groups in self.everybody().values():
                for face in ("sendmail", "qmail-queue"):
                    self.submit(i, face, uid, groups, "bob")
                    sent += 1
        i.start()
        i.wait_delivered("bob", sent)
        i.wait_empty()
        self.assertEqual(len(i.maildir("bob")), sent)
        self.assertEqual(i.files("corrupt"), [])
        i.stop()

    def test_X10_the_id_that_is_told_is_that_of_the_log(self):
        i = self.running_shared(queues=1)
        told = i.inject(HELLO, "bob@test.example", uid=MALLORY, face="queue-inject").stdout.decode().strip()
        i.wait_delivered("bob", 1)
        wait(lambda: i.log_has(rf"{told}: removed"), what="the end of it in the log")
        self.assertTrue(i.log_has(rf"queue-send/1/pickup: {told}: uid=65534, "))
        self.assertTrue(i.log_has(rf"{told}: to=<bob@test\.example>"))
        i.stop()

    def test_C8_limits_bind_at_acceptance_only(self):
        i = self.running_shared(queues=1)
        i.stop()
        i.inject(b"Subject: x\n\n" + b"x" * 100000, "a@test.example", "b@test.example", "c@test.example", uid=MALLORY)
        i.inject(b"Subject: x\n\n" + b"x" * 100000, "a@test.example", "b@test.example", "c@test.example")
        i.write_conf(message_size_limit="10k", message_recipient_limit="1")
        i.start()
        for user in "abc":
            i.wait_delivered(user, 2)
        self.assertEqual(i.files("corrupt"), [])
        i.stop()

    def test_F9_a_wrong_file_stops_no_submission(self):
        i = self.running_shared(queues=1)
        i.write_conf(no_such_parameter="1")
        for stopped in (False, True):
            if stopped:
                i.stop()
            for uid in (None, MALLORY):
                done = i.inject(HELLO, "bob@test.example", uid=uid)
                self.assertEqual(done.stderr.count(b"no_such_parameter: unknown parameter"), 1, done.stderr)
                self.assertIn(os.fsencode(i.base / "conf"), done.stderr)
        (i.base / "conf").unlink()
        for uid in (None, MALLORY):
            done = i.inject(HELLO, "bob@test.example", uid=uid, check=False)
            self.assertEqual(done.returncode, 75, done.stderr)
        i.write_conf(no_such_parameter=None)
        done = i.inject(HELLO, "bob@test.example", uid=MALLORY, check=False)
        self.assertEqual(done.returncode, 75, "nothing is in force")
        self.assertIn(b"no configuration is in force", done.stderr)
        i.inject(HELLO, "bob@test.example")
        i.start()
        i.wait_delivered("bob", 5)
        i.stop()
