#!/usr/bin/env python3
"""A whole instance under load, with daemons that were built with SAN=thread.

usage: instance.py [--control] BIN [SECONDS [SEED]]

BIN has all programs. Mail goes to maildirs, to a server with a window of two, to
a port that refuses, and to addresses that are unknown. An operator gives all
orders in rounds; SEED chooses their sequence in each round. In each round the
disk of queue 3 hangs for some seconds, and /dev/shm is full for some seconds
from a restart on. The rounds end after SECONDS, but not within the first round.
Then all mail is delivered and the instance stops. Each report of ThreadSanitizer,
of any program, is printed; the exit status is 1 if there is one, if a daemon
has crashed, or if the log shows that the load lacked something.

--control: queue-send and todo-proc have the race of race/race.c. The run ends
when both were reported, and fails if they are not.

Root runs it in namespaces of mounts and IPC. Without root, FUSE or
loop devices no disk hangs; without root /dev/shm is never full."""
import argparse
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # of the namespaces
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("seconds", nargs="?", type=float, default=60)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    return parser.parse_args()


ARGS = arguments()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
os.environ["QSCHED_BIN"] = str(ARGS.bin)

from hung_disk import HungDisk, missing  # noqa: E402
from instance import AS_ROOT, BIN, HANG, PYTHON, Failed, Instance, wait  # noqa: E402
from load import Load  # noqa: E402
from smtp_site import Site  # noqa: E402

MARK = "WARNING: ThreadSanitizer"
CRASH = "4|6|7|8|11"  # SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV
RACED = ("queue-send", "todo-proc")
UNSHARE = ("unshare", "--mount", "--ipc")
SHM = ("mount", "-t", "tmpfs", "-o", "mode=1777,size=64m", "tmpfs", "/dev/shm")
FILLER = pathlib.Path("/dev/shm/filler")
LONG = (2.0, 6.0)  # seconds of a disk that hangs, and of a full /dev/shm
# The seconds between two submissions of a thread. Mail for later.example stays, so there is less of it.
DOMAINS = {"test.example": 0.05, "later.example": 0.3, "away.example": 0.05, "never.example": 0.1}
# What the log of a run has, or the load lacked something.
ALWAYS = {"mail that is deferred": "status=deferred", "reports of failures": "sender non-delivery notification: ",
          "rules of hold": r"operator uid=\d+: rule \d+ holds mail", "spread": r"operator uid=\d+: spread [1-9]",
          "deleted mail": r"operator uid=\d+: delete [1-9]"}
HUNG = {"a disk that hangs": r"queue 3: \S+: late: "}
FULL = {"a full /dev/shm": "not enough room in /dev/shm: "}


def refuse_some(_client, verb, line):
    """The replies of the server to RCPT: two of six users are refused, one for good."""
    if verb == b"RCPT" and b"<u1@" in line:
        return b"550 5.1.1 no such user"
    return b"451 4.2.1 later" if verb == b"RCPT" and b"<u2@" in line else None


