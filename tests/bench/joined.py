#!/usr/bin/python3
"""make bench-joined: what joined commits could gain, beside an fsync for each writer.

    DIR=/var/tmp ROUNDS=9 make bench-joined

The loop of system calls that acceptance cannot do without (submit.c), each
submitter by itself, and with the messages of all of them in one process that
syncs one of each together: one fsync after the other, or all by one call of
io_uring. Alternating rounds, medians.
"""
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("ROUNDS", "5"))
MODES = {"bare": "an fsync for each", "joined": "joined, plain", "ring": "joined, io_uring"}


def rate(mode, directory, submitters, messages):
    done = subprocess.run([ROOT / "build/gcc/tests/bench/submit", mode, directory, str(submitters), str(messages),
                           "4096"], capture_output=True, text=True)
    for path in pathlib.Path(directory).iterdir():
        path.unlink()
    return float(done.stdout) if done.returncode == 0 else None


def main():
    print("| submitters | " + " | ".join(MODES.values()) + " | ratios to the first |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=os.environ.get("DIR", "/var/tmp"), prefix="bench-joined.") as directory:
        for submitters in (1, 8, 32):
            rates = {mode: [] for mode in MODES}
            for _ in range(ROUNDS):
                for mode in MODES:
                    rates[mode].append(rate(mode, directory, submitters, submitters * 100))
            found = {mode: statistics.median(r) if None not in r else None for mode, r in rates.items()}
            cells = ["none" if found[mode] is None else f"{found[mode]:.0f}" for mode in MODES]
            ratios = ["none" if found[m] is None else f"{found[m] / found['bare']:.2f}" for m in list(MODES)[1:]]
            print(f"| {submitters} | {' | '.join(cells)} | {', '.join(ratios)} |", flush=True)


main()
