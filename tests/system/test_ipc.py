"""I rows: shared memory and message queues that are full, missing or lie."""
import ctypes
import os
import signal
import struct
import subprocess

from case import SystemTest, cost, needs_root, needs_user
from instance import AS_ROOT, BIN, HANG, Failed, status_of, wait

HELLO = b"Subject: hello\n\nhello\n"
librt = ctypes.CDLL(None, use_errno=True)


class Bell:
    """The doorbell of a queue, opened as any of its writers does."""

    def __init__(self, i, number):
        self.fd = librt.mq_open(f"/{i.name}.queue{number}".encode(), os.O_WRONLY | os.O_NONBLOCK)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "mq_open")

    def send(self, data):
        return librt.mq_send(self.fd, data, len(data), 0) == 0

    def fill(self):
        count = 0
        while self.send(struct.pack("=iIQ", os.getpid(), 0, 1)):
            count += 1
        return count

    def close(self):
        os.close(self.fd)


class Bells(SystemTest):
    def test_I1_full(self):
        i = self.running(queues=1)
        [todo] = i.pids("todo-proc")
        os.kill(todo, signal.SIGSTOP)
        wait(lambda: "\nState:\tT" in status_of(todo), what="it is stopped")
        bell = Bell(i, 1)
        bell.fill()
        for _ in range(5):
            i.inject(HELLO, "alice@test.example")
        self.assertFalse(bell.send(b"x" * 16), "still full")
        os.kill(todo, signal.SIGCONT)
        i.wait_delivered("alice", 5)
        bell.close()
        i.stop()

    def test_the_bell_alone_is_prompt(self):
        """No look of its own for an hour: each message is found by its ring."""
        i = self.running(queues=1, conf={"scan_interval": "1h"})
        for n in range(1, 7):
            i.inject(HELLO, "alice@test.example")
            i.wait_delivered("alice", n)
        wait(lambda: i.page(1)["accepted"] == 6 and i.page(1)["rings"] >= 5, what="the rings are counted")
        # One at a time: the look at the start and the one when the bell came
        # can each have found one.
        self.assertLessEqual(i.page(1)["found_by_scan"], 2)
        i.stop()

    @cost(60)
    def test_I5_I8_removed_while_in_use(self):
        i = self.running(queues=1)
        librt.mq_unlink(f"/{i.name}.queue1".encode())
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        wait(lambda: f"mq /{i.name}.queue1" in i.ipc_objects(), what="made again")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 2)
        i.stop()

    def test_I6_I7_lies(self):
        i = self.running(queues=1)
        bell = Bell(i, 1)
        lies = [struct.pack("=iIQ", 1, 0, 4711), struct.pack("=iIQ", -1, 0xffffffff, 2**64 - 1),
                struct.pack("=iIQ", 0, 7, 0), b"", b"x", b"x" * 15, b"x" * 17, b"x" * 64,
                b"/../../etc/passw"]
        for lie in lies * 3:
            wait(lambda data=lie: bell.send(data), what="room in the bell")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        bell.close()
        [todo] = i.pids("todo-proc")
        self.assertNotRegex(i.log(), r"todo-proc.*(ended|exit)")
        self.assertTrue(todo)
        i.stop()

    def test_I2_I3_no_message_queue_for_this_user(self):
        """RLIMIT_MSGQUEUE of 0: it starts by scanning, and delivers."""
        i = self.instance(queues=2)
        i.start(prefix=["prlimit", "--msgqueue=0:0"] if not AS_ROOT else
                ["setpriv", "--bounding-set", "-sys_resource", "prlimit", "--msgqueue=0:0"])
        self.assertEqual([n for n in i.ipc_objects() if n.startswith("mq")], [])
        for n in range(6):
            i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 6)
        self.assertTrue(i.log_has(r"(?i)message queue"))
        i.stop()

    @needs_root
    def test_I2_X2_queues_max_used_up_by_others(self):
        i = self.instance(queues=2)
        i.start(prefix=["unshare", "-i", "setpriv", "--bounding-set", "-sys_resource", "sh", "-c",
                        'echo 0 >/proc/sys/fs/mqueue/queues_max && exec "$0" "$@"'])
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def depth(self, i, prefix=()):
        """Rings until it is full: its reader is stopped."""
        [todo] = i.pids("todo-proc")
        os.kill(todo, signal.SIGSTOP)
        wait(lambda: "\nState:\tT" in status_of(todo), what="it is stopped")
        done = subprocess.run(
            [*prefix, "/usr/bin/python3", "-c",
             "import ctypes, os, sys\n"
             "librt = ctypes.CDLL(None)\n"
             "fd = librt.mq_open(sys.argv[1].encode(), os.O_WRONLY | os.O_NONBLOCK)\n"
             "n = 0\n"
             "while fd >= 0 and librt.mq_send(fd, bytes(16), 16, 0) == 0:\n"
             "    n += 1\n"
             "print(n)", f"/{i.name}.queue1"], capture_output=True, text=True, check=True)
        os.kill(todo, signal.SIGCONT)
        return int(done.stdout)

    @needs_user
    def test_I4_as_deep_as_a_user_may_have_it(self):
        """256 is asked for, which is EINVAL.  mutation: no ladder in open_deepest()"""
        with open("/proc/sys/fs/mqueue/msg_max", encoding="ascii") as f:
            most = int(f.read())
        i = self.running(queues=1)
        self.assertEqual(self.depth(i), min(most, 256))
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    @needs_root
    def test_I4_as_deep_as_the_system_allows(self):
        """Neither 256 nor 10.  mutation: no system_depth() in open_deepest()"""
        i = self.instance(queues=1)
        i.start(prefix=["unshare", "-i", "setpriv", "--bounding-set", "-sys_resource", "sh", "-c",
                        'echo 5 >/proc/sys/fs/mqueue/msg_max && exec "$0" "$@"'])
        self.assertEqual(self.depth(i, ["nsenter", "-t", str(i.process.pid), "-i"]), 5)
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()


