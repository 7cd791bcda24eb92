#!/usr/bin/python3
"""Two builds beside each other: acceptance and delivery, alternating.

    beside.py DIR [--rounds N] [--memory] [--only CASE] [--write]

DIR is another checkout of this project, built there with `make all` and
`make build/gcc/tests/bench/submit`. Each round measures every case with both
builds, one after the other, each through the tests of its own checkout; the
ratios are of the medians. --memory puts the queues into /dev/shm. --write puts
the table into docs/BENCHMARKS.md. Exit 1 when a ratio is below the wanted one.

    beside.py --measure CASE      one figure of the checkout in BENCH_ROOT
"""
import argparse
import asyncio
import os
import pathlib
import platform
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parents[2]
ROOT = pathlib.Path(os.environ.get("BENCH_ROOT", HERE))
WANTED = 0.95
BEGIN, END = "<!-- beside -->", "<!-- end of beside -->"


# ---- one figure: runs with the modules of the checkout that is measured ----

class Sink(asyncio.Protocol):
    """The other end of SMTP: everything is accepted, nothing is kept."""

    def connection_made(self, transport):
        self.transport, self.buffer, self.data = transport, b"", False
        transport.write(b"220 sink\r\n")

    def data_received(self, data):
        self.buffer += data
        while True:
            if self.data:
                end = self.buffer.find(b"\r\n.\r\n")
                if end < 0:
                    self.buffer = self.buffer[-4:]
                    return
                self.buffer, self.data = self.buffer[end + 5:], False
                self.transport.write(b"250 2.0.0 taken\r\n")
                continue
            line, found, rest = self.buffer.partition(b"\r\n")
            if not found:
                return
            self.buffer = rest
            self.answer(line[:4].upper())

    def answer(self, verb):
        if verb == b"EHLO":
            self.transport.write(b"250-sink\r\n250-PIPELINING\r\n250 SIZE 0\r\n")
        elif verb == b"DATA":
            self.data, self.buffer = True, b"\r\n" + self.buffer
            self.transport.write(b"354 go on\r\n")
        elif verb == b"QUIT":
            self.transport.write(b"221 2.0.0 bye\r\n")
            self.transport.close()
        else:
            self.transport.write(b"250 2.0.0 ok\r\n")


def sink():
    """The port of a sink that runs in a thread as long as this process."""
    started, port = threading.Event(), []

    async def serve():
        server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0)
        port.append(server.sockets[0].getsockname()[1])
        started.set()
        await server.serve_forever()
    threading.Thread(target=asyncio.run, args=(serve(),), daemon=True).start()
    started.wait()
    return port[0]


def submit(*words):
    program = next((ROOT / "build").glob("gcc/tests/bench/submit"))
    return subprocess.Popen([program, *map(str, words)], stdout=subprocess.PIPE, text=True)


def acceptance(submitters, messages):
    """Accepted a second while a server that says nothing keeps the queue full."""
    from instance import Instance
    with socket.create_server(("127.0.0.1", 0)) as silent:
        i = Instance(queues=2, conf={"qmgr_message_active_limit": "1"},
                     routing=f"* smtp:127.0.0.1:{silent.getsockname()[1]}\n")
        try:
            i.start()
            i.inject(b"Subject: first\n\n", "x@test.example")
            return float(submit("accept", i.conf_file, submitters, messages, 4096,
                                "bench@test.example").communicate()[0])
        finally:
            i.destroy()


def command():
    """Messages a second, each by a command of its own."""
    from instance import Instance
    i = Instance(queues=2, routing="* discard\n")
    try:
        i.start()
        began = time.monotonic()
        for _ in range(300):
            i.inject(b"Subject: bench\n\n" + b"x" * 4000 + b"\n", "bench@test.example", face="queue-inject")
        return 300 / (time.monotonic() - began)
    finally:
        i.destroy()


