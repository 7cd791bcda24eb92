#!/usr/bin/env python3
"""queue-send and todo-proc under ThreadSanitizer, as a whole instance.

usage: instance.py BIN [SECONDS]

BIN has all programs, these two built with SAN=thread. Two queues, local
deliveries, submitters, reloads, flushes, holds, releases and deletes, for so
many seconds. Prints each report of a race; exit 1 if there is one."""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
os.environ["QSCHED_BIN"] = sys.argv[1]

from instance import BIN, Instance, wait  # noqa: E402
from load import Load  # noqa: E402

MARK = "WARNING: ThreadSanitizer"


def qctl(i, *words):
    subprocess.run([BIN / "qctl", *words], env=i.environment(), capture_output=True, check=False, timeout=120)


def orders(i, until):
    """What an operator does, again and again."""
    steps = (i.reload, i.flush, lambda: qctl(i, "hold", "domain=later.example"),
             lambda: qctl(i, "release", "ALL"), lambda: qctl(i, "explain", "ALL"),
             lambda: qctl(i, "retry", "ALL"), lambda: qctl(i, "delete", "domain=later.example"))
    n = 0
    while time.monotonic() < until:
        for step in steps:
            step()
            n += 1
    return n


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    i = Instance(queues=2, routing="later.example smtp:127.0.0.1:1\n* local\n",
                 conf={"process_memory_limit": "0", "default_process_limit": "8"})
    try:
        i.start_open()
        until = time.monotonic() + seconds
        loads = [Load(i, threads=2), Load(i, threads=1, domain="later.example", seed=9)]
        done = orders(i, until)
        for load in loads:
            load.stop()
        qctl(i, "release", "ALL")
        qctl(i, "delete", "domain=later.example")
        wait(lambda: not i.files("gate/maildrop", "incoming", "active"), what="the end of the deliveries")
        i.stop()
        log = i.log()
        races = log.count(MARK)
        print(f"{sum(len(load.accepted) for load in loads)} messages, {done} orders, {races} reports")
        if races > 0:
            print("\n".join(line for line in log.split("\n") if not line.startswith("queue-send/")))
        return 1 if races > 0 else 0
    finally:
        i.end_processes()
        i.destroy()


if __name__ == "__main__":
    sys.exit(main())
