#!/usr/bin/python3
"""Delivery over SMTP of mail that is queued already, beside Postfix.

    make bench-out
    MESSAGES=2000 ROUNDS=1 WHERE=memory LOADS=one make bench-out
    out.py --write              the table into docs/BENCHMARKS.md as well

Both systems lie in the same file system and run by turns. MESSAGES of 4 KiB
wait in the incoming queue of one, whose queue manager does not see them yet:
Postfix's is not in master.cf, our todo-proc is stopped. Then they are let go.
Time is counted from there until the queue is empty; processor time, context
switches and memory are those of all processes of the system from there on, but
for Postfix without postlogd, in whose place other hosts have syslogd.

Postfix is Debian's package, unpacked (tests/peers), with its own defaults and
durability. Both have the same limits: 20 connections to a destination, 5 at
first, 50 recipients a delivery, 100 deliveries in all; ours is one queue. The
server is smtp-sink of Postfix's package, which takes 100 connections at most.

LOADS is a list of one (one destination), many (200 destinations, each a server
of its own) and list (one message of so many recipients); WHERE of memory and
disk. Needs root, for Postfix.
"""
import contextlib
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HERE / "tests/system"), str(HERE / "tests/peers")]

import cell  # noqa: E402
import packages  # noqa: E402
from instance import Instance, wait  # noqa: E402
from postfix import Postfix  # noqa: E402

MESSAGES = int(os.environ.get("MESSAGES", "20000")) // 200 * 200
ROUNDS = int(os.environ.get("ROUNDS", "3"))
LOADS = {"one": "to one server", "many": "to 200 servers", "list": "one message of so many recipients"}
PLACES = {"memory": "in memory", "disk": "on disk"}
WANTED_RATE, WANTED_CPU = 6.0, 0.2
LONG = 1800
BEGIN, END = "<!-- out -->", "<!-- end of out -->"
LIMITS = {"default_destination_concurrency_limit": 20, "initial_destination_concurrency": 5,
          "default_destination_recipient_limit": 50, "default_process_limit": 100}


# ---- servers ----

@contextlib.contextmanager
def sinks(count):
    """Ports of so many smtp-sink."""
    ports, running = [cell.free_port() for _ in range(count)], []
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    try:
        for port in ports:
            running.append(subprocess.Popen([*packages.command("usr/sbin/smtp-sink"), *user, f"127.0.0.1:{port}", "100"],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for port in ports:
            wait(lambda port=port: cell.listens(port), what="smtp-sink")
        yield ports
    finally:
        for server in running:
            server.kill()
        for server in running:
            server.wait()


def domains(load):
    return 200 if load == "many" else 1


# ---- what processes use ----

class Usage:
    """Of processes that are there: ticks, switches; and of those they reaped."""

    def __init__(self, pids):
        self.seconds = self.switches = 0
        for pid in pids:
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                self.seconds += sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
                for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    counts = re.findall(r"ctxt_switches:\s+(\d+)", (thread / "status").read_text())
                    self.switches += sum(map(int, counts))


def resident(pids):
    """Proportional sizes of all of them, in MiB."""
    kib = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            kib += int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])
    return kib / 1024


class Memory:
    """The most of resident() while this is open, looked at twice a second."""

    def __init__(self, pids):
        self.pids, self.most, self.over = pids, 0, threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while True:
            self.most = max(self.most, resident(self.pids()))
            if self.over.wait(0.5):
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def figures(took, messages, seconds, switches, memory):
    return {"rate": messages / took, "cpu": seconds * 1000 / messages, "switches": switches * 1000 / messages,
            "memory": memory}


# ---- ours ----

def submit(conf_file, submitters, messages, rcpt):
    program = next((HERE / "build").glob("gcc/tests/bench/submit"))
    subprocess.run([program, "accept", conf_file, str(submitters), str(messages), "4096", rcpt], check=True,
                   stdout=subprocess.DEVNULL, preexec_fn=lambda: os.umask(0))


