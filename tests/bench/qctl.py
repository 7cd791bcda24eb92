#!/usr/bin/python3
"""make bench-qctl: what an operator's command costs those whose mail goes on.

    WHERE=memory,disk QUEUED=100000 LISTED=1000000 ROUNDS=5 RATES=200,0 make bench-qctl

The first part acts on QUEUED messages of one queue by a filter, again and
again, while other mail goes through the same queue: as much as there can be
(submitters that wait only while WAITING are on their way), and at a steady rate. Each round measures the
deliveries of other mail while the command runs, and as long without it; the
ratio is of the two. RATES are those of the other mail per second, 0 being all that goes. Then all of them go
to another queue (spread): the time of the command, and until the other queue knows them, and the processor
time of the two queue-send. The second part lists LISTED messages: the time to the
first line, the whole time, and the memory of the command. LISTED=0 leaves it
out, SPREAD=0 the other queue.
"""
import contextlib
import multiprocessing
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from instance import BIN, Instance, wait  # noqa: E402

SUBMIT = ROOT / "build/gcc/tests/bench/submit"
QUEUED = int(os.environ.get("QUEUED", "100000"))
LISTED = int(os.environ.get("LISTED", "1000000"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SPREAD = int(os.environ.get("SPREAD", str(QUEUED)))
STEADY = int(os.environ.get("STEADY", "200"))  # messages per second
RATES = [int(r) for r in os.environ.get("RATES", f"{STEADY},0").split(",")]
WAITING = int(os.environ.get("WAITING", "6000"))  # of other mail, at most
PLACES = {"memory": "/dev/shm", "disk": None}
LATER = "later.example smtp:127.0.0.1:1\n* discard\n"


def fill_part(template, queue, count, due):
    """Files in deferred/ that differ by their inodes, as the queue names them."""
    owner, data = os.stat(template), template.read_bytes()
    deferred, defer = queue / "deferred", queue / "defer"
    reasons = os.stat(defer / template.parent.name / template.name)
    split = sum(p.name.isdigit() for p in deferred.iterdir())
    for n in range(count):
        name = deferred / f"tmp.{os.getpid()}.{n}"
        fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, data)
        os.fchown(fd, owner.st_uid, owner.st_gid)
        os.fchmod(fd, owner.st_mode & 0o7777)
        inode = os.fstat(fd).st_ino
        os.close(fd)
        os.rename(name, deferred / str(inode % split) / str(inode))
        if due:
            name = defer / str(inode % split) / str(inode)
            fd = os.open(name, os.O_WRONLY | os.O_CREAT, 0o640)
            os.fchown(fd, reasons.st_uid, reasons.st_gid)
            os.utime(fd, (due, due))
            os.close(fd)


def fill(i, count, with_due):
    (template,) = i.files("deferred")
    queue = i.base / "queue1"
    due = time.time() + 86400 if with_due else None
    parts = [multiprocessing.Process(target=fill_part, args=(template, queue, count // 4, due)) for _ in range(4)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()


@contextlib.contextmanager
def queued(place, count, with_due=True, queues=1, active="20000"):
    """A stopped instance with so many deferred messages of bulk@, all in queue 1."""
    old, tempfile.tempdir = tempfile.tempdir, PLACES[place]
    i = Instance(queues=queues, routing=LATER, conf={
        "minimal_backoff_time": "1d", "maximal_backoff_time": "1d", "scan_interval": "1h",
        "local_destination_concurrency_limit": "20", "qmgr_message_active_limit": active})
    try:
        i.start()
        for n in range(2, queues + 1):
            setqload(i, "--disable", "-q", str(n))
        i.inject(b"Subject: bulk\n\nbulk\n", "r@later.example", sender="bulk@test.example")
        wait(lambda: len(i.files("deferred")) == 1, what="deferred")
        i.stop()
        fill(i, count - 1, with_due)
        yield i
    finally:
        i.destroy()
        tempfile.tempdir = old


def setqload(i, *words):
    subprocess.run([BIN / "setqload", *words], env=i.environment(), capture_output=True, check=True)


def qctl(i, *words):
    began = time.monotonic()
    done = subprocess.run([BIN / "qctl", *words], env=i.environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"qctl {words}: {done.returncode} {done.stderr[-500:]}")
    return time.monotonic() - began


class Load:
    """Other mail, until the end of the block; rate 0: as much as there can be."""

    def __init__(self, i, rate):
        self.i, self.rate, self.over = i, rate, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over:
            began = time.monotonic()
            if self.rate == 0 and self.on_their_way() > WAITING:
                time.sleep(0.01)
                continue
            subprocess.run([SUBMIT, "accept", self.i.conf_file, "4", str(self.rate // 4 or 400), "4096", "x@test.example"],
                           stdout=subprocess.DEVNULL, check=True, preexec_fn=lambda: os.umask(0))
            if self.rate:
                time.sleep(max(0.0, 0.25 - (time.monotonic() - began)))

    def __enter__(self):
        self.thread.start()
        before = self.delivered()
        wait(lambda: self.delivered() > before + 200, what="the load")
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def on_their_way(self):
        page = self.i.page(1)
        return page["incoming"] + page["active"]

    def delivered(self):
        return self.i.page(1)["delivered"]

    def rate_during(self, act):
        before, began = self.delivered(), time.monotonic()
        act()
        took = time.monotonic() - began
        return (self.delivered() - before) / took, took


def bulk(place):
    with queued(place, QUEUED) as i:
        i.start()
        wait(lambda: i.page(1)["deferred"] > QUEUED - 8, what="all are known")
        hold = qctl(i, "hold", "sender=bulk@*")
        print(f"  {place}: hold of {QUEUED} by filter without a load: {hold:.1f} s", flush=True)
        for rate in RATES:
            with Load(i, rate) as load:
                ratios, times, rates = [], [], []
                for n in range(ROUNDS):
                    words = ("delete", "sender=bulk@*") if n % 2 == 0 else ("undelete", "ALL")
                    pairs = [lambda w=words: qctl(i, *w), lambda: time.sleep(times[-1] if times else hold)]
                    with_act, took = load.rate_during(pairs[0])
                    times.append(took)
                    without, _ = load.rate_during(pairs[1])
                    ratios.append(with_act / without)
                    rates.append(without)
                if ROUNDS % 2:
                    qctl(i, "undelete", "ALL")
            name = f"{rate} a second" if rate else "all that goes"
            print(f"  {place}: other mail {name} ({statistics.median(rates):.0f}/s): {QUEUED} messages in "
                  f"{statistics.median(times):.1f} s ({min(times):.1f}-{max(times):.1f}), other mail at "
                  f"{100 * statistics.median(ratios):.0f} % ({100 * min(ratios):.0f}-{100 * max(ratios):.0f} %)", flush=True)


def processor_time(i):
    """Of all queue-send, in seconds."""
    ticks = 0
    for pid in i.pids("queue-send"):
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def would_spread(i):
    done = subprocess.run([BIN / "qctl", "spread", "queue=1", "--dry-run"], env=i.environment(), capture_output=True,
                          text=True, check=False)
    return int(done.stdout.split()[2]) if done.returncode == 0 else -1


def spreading(place):
    """A queue that is out of use, and named, gives all it has."""
    with queued(place, SPREAD, queues=2, active=str(2 * SPREAD)) as i:
        i.start()
        wait(lambda: i.page(1)["deferred"] > SPREAD - 8, what="all are known")
        setqload(i, "--enable", "-q", "2")
        setqload(i, "--disable", "-q", "1")
        wait(lambda: would_spread(i) > SPREAD - 8, what="room")
        before, began = processor_time(i), time.monotonic()
        took = qctl(i, "spread", "queue=1")
        wait(lambda: i.page(2)["deferred"] > SPREAD - 8, what="all of it is known in the other queue")
        print(f"  {place}: spread of {SPREAD} to another queue: {took:.1f} s, known there after "
              f"{time.monotonic() - began:.1f} s, processor time of both queue-send "
              f"{processor_time(i) - before:.1f} s, load {os.getloadavg()[0]:.0f}", flush=True)


def listing(place):
    with queued(place, LISTED, with_due=False) as i:
        for words in (["list"], ["list", "--json"], ["list", "sender=bulk@*"]):
            began = time.monotonic()
            with subprocess.Popen([BIN / "qctl", *words], env=i.environment(), stdout=subprocess.PIPE) as p:
                p.stdout.readline()
                row = p.stdout.readline()
                first = time.monotonic() - began
                peak = 0
                while p.stdout.read(1 << 20):
                    peak = max(peak, memory_of(p.pid))
                p.wait()
            if p.returncode != 0 or not row:
                raise OSError(f"qctl {words}: {p.returncode}")
            print(f"  {place}: {' '.join(words)} of {LISTED}: first line {1000 * first:.0f} ms, all "
                  f"{time.monotonic() - began:.1f} s, {peak / 1024:.1f} MiB resident", flush=True)


def memory_of(pid):
    """The command and its worker, KiB; what has ended counts as nothing."""
    total = 0
    with contextlib.suppress(OSError):
        for p in (pid, *pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            for line in pathlib.Path(f"/proc/{p}/status").read_text().splitlines():
                total += int(line.split()[1]) if line.startswith("VmRSS") else 0
    return total


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the instance ends with it
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    for place in os.environ.get("WHERE", "memory,disk").split(","):
        if QUEUED:
            bulk(place)
        if SPREAD:
            spreading(place)
        if LISTED:
            listing(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
