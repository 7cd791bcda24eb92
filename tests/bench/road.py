#!/usr/bin/python3
"""make bench-road: what one message costs on its way, and how many get through.

    BEFORE=DIR make bench-road        beside another checkout, alternating
    MESSAGES=2000 ROUNDS=1 WHERE=memory AGENTS=discard make bench-road

The first part counts system calls with strace, process by process: messages of
4 KiB for one recipient, each delivered by its first attempt. Such counts do not
depend on what else the machine does. The second part measures rates: DIR is
built there with `make all` and `make build/gcc/tests/bench/submit`.

Then one `queue-inject` for each of 500 messages beside as many starts of
/bin/true, in turn, in memory.

COUNTS=0 leaves out these, MESSAGES=0 the second part. WHERE is a list
of memory, disk, ext4 and ext4-discard (loop mounts without and with discard, as
root); AGENTS one of discard, maildir and smtp, which is Postfix's smtp-sink.

    road.py --measure PART            one figure of the checkout in BENCH_ROOT
"""
import collections
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parents[2]
ROOT = pathlib.Path(os.environ.get("BENCH_ROOT", HERE))
sys.path.insert(0, str(ROOT / "tests/system"))
MESSAGES = int(os.environ.get("MESSAGES", "20000"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
COUNTED = int(os.environ.get("COUNTS", "2000"))
SUBMITTERS = 20
ALONE = 20
DAEMONS = ("todo-proc", "queue-send", "deliver-local", "deliver-smtp")
AGENTS = {"discard": ("* discard\n", "the discarding agent"), "maildir": ("* local\n", "maildirs"),
          "smtp": ("* smtp:127.0.0.1:{port}\n", "`smtp-sink`")}
PLACES = {"memory": "in memory", "disk": "on disk", "ext4": "ext4 without discard", "ext4-discard": "ext4 with discard"}
MOUNTS = {"ext4": "nodiscard", "ext4-discard": "discard"}
# What an ordinary instance has, where those of tests look often.
CONF = {"scan_interval": "1h", "local_destination_concurrency_limit": "20",
        "smtp_destination_concurrency_limit": "50", "smtp_initial_destination_concurrency": "50"}


def instance(routing, **conf):
    from instance import Instance
    return Instance(queues=2, routing=routing, conf=CONF | conf)


def submit_program():
    return next((ROOT / "build").glob("gcc/tests/bench/submit"))


def submit(i, submitters, messages, rcpt="u0@test.example", **options):
    return subprocess.Popen([submit_program(), "accept", i.conf_file, str(submitters), str(messages), "4096", rcpt,
                             "times"], stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.umask(0), **options)


# ---- system calls ----

def read_counts(path):
    counts = collections.Counter()
    for line in pathlib.Path(path).read_text().splitlines():
        words = line.split()
        if len(words) >= 5 and re.fullmatch(r"[\d.]+", words[0]) and words[-1] != "total":
            counts[words[-1]] += int(words[3])
    return counts


def traced(command, directory, **options):
    out = directory / "counts"
    subprocess.run(["strace", "-f", "-c", "-o", out, *map(str, command)], check=True, stdout=subprocess.DEVNULL,
                   **options)
    return read_counts(out)


def is_traced(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return "TracerPid:\t0\n" not in text


class Tracers:
    """strace attached to each daemon of an instance."""

    def __init__(self, i):
        from instance import wait
        self.running = []
        for program in DAEMONS:
            for pid in i.pids(program):
                out = i.dir / f"{program}.{pid}"
                self.running.append((program, out, subprocess.Popen(
                    ["strace", "-f", "-c", "-o", out, "-p", str(pid)], stderr=subprocess.DEVNULL)))
                wait(lambda pid=pid: is_traced(pid), what="strace")

    def end(self):
        counts = {program: collections.Counter() for program in DAEMONS}
        for _, _, tracer in self.running:
            tracer.send_signal(signal.SIGINT)
        for program, out, tracer in self.running:
            tracer.wait()
            counts[program] += read_counts(out)
        return counts


def wait_through(i, messages):
    """All delivered, by the pages of the queues, then by their directories."""
    from instance import wait

    def over():
        pages = [i.page(n) for n in i.numbers]
        return sum(p["delivered"] for p in pages) >= messages and not any(p["active"] for p in pages)
    wait(over, 900, "all messages delivered")
    i.wait_empty(900)


def count_daemons(routing, messages, alone, **conf):
    """Counts of each daemon for so many messages, one by one or all at once."""
    from instance import wait
    i = instance(routing, **conf)
    try:
        i.start()
        warm = SUBMITTERS * 2
        submit(i, SUBMITTERS, warm).communicate()
        wait_through(i, warm)
        wait(lambda: len(i.pids("deliver-local")) == len(i.numbers), what="no process that stays for its account")
        tracers = Tracers(i)
        for n in range(messages if alone else 0):
            submit(i, 1, 1).communicate()
            wait_through(i, warm + n + 1)
        if not alone:
            submit(i, SUBMITTERS, messages).communicate()
            wait_through(i, warm + messages)
        return tracers.end()
    finally:
        i.destroy()


def count_submitter(messages):
    """Twice as many messages cost twice as much, but for start and end."""
    i = instance("* discard\n")
    try:
        i.start()
        command = [submit_program(), "accept", i.conf_file, 1]
        mask = {"preexec_fn": lambda: os.umask(0)}
        once = traced([*command, messages, 4096], i.dir, **mask)
        twice = traced([*command, messages * 2, 4096], i.dir, **mask)
        twice.subtract(once)
        return twice
    finally:
        i.destroy()


def count_command():
    i = instance("* discard\n")
    try:
        i.start()
        return traced([i.face("queue-inject"), "-c", i.conf_file, "-i", "-f", "s@test.example", "--", "u0@test.example"],
                      i.dir, input=b"Subject: bench\n\n" + b"x" * 4096)
    finally:
        i.destroy()


def put_counts(say, what, counts, messages):
    each = {name: n / messages for name, n in counts.most_common() if n / messages >= 0.05}
    listed = ", ".join(f"{name} {n:.1f}" for name, n in each.items())
    say(f"| {what} | {sum(counts.values()) / messages:.1f} | {listed} |")


def say_smtp_counts(say, messages):
    """Over connections that are open: those of the first messages are kept."""
    if smtp_sink() is None:
        say("| `deliver-smtp` | | not counted: Postfix's smtp-sink is not installed |")
        return
    routing, name = AGENTS["smtp"]
    for alone, words in ((True, "one message at a time"), (False, f"{messages} of {SUBMITTERS} submitters")):
        number = ALONE if alone else messages
        with sink("smtp") as port:
            counts = count_daemons(routing.format(port=port), number, alone, smtp_connection_cache_time_limit="10m")
        for program in ("queue-send", "deliver-smtp"):
            put_counts(say, f"`{program}`, to {name}, {words}, connections open", counts[program], number)


def say_counts(say, messages=COUNTED):
    say("## System calls of one message")
    say()
    if shutil.which("strace") is None:
        say("Not counted: there is no strace.")
        say()
        return
    say("| process | in all | each |")
    say("|---|---|---|")
    put_counts(say, "submitter", count_submitter(400), 400)
    for routing, name in AGENTS["discard"], AGENTS["maildir"]:
        for alone, words in ((True, "one message at a time"), (False, f"{messages} of {SUBMITTERS} submitters")):
            number = ALONE if alone else messages
            for program, counts in count_daemons(routing, number, alone).items():
                if program != "deliver-smtp":
                    put_counts(say, f"`{program}`, to {name}, {words}", counts, number)
    say_smtp_counts(say, messages)
    put_counts(say, "one `queue-inject`, from its start to its end", count_command(), 1)
    say()
    say("Messages of 4 KiB for one recipient, delivered by the first attempt, by `strace -f -c`; two queues in memory.")
    say()


# ---- one command a message ----

def run_each(command, count, stdin):
    """Microseconds of the clock and of the processor for each of so many runs, one after the other."""
    def cpu():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    spent, began = cpu(), time.monotonic()
    for _ in range(count):
        pid = os.posix_spawn(command[0], command, os.environ,
                             file_actions=[(os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0)])
        if os.waitpid(pid, 0)[1] != 0:
            sys.exit(f"road: {command[0]} failed")
    return (time.monotonic() - began) * 1e6 / count, (cpu() - spent) * 1e6 / count


def say_commands(say, rounds_of=10, count=50):
    i = instance("* discard\n")
    try:
        i.start()
        (i.dir / "message").write_bytes(b"Subject: bench\n\n" + b"x" * 4096)
        commands = {"/bin/true": ["/bin/true"], "`queue-inject`": [
            str(i.face("queue-inject")), "-c", str(i.conf_file), "-i", "-f", "s@test.example", "--", "u0@test.example"]}
        figures = {name: [] for name in commands}
        for _ in range(rounds_of):
            for name, command in commands.items():
                figures[name].append(run_each(command, count, str(i.dir / "message")))
    finally:
        i.destroy()
    say("## One command a message")
    say()
    say("| command | µs | µs of processor |")
    say("|---|---|---|")
    medians = {name: [statistics.median(column) for column in zip(*all_of)] for name, all_of in figures.items()}
    for name, (clock, cpu) in medians.items():
        say(f"| {name} | {clock:.0f} | {cpu:.0f} |")
    first, last = medians.values()
    say(f"| rate of the second to that of the first | {first[0] / last[0]:.2f} | {first[1] / last[1]:.2f} |")
    say()
    say(f"Messages of 4 KiB to two queues in memory, one after the other; medians of {rounds_of} rounds of {count}, in turn.")
    say()


# ---- rates ----

def processes(i):
    """Ticks of the processor, context switches and most memory of the daemons."""
    ticks = switches = peak = 0
    for pid in i.pids():
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += sum(map(int, words[11:15]))  # and of children that ended
            for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
                switches += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", (thread / "status").read_text())))
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            # A process that is ending has no memory any more.
            peak = max([peak, *map(int, re.findall(r"VmHWM:\s+(\d+)", status))])
    return ticks, switches, peak


@contextlib.contextmanager
def sink(agent):
    if agent != "smtp":
        yield 0
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    from instance import wait
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    server = subprocess.Popen([smtp_sink(), *user, f"127.0.0.1:{port}", "1000"], stdout=subprocess.DEVNULL)
    try:
        wait(lambda: server.poll() is not None or listens(port))
        if server.poll() is not None:
            raise SystemExit(f"smtp-sink ended with {server.returncode}")
        yield port
    finally:
        server.kill()
        server.wait()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def smtp_sink():
    return shutil.which("smtp-sink", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/lib/postfix/sbin")


def measure(agent):
    with sink(agent) as port:
        # The default: b7c8b97 leaves a few messages to the scan, on a disk.
        i = instance(AGENTS[agent][0].format(port=port), scan_interval="5s")
        try:
            i.start()
            before, began = processes(i), time.monotonic()
            sets = [submit(i, SUBMITTERS // 4, MESSAGES // 4, f"u{n}@test.example") for n in range(4)]
            said = [s.communicate()[0].split() for s in sets]
            accepted = time.monotonic() - began
            wait_through(i, MESSAGES)
            through = time.monotonic() - began
            after = processes(i)
            each = 1e6 / os.sysconf("SC_CLK_TCK") / MESSAGES
            return {"accepted": MESSAGES / accepted, "through": MESSAGES / through,
                    "cpu": (after[0] - before[0]) * each, "switches": (after[1] - before[1]) / MESSAGES,
                    "peak": after[2] / 1024,
                    "p99": max(float(words[1]) for words in said) if all(len(w) > 1 for w in said) else 0}
        finally:
            i.destroy()


FIGURES = (("accepted", "accepted/s", "{:.0f}"), ("through", "through/s", "{:.0f}"), ("cpu", "µs of processor", "{:.0f}"),
           ("switches", "switches", "{:.2f}"), ("peak", "peak memory, MiB", "{:.1f}"),
           ("p99", "acceptance, 99th percentile, ms", "{:.1f}"))


def measure_in(root, agent, directory):
    env = os.environ | {"BENCH_ROOT": str(root), "QSCHED_BIN": str(root / "build/bin"), "TMPDIR": str(directory)}
    done = subprocess.run([sys.executable, "-B", __file__, "--measure", agent], env=env, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"road: {root}: {agent}: {done.stderr.strip()[-800:]}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def place(name):
    """A directory of that kind; None where it cannot be had."""
    with contextlib.ExitStack() as stack:
        base = "/dev/shm" if name == "memory" else HERE / "build"
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=base)))
        if name in MOUNTS:
            directory = mount(stack, directory, MOUNTS[name])
        if directory is not None:
            directory.chmod(0o755)
        yield directory


def mount(stack, directory, option):
    image, point = directory / "image", directory / "mount"
    point.mkdir()
    with open(image, "wb") as f:
        f.truncate(4 << 30)
    directory.chmod(0o755)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
        subprocess.run(["mount", "-o", f"loop,{option}", image, point], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    stack.callback(subprocess.run, ["umount", point], check=True)
    return point


def bare_rate(directory):
    """Messages per second of the system calls that no acceptance can do without, while nothing is delivered."""
    with tempfile.TemporaryDirectory(dir=directory) as where:
        done = subprocess.run([submit_program(), "bare", where, str(SUBMITTERS), str(MESSAGES), "4096"], check=True,
                              capture_output=True, text=True)
    return float(done.stdout.split()[0])


def commit(root):
    done = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def rounds(roots, agent, directory):
    figures = {root: [] for root in roots}
    bare = []
    for n in range(ROUNDS):
        for root in roots if n % 2 == 0 else reversed(roots):
            figures[root].append(measure_in(root, agent, directory))
        bare.append(bare_rate(directory))
    return {root: {key: statistics.median(f[key] for f in all_of) for key, _, _ in FIGURES}
            for root, all_of in figures.items()}, statistics.median(bare)


def put_rates(say, words, roots, medians, bare):
    for root in roots:
        cells = " | ".join(form.format(medians[root][key]) for key, _, form in FIGURES)
        say(f"| {words}, {commit(root) if root != HERE else 'this'} | {cells} |")
    if len(roots) == 2:
        before, after = (medians[root] for root in roots)
        cells = " | ".join(f"{after[key] / before[key]:.2f}" if before[key] else "" for key, _, _ in FIGURES)
        say(f"| ratio | {cells} |")
    say(f"| {words.split(', to')[0]}, the bare loop of acceptance | {bare:.0f} |" + "  |" * (len(FIGURES) - 1))


def say_rates(say, roots):
    say("## The road: messages of 4 KiB from 20 submitters through two queues")
    say()
    say("| where, to what, which build | " + " | ".join(title for _, title, _ in FIGURES) + " |")
    say("|---|" + "---|" * len(FIGURES))
    missing = []
    for name in os.environ.get("WHERE", "memory,disk,ext4").split(","):
        with place(name) as directory:
            if directory is None:
                missing.append(f"{PLACES[name]}: no loop mount is to be had")
                continue
            for agent in os.environ.get("AGENTS", "discard,maildir,smtp").split(","):
                if agent == "smtp" and smtp_sink() is None:
                    missing.append("over SMTP: Postfix's smtp-sink is not installed")
                    continue
                put_rates(say, f"{PLACES[name]}, to {AGENTS[agent][1]}", roots, *rounds(roots, agent, directory))
    say()
    say(f"{MESSAGES} messages, medians of {ROUNDS} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end. "
        "Processor time and switches are of all daemons, a message; memory of the largest one. The bare loop is open, write, "
        "link, fsync and close by as many submitters, while nothing is delivered: nothing that syncs each message is faster.")
    for words in dict.fromkeys(missing):
        say(f"Not measured: {words}.")
    say()


def main():
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2])))
        return
    if COUNTED:
        os.environ["TMPDIR"] = tempfile.tempdir = "/dev/shm"
        say_counts(lambda text="": print(text, flush=True))
        say_commands(lambda text="": print(text, flush=True))
    roots = [HERE]
    if os.environ.get("BEFORE"):
        roots.insert(0, pathlib.Path(os.environ["BEFORE"]).resolve())
    if MESSAGES:
        say_rates(lambda text="": print(text, flush=True), roots)


if __name__ == "__main__":
    main()
