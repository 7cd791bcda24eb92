#!/usr/bin/python3
"""make bench-flood: local mail beside a flood for a destination that refuses.

    MESSAGES=300000 SUBMITTERS=8 make bench-flood

One queue. SUBMITTERS processes send MESSAGES of 1 KiB, as fast as they may, to a
port where nothing listens. A local message is submitted every 100 ms. When half
of the flood has come, queue-send is killed (kill -9). BACKLOG (0) messages for
the same port lie in incoming/ at the start. What is printed is the time of local
mail from its acceptance to the maildir, and how long its submission took. WHERE
is the directory of the queue; BIN and SUBMIT are other programs.
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
tempfile.tempdir = os.environ.get("WHERE", "/dev/shm")
os.environ["QSCHED_BIN"] = os.environ.get("BIN", str(ROOT / "build/bin"))
from instance import Instance, wait  # noqa: E402
from local_mail import LocalMail, percentile  # noqa: E402

MESSAGES = int(os.environ.get("MESSAGES", "300000"))
SUBMITTERS = int(os.environ.get("SUBMITTERS", "8"))
BACKLOG = int(os.environ.get("BACKLOG", "0"))
DELAY = os.environ.get("IN_FLOW_DELAY", "1s")
SUBMIT = os.environ.get("SUBMIT") or next((ROOT / "build").glob("*/tests/bench/submit"))
LIMIT = 3600


def refusing_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def there(i):
    """Messages of the flood that were accepted, but for what the pages do not know yet."""
    page = i.page(1)
    return page["incoming"] + page["active"] + page["deferred"] + page["untried"]


def row(what, values):
    if values:
        print(f"| {what} | {len(values)} | " + " | ".join(
            f"{v * 1000:.0f}" for v in (percentile(values, 50), percentile(values, 99), values[-1])) + " |", flush=True)


def flood(i, count):
    command = [SUBMIT, "accept", i.conf_file, str(SUBMITTERS), str(count), "1024", "x@away.example"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=i.environment(), umask=0)


def kill_in_the_middle(i, submitters, mail, longest):
    def half():
        longest[0] = max(longest[0], i.page(1)["incoming"])
        return there(i) >= BACKLOG + MESSAGES / 2 or submitters.poll() is not None
    wait(half, LIMIT, "half of the flood")
    before = len(i.files("incoming"))
    mail.phase("after the kill, until all have come")
    os.kill(i.pids("queue-send")[0], signal.SIGKILL)
    return before


def run(i):
    longest = [0]
    i.start_open()
    if BACKLOG > 0:
        i.stop()
        flood(i, BACKLOG).communicate()
        i.start_open()
    mail = LocalMail(i).start()
    try:
        began = time.monotonic()
        mail.phase("until the kill")
        submitters = flood(i, MESSAGES)
        before = kill_in_the_middle(i, submitters, mail, longest)
        wait(lambda: submitters.poll() is not None, LIMIT, "the flood")
        took = time.monotonic() - began
        mail.phase("behind the flood")
        wait(lambda: i.page(1)["incoming"] == 0 and len(i.files("incoming")) == 0, LIMIT, "an empty incoming/")
        emptied = time.monotonic() - began - took
    finally:
        mail.stop()
    print("| local mail | messages | median, ms | 99th percentile, ms | most, ms |\n|---|---|---|---|---|")
    for name, values in mail.delays().items():
        row(f"{name}: acceptance to maildir", values)
    row("all of it", sorted(v for values in mail.delays().values() for v in values))
    row("all submissions", sorted(mail.took))
    print(f"\n{MESSAGES} messages by {SUBMITTERS} submitters in {took:.1f} s, {MESSAGES / took:.0f}/s; "
          f"incoming/ empty {emptied:.1f} s later; {before} files in incoming/ at the kill, {longest[0]} counted at most before it; "
          f"load {os.getloadavg()[0]:.1f}.", flush=True)


def main():
    i = Instance(queues=1, routing=f"test.example local\n* smtp:127.0.0.1:{refusing_port()}\n", conf={
        "in_flow_delay": DELAY, "minimal_backoff_time": "300s", "maximal_backoff_time": "4000s",
        "local_destination_concurrency_limit": "20"})
    try:
        run(i)
    finally:
        if "KEEP_LOG" in os.environ:
            pathlib.Path(os.environ["KEEP_LOG"]).write_text(i.log())
        i.destroy()


main()
