"""A whole private instance of qscheduler for one test.

Every instance has a name and a scratch directory of its own, so that any
number of them run at once, as root or as an ordinary user, without meeting.
Nothing waits for time to pass: wait() waits for a condition. Its limit finds
what hangs, and measures nothing: a busy machine has all the time it needs.
"""
import contextlib
import ctypes
import errno
import itertools
import os
import pathlib
import re
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import time

from pages import states

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("QSCHED_BIN", ROOT / "build/bin")).resolve()
PYTHON = "/usr/bin/python3"

# Accounts of base-passwd that stand in for those of an installed system.
USERS = {"qmailq_user": "uucp", "qmails_user": "news", "qmailr_user": "proxy",
         "qmail_group": "mail", "qdrop_group": "irc", "maildir_user": "games"}
AS_ROOT = os.geteuid() == 0
STATES = ("gate/maildrop", "prepared", "incoming", "active", "deferred", "hold", "corrupt", "deleted", "defer", "bounce")

PAGE = struct.Struct("=6i48x2I17Q128xQ")
PAGE_FIELDS = """local_used remote_used local_limit remote_limit disabled busiest queue generation maildrop
    incoming active deferred hold corrupt active_recipients accepted delivered deferred_total failed
    expired rings rings_bad rings_stale found_by_scan lost_rings untried""".split()

# What has not come after this time, in seconds, does not come.
HANG = 240.0

# The first lines of reports of sanitizers. A test with one fails (case.py), and is not run again
# (tests/check/parts.sh).
SANITIZER = re.compile(r"(ERROR|WARNING): [A-Za-z]+Sanitizer|: runtime error: ")
reports = []

_number = itertools.count(1)
_librt = ctypes.CDLL(None, use_errno=True)


class Failed(AssertionError):
    """The instance did not do what it must."""