def fill_ours(i, load):
    text = b"Subject: bench\n\n" + (b"x" * 75 + b"\n") * 54
    if load == "list":
        i.inject(text, *(f"{n}u@d0.test" for n in range(MESSAGES)), face="queue-inject")
        return
    count = domains(load)
    for n in range(count):
        submit(i.conf_file, 8 if count == 1 else 1, MESSAGES // count, f"u@d{n}.test")


def measure_ours(load, directory):
    tempfile.tempdir = str(directory)
    with sinks(domains(load)) as ports:
        routing = "".join(f"d{n}.test smtp:127.0.0.1:{port}\n" for n, port in enumerate(ports))
        i = Instance(queues=1, routing=routing, conf={
            "scan_interval": "1h", "minimal_backoff_time": "300s", "maximal_backoff_time": "4000s"} | LIMITS)
        try:
            i.start()
            stopped = i.pids("todo-proc")
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            fill_ours(i, load)
            before = Usage(i.pids())
            with Memory(i.pids) as memory:
                began = time.monotonic()
                for pid in stopped:
                    os.kill(pid, signal.SIGCONT)
                wait(lambda: i.page(1)["delivered"] >= MESSAGES, LONG, "all of them delivered")
                i.wait_empty(LONG)
                took = time.monotonic() - began
            i.process.send_signal(signal.SIGTERM)
            usage = os.wait4(i.process.pid, 0)[2]
            i.process = None
            text = i.log()
            sent = text.count("status=sent")
            if sent != MESSAGES or "status=deferred" in text:
                raise SystemExit(f"out: {sent} of {MESSAGES} were sent")
            return figures(took, MESSAGES, usage.ru_utime + usage.ru_stime - before.seconds,
                           usage.ru_nvcsw + usage.ru_nivcsw - before.switches, memory.most)
        finally:
            i.destroy()


# ---- Postfix ----

def fill_postfix(p, load):
    command = [*packages.command("usr/sbin/smtp-source"), "-4", "-l", "4096", "-f", "bench@test.example"]
    if load == "list":
        subprocess.run([*command, "-m", "1", "-r", str(MESSAGES), "-t", "u@d0.test", f"127.0.0.1:{p.port}"], check=True)
        return
    count = domains(load)
    for n in range(count):
        subprocess.run([*command, "-s", "8", "-m", str(MESSAGES // count), "-t", f"u@d{n}.test", f"127.0.0.1:{p.port}"],
                       check=True)


class Said:
    """Lines of a log that have this text, read as it grows."""

    def __init__(self, path, text):
        self.file, self.text, self.count, self.rest = open(path, "rb"), text, 0, b""

    def so_far(self):
        data = self.rest + self.file.read()
        whole, _, self.rest = data.rpartition(b"\n")
        self.count += whole.count(self.text)
        return self.count


def logger(p):
    """postlogd is another's."""
    for pid in p.pids():
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "postlogd":
                return pid
    return None


def measure_postfix(load, directory):
    with sinks(domains(load)) as ports:
        p = Postfix({"in_flow_delay": "0", "smtpd_recipient_limit": "100000", "relay_domains": "", "mynetworks": "127.0.0.1",
                     "transport_maps": "texthash:/etc/postfix/transport"} | LIMITS, directory)
        p.write("etc/postfix/transport", "".join(f"d{n}.test smtp:[127.0.0.1]:{port}\n" for n, port in enumerate(ports)))
        try:
            p.without = {"qmgr"}
            p.configure()
            p.run()
            fill_postfix(p, load)
            p.stop()
            p.run()
            p.without = set()
            p.configure()
            said = Said(p.root / "var/log/maillog", b"status=sent")
            before = Usage(p.pids())
            with Memory(p.pids) as memory:
                began = time.monotonic()
                p.reload()
                wait(lambda: said.so_far() >= MESSAGES, LONG, "all of them sent")
                wait(lambda: not p.messages(), LONG, "an empty queue")
                took = time.monotonic() - began
            log = Usage([logger(p)])
            usage = p.stop()
            return figures(took, MESSAGES, usage.ru_utime + usage.ru_stime - before.seconds - log.seconds,
                           usage.ru_nvcsw + usage.ru_nivcsw - before.switches - log.switches, memory.most)
        finally:
            p.destroy()


# ---- both, by turns ----

SIDES = {"ours": ("this system", measure_ours), "postfix": ("Postfix", measure_postfix)}
FIGURES = (("rate", "messages/s", "{:.0f}"), ("cpu", "processor seconds for 1000", "{:.3f}"),
           ("switches", "context switches for 1000", "{:.0f}"), ("memory", "peak memory, MiB", "{:.0f}"))


@contextlib.contextmanager
def place(name):
    base = "/dev/shm" if name == "memory" else HERE / "build"
    with tempfile.TemporaryDirectory(dir=base) as directory:
        os.chmod(directory, 0o755)
        yield pathlib.Path(directory)


def compare(say, where, load):
    found = {side: [] for side in SIDES}
    with place(where) as directory:
        for n in range(ROUNDS):
            for side in sorted(SIDES, reverse=n % 2 == 1):
                found[side].append(SIDES[side][1](load, directory))
    medians = {side: {key: statistics.median(f[key] for f in all_of) for key, _, _ in FIGURES}
               for side, all_of in found.items()}
    for side, (name, _) in SIDES.items():
        cells = " | ".join(form.format(medians[side][key]) for key, _, form in FIGURES)
        say(f"| {PLACES[where]}, {LOADS[load]}, {name} | {cells} |")
    ratios = {key: medians["ours"][key] / medians["postfix"][key] for key, _, _ in FIGURES}
    say("| ratio | " + " | ".join(f"{ratios[key]:.2f}" for key, _, _ in FIGURES) + " |")
    return ratios


def chosen(name, known):
    words = os.environ.get(name, ",".join(known)).split(",")
    if not set(words) <= set(known):
        sys.exit(f"out: {name} is of {', '.join(known)}")
    return words


def version():
    told = subprocess.run([*packages.command("usr/sbin/postconf"), "-c", "/dev/null", "-d", "-h", "mail_version"],
                          capture_output=True, text=True, check=False)
    return told.stdout.strip()


def table(say):
    say("| where, what, by which | " + " | ".join(title for _, title, _ in FIGURES) + " |")
    say("|---|" + "---|" * len(FIGURES))
    ratios = [compare(say, where, load) for where in chosen("WHERE", PLACES) for load in chosen("LOADS", LOADS)]
    say()
    say(f"{MESSAGES} messages, or recipients, of 4 KiB; medians of {ROUNDS} alternating rounds; {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} at the end; Postfix {version()}.".replace("Postfix .", "Postfix."))
    say(f"Wanted: {WANTED_RATE:.0f} times the rate, {WANTED_CPU} of the processor time. The least rate is "
        f"{min(r['rate'] for r in ratios):.1f} times Postfix's, the most processor time "
        f"{max(r['cpu'] for r in ratios):.2f} of its.")


def write(lines):
    page = HERE / "docs/BENCHMARKS.md"
    before, begin, rest = page.read_text().partition(BEGIN)
    if not begin:
        sys.exit(f"out: {page} has no {BEGIN}")
    page.write_text("\n".join([before + BEGIN, *lines, END + rest.partition(END)[2]]))


def end(*_):
    """By what ends the measure: servers and instances go."""
    raise SystemExit("out: ended by a signal")


def main():
    signal.signal(signal.SIGTERM, end)
    try:
        cell.can_run()
    except packages.Unavailable as why:
        sys.exit(f"out: {why}")
    lines = []

    def say(line=""):
        print(line, flush=True)
        lines.append(line)
    table(say)
    if "--write" in sys.argv:
        write(lines)


if __name__ == "__main__":
    main()
