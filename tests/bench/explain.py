#!/usr/bin/python3
"""make bench-explain: how long `qctl explain` takes while much is queued.

MESSAGES (1000000) go to a host that accepts connections and never answers: its
share is in the active queue, the rest is parked. Then one message of RECIPIENTS
(100000), each of them a destination, comes into the active queue. What is printed is the time of
the whole command, for RUNS (200) messages by their ids, each once.
"""
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from instance import BIN, Instance, wait  # noqa: E402
from local_mail import percentile  # noqa: E402

MESSAGES = int(os.environ.get("MESSAGES", "1000000"))
RECIPIENTS = int(os.environ.get("RECIPIENTS", "100000"))
RUNS = int(os.environ.get("RUNS", "200"))
SUBMIT = next((ROOT / "build").glob("*/tests/bench/submit"))
ID = re.compile(rb": ([0-9A-F]{20,}): uid=")


def silent():
    """Connections are taken by the kernel, and nobody greets."""
    return socket.create_server(("127.0.0.1", 0), backlog=128)


def ids(i):
    """Some of all messages, evenly: the log has a line for each."""
    size = i.log_file.stat().st_size
    found = set()
    with open(i.log_file, "rb") as f:
        while len(found) < min(RUNS, MESSAGES // 2):
            f.seek(random.randrange(size))
            found |= {m.decode() for m in ID.findall(f.read(4096))[:1]}
    return sorted(found)


def explain(i, name):
    began = time.monotonic()
    done = subprocess.run([BIN / "qctl", "explain", name], capture_output=True, text=True, check=True,
                          env=i.environment())
    return time.monotonic() - began, done.stdout


def row(what, taken):
    taken.sort()
    print(f"| {what} | {len(taken)} | {percentile(taken, 50) * 1000:.1f} | {percentile(taken, 99) * 1000:.1f} | "
          f"{taken[-1] * 1000:.1f} |", flush=True)


def measure():
    site = silent()
    i = Instance(queues=1, routing=f"* smtp:127.0.0.1:{site.getsockname()[1]}\n", conf={
        "smtp_greeting_timeout": "1h", "minimal_backoff_time": "1h", "maximal_backoff_time": "1h",
        "queue_minfree_bytes": "1m", "qmgr_message_recipient_limit": "200000", "default_recipient_limit": "200000",
        "smtp_destination_recipient_limit": "1"})
    try:
        i.start()
        subprocess.run([SUBMIT, "accept", i.conf_file, "8", str(MESSAGES), "100", "x@away.example"],
                       stdout=subprocess.DEVNULL, check=True, env=i.environment())
        wait(lambda: (p := i.page(1))["active"] + p["deferred"] + p["untried"] >= MESSAGES and p["incoming"] == 0, 7200,
             "all of it")
        page = i.page(1)
        print(f"{page['active']} messages in the active queue, {page['deferred']} parked\n\n"
              "| message | explained | median, ms | 99th percentile, ms | most, ms |\n|---|---|---|---|---|")
        row("one of these, with the command's start", [explain(i, name)[0] for name in ids(i)])
        # A header has at most a mebibyte.
        to = ",".join(f"{n:x}@d.e" + "\n " * (n % 50 == 49) for n in range(RECIPIENTS))
        i.inject(f"To: {to}\nSubject: x\n\nx\n".encode(), args=["-t"])
        name = wait(lambda: i.log_has(rf": ([0-9A-F]+): .*nrcpt={RECIPIENTS} \(queue active\)"), 600,
                    "the large one").group(1)
        wait(lambda: "Reading:" not in explain(i, name)[1], 600, "its recipients")
        row(f"one of {RECIPIENTS} recipients, each a destination", [explain(i, name)[0] for _ in range(RUNS // 10)])
    finally:
        i.destroy()


measure()
