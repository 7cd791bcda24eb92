"""Hostile users: what they are given, what they achieve, and how they end."""
import collections
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading

from hostile_user import AIMED, BEHAVIOURS
from instance import PYTHON
from namespace import HONEST, HOSTILE

HERE = pathlib.Path(__file__).resolve().parent
NAMES = sorted(BEHAVIOURS)
ALL = sorted(BEHAVIOURS | AIMED)
PROCESSES = 400  # of one hostile user, as a login would be given


def of_user(uid):
    """All its processes, in this namespace."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                status = pathlib.Path(f"/proc/{entry}/status").read_text(errors="replace")
                uids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
                if str(uid) in uids and "\nState:\tZ" not in status:
                    yield int(entry)


class Hostile:
    def __init__(self, world, home, seed, hanging=(), names=None):
        self.names = names or NAMES
        self.hanging = hanging  # whose maildirs nobody may touch
        self.world, self.home, self.seed = world, home, seed
        self.count = 0
        self.achieved = {name: collections.Counter() for name in self.names}
        self.lock = threading.Lock()
        self.running = collections.Counter()

    def start(self, user, chance):
        """(what end() wants, the behaviour): one more process of that user."""
        name = self.names[int(chance * len(self.names))]
        login = sorted(HOSTILE)[user]
        uid = HOSTILE[login]
        with self.lock:
            self.count += 1
            self.running[uid] += 1
            number = self.count
        process = subprocess.Popen(
            ["prlimit", f"--nproc={PROCESSES}", PYTHON, "-B", HERE / "hostile_user.py", name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, user=uid,
            group=uid, extra_groups=[], cwd="/", start_new_session=True,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
        known = {"name": login, "uid": uid, "home": f"{self.home}/{login}", "bin": str(self.world.bin),
                 "conf": str(self.world.conf_file), "base": str(self.world.base), "instance": self.world.name,
                 "hanging": login in self.hanging,
                 "honest": [f"{self.home}/{n}" for n in HONEST], "seed": f"{self.seed} hostile {number}"}
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(known) + "\n")
            process.stdin.flush()
        return (process, name, uid), name

    def end(self, handle):
        """Told to end; everything that it started ends with its last behaviour."""
        process, name, uid = handle
        try:
            said, _ = process.communicate("", timeout=5)
            with self.lock:
                self.achieved[name].update(json.loads(said or "{}"))
        except (subprocess.TimeoutExpired, ValueError):
            self.achieved[name]["did not say what it achieved"] += 1
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        with self.lock:
            self.running[uid] -= 1
            last = self.running[uid] == 0
        if last:
            self.kill_all(uid)
        return name

    @staticmethod
    def kill_all(uid):
        for pid in of_user(uid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def rows(self):
        for name in self.names:
            if self.achieved[name]:
                yield name, ", ".join(f"{n} {what}" for what, n in sorted(self.achieved[name].items()))

    def forbidden(self):
        """Results that no user may achieve."""
        return [f"{name}: {n} {what}" for name in self.names for what, n in sorted(self.achieved[name].items())
                if what.startswith("done: ")]