class World:
    """The instance, its load and its faults; close() ends all of it, in any state."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.rule = None  # the number of the rule that is in force
        self.fault = None  # the thread that ends the fault of this moment
        self.closing = contextlib.ExitStack()
        self.site = Site(service=0.01, says=refuse_some)
        self.closing.callback(self.site.stop)
        self.instance = i = Instance(
            queues=3, routing=f"later.example smtp:127.0.0.1:1\naway.example smtp:127.0.0.1:{self.site.port}\n"
            'never.example error:"5.1.1 no such user"\n* local\n',
            conf={"process_memory_limit": "0", "default_process_limit": "8", "disk_time_limit": "10s",
                  "report_rate_limit": "0", "smtp_destination_concurrency_limit": "2",
                  "smtp_initial_destination_concurrency": "2"})
        self.closing.callback(i.destroy)
        self.reports = i.dir / "reports"
        self.reports.mkdir()
        self.reports.chmod(0o777)  # the daemons run as several users
        os.environ["TSAN_OPTIONS"] = f"log_path={self.reports}/r log_exe_name=1 exitcode=0"
        self.disk = None
        if not missing():
            i.base.mkdir()
            self.disk = HungDisk(i.dir / "disk", i.queue(3), megabytes=1024)
            self.closing.callback(self.disk.close)
        self.closing.callback(i.end_processes)
        self.closing.callback(self.calm)
        self.loads = []

    def start(self):
        self.instance.start_open()
        self.loads = [Load(self.instance, domain=domain, seed=self.dice.random(), pace=pace)
                      for domain, pace in DOMAINS.items()]
        for load in self.loads:
            self.closing.callback(load.stop)

    def close(self):
        self.closing.close()

    def calm(self):
        """Waits for the end of a fault: there is one at a time."""
        if self.fault is not None:
            self.fault.join()
            self.fault = None

    def after_a_while(self, act):
        """Do it some seconds later, beside the next orders."""
        self.fault = threading.Timer(self.dice.uniform(*LONG), act)
        self.fault.start()

    def command(self, name, *words):
        return subprocess.run([BIN / name, *words], env=self.instance.environment(), capture_output=True,
                              text=True, check=False, timeout=HANG)

    def qctl(self, *words):
        return self.command("qctl", *words)

    def setqload(self, *words):
        return self.command("setqload", "-c", self.instance.conf_file, *words)

    # ---- orders and faults ----

    def spread(self):
        """From a queue that is full, then from it when it is disabled; queue 3 may be on another disk."""
        self.calm()  # all pages have to be there
        i = self.instance
        i.wait_open(*i.numbers)
        full = self.dice.choice((1, 2))
        others = [str(n) for n in i.numbers if n != full]
        self.setqload("--disable", "-q", ",".join(others))
        for n in range(60):
            i.inject(b"Subject: spread\n\n", f"s{n}@later.example")
        self.setqload("--enable", "-q", ",".join(others))
        self.setqload("-q", str(full), "100/100", "--for", "1m")
        with contextlib.suppress(Failed):  # a rule may hold all of it
            wait(lambda: "would spread 0 " not in self.qctl("spread", "ALL", "--dry-run").stdout, limit=5)
        self.qctl("spread", "ALL")
        self.setqload("-q", str(full), "--clear")
        self.setqload("--disable", "-q", str(full))
        self.qctl("spread", f"queue={full}")
        self.setqload("--enable", "-q", str(full))

    def add_rule(self):
        self.remove_rule()
        domain = self.dice.choice(list(DOMAINS))
        done = self.qctl("hold", "--rule", "--reason", "a test", "--for", "1h", f"domain={domain}")
        found = re.search(r"^rule (\d+)$", done.stdout, re.M)
        self.rule = found and found.group(1)

    def remove_rule(self):
        if self.rule is not None:
            self.qctl("release", "--rule", self.rule)
            self.rule = None

    def hang_disk(self):
        if self.disk is not None:
            self.calm()
            self.disk.hang(forget=self.dice.random() < 0.5)
            self.after_a_while(self.disk.go_on)

    def fill_shm(self):
        """The instance starts without room for its pages and its table of destinations."""
        self.calm()
        self.instance.stop()
        if AS_ROOT:
            with contextlib.suppress(OSError), open(FILLER, "wb", buffering=0) as f:
                while True:
                    f.write(bytes(4096))
            self.after_a_while(self.free_shm)
        self.instance.start()

    def free_shm(self):
        """A reload tries at once again what failed; else it would take up to a minute."""
        FILLER.unlink()
        self.instance.reload()

    def orders(self):
        i = self.instance
        return [i.reload, i.flush, self.spread, self.add_rule, self.remove_rule, self.hang_disk, self.fill_shm] + [
            lambda words=words: self.qctl(*words) for words in (
                ("hold", "domain=later.example"), ("hold", "--for", "10s", "domain=away.example"), ("release", "ALL"),
                ("release", "--rate", "100/s", "ALL"), ("explain", "ALL"), ("list",), ("sites",), ("shape",),
                ("retry", "ALL"), ("retry", "--rate", "100/s", "ALL"), ("requeue", "--failed", "ALL"),
                ("expire", "domain=away.example"), ("delete", "domain=later.example"),
                ("undelete", "domain=later.example"), ("delete", "domain=later.example"), ("check",))]

    def storm(self, seconds):
        """Rounds of all orders; how many orders there were."""
        orders, count, until = self.orders(), 0, time.monotonic() + seconds
        while time.monotonic() < until:
            for order in self.dice.sample(orders, len(orders)):
                if count >= len(orders) and time.monotonic() > until:
                    break
                order()
                count += 1
        return count

    def drain(self):
        """All mail leaves, and the instance stops."""
        self.calm()
        for load in self.loads:
            load.stop()
        self.remove_rule()
        self.instance.routing_file.write_text("* local\n")
        self.instance.reload()

        def empty():
            if not self.instance.files("gate/maildrop", "prepared", "incoming", "active", "deferred", "hold"):
                return True
            self.qctl("release", "ALL")
            self.qctl("retry", "ALL")
            return False
        wait(empty, what="the end of the deliveries")
        self.instance.stop()

    # ---- what is seen ----

    def found(self):
        """{file: text} of each report; what no option has reached is in the log."""
        found = {path.name: path.read_text(errors="replace") for path in self.reports.iterdir()}
        log = self.instance.log()
        return found | ({"log": log} if MARK in log else {})

    def show_reports(self):
        for name, text in self.found().items():
            print(f"---- {name}", text, sep="\n")

    def crashes(self):
        return re.findall(rf".*died of signal (?:{CRASH}) .*", self.instance.log())

    def lacks(self):
        log = self.instance.log()
        must = ALWAYS | (HUNG if self.disk is not None else {}) | (FULL if AS_ROOT else {})
        return [what for what, pattern in must.items() if not re.search(pattern, log)]


def control(world):
    """Until both programs have reported the race of race.c."""
    def raced():
        world.instance.flush()
        reports = world.found().items()
        return all(any(f".{name}." in file and "__wrap_clock_mono" in text for file, text in reports)
                   for name in RACED)
    wait(raced, what=f"the race in {' and '.join(RACED)}")
    print(f"control: the race is reported in {' and '.join(RACED)}")
    return 0  # the exit status, as of run()


def run(world, seconds):
    began = time.monotonic()
    count = world.storm(seconds)
    world.drain()
    reports, crashes, lacks = world.found(), world.crashes(), world.lacks()
    print(f"{sum(len(load.accepted) for load in world.loads)} messages, {count} orders, "
          f"{len(reports)} files of reports, {time.monotonic() - began:.0f} s")
    world.show_reports()
    for line in crashes:
        print(line)
    for what in lacks:
        print(f"the load lacked {what}")
    return 1 if reports or crashes or lacks else 0


def main():
    if AS_ROOT and not ARGS.inside:
        os.execvp(UNSHARE[0], [*UNSHARE, PYTHON, "-B", *sys.argv[:1], "--inside", *sys.argv[1:]])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if AS_ROOT:
        subprocess.run(SHM, check=True)
    print(f"seed {ARGS.seed}" + (f"; no disk hangs: {missing()}" if missing() else ""), flush=True)
    world = World(ARGS.seed)
    try:
        world.start()
        return control(world) if ARGS.control else run(world, ARGS.seconds)
    except BaseException:
        print(world.instance.log()[-4000:])
        world.show_reports()
        raise
    finally:
        world.close()


if __name__ == "__main__":
    sys.exit(main())
