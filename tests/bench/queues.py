#!/usr/bin/python3
"""make bench-queues: how the rate depends on the number of queues and cores.

    CORES=1,2,4 QUEUES=1,2,5,10,20 MESSAGES=20000 ROUNDS=3 WHERE=memory,ext4 make bench-queues

An instance, and the 20 submitters beside it, run on so many cores. Messages of
4 KiB go to the discarding agent; what is printed is the rate of acceptance, and
that from the first submission to the last removal, and which number of queues
is best. All numbers of queues alternate in each round.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import road

CORES = [int(n) for n in os.environ.get("CORES", "1,2,4").split(",")]
QUEUES = [int(n) for n in os.environ.get("QUEUES", "1,2,5,10,20").split(",")]
WHERE = os.environ.get("WHERE", "memory,ext4").split(",")


def measure(queues):
    from instance import Instance
    i = Instance(queues=queues, routing="* discard\n", conf=road.CONF)
    try:
        i.start()
        began = time.monotonic()
        sets = [road.submit(i, road.SUBMITTERS // 4, road.MESSAGES // 4, f"u{n}@test.example") for n in range(4)]
        for submitters in sets:
            submitters.communicate()
        accepted = time.monotonic() - began
        road.wait_through(i, road.MESSAGES)
        return {"accepted": road.MESSAGES / accepted, "through": road.MESSAGES / (time.monotonic() - began)}
    finally:
        i.destroy()


def measure_on(cores, queues, directory):
    done = subprocess.run([sys.executable, "-B", __file__, "--measure", str(queues)], check=False, capture_output=True,
                          text=True, env=os.environ | {"TMPDIR": str(directory)},
                          preexec_fn=lambda: os.sched_setaffinity(0, range(cores)))
    if done.returncode != 0:
        sys.exit(f"queues: {done.stderr.strip()[-800:]}")
    return json.loads(done.stdout)


def rows(where, cores, directory):
    rates = {queues: [] for queues in QUEUES}
    for _ in range(road.ROUNDS):
        for queues in QUEUES:
            rates[queues].append(measure_on(cores, queues, directory))
    for what in "accepted", "through":
        medians = {queues: statistics.median(rate[what] for rate in rates[queues]) for queues in QUEUES}
        cells = " | ".join(f"{medians[queues]:.0f}" for queues in QUEUES)
        print(f"| {road.PLACES[where]} | {cores} | {what} | {cells} | {max(QUEUES, key=medians.get)} |", flush=True)


def main():
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(int(sys.argv[2]))))
        return
    print("| where | cores | | " + " | ".join(f"{n} queue{'s' * (n > 1)}" for n in QUEUES) + " | best |")
    print("|---|---|---|" + "---|" * (len(QUEUES) + 1))
    for where in WHERE:
        with road.place(where) as directory:
            if directory is None:
                print(f"\nNot measured: {road.PLACES[where]}: no loop mount is to be had.\n")
                continue
            for cores in CORES:
                if cores <= len(os.sched_getaffinity(0)):
                    rows(where, cores, directory)
    print(f"\nMessages per second; {road.MESSAGES} of 4 KiB from 20 submitters, medians of {road.ROUNDS} rounds, "
          f"load {os.getloadavg()[0]:.1f} at the end.")


if __name__ == "__main__":
    tempfile.tempdir = None
    main()