class SharedMemory(SystemTest):
    def test_I10_missing(self):
        i = self.running(queues=2)
        for name in i.ipc_names():
            os.unlink(f"/dev/shm{name}")
        for n in range(6):
            i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 6)
        i.stop()

    def test_I10_I12_I15_what_a_crash_or_a_squatter_left(self):
        i = self.running(queues=2)
        i.stop()
        for size in (0, 3, 100, 40000):
            for name in i.ipc_names():
                with open(f"/dev/shm{name}", "wb") as f:
                    f.write(os.urandom(size))
            self.assertEqual(i.inject(HELLO, "alice@test.example").returncode, 0)
        i.start()  # replaces them under its lock
        i.wait_delivered("alice", 4)
        i.stop()

    def test_I15_of_a_queue_that_was_never_made(self):
        """A supervisor was killed while it made queue 3: its objects come before
        its directory. mutation: list() leaves numbers up to QUEUE_MAX alone."""
        i = self.instance(queues=1, conf={"queue_max": 3})
        with open(f"/dev/shm/{i.name}.queue3", "wb") as f:
            f.write(bytes(4096))
        i.start("-d")
        self.assertFalse(os.path.exists(f"/dev/shm/{i.name}.queue3"))
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    @needs_root
    def test_I14_squatted_names(self):
        i = self.instance(queues=2)
        for name in i.ipc_names():
            with open(f"/dev/shm{name}", "wb") as f:
                f.write(b"mine")
            os.chown(f"/dev/shm{name}", 65534, 65534)
        subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "/usr/bin/python3", "-c",
                        "import ctypes, sys, os\n"
                        "for n in sys.argv[1:]:\n"
                        "    ctypes.CDLL(None).mq_open(n.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)",
                        *i.ipc_names()], check=True)
        i.start()
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        for name in i.ipc_names():
            self.assertNotEqual(os.stat(f"/dev/shm{name}").st_uid, 65534)
        i.stop()

    def test_I16_two_instances_do_not_meet(self):
        one, two = self.running(), self.running()
        one.inject(HELLO, "alice@test.example")
        two.inject(HELLO, "bob@test.example")
        one.wait_delivered("alice", 1)
        two.wait_delivered("bob", 1)
        one.stop()
        two.inject(HELLO, "bob@test.example")
        two.wait_delivered("bob", 2)
        two.stop()

    def refused(self, i):
        other = subprocess.run([BIN / "qscheduler", "-s", "-c", i.conf_file], env=i.environment(),
                               capture_output=True, check=False, timeout=HANG)
        self.assertIn(other.returncode, (100, 111), other.stderr)
        return other.stderr.decode()

    def test_I16_one_supervisor_for_a_queue_base(self):
        i = self.running()
        other = self.instance(conf={"queue_base": i.base})
        self.assertIn(str(i.base), self.refused(other))
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_I16_one_supervisor_for_a_name(self):
        i = self.running()
        other = self.instance(conf={"instance": i.name})
        self.assertIn(i.name, self.refused(other))
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()
        other.name = i.name
        self.assertEqual(other.ipc_objects(), [])

    def test_objects_as_in_the_table(self):
        i = self.running(queues=2)
        i.wait_open(1, 2)
        modes = {f"/dev/shm/{i.name}.qscheduler": 0o644, f"/dev/shm/{i.name}.queue1": 0o644}
        for path, mode in modes.items():
            self.assertEqual(os.stat(path).st_mode & 0o7777, mode, path)
        with open(f"/dev/shm/{i.name}.qscheduler", "rb") as f:
            self.assertEqual(struct.unpack("=II", f.read(8)), (2, 2))
        with open(f"/dev/shm/{i.name}.queue1", "rb") as f:
            local, remote, local_limit, remote_limit, disabled = struct.unpack("=5i", f.read(20))
        self.assertEqual((local, remote, disabled), (0, 0, 0))
        self.assertGreater(local_limit, 0)
        self.assertGreater(remote_limit, 0)
        i.stop()

    def test_setqload_is_answered_for(self):
        i = self.running(queues=2)

        def ask(*words):
            return subprocess.run([BIN / "setqload", "-i", i.name, *words], capture_output=True,
                                  text=True, check=False, timeout=HANG)
        for load in ("45", "45/100", "2/10 5/20"):
            done = ask("-q", "1", *load.split())
            self.assertEqual(done.returncode, 0, f"{load}: {done.stderr}")
        for words in (["-q", "9", "45"], ["-q", "-1", "50/100"], ["-q", "99999", "1"],
                      ["-q", "1", "1/0"], ["-q", "1", "x"], ["-q", "1"], [], ["--bad"]):
            done = ask(*words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertEqual(done.stderr.count("\n") <= 3 and bool(done.stderr), True, words)
        i.stop()
        self.assertEqual(ask("-q", "1", "45").returncode, 69)
        with self.assertRaises(Failed):
            wait(lambda: False, 0.1)  # the negative control of wait()
