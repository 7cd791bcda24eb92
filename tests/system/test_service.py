"""How service managers and operators see the supervisor."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import statistics
import time

from case import SystemTest, cost, needs_root
from instance import HANG, wait

HELLO = b"Subject: hello\n\nhello\n"


class Manager:
    """A datagram socket as systemd has it."""

    def __init__(self, test):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        test.addCleanup(self.socket.close)
        name = f"qsched-test-{os.getpid()}"
        self.socket.bind("\0" + name)
        self.socket.settimeout(HANG)
        self.told = []
        os.environ["NOTIFY_SOCKET"] = "@" + name
        os.environ["WATCHDOG_USEC"] = "30000000"
        test.addCleanup(os.environ.pop, "NOTIFY_SOCKET", None)
        test.addCleanup(os.environ.pop, "WATCHDOG_USEC", None)

    def hear(self, pattern):
        """The next of what comes that has this in it; what came before is kept."""
        while True:
            text = self.socket.recv(4096).decode()
            self.told.append(text)
            if re.search(pattern, text, re.M):
                return text


class Service(SystemTest):
    def test_systemd_is_told_of_each_step(self):
        manager = Manager(self)
        i = self.running(queues=2)
        ready = manager.hear("^READY=1$")
        self.assertIn(f"MAINPID={i.process.pid}", ready)
        self.assertIn("STATUS=2 queues open", ready)
        self.assertFalse([t for t in manager.told[:-1] if "READY" in t])
        manager.hear("^WATCHDOG=1$")
        i.reload()
        self.assertRegex(manager.hear("^RELOADING=1$"), r"MONOTONIC_USEC=\d+")
        manager.hear("^READY=1$")
        i.routing_file.write_text("* nowhere\n")
        i.reload()
        manager.hear("^RELOADING=1$")
        manager.hear("^READY=1$")
        i.stop()
        stopping = manager.hear("^STOPPING=1$")
        limit = int(re.search(r"^EXTEND_TIMEOUT_USEC=(\d+)$", stopping, re.M).group(1))
        self.assertGreater(limit, 10e6, "stop_time_limit, and what may come after it")

    @cost(8)
    def test_systemd_hears_from_the_loop_four_times_in_its_time(self):
        manager = Manager(self)
        os.environ["WATCHDOG_USEC"] = "4000000"
        i = self.running(queues=1)
        manager.hear("^READY=1$")
        manager.hear("^WATCHDOG=1$")
        times = [time.monotonic()]
        for _ in range(5):
            manager.hear("^WATCHDOG=1$")
            times.append(time.monotonic())
        # A busy machine makes one of them late, a loop that tells too seldom all of them.
        self.assertLess(statistics.median(b - a for a, b in zip(times, times[1:])), 2, times)
        i.process.send_signal(signal.SIGSTOP)
        manager.socket.settimeout(3)
        with self.assertRaises(TimeoutError):
            while True:  # what was under way when it was stopped
                manager.hear("^WATCHDOG=1$")
        i.process.send_signal(signal.SIGCONT)
        manager.socket.settimeout(HANG)
        manager.hear("^WATCHDOG=1$")
        i.stop()

    @needs_root  # they are not dumpable: nobody else may look
    def test_children_do_not_speak_to_the_manager(self):
        Manager(self)
        i = self.running(queues=1)
        for pid in i.all_daemons():
            names = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            self.assertEqual(b"NOTIFY_SOCKET" in names, pid == i.process.pid)
        i.stop()

    def test_P10_hup_before_and_term_after_the_handlers(self):
        i = self.instance()
        # Held for a moment where the loop is made and nothing is there yet.
        i.start(ready=False, prefix=("strace", "-qq", "-o", "/dev/null", "-e", "trace=epoll_create1",
                                     "-e", "inject=epoll_create1:delay_enter=5000000"))
        pid = wait(lambda: i.daemons("qscheduler"), what="the process")[0]

        def holds():
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            blocked, caught = (int(re.search(rf"^{name}:\s*(\w+)", status, re.M).group(1), 16)
                               for name in ("SigBlk", "SigCgt"))
            return blocked & ~caught & 1 << (signal.SIGHUP - 1)
        wait(holds, what="signals held")
        for sig in (signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1):
            os.kill(pid, sig)
        wait(lambda: i.log_has("ready: 2 queues open"), what="readiness")
        os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(ProcessLookupError):
            while i.process.poll() is None:
                os.kill(pid, signal.SIGTERM)
        self.assertEqual(i.process.wait(HANG), 0)
        i.process = None
        i.stop()

    @cost(8)
    def test_an_orderly_life_has_no_warnings(self):
        i = self.running(queues=3)
        for n in range(20):
            i.inject(HELLO, f"user{n % 4}@test.example")
        i.wait_delivered("user0", 5)
        i.reload()
        wait(lambda: i.log_has("qscheduler: configuration reloaded"), what="the reload")
        i.inject(HELLO, "late@test.example")
        i.stop()
        # What the disk of this machine is mounted with is no fault of the life.
        self.assertFalse(i.log_has("warning:(?!.*(its|their) file system )|error:"), i.log())

    @cost(8)
    def test_I9_idle_wakes_up_once_a_second(self):
        i = self.running(queues=2, conf={"scan_interval": "5s"})  # its default

        def switches():
            found = {}
            for pid in daemons:
                text = pathlib.Path(f"/proc/{pid}/status").read_text()
                found[pid] = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M).group(1))
            return found
        def too_many():
            """Who woke up too often within five seconds."""
            before, began = switches(), time.monotonic()
            time.sleep(5)  # the time that is measured
            after, took = switches(), time.monotonic() - began
            found = []
            for pid, count in after.items():
                name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
                # A scan of todo-proc is five tasks of threads, each begun and heard of.
                # The disk of each queue is asked every 20 s: a process begins, and is heard of.
                limit = took + 3 + 2 * 2 if name == "qscheduler" else 3 * took + 4
                if count - before[pid] > limit:
                    found.append((name, count - before[pid], took))
            return found
        daemons = i.all_daemons()
        # What has just started settles, on a busy machine later; then it stays so for twice that time.
        wait(lambda: not too_many() and not too_many(), what="rest")
        i.stop()
