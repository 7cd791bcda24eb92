#!/usr/bin/python3
"""make bench-slow: deliveries beside a disk that takes half a second for each request.

    SLOW=0.5 RCPTS=50000 MESSAGES=10000 ROUNDS=3 OPTIONS=noatime make bench-slow

Queue 1 lies on such a disk (ext4 on a loop device over a file system in user
space), queue 2 in memory. Queue 1 has two messages of RCPTS recipients in memory,
and 100 whose ends wait for the disk. Measured, to the discarding agent:
the time to the first delivery of queue 1, then its deliveries of those two,
then MESSAGES of 4 KiB through queue 2; in turn while the disk is quick and while
it is slow. OPTIONS are more of those that the slow disk is mounted with. Needs
root.
"""
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

tempfile.tempdir = "/dev/shm"
import road  # noqa: E402
from hung_disk import HungDisk, missing  # noqa: E402
from instance import BIN, Instance, wait  # noqa: E402

SLOW = float(os.environ.get("SLOW", "0.5"))
RCPTS = int(os.environ.get("RCPTS", "50000"))
MESSAGES = int(os.environ.get("MESSAGES", "10000"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
OPTIONS = os.environ.get("OPTIONS", "")
LARGE, LEAVE = 2, 100
MINUTES = 20 * 60
SUBMITTERS = 4
STATES = {"quick": 0.0, "slow": SLOW}
ROWS = (("to the first delivery of that queue, s", 3),
        ("deliveries/s of messages in memory, same queue", 0),
        ("messages/s of another queue, accepted and delivered", 0))


class Bench:
    def __init__(self):
        self.i = Instance(queues=2, routing="* discard\n", conf=road.CONF | {
            "disk_time_limit": "10m", "heartbeat_time_limit": "5m", "default_destination_recipient_limit": "1",
            "qmgr_message_recipient_limit": str(LARGE * RCPTS + LEAVE), "message_recipient_limit": str(RCPTS)})
        self.i.base.mkdir()
        self.disk = HungDisk(self.i.dir / "disk", self.i.queue(1), megabytes=256,
                             options=",".join(filter(None, ("nodiscard", OPTIONS))))

    def close(self):
        self.disk.close()
        self.i.destroy()

    def only_queue(self, number):
        for word, n in (("--enable", number), ("--disable", 3 - number)):
            subprocess.run([BIN / "setqload", "-c", self.i.conf_file, word, "-q", str(n)], check=True,
                           stdout=subprocess.DEVNULL, env=self.i.environment())
        self.i.wait_open(number)

    def submit(self, count):
        done = road.submit(self.i, SUBMITTERS, count)
        done.communicate()
        if done.returncode:
            sys.exit("submission failed")

    def delivered(self, number):
        return self.i.page(number)["delivered"]

    def wait_delivered(self, number, count):
        """The time when the page of the queue shows so many deliveries."""
        end = time.monotonic() + MINUTES
        while self.delivered(number) < count:
            if time.monotonic() > end:
                sys.exit(f"bench-slow: queue {number} does not get to {count} deliveries")
            time.sleep(0.001)
        return time.monotonic()

    @contextlib.contextmanager
    def agents_stopped(self):
        """What is accepted meanwhile stays in memory."""
        pids = self.i.pids("deliver-local")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        def let_go():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        try:
            yield let_go
        finally:
            let_go()

    def submit_while_stopped(self):
        """Nothing of it is delivered before the agents go on."""
        self.submit(LEAVE)
        for _ in range(LARGE):
            self.i.inject(b"Subject: many\n\nmany\n", *(f"u{n}@test.example" for n in range(RCPTS)))
        wait(lambda: self.i.page(1)["active"] == LEAVE + LARGE, what="all of them in memory")

    def measure(self, slow):
        i = self.i
        self.only_queue(1)
        with self.agents_stopped() as let_go:
            self.submit_while_stopped()
            self.only_queue(2)
            if slow:
                self.disk.be_slow(slow)
            before, began = self.delivered(1), time.monotonic()
            let_go()
            first = self.wait_delivered(1, before + 1)
            at_first = self.delivered(1)
            same = (before + LARGE * RCPTS - at_first) / (self.wait_delivered(1, before + LARGE * RCPTS) - first)
        before, again = self.delivered(2), time.monotonic()
        self.submit(MESSAGES)
        other = MESSAGES / (self.wait_delivered(2, before + MESSAGES) - again)
        waiting = i.page(1)["active"]
        self.disk.go_on()
        i.wait_empty(MINUTES)
        return first - began, same, other, waiting


def main():
    reason = missing()
    if reason:
        sys.exit(f"bench-slow: not measured: {reason}")
    bench = Bench()
    rows = {name: [] for name in STATES}
    try:
        bench.i.start()
        for _ in range(ROUNDS):
            for name, slow in STATES.items():
                rows[name].append(bench.measure(slow))
    finally:
        bench.close()
    middle = {name: [statistics.median(column) for column in zip(*found)] for name, found in rows.items()}
    print(f"| | disk quick | {SLOW:g} s for each request | ratio |\n|---|---|---|---|")
    for n, (what, digits) in enumerate(ROWS):
        quick, slow = middle["quick"][n], middle["slow"][n]
        print(f"| {what} | {quick:.{digits}f} | {slow:.{digits}f} | {slow / quick:.2f} |")
    print(f"\nMedian of {ROUNDS} rounds, {LARGE} x {RCPTS} recipients, {MESSAGES} messages; at the end of the slow rounds "
          f"{middle['slow'][3]:.0f} messages waited for their disk. {os.cpu_count()} cores, "
          f"load {os.getloadavg()[0]:.1f} at the end.")


main()
