"""The instance that the storm is about: its file systems, servers, programs,
and what a service manager would do for it."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
# pylint: disable=wrong-import-position
import hung_disk
from instance import AS_ROOT, BIN, PYTHON, Instance
from ledger import IDENTITY, judge
from namespace import DOOR_GROUP, DOOR_GROUP_ID, GROUP, GROUP_ID, MEMBER, SYSTEM_USERS, mount

QUEUES, MOST = 3, 6
LOCAL_SLOTS, SMTP_SLOTS = 20, 40
KEEP = """#!/bin/sh
# The program of prog.example: one line for each message, what is in it.
sum=$(sed '1,/^\\r*$/d' | md5sum) || exit 75
echo "$RECIPIENT $(date +%s.%N) ${sum%% *}" >>"$1" || exit 75
"""
SETTINGS = {
    "queue_max": MOST, "queue_grow_time": "2s", "queue_shrink_time": "3s", "queue_change_interval": "1s",
    "queue_drain_time": "3s", "local_process_limit": LOCAL_SLOTS, "smtp_process_limit": SMTP_SLOTS,
    "minimal_backoff_time": "1s", "maximal_backoff_time": "4s", "error_interval": "1s",
    "restart_delay_max": "1s", "quarantine_delay_max": "2s", "heartbeat_time_limit": "5s",
    "stop_time_limit": "5s", "command_time_limit": "10s", "message_size_limit": "16m",
    "smtp_connect_timeout": "3s", "smtp_greeting_timeout": "4s", "smtp_helo_timeout": "4s",
    "smtp_mail_timeout": "4s", "smtp_rcpt_timeout": "4s", "smtp_data_init_timeout": "4s",
    "smtp_data_xfer_timeout": "4s", "smtp_data_done_timeout": "5s",
}


class Servers:
    """sites.py, and what it says."""

    def __init__(self, ledger, seed, faults):
        self.ledger = ledger
        self.process = subprocess.Popen([PYTHON, "-B", HERE / "sites.py", str(seed), *faults],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.ports = {}
        while "dead" not in self.ports:
            name, port = self.process.stdout.readline().split()
            self.ports[name] = int(port)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self.process.stdout:
            _, number, index, when, fine, name, replied = line.split()
            where = name if replied == "replied" else f"{name}, dropped"
            self.ledger.delivered(int(number), int(index), float(when), where,
                                  fine == "fine" or (fine == "bare" and self.ledger.is_bare(int(number))))

    def tell(self, *words):
        with contextlib.suppress(OSError):
            self.process.stdin.write(" ".join(words) + "\n")
            self.process.stdin.flush()

    def stop(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(10)
        self._thread.join(10)


class World(Instance):
    def __init__(self, ledger, scratch, servers, base=None, extra=None, more_routing="", aliases=""):
        self.ledger = ledger
        self.scratch = scratch
        self.homes = extra is not None and extra.get("maildir_path", "").startswith("%h")
        self.bin = scratch / "bin"
        self.prog_log = scratch / "programs" / "log"
        super().__init__(queues=QUEUES, conf=SETTINGS | (extra or {}), routing=self.routing(servers.ports) + more_routing,
                         programs=self._programs(), aliases=aliases)
        if base is not None:
            self.base = base
            self.write_conf(queue_base=base)
        self.bin_ready()
        self.servers = servers
        self.mode = "-d"
        self.wanted = False
        self.deaths = []  # of the supervisor, by itself: (time, status)
        self.starts = 0
        self.killed = set()  # pids of supervisors that the storm ended
        self.mounted = {} if base is None else {"base": base}  # name -> directory of a file system of its own
        self.log_to = None  # a descriptor for what the instance logs
        self.disk = None  # of queue 3, which can hang
        self._keeper = None
        self._over = threading.Event()
        self._again = threading.Event()

    # ---- what it is made of ----

    def routing(self, ports):
        lines = [f"{name}.example smtp:127.0.0.1:{port}" for name, port in ports.items()]
        return "\n".join([*lines, f"home.example {'local' if self.homes else 'discard'}", "local.example local",
                          "prog.example pipe:keep", "fail.example pipe:refuse",
                          'error.example error:"5.1.2 that domain has gone"', ""])

    def _programs(self):
        directory = self.prog_log.parent
        directory.mkdir()
        (directory / "keep").write_text(KEEP)
        (directory / "keep").chmod(0o755)
        self.prog_log.touch()
        if AS_ROOT:
            for path in (directory, self.prog_log):
                os.chown(path, SYSTEM_USERS["vmail"], SYSTEM_USERS["vmail"])
        who = "vmail" if AS_ROOT else "-"
        return f"keep {who} {directory}/keep {self.prog_log}\nrefuse {who} /bin/sh -c \"exit 100\"\n"

    def bin_ready(self):
        """The programs as they are installed: others may run them, and the door
        is set-group-id."""
        self.bin.mkdir(exist_ok=True)
        for path in BIN.iterdir():
            if path.is_file():
                shutil.copy(path, self.bin / path.name)
        for face in ("sendmail", "qmail-queue"):
            shutil.copy(BIN / "queue-inject", self.bin / face)
        if not AS_ROOT:
            return
        users = {f"{u}_user": u for u in ("qmailq", "qmails", "qmailr")}
        door = self.bin / "queue-drop"
        if door.exists():
            os.chown(door, 0, DOOR_GROUP_ID)
            door.chmod(0o2711)
            users["qdrop_group"] = DOOR_GROUP
        self.write_conf(**users, qmail_group=GROUP, maildir_user=None if self.homes else "vmail")
        os.chown(self.mail, SYSTEM_USERS["vmail"], SYSTEM_USERS["vmail"])

    def program(self, name):
        return self.bin / name

    @staticmethod
    def group_of(uid):
        return GROUP_ID if uid in (SYSTEM_USERS["qmailq"], SYSTEM_USERS["qmails"]) else uid

    @staticmethod
    def groups_of(uid):
        return [GROUP_ID] if uid == MEMBER[1] else []

    def mount_more(self):
        """File systems of their own, for root: a small one for queue 2, a disk
        that can be frozen for queue 3, a small one for the maildirs."""
        self.base.mkdir()
        for number in (2, 3):
            self.queue(number).mkdir()
        mount("tmpfs", self.queue(2), "-o", "size=24m,nr_inodes=8000,mode=755")
        self.disk_of_queue_3()
        vmail = SYSTEM_USERS["vmail"]
        mount("tmpfs", self.mail, "-o", f"size=192m,mode=755,uid={vmail},gid={vmail}")
        self.mounted = {"small": self.queue(2), "disk": self.queue(3), "mail": self.mail}

    def disk_of_queue_3(self):
        """One that can hang, where there is FUSE; else one that can be frozen."""
        if hung_disk.missing() is None:
            self.disk = hung_disk.HungDisk(self.scratch / "hung", self.queue(3), 96, self.base)
            return
        image = self.scratch / "disk"
        with open(image, "wb") as f:
            f.truncate(96 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, self.queue(3)], check=True)

    # ---- as a service manager does ----

    def launch(self):
        with os.fdopen(os.dup(self.log_to), "wb") as log:
            self.process = subprocess.Popen([self.bin / "qscheduler", self.mode, "-c", self.conf_file],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.environment(), start_new_session=True)
        self.starts += 1

    def keep_running(self):
        self.wanted = True
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _keep(self):
        """Started again whenever it ends, after a tenth of a second, as by s6."""
        while not self._over.is_set():
            if not self.wanted:
                self._again.wait()
                self._again.clear()
                continue
            self.launch()
            pid = self.process.pid
            status = self.process.wait()
            if self.wanted and pid not in self.killed:
                self.deaths.append((round(self.ledger.now(), 2), status))
            self._over.wait(0.1)

    def resume(self):
        self.wanted = True
        self._again.set()

    def environment(self):
        """As the unit of an installed system may have it: the directory of the
        queues is known also while the file is gone."""
        return super().environment() | {"QUEUE_BASE": str(self.base)}

    def hears(self, number):
        """A service manager sends nothing to what has not come so far yet."""
        with contextlib.suppress(OSError, StopIteration):
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
            for name in ("SigBlk", "SigIgn", "SigCgt"):
                mask = int(next(line for line in status.splitlines() if line.startswith(name)).split()[1], 16)
                if mask >> (number - 1) & 1:
                    return True
        return False

    def signal(self, number):
        if number in (signal.SIGHUP, signal.SIGALRM) and not self.hears(number):
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def end(self, limit):
        """A clean stop; its exit status, or None when it does not end."""
        self.wanted = False
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            return None

    def give_up(self):
        self.wanted = False
        self._over.set()
        self._again.set()
        self.signal(signal.SIGKILL)

    # ---- what there is ----

    def children(self, *programs):
        """Processes of the instance, in an order that the seed can choose from."""
        found = [(p, n) for n in programs for p in self.pids(n)]
        return sorted(found, key=lambda item: (item[1], item[0]))

    def setqload(self, *args, limit=20):
        try:
            return subprocess.run([self.bin / "setqload", "-c", self.conf_file, *args], capture_output=True,
                                  check=False, env=self.environment(), timeout=limit).returncode
        except subprocess.TimeoutExpired:
            return None


# Mail of hostile users, and reports that they get.
OF_HOSTILE = re.compile(rb"Return-Path: <(mallory\d+@|[^\n]*>\nDelivered-To: mallory\d+@)")


class Collector:
    """Takes delivered mail out of the maildirs and the program's log, so that
    a storm of hours needs no more disk than one of seconds."""

    def __init__(self, world, ledger, maildirs=None):
        self.world, self.ledger, self.maildirs = world, ledger, maildirs
        self._end = threading.Event()
        self._read = 0
        self._rest = b""
        self.strange = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._end.set()
        self._thread.join(60)
        self.sweep()

    def _run(self):
        while not self._end.wait(0.1):
            self.sweep()

    def sweep(self):
        with contextlib.suppress(OSError):
            maildirs = self.maildirs or [user.path for user in os.scandir(self.world.mail)]
            for maildir in maildirs:
                with contextlib.suppress(OSError):
                    for entry in os.scandir(f"{maildir}/new"):
                        self.take(entry)
        self.programs()

    def take(self, entry):
        with open(entry.path, "rb") as f:
            message = f.read()
            when = os.fstat(f.fileno()).st_ctime
        os.unlink(entry.path)
        to = re.search(rb"^Delivered-To: (.*)$", message[:4096], re.M)
        found = IDENTITY.search(to[1]) if to else None
        back = re.match(rb"ret\+R(\d+)@", to[1]) if to else None
        if back:
            self.ledger.returned.add(int(back[1]))
            return
        if found is None:
            if not OF_HOSTILE.match(message):
                self.strange.append(entry.path)
            return
        number, fine = judge(message)
        fine = fine and (number == int(found[1]) or (number is None and self.ledger.is_bare(int(found[1]))))
        self.ledger.delivered(int(found[1]), int(found[2]), when, "local", fine)

    def programs(self):
        with contextlib.suppress(OSError), open(self.world.prog_log, "rb") as log:
            log.seek(self._read)
            data = self._rest + log.read()
            self._read = log.tell()
            *lines, self._rest = data.split(b"\n")
            for line in lines:
                words = line.split()
                found = IDENTITY.search(words[0]) if len(words) == 3 else None
                if found is None:
                    self.strange.append(f"{self.world.prog_log}: {line[:80]!r}")
                    continue
                self.ledger.delivered(int(found[1]), int(found[2]), float(words[1]), "prog",
                                      self.ledger.digest_is(int(found[1]), words[2]))
