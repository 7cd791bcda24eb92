#!/usr/bin/env python3
"""within.py SECONDS COMMAND...: run a command, and leave no process behind.

Exits as the command does, or with 124 after the limit. All descendants of the
command end with it, those in a session of their own too: Criterion gives such
a session to each test, so that neither its own --timeout nor a signal to a
group ends a test that hangs."""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36


def children():
    texts = [p.read_text() for p in pathlib.Path("/proc/self/task").glob("*/children")]
    return [int(pid) for text in texts for pid in text.split()]


def end_all():
    """A descendant whose parent has ended becomes a child of this process."""
    while pids := children():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main():
    limit, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    process = subprocess.Popen(command)
    try:
        status = process.wait(float(limit))
    except subprocess.TimeoutExpired:
        status = 124
    end_all()
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