def wait(condition, limit=HANG, what="condition"):
    """The first true value of condition(), looked at again and again."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"not within {limit} s: {what}")
        time.sleep(0.02)  # between two looks, never instead of one


def but_file_systems(said):
    """The lines of a program without what it says of this machine: of its disk, and of programs
    that no `make install` has made set-group-id."""
    return [line for line in said.splitlines() if not re.search(
        r"warning: (.*: queue \d+: its file system |.*queue-(drop|look): )", line)]


def status_of(pid):
    """What the kernel says of a process; "" of one that has ended meanwhile."""
    try:
        return pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def look_for_reports(output):
    if isinstance(output, bytes):
        output = output.decode(errors="replace")
    reports.extend(line for line in (output or "").splitlines() if SANITIZER.search(line))


class Popen(subprocess.Popen):
    """What a test reads of a program by communicate() or run() is looked through."""
    def communicate(self, *args, **options):
        said = super().communicate(*args, **options)
        for output in said:
            look_for_reports(output)
        return said


subprocess.Popen = Popen  # run() and check_output() call it by this name


def mq_exists(name):
    fd = _librt.mq_open(name.encode(), os.O_RDONLY | os.O_NONBLOCK)
    if fd >= 0:
        os.close(fd)
        return True
    return ctypes.get_errno() != errno.ENOENT


class Instance:
    def __init__(self, queues=2, start=1, conf=None, routing=None, programs=None,
                 aliases=""):
        self.name = f"t{os.getpid()}x{next(_number)}"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"qsched-{self.name}-"))
        os.chmod(self.dir, 0o755)
        self.base = self.dir / "queue"
        self.mail = self.dir / "mail"
        self.mail.mkdir()
        self.numbers = list(range(start, start + queues))
        self.conf_file = self.dir / "qscheduler.conf"
        self.routing_file = self.dir / "routing"
        self.programs_file = self.dir / "programs"
        self.alias_file = self.dir / "aliases"
        self.log_file = self.dir / "log"
        self.process = None
        self.prefix = ()  # a command that the programs run under
        self.shm = "/dev/shm"  # the directory of their shared memory, as seen from here
        self.settings = {
            "queue_base": self.base, "queue_start": start, "queue_count": queues,
            "queue_max": max(20, queues), "instance": self.name,
            "minimal_backoff_time": "1s", "maximal_backoff_time": "2s",
            "scan_interval": "1s", "myhostname": "test.example",
            "maildir_path": f"{self.mail}/%u/", "routing_file": self.routing_file,
            "programs_file": self.programs_file, "alias_file": self.alias_file,
            "stop_time_limit": "30s", "disk_time_limit": "1m",
            "queue_minfree_bytes": "1m", "queue_minfree_inodes": "10",
            "in_flow_delay": "0s",
        }
        if AS_ROOT:
            self.settings |= USERS
            shutil.chown(self.mail, USERS["maildir_user"])
        self.settings |= conf or {}
        self.write_conf()
        self.routing_file.write_text(routing or "* local\n")
        self.programs_file.write_text(programs or "")
        if aliases is not None:
            self.alias_file.write_text(aliases)

    # ---- configuration, start, stop ----

    def write_conf(self, **changes):
        self.settings |= changes
        text = "".join(f"{k} = {v}\n" for k, v in self.settings.items() if v is not None)
        temp = self.conf_file.with_suffix(".new")
        temp.write_text(text)
        os.chmod(temp, 0o644)
        temp.rename(self.conf_file)

    def environment(self):
        keep = {k: v for k, v in os.environ.items()
                if not k.startswith(("QUEUE_", "QSCHED_", "ERROR_INTERVAL"))}
        return keep | {"QSCHED_CONF": str(self.conf_file)}

    def start(self, mode="-s", ready=True, prefix=(), limit=HANG, session=True):
        reader, writer = os.pipe()
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *prefix, BIN / "qscheduler", mode, "-c", self.conf_file, "--ready-fd", str(writer)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[writer],
                env=self.environment(), start_new_session=session)
        os.close(writer)
        os.set_blocking(reader, False)

        def is_ready():
            if self.process.poll() is not None:
                raise Failed(f"qscheduler ended with {self.process.returncode}:\n{self.log()}")
            try:
                return os.read(reader, 1) == b"\n"
            except BlockingIOError:
                return False
        try:
            if ready:
                wait(is_ready, limit, "readiness")
        finally:
            os.close(reader)
        return self

    def start_open(self, **options):
        """The same, until all of its queues take mail, however slow their disk is."""
        self.start(**options)
        self.wait_open(*self.numbers)
        return self

    def stop(self, limit=HANG):
        """A clean stop: exit 0, no process, no shared memory, no message queue."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                status = self.process.wait(limit)
            except subprocess.TimeoutExpired:
                raise Failed(f"no stop within {limit} s:\n{self.log()[-4000:]}") from None
            self.process = None
            if status != 0:
                raise Failed(f"qscheduler exits {status}:\n{self.log()[-4000:]}")
        wait(lambda: not self.pids(), what="the end of all processes")
        left = self.ipc_objects()
        if left:
            raise Failed(f"left behind: {left}")

    def kill(self):
        """The supervisor dies; its children notice and stop by themselves."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def flush(self):
        self.process.send_signal(signal.SIGALRM)

    def look_through(self):
        """Its log and the other outputs in its directory, and the log of a service manager.
        Programs, which contain the words of a report, and mail are no outputs."""
        for path in (*self.dir.glob("*"), *self.dir.glob("service/*/log/main/current")):
            with contextlib.suppress(FileNotFoundError, PermissionError):
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode) and not mode & 0o111:
                    look_for_reports(path.read_bytes())

    def end_processes(self):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def destroy(self):
        """End the instance, in any state: nothing of it stays."""
        self.end_processes()
        self.look_through()
        for name in self.ipc_names():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.shm}{name}")
            _librt.mq_unlink(name.encode())
        for name in ("sites", "ask"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self.shm}/{self.name}.qscheduler.{name}")
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- what there is ----

    def processes(self):
        """{pid: (program, parent)} of this instance, told by the path of its configuration."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                if os.fsencode(self.conf_file) not in words:
                    continue
                name = os.path.basename(os.fsdecode(words[0]))
                state, parent = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[:2]
                if state != "Z" and name != "strace":
                    found[int(entry)] = name, int(parent)
        return found

    def pids(self, program=None):
        return [pid for pid, (name, _) in self.processes().items() if program in (None, name)]

    def daemons(self, program=None):
        """The supervisor, and what it has started: no child that an agent has for a delivery,
        and none of the supervisor's own that looks at a disk, or has not become its program."""
        found = self.processes()
        heads = {pid for pid, (name, parent) in found.items()
                 if name == "qscheduler" and found.get(parent, ("",))[0] != "qscheduler"}
        return [pid for pid, (name, parent) in found.items() if program in (None, name) and
                (pid in heads or name != "qscheduler" and parent in heads)]

    def all_daemons(self):
        """When all of them are there: a start is ready before its agents are."""
        count = 1 + 4 * len(self.numbers)
        return wait(lambda: len(pids := self.daemons()) == count and pids, what=f"{count} daemons")

    def wait_open(self, *numbers):
        """Until these queues, and no others, take new mail, each by the figures of its page:
        one that has published none yet is chosen behind the others."""
        def published():
            with contextlib.suppress(OSError, struct.error):  # a page is not there, or has no size yet
                pages = [self.page(number) for number in numbers]
                return states(self) == list(numbers) and all(
                    page["queue"] == number and page["local_limit"] > 0 for number, page in zip(numbers, pages))
            return False
        wait(published, what=f"queues {numbers} open")

    def ipc_names(self):
        numbers = set(self.numbers)
        with contextlib.suppress(OSError):
            numbers |= {int(m.group(1)) for n in os.listdir(self.base)
                        if (m := re.fullmatch(r"queue(\d+)", n))}
        return [f"/{self.name}.qscheduler"] + [f"/{self.name}.queue{n}" for n in sorted(numbers)]

    def ipc_objects(self):
        left = [f"shm {n}" for n in os.listdir(self.shm) if n.startswith(self.name + ".")]
        return left + [f"mq {n}" for n in self.ipc_names() if mq_exists(n)]

    def queue(self, number):
        return self.base / f"queue{number}"

    def files(self, *states):
        """The files of the state directories (all of them by default)."""
        found = []
        for queue in sorted(self.base.glob("queue*")):
            for state in states or STATES:
                for directory, _, names in os.walk(queue / state):
                    found += [pathlib.Path(directory) / n for n in names]
        return found

    def texts(self, *states):
        """What the files of the state directories hold; one that goes meanwhile counts as gone."""
        found = []
        for path in self.files(*states):
            with contextlib.suppress(FileNotFoundError):
                found.append(path.read_text(errors="surrogateescape"))
        return found

    def page(self, number):
        """The published page of a queue (common/ipc/page.h)."""
        with open(f"{self.shm}/{self.name}.queue{number}", "rb") as f:
            data = f.read(PAGE.size)
        return dict(zip(PAGE_FIELDS, PAGE.unpack(data)))

    def heartbeat(self, number):
        """The time of the last publication of that page (struct page_head), in microseconds; 0: none yet."""
        with open(f"{self.shm}/{self.name}.queue{number}", "rb") as f:
            f.seek(56)
            return int.from_bytes(f.read(8), "little")

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def log_has(self, pattern):
        return re.search(pattern, self.log(), re.M)

    # ---- mail in and out ----

    def inject(self, message, *rcpts, sender="sender@test.example", face="sendmail",
               args=(), check=True, uid=None, env=None):
        """Submit through a face of queue-inject; the finished command."""
        command = [str(self.face(face)), *args]
        if face == "queue-inject":
            command += ["-c", str(self.conf_file), "--print-id"]
        command += ["-i", "-f", sender, "--", *rcpts]
        who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        done = subprocess.run([*self.prefix, *command], input=message, capture_output=True, check=False,
                              env=self.environment() | (env or {}), **who)
        if check and done.returncode != 0:
            raise Failed(f"{command[:4]} exits {done.returncode}: {done.stderr!r}")
        return done

    def face(self, name):
        """The one binary under one of its names, where any user can run it."""
        self.door()
        path = self.dir / name
        if not path.exists():
            shutil.copy(BIN / "queue-inject", path)
        return path

    def door(self):
        """queue-drop beside the faces, as an installation has it."""
        path = self.dir / "queue-drop"
        if not path.exists():
            shutil.copy(BIN / "queue-drop", path)
            if AS_ROOT:
                shutil.chown(path, "root", USERS["qdrop_group"])
                os.chmod(path, 0o2711)
        return path

    def looker(self):
        """qctl where any user can run it, and queue-look beside it."""
        qctl, path = self.dir / "qctl", self.dir / "queue-look"
        if not path.exists():
            for copy in (qctl, path):
                shutil.copy(BIN / "qctl", copy)
                os.chmod(copy, 0o755)
            if AS_ROOT:
                shutil.chown(path, "root", self.settings.get("qmail_group", USERS["qmail_group"]))
                os.chmod(path, 0o2711)
        return qctl

    def maildir(self, user):
        new = self.mail / user / "new"
        return sorted(new.iterdir()) if new.is_dir() else []

    def wait_delivered(self, user, count, limit=HANG):
        return wait(lambda: len(self.maildir(user)) >= count and self.maildir(user),
                    limit, f"{count} messages for {user}")

    def wait_empty(self, limit=HANG):
        """Two looks: a message that goes back, from deferred or active, can pass
        behind one; it does not do so twice at once."""
        def empty():
            return not self.files("gate/maildrop", "prepared", "incoming", "active", "deferred")
        wait(lambda: empty() and empty(), limit, "empty queues")
