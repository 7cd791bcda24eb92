#!/usr/bin/python3
"""make bench-outage: a million messages for destinations that are down, then up.

    MESSAGES=1000000 DESTINATIONS=20 make bench-outage

Two queues in memory. MESSAGES of 1 KiB lie in incoming/ at the start, for
DESTINATIONS where nothing listens. Then, step by step: the first new local
message through, memory of the daemons when all are read, another new message, a
restart, and the drain to Postfix's smtp-sink when the destinations are up.
"""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

tempfile.tempdir = "/dev/shm"
import road  # noqa: E402
from instance import BIN, Instance, wait  # noqa: E402

MESSAGES = int(os.environ.get("MESSAGES", "1000000"))
DESTINATIONS = int(os.environ.get("DESTINATIONS", "20"))
HOURS = 4 * 3600


def free_ports(count):
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def row(what, figure):
    print(f"| {what} | {figure} |", flush=True)


def submit(i, count):
    """Several messages to each destination in turn, from eight submitters of each."""
    each = count // DESTINATIONS
    for n in range(DESTINATIONS):
        subprocess.run([road.submit_program(), "accept", i.conf_file, "8", str(each), "1024", f"x@d{n}.example"],
                       stdout=subprocess.DEVNULL, check=True, env=i.environment(), umask=0)
    return each * DESTINATIONS


def sums(i, field):
    return sum(i.page(n)[field] for n in i.numbers)


def resident(i):
    for program in "queue-send", "todo-proc", "deliver-smtp", "qscheduler":
        sizes = [int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024
                 for pid in i.pids(program)]
        row(f"`{program}`, resident, MiB", ", ".join(f"{size:.1f}" for size in sizes))


def first_through(i, user, began=None):
    """Seconds from the submission, or from `began`, to the maildir."""
    began = began or time.monotonic()
    i.inject(b"Subject: new\n\nnew\n", f"{user}@test.example")
    wait(lambda: i.maildir(user), HOURS, f"mail of {user}")
    return time.monotonic() - began


def fill(i):
    """Nothing runs: accepted mail lies in incoming/."""
    i.start()
    i.stop()
    began = time.monotonic()
    count = submit(i, MESSAGES)
    row("accepted/s, while nothing runs", f"{count / (time.monotonic() - began):.0f}")
    return count


def start(i, words, user):
    began = time.monotonic()
    i.start(limit=HOURS)
    row(f"{words}, until it is ready, s", f"{time.monotonic() - began:.2f}")
    row(f"{words}, until a new local message is through, s", f"{first_through(i, user, began):.2f}")
    return began


def down(i, count, began):
    wait(lambda: sums(i, "incoming") == 0 and sums(i, "active") + sums(i, "deferred") >= count, HOURS, "all read")
    row("all read by the queues, s after the start", f"{time.monotonic() - began:.1f}")
    resident(i)
    row("a new local message beside them, s", f"{first_through(i, 'beside'):.3f}")


def restart(i):
    began = time.monotonic()
    i.stop(limit=HOURS)
    row("stop, s", f"{time.monotonic() - began:.2f}")
    start(i, "start with all of them deferred", "again")


@contextlib.contextmanager
def sinks(ports):
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    servers = [subprocess.Popen([road.smtp_sink(), *user, f"127.0.0.1:{port}", "1000"], stdout=subprocess.DEVNULL)
               for port in ports]
    try:
        yield
    finally:
        for server in servers:
            server.kill()
            server.wait()


def drain(i, ports, count):
    if road.smtp_sink() is None:
        row("drain", "not measured: Postfix's smtp-sink is not installed")
        return
    with sinks(ports):
        began = time.monotonic()
        subprocess.run([BIN / "qctl", "retry", "--yes", "ALL"], check=True, stdout=subprocess.DEVNULL,
                       env=i.environment())
        row("up: first new local message, s", f"{first_through(i, 'fourth'):.3f}")
        i.wait_empty(HOURS)
        taken = time.monotonic() - began
        row("drain, messages/s", f"{count / taken:.0f} ({count} in {taken:.0f} s)")
        resident(i)


def main():
    ports = free_ports(DESTINATIONS)
    routing = "test.example local\n" + "".join(f"d{n}.example smtp:127.0.0.1:{port}\n" for n, port in enumerate(ports))
    i = Instance(queues=2, routing=routing, conf=road.CONF | {
        "minimal_backoff_time": "5m", "maximal_backoff_time": "1h"})
    print("| step | figure |\n|---|---|")
    try:
        count = fill(i)
        down(i, count, start(i, "start with all of them in `incoming/`", "first"))
        restart(i)
        drain(i, ports, count)
    finally:
        i.destroy()
    print(f"\n{MESSAGES} messages of 1 KiB for {DESTINATIONS} destinations, {os.cpu_count()} cores, "
          f"load {os.getloadavg()[0]:.1f} at the end.")


main()
