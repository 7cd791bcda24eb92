#!/usr/bin/python3
"""make bench-share: local mail beside a destination that hangs.

MESSAGES (25000) go to a host that accepts connections and never answers, while
local mail is submitted at a steady pace: while they come, while the host is
open, when it is dead, whenever it is tried again, and after a flush. Then
BACKLOG (200000) lie in incoming/ at the start. What is printed is the delay of
local mail from acceptance to the maildir. --bin DIR runs other programs.
"""
import argparse
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default=str(ROOT / "build/bin"))
    parser.add_argument("--messages", type=int, default=int(os.environ.get("MESSAGES", "25000")))
    parser.add_argument("--backlog", type=int, default=int(os.environ.get("BACKLOG", "200000")))
    parser.add_argument("--greeting", default="20s")
    parser.add_argument("--openings", type=int, default=3)
    return parser.parse_args()


given = arguments()
os.environ["QSCHED_BIN"] = given.bin
from instance import Instance, wait  # noqa: E402
from local_mail import LocalMail, percentile  # noqa: E402

SUBMIT = next((ROOT / "build").glob("*/tests/bench/submit"))


class Silent:
    """Connections are taken and never greeted."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.socket.getsockname()[1]
        self.connections = 0
        self.taken = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self):
        while True:
            try:
                self.taken.append(self.socket.accept()[0])
            except OSError:
                return
            self.connections += 1


def instance(site):
    return Instance(queues=1, routing=f"test.example local\n* smtp:127.0.0.1:{site.port}\n", conf={
        "smtp_greeting_timeout": given.greeting, "minimal_backoff_time": "20s", "maximal_backoff_time": "30s",
        "queue_minfree_bytes": "1m", "local_destination_concurrency_limit": "20"})


def submit(i, count, submitters=4):
    subprocess.run([SUBMIT, "accept", i.conf_file, str(submitters), str(count), "1024", "x@away.example"],
                   stdout=subprocess.DEVNULL, check=True, env=i.environment())


def row(name, values):
    print(f"| {name} | {len(values)} | {percentile(values, 50) * 1000:.0f} | {percentile(values, 99) * 1000:.0f} | "
          f"{values[-1] * 1000:.0f} |", flush=True)


def head(title):
    print(f"## {title}\n\n| while | local messages | median, ms | 99th percentile, ms | most, ms |\n"
          "|---|---|---|---|---|", flush=True)


def deaths(i):
    return len(re.findall(r"warning: destination=.*state=dead", i.log()))


def memory(i):
    for program in ("queue-send", "todo-proc"):
        for pid in i.pids(program):
            found = re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())
            print(f"{program}: {found.group(1)} KiB resident", flush=True)


def one_that_hangs():
    head(f"{given.messages} messages to a host that accepts connections and never answers")
    site = Silent()
    i = instance(site)
    try:
        i.start()
        mail = LocalMail(i).start()
        mail.phase("they are submitted, the host is open")
        began = time.monotonic()
        submit(i, given.messages)
        print(f"submitted in {time.monotonic() - began:.1f} s", file=sys.stderr)
        wait(lambda: deaths(i) >= 1, 900, "its death")
        mail.phase("it is dead, and opens and dies again")
        wait(lambda: deaths(i) >= 1 + given.openings, 1800, "it was tried again")
        mail.phase("a flush (SIGALRM), and what follows")
        before = deaths(i)
        i.flush()
        wait(lambda: deaths(i) > before + 1, 900, "its death after the flush")
        mail.stop()
        for name, values in mail.delays().items():
            row(name, values)
        row("all of it", sorted(v for values in mail.delays().values() for v in values))
        page = i.page(1)
        print(f"\n{site.connections} connections, {deaths(i)} deaths; doorbells: {page['rings']} rang, "
              f"{page['found_by_scan']} files found by scans.", flush=True)
        memory(i)
        print()
    finally:
        if "KEEP_LOG" in os.environ:
            pathlib.Path(os.environ["KEEP_LOG"]).write_text(i.log())
        i.destroy()


def backlog_at_the_start():
    head(f"{given.backlog} messages for it in incoming/ at the start")
    site = Silent()
    i = instance(site)
    try:
        i.start()
        i.stop()
        # Nothing runs: accepted mail lies in incoming/.
        submit(i, given.backlog, 8)
        began = time.monotonic()
        i.start()
        mail = LocalMail(i).start()
        mail.phase("the backlog is worked off")
        wait(lambda: len(mail.delivered) > 0, 900, "the first local message")
        first = time.monotonic() - began
        wait(lambda: i.page(1)["incoming"] == 0 and time.monotonic() - began > 10, 1800, "an empty incoming/")
        print(f"incoming/ was empty after {time.monotonic() - began:.1f} s", file=sys.stderr)
        mail.phase("after that, the host dies and is tried again")
        before = deaths(i)
        wait(lambda: deaths(i) > before + 1, 900, "its deaths")
        mail.stop()
        row("the first one", mail.delays()["the backlog is worked off"][:0] or [first])
        for name, values in mail.delays().items():
            row(name, values)
        print()
        memory(i)
    finally:
        i.destroy()


if given.messages > 0:
    one_that_hangs()
if given.backlog > 0:
    backlog_at_the_start()
