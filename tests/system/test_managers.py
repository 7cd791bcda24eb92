"""The service directories of etc/, run by the programs of daemontools, runit
and s6, and the systemd unit, judged by systemd and tried under its limits."""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from case import SystemTest, cost, needs_root
from instance import AS_ROOT, BIN, HANG, ROOT, status_of, wait

HELLO = b"Subject: hello\n\nhello\n"


def needs(*programs):
    missing = [p for p in programs if shutil.which(p) is None]
    return unittest.skipIf(missing, f"not installed: {' '.join(missing)}")


class Directories(SystemTest):
    """A copy of a service directory, with what an operator fills in."""

    def service(self, i, way):
        place = i.dir / "service" / "qscheduler"
        shutil.copytree(ROOT / "etc" / way, place)
        if not AS_ROOT:
            shutil.rmtree(place / "log")
        for path in place.rglob("run"):
            text = path.read_text().replace("@libexecdir@", str(BIN))
            text = text.replace("qmaill:qmail", "nobody:nogroup").replace("qmaill", "nobody")
            path.write_text(text.replace(f"{BIN}/qscheduler", f"{BIN}/qscheduler -c {i.conf_file}"))
        (place / "env").mkdir()
        (place / "env/QUEUE_COUNT").write_text("3\n")
        return place

    def supervise(self, i, command, place):
        with open(i.log_file, "ab") as log:
            manager = subprocess.Popen(command, cwd=place.parent, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env=i.environment(), start_new_session=True)

        def end():
            """End the rest of it: its session is ours."""
            i.destroy()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(manager.pid, signal.SIGKILL)
            manager.wait()
        self.addCleanup(end)
        return manager

    def said(self, i, place):
        main = place / "log/main/current"
        return i.log() + (main.read_text(errors="replace") if main.exists() else "")

    def wait_said(self, i, place, pattern, times=1):
        wait(lambda: len(re.findall(pattern, self.said(i, place))) >= times, what=pattern)

    def one(self, i):
        return wait(lambda: i.daemons("qscheduler"), what="the supervisor")[0]

    def do(self, *command):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                              timeout=HANG)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def wait_does(self, *command):
        wait(lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0, what=command)

    def log_is_private(self, place):
        """Nobody but its owner, its group and root lists or reads the log."""
        if AS_ROOT:
            self.assertEqual((place / "log/main").stat().st_mode & 0o7777, 0o750)

    def lives(self, i, place):
        """Up, mail, killed and up again."""
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        before = self.one(i)
        os.kill(before, signal.SIGKILL)
        wait(lambda: i.daemons("qscheduler") not in ([], [before]), what="another one")
        self.wait_said(i, place, "ready: 3 queues open", 2)
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 2)

    def gone(self, i):
        wait(lambda: not i.pids(), what="the end of all processes")
        self.assertEqual(i.ipc_objects(), [])

    @needs("svscan", "supervise", "svc", "svstat", "envdir")
    @cost(10)
    def test_daemontools(self):
        i = self.instance()
        place = self.service(i, "daemontools")
        self.supervise(i, ["svscan", str(place.parent)], place)
        self.wait_said(i, place, "ready: 3 queues open")
        self.log_is_private(place)
        self.lives(i, place)
        self.do("svc", "-h", place)
        self.wait_said(i, place, "configuration reloaded")
        self.do("svc", "-d", place)
        self.gone(i)
        wait(lambda: "down" in self.do("svstat", place), what="down")
        self.do("svc", "-dx", place, *([place / "log"] if AS_ROOT else []))

    @needs("runsv", "sv", "chpst", "svlogd")
    @cost(10)
    def test_runit(self):
        i = self.instance()
        place = self.service(i, "runit")
        self.supervise(i, ["runsv", str(place)], place)
        self.wait_does("sv", "status", place)
        self.do("sv", "-w", str(int(HANG)), "start", place)  # waits for ./check
        self.wait_said(i, place, "ready: 3 queues open")
        self.log_is_private(place)
        if AS_ROOT:
            self.assertIn("n50\n", (place / "log/main/config").read_text())
        self.lives(i, place)
        self.do("sv", "hup", place)
        self.wait_said(i, place, "configuration reloaded")
        self.do("sv", "-w", str(int(HANG)), "stop", place)
        self.gone(i)
        # A wrong configuration is not tried again and again, where none is in force.
        (i.base / "conf").unlink()
        i.write_conf(no_such_name=1)
        self.do("sv", "once", place)
        self.wait_said(i, place, "no_such_name")
        wait(lambda: "down" in self.do("sv", "status", place).split(";")[0], what="down")

    @needs("s6-supervise", "s6-svc", "s6-svwait", "s6-svstat", "s6-envdir")
    @cost(10)
    def test_s6(self):
        i = self.instance()
        place = self.service(i, "s6")
        self.supervise(i, ["s6-supervise", str(place)], place)
        self.wait_does("s6-svstat", place)  # s6-svok succeeds before the status file exists
        self.do("s6-svwait", "-U", "-t", str(int(HANG * 1000)), place)  # by the notification descriptor
        self.wait_said(i, place, "ready: 3 queues open")
        self.lives(i, place)
        self.do("s6-svc", "-h", place)
        self.wait_said(i, place, "configuration reloaded")
        self.do("s6-svc", "-wD", "-T", str(int(HANG * 1000)), "-d", place)
        self.gone(i)
        (i.base / "conf").unlink()  # else the configuration in force is used
        i.write_conf(no_such_name=1)
        self.do("s6-svc", "-u", place)
        self.wait_said(i, place, "no_such_name")
        wait(lambda: self.do("s6-svstat", "-o", "up,wantedup", place).split() == ["false", "false"],
             what="it stays down")
        self.do("s6-svc", "-xd", place)