def road(routing, messages, users=4):
    """Messages a second from the first submission to the last removal."""
    from instance import Instance
    i = Instance(queues=2, routing=routing, conf={
        "local_destination_concurrency_limit": "20", "smtp_destination_concurrency_limit": "50",
        "smtp_initial_destination_concurrency": "50"})
    try:
        i.start()
        began = time.monotonic()
        sets = [submit("accept", i.conf_file, 2, messages // users, 4096, f"u{n}@test.example")
                for n in range(users)]
        for s in sets:
            s.wait()
        i.wait_empty(300)
        took = time.monotonic() - began
        sent = i.log().count("status=sent")
        assert sent == messages, (sent, messages)
        return messages / took
    finally:
        i.destroy()


def partly():
    """Messages a second of two recipients, one delivered, one deferred: their
    marks matter when they leave the active queue."""
    from instance import Instance, wait
    count = 3000
    i = Instance(queues=2, routing="good.example discard\n",
                 conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "2h"})
    try:
        i.start()
        message = b"Subject: bench\n\n" + b"x" * 4000 + b"\n"
        i.face("sendmail")  # before several want to make it
        i.process.send_signal(19)  # all of it waits until it has been accepted
        stopped = i.pids("todo-proc")
        for pid in stopped:
            os.kill(pid, 19)
        jobs = [threading.Thread(target=lambda: [
            i.inject(message, "a@good.example", "b@other.example") for _ in range(count // 4)])
            for _ in range(4)]
        for j in jobs:
            j.start()
        for j in jobs:
            j.join()
        began = time.monotonic()
        i.process.send_signal(18)
        for pid in stopped:
            os.kill(pid, 18)
        wait(lambda: len(i.files("deferred")) >= count // 4 * 4, 300, "all of them in deferred")
        return count / (time.monotonic() - began)
    finally:
        i.destroy()


CASES = {
    "accept-1": ("accepted, 1 submitter", lambda: acceptance(1, 1500)),
    "accept-8": ("accepted, 8 submitters", lambda: acceptance(8, 5000)),
    "accept-32": ("accepted, 32 submitters", lambda: acceptance(32, 8000)),
    "command": ("a `queue-inject` a message", command),
    "discard": ("through, to the discarding agent", lambda: road("* discard\n", 8000)),
    "maildir": ("through, to maildirs", lambda: road("* local\n", 4000)),
    "smtp": ("through, over SMTP", lambda: road(f"* smtp:127.0.0.1:{sink()}\n", 4000)),
    "partly": ("one recipient delivered, one deferred", partly),
}


# ---- both ----

def measure(root, case, memory):
    env = os.environ | {"BENCH_ROOT": str(root), "QSCHED_BIN": str(root / "build/bin"),
                        "PYTHONPATH": str(root / "tests/system")}
    if memory:
        env["TMPDIR"] = "/dev/shm"
    done = subprocess.run([sys.executable, "-B", __file__, "--measure", case], env=env,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"beside: {root}: {case}: {done.stderr.strip()[-800:]}")
    return float(done.stdout)


def commit(root):
    done = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "?"


def compare(other, options):
    lines = [f"Queues {'in memory' if options.memory else 'on disk'}, {os.cpu_count()} cores, "
             f"Linux {platform.release()}; medians of {options.rounds} rounds, messages of 4 KiB per second.", "",
             f"| | {commit(other)} | this | ratio |", "|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    least = 99.0
    for case, (words, _) in CASES.items():
        if options.only not in (None, case):
            continue
        rates = {other: [], HERE: []}
        for n in range(options.rounds):
            for root in ((other, HERE) if n % 2 == 0 else (HERE, other)):
                rates[root].append(measure(root, case, options.memory))
        before, after = statistics.median(rates[other]), statistics.median(rates[HERE])
        least = min(least, after / before)
        lines.append(f"| {words} | {before:.0f} | {after:.0f} | {after / before:.2f} |")
        print(lines[-1], flush=True)
    lines += ["", f"Wanted: {WANTED} at least; the least is {least:.2f}."]
    print("\n".join(lines[-2:]))
    if options.write:
        write(lines)
    return least >= WANTED


def write(lines):
    path = HERE / "docs/BENCHMARKS.md"
    before, _, rest = path.read_text().partition(BEGIN)
    path.write_text("\n".join([before + BEGIN, *lines, END + rest.partition(END)[2]]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("other", nargs="?", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--measure", choices=CASES)
    options = parser.parse_args()
    if options.measure:
        print(CASES[options.measure][1]())
        return 0
    if options.other is None:
        parser.error("the other checkout is missing")
    return not compare(options.other.resolve(), options)


sys.exit(main())
