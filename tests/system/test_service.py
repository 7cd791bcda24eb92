"""How service managers and operators see the supervisor."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import threading
import time

from case import SystemTest, cost, needs_root
from instance import AS_ROOT, BIN, HANG, USERS, but_file_systems, wait

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

    def wrong_files(self, i):
        """Each file whose wrong line refuses a reload: its parameter, and the wrong line. A
        wrong line of the alias file holds up its own name only (test_alias_file.py)."""
        tls, passwords = i.dir / "tls", i.dir / "passwords"
        for path, name, text in ((i.routing_file, None, "* nowhere\n"), (i.programs_file, None, "x\n"),
                                 (tls, "smtp_tls_policy_file", "a.example sometimes\n"),
                                 (passwords, "smtp_password_file", "a.example\n")):
            right = path.read_text() if path.exists() else ""
            path.write_text(right + text)
            path.chmod(0o600 if path == passwords else 0o644)
            yield path, name, right

    def setqload(self, i, *words):
        return subprocess.run([BIN / "setqload", "-c", i.conf_file, *words], capture_output=True, text=True,
                              check=False, timeout=HANG)

    @cost(16)
    def test_F14_a_refused_reload_is_told_until_it_is_mended(self):
        """The command fails and names file and line; so do the status, setqload --list and
        qtop; a reload that is right ends it."""
        manager = Manager(self)
        i = self.running(queues=1)
        manager.hear("^READY=1$")
        self.assertEqual(self.setqload(i, "--reload").stdout, "configuration reloaded\n")
        for path, name, right in self.wrong_files(i):
            if name:
                i.write_conf(**{name: path})
            done = self.setqload(i, "--reload")
            self.assertEqual((done.returncode, done.stdout), (78, ""), path)
            self.assertRegex(done.stderr, rf"^setqload: old configuration in force: {path}:\d+: ")
            why = done.stderr.removeprefix("setqload: ").strip()
            self.assertIn(why, manager.hear("^STATUS=.*old configuration in force"))
            self.assertIn(why, self.setqload(i, "--list").stdout)
            shown = json.loads(self.setqload(i, "--list", "--json").stdout.splitlines()[0])
            self.assertIn(str(path), shown["conf_error"])
            top = subprocess.run([BIN / "qtop", "-b", "-n", "1", "-c", i.conf_file], capture_output=True, text=True,
                                 check=False, timeout=HANG)
            self.assertIn("old configuration in force", top.stdout + top.stderr)
            path.write_text(right)
            done = self.setqload(i, "--reload")
            self.assertEqual((done.returncode, done.stdout), (0, "configuration reloaded\n"))
            self.assertNotIn("old configuration", manager.hear("^READY=1$|STATUS=(?!.*old conf)"))
            self.assertNotIn("old configuration", self.setqload(i, "--list").stdout)
        i.stop()

    def test_F14_a_start_on_the_configuration_in_force_says_so(self):
        i = self.running(queues=1)
        i.stop()
        manager = Manager(self)
        i.write_conf(no_such_name=1)
        i.start()
        self.assertRegex(manager.hear("^READY=1$"), rf"STATUS=1 queue open.*old configuration in force: {i.conf_file}:\d+: ")
        i.write_conf(no_such_name=None)
        self.assertEqual(self.setqload(i, "--reload").returncode, 0)
        manager.hear("^STATUS=(?!.*old configuration)")
        i.stop()

    @needs_root
    def test_others_may_not_reload(self):
        i = self.running(queues=1)
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", BIN / "setqload", "-c",
                               i.conf_file, "--reload"], capture_output=True, text=True, check=False, timeout=HANG)
        self.assertEqual(done.returncode, 77, done.stderr)
        i.stop()

    def test_the_journal_has_the_priority_of_each_line(self):
        """Standard error is the stream that JOURNAL_STREAM names."""
        ours, journal = socket.socketpair()
        self.addCleanup(ours.close)
        i = self.instance(queues=1)
        i.write_conf(log_level="debug")
        st = os.fstat(journal.fileno())
        os.environ["JOURNAL_STREAM"] = f"{st.st_dev}:{st.st_ino}"
        self.addCleanup(os.environ.pop, "JOURNAL_STREAM", None)
        said = []

        def hear():
            while block := ours.recv(65536):
                said.append(block.decode())
        thread = threading.Thread(target=hear)
        thread.start()
        process = subprocess.Popen([BIN / "qscheduler", "-s", "-c", i.conf_file], stderr=journal, env=i.environment())
        journal.close()

        def has(pattern):
            return re.search(pattern, "".join(said), re.M)
        try:
            wait(lambda: has(r"^<6>qscheduler: ready: "), what="readiness")
            process.send_signal(signal.SIGHUP)
            wait(lambda: has(r"^<7>queue-send/1: configuration reloaded"), 60, "a line of a child")
            i.routing_file.write_text("* nowhere\n")
            process.send_signal(signal.SIGHUP)
            wait(lambda: has(r"^<3>qscheduler: error: reload: "), what="an error")
            i.write_conf(log_format="json", queue_count=2, queue_max=3)
            i.routing_file.write_text("* local\n")
            process.send_signal(signal.SIGHUP)
            wait(lambda: has(r"^<4>qscheduler: warning: reload: changed, but needs a restart"), what="a warning")
            wait(lambda: has(r'^<6>\{"time":.*configuration reloaded'), what="a line of JSON")
        finally:
            process.terminate()
            process.wait(HANG)
            thread.join(HANG)
        self.assertEqual([line for line in "".join(said).splitlines() if not re.match("<[1-7]>", line)], [])

    def test_P10_a_program_holds_up_a_stop_for_its_own_time(self):
        """stop_time_limit is an hour: the wait for the end of this test is over long before."""
        user = USERS["maildir_user"] if AS_ROOT else "-"
        i = self.instance(queues=1, routing="slow.example pipe:slow\n* local\n",
                          conf={"stop_time_limit": "1h", "program_stop_time": "1s"})
        began = i.mail / "began"
        i.programs_file.write_text(f'slow {user} /bin/sh -c "touch {began}; exec sleep 3000"\n')
        i.start()
        i.inject(HELLO, "a@slow.example", "b@slow.example")
        wait(began.exists, what="the program")
        i.stop()
        self.assertEqual(len(i.files("deferred")), 1)
        self.assertRegex(i.log(), r"to=<[ab]@slow.example>.*status=deferred \(.*the mail system stops")

    def test_the_mode_is_a_parameter(self):
        i = self.instance(queues=1)
        for conf, options, want in (({}, (), False), ({"queue_mode": "dynamic"}, (), True),
                                    ({"queue_mode": "dynamic"}, ("-s",), False), ({"queue_mode": "static"}, ("-d",), True)):
            i.write_conf(**conf)
            with open(i.log_file, "ab") as log:
                process = subprocess.Popen([BIN / "qscheduler", *options, "-c", i.conf_file], stderr=log, env=i.environment())
            try:
                def page():
                    done = self.setqload(i, "--list", "--json")
                    return done.returncode == 0 and json.loads(done.stdout.splitlines()[0])
                self.assertEqual(wait(page, what="the page")["dynamic"], want, (conf, options))
            finally:
                process.terminate()
                self.assertEqual(process.wait(HANG), 0)

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
        # The disk of this machine, and programs without set-group-id, are no fault of the life.
        said = "\n".join(but_file_systems(i.log()))
        self.assertFalse(re.search("warning:|error:", said), said)

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