def unit_text():
    return (ROOT / "etc/systemd/qscheduler.service").read_text().replace("@libexecdir@", str(BIN)).replace("@sbindir@", str(BIN))


class Unit(SystemTest):
    def write_unit(self, i):
        unit = i.dir / "qscheduler.service"
        unit.write_text(unit_text())
        return unit

    @needs("systemd-analyze")
    def test_verify_and_security(self):
        i = self.instance()
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", self.write_unit(i)],
                              capture_output=True, text=True, check=False, timeout=HANG)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=37",
                               self.write_unit(i)], capture_output=True, text=True, check=False, timeout=HANG)
        self.assertEqual(done.returncode, 0, done.stdout[-300:])

    def test_what_a_recipients_program_would_miss_is_not_in_the_unit(self):
        """It runs in the unit: tests/systemd.sh tries what this lists."""
        closed = re.findall(r"^(ProtectHome|PrivateTmp|NoNewPrivileges|RestrictSUIDSGID|MemoryDenyWriteExecute|"
                            r"RestrictNamespaces|ReadWritePaths|ProtectSystem=strict)", unit_text(), re.M)
        self.assertEqual(closed, [])
        self.assertRegex(unit_text(), r"(?m)^OOMPolicy=continue$")

    def test_the_start_limit_is_reached(self):
        """By starts that fail at once; else systemd starts the unit for ever, and it is never "failed"."""
        burst, interval, pause = (int(re.search(rf"(?m)^{name}=(\d+)$", unit_text()).group(1))
                                  for name in ("StartLimitBurst", "StartLimitIntervalSec", "RestartSec"))
        self.assertLess(burst * (pause + 1), interval)

    CAPABILITIES = re.compile(r"^CapabilityBoundingSet=(.*)$", re.M)

    def start_in_unit(self, i):
        """No systemd is needed to try what it would do: the same system calls,
        address families, modes and capabilities, set by hand."""
        i.base.mkdir()
        os.chmod(i.base, 0o2755)
        caps = self.CAPABILITIES.search(unit_text()).group(1).split()
        bounding = ",".join(["-all"] + ["+" + c.removeprefix("CAP_").lower() for c in caps])
        i.start(prefix=("/usr/bin/python3", "-B", str(ROOT / "tests/system/sandbox.py"),
                        str(ROOT / "etc/systemd/qscheduler.service"), "/usr/bin/setpriv", "--bounding-set", bounding))

    @needs_root
    @needs("systemd-analyze", "setpriv")
    def test_programs_run_under_the_filter_of_the_unit(self):
        i = self.instance(routing="sink.example smtp:127.0.0.1:1\n* local\n")
        self.start_in_unit(i)
        status = pathlib.Path(f"/proc/{i.process.pid}/status").read_text()
        self.assertRegex(status, r"Seccomp:\s+2")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.inject(HELLO, "bob@sink.example")
        wait(lambda: i.log_has("status=deferred.*onnection refused"), what="an attempt by SMTP")
        os.kill(i.pids("queue-send")[0], signal.SIGKILL)  # and what is started later
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 2)
        i.stop()
        self.assertFalse(i.log_has("not permitted"), i.log())

    @needs_root
    @needs("systemd-analyze", "setpriv")
    def test_a_program_that_mail_is_piped_to_submits_mail(self):
        """As vacation programs do, through the set-group-id door, and in the unit;
        all other daemons have no way to a privilege."""
        i = self.instance(routing="away.example pipe:vacation\n* local\n")
        i.programs_file.write_text(f"vacation nobody {i.face('sendmail')} -C {i.conf_file} -i -f <> -- alice@test.example\n")
        self.start_in_unit(i)
        i.inject(HELLO, "bob@away.example")
        answer = i.wait_delivered("alice", 1)[0].read_bytes()
        self.assertIn(b"\n\nhello\n", answer)
        i.wait_empty()
        for pid in i.all_daemons():
            status = status_of(pid)
            name = re.search(r"^Name:\s+(.*)$", status, re.M)[1]
            none = re.search(r"^NoNewPrivs:\s+(\d)$", status, re.M)[1] == "1"
            self.assertEqual(none, name not in ("qscheduler", "deliver-local"), name)
        i.stop()
