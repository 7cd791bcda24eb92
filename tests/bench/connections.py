#!/usr/bin/python3
"""make bench-connections: connections opened for 400 messages to one server.

    make bench-connections
    BEFORE=DIR make bench-connections    beside another checkout, alternating
    MESSAGES=400 QUEUES="1 2 4 20" LIMITS="5 10 20" WAYS="burst steady" SERVICE=0.01
    make bench-connections

The server takes SERVICE seconds for each message. `burst`: all messages come as
fast as they are accepted. `steady`: at PACE (100) a second. Each figure is that
of an instance of its own. The columns: connections that the server saw, the
most at once, which must not exceed the limit, and the seconds from the first
submission to the last removal. DIR is built there with `make all` and
`make build/gcc/tests/bench/submit`.

    connections.py --measure WAY QUEUES LIMIT    one figure of the checkout in BENCH_ROOT
"""
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parents[2]
ROOT = pathlib.Path(os.environ.get("BENCH_ROOT", HERE))
sys.path.insert(0, str(ROOT / "tests/system"))
MESSAGES = int(os.environ.get("MESSAGES") or 400)
QUEUES = [int(n) for n in (os.environ.get("QUEUES") or "1 2 4 20").split()]
LIMITS = [int(n) for n in (os.environ.get("LIMITS") or "5 10 20").split()]
WAYS = (os.environ.get("WAYS") or "burst steady").split()
SERVICE = float(os.environ.get("SERVICE") or 0.01)
PACE = int(os.environ.get("PACE") or 100)
AT_ONCE = 5  # messages of one submission, when the pace is steady


def submit(i, way):
    program = ROOT / "build/gcc/tests/bench/submit"
    began = time.monotonic()
    step = MESSAGES if way == "burst" else AT_ONCE
    for n in range(0, MESSAGES, step):
        if way == "steady":
            time.sleep(max(0, began + n / PACE - time.monotonic()))
        subprocess.run([program, "accept", i.conf_file, "4" if way == "burst" else "1", str(step), "1000", "x@away.example"],
                       check=True, stdout=subprocess.DEVNULL)
    return began


def measure(way, queues, limit):
    from counting_site import CountingSite
    from instance import Instance
    site = CountingSite(service=SERVICE)
    i = Instance(queues=queues, routing=f"away.example smtp:127.0.0.1:{site.port}\n* local\n", conf={
        "smtp_destination_concurrency_limit": str(limit), "smtp_initial_destination_concurrency": str(limit)})
    try:
        i.start_open()
        began = submit(i, way)
        i.wait_empty(120)
        took = time.monotonic() - began
        sent = i.log().count("status=sent")
        assert sent == MESSAGES, (sent, MESSAGES)
    finally:
        i.destroy()
        site.stop()
    print(site.connections, site.peak, f"{took:.1f}")


def figure(root, way, queues, limit):
    out = subprocess.run([sys.executable, "-B", __file__, "--measure", way, str(queues), str(limit)], text=True,
                         env=os.environ | {"BENCH_ROOT": str(root)}, stdout=subprocess.PIPE, check=True).stdout
    connections, peak, seconds = out.split()
    return f"{connections} ({peak}, {seconds} s)"


def main():
    before = os.environ.get("BEFORE")
    roots = [pathlib.Path(before).resolve()] if before else []
    roots.append(HERE)
    print(f"{MESSAGES} messages, {SERVICE} s each: connections (most at once, seconds)\n")
    heads = ["before", "now"][-len(roots):]
    print("| mail comes | queues | limit |", " | ".join(heads), "|")
    print("|---" * (3 + len(roots)) + "|")
    for way in WAYS:
        for queues in QUEUES:
            for limit in LIMITS:
                figures = [figure(root, way, queues, limit) for root in roots]
                print(f"| {way} | {queues} | {limit} |", " | ".join(figures), "|", flush=True)


if len(sys.argv) > 1 and sys.argv[1] == "--measure":
    measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    main()
