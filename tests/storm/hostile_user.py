#!/usr/bin/python3
"""One behaviour of a hostile local user, run as that user.

    hostile_user.py BEHAVIOUR

Reads what it has to know as JSON from its standard input (paths, its name,
the seed), goes on until that ends, and prints as JSON what it achieved."""
import collections
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import random
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile

libc = ctypes.CDLL(None, use_errno=True)
achieved = collections.Counter()
MESSAGE = b"Subject: from a hostile user\n\n" + b"x" * 2000 + b"\n"
LARGE = b"Subject: a large one\n\n" + (b"x" * 70 + b"\n") * 60_000  # 4 MB
SILENT_NAMES = 45


class Me:
    def __init__(self, known):
        self.__dict__.update(known)
        self.dice = random.Random(self.seed)
        self.environment = {"PATH": "/usr/bin:/bin", "QSCHED_CONF": self.conf}

    def over(self, seconds=0.0):
        """True when the harness closes our input."""
        ready, _, _ = select.select([0], [], [], seconds)
        return bool(ready)

    def program(self, name):
        return os.path.join(self.bin, name)

    def submit(self, content, *rcpts, face="sendmail", env=None, sender=None, **options):
        """The exit status of a submission, counted."""
        sender = sender or f"{self.name}@home.example"
        command = [self.program(face), *(["-i", "-f", sender, "--", *rcpts]
                                         if face == "sendmail" else [])]
        try:
            done = subprocess.run(command, input=content if isinstance(content, bytes) else None,
                                  stdin=None if isinstance(content, bytes) else content,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                                  timeout=60, env=self.environment | (env or {}), **options)
        except subprocess.TimeoutExpired:
            achieved["submissions ended after 60 s"] += 1
            return None
        except OSError as error:
            achieved[errno.errorcode[error.errno]] += 1
            return None
        achieved[f"submissions: exit {done.returncode}"] += 1
        return done.returncode


def first_octet(path):
    """Of a process that has ended the kernel gives everybody an empty file."""
    with open(path, "rb", buffering=0) as f:
        octet = f.read(1)
    if not octet:
        raise OSError(errno.ESRCH, path)
    return octet


def attempt(what, call, *args):
    """Something that must not succeed."""
    try:
        result = call(*args)
    except OSError:
        achieved["attempts refused"] += 1
        return None
    achieved[f"done: {what}"] += 1
    return result


def flood(me):
    """Submissions at full speed, to oneself, from several processes."""
    for _ in range(3):  # which end with the group
        if os.fork() == 0:
            os.close(1)
            while True:
                subprocess.run([me.program("sendmail"), "-i", "-f", f"{me.name}@home.example", "--",
                                f"{me.name}@home.example"], input=MESSAGE, check=False, env=me.environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not me.over():
        me.submit(MESSAGE, f"{me.name}@home.example")


def huge(me):
    """Messages that are sparse, grow, have no end, or are just very large."""
    while not me.over():
        kind = me.dice.randrange(4)
        with tempfile.TemporaryFile(dir=me.home) as f:
            f.write(b"Subject: huge\n\n")
            f.flush()
            if kind == 0:
                f.truncate(1 << 40)
            elif kind == 1:
                f.truncate(90 << 20)
            elif kind == 2:
                f.truncate(15 << 20)
            f.seek(0)
            if kind == 3:
                with open("/dev/zero", "rb") as zero:
                    me.submit(zero, f"{me.name}@home.example")
            else:
                me.submit(f, f"{me.name}@home.example")


def doors(me):
    """Many submitters that are never fed, some of them stopped or killed."""
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    while not me.over():
        while len(held) < 250:
            try:
                p = subprocess.Popen([me.program("sendmail"), "-i", f"{me.name}@home.example"], stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=me.environment)
                p.stdin.write(MESSAGE * me.dice.randrange(1, 40))
            except OSError:
                achieved["doors not started"] += 1
                break
            achieved["doors started"] += 1
            held.append(p)
            if me.dice.randrange(3) == 0:
                p.send_signal(signal.SIGSTOP)
                achieved["doors stopped"] += 1
        me.dice.shuffle(held)
        for p in held[:60]:
            how = me.dice.randrange(3)
            if how == 0:
                with contextlib.suppress(OSError):
                    p.stdin.close()
                p.send_signal(signal.SIGCONT)
            else:
                p.kill()
            with contextlib.suppress(OSError):
                p.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(2)
        held = [p for p in held[60:] if p.poll() is None]
        if me.over(0.2):
            break
    for p in held:
        p.kill()


def own_processes(me, name):
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{entry}").st_uid in (me.uid, 0):
                    with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                        if f"({name})" in f.read():
                            yield int(entry)


def bomb(me):
    """Messages to a hundred extensions of one's own; the processes that
    deliver them are stopped."""
    while not me.over(0.002):
        if me.dice.randrange(100) == 0:
            me.submit(MESSAGE, *[f"{me.name}+{me.dice.randrange(10**6)}@home.example" for _ in range(100)])
        for pid in own_processes(me, "deliver-local"):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
                achieved["deliveries stopped"] += 1


def hole(me):
    """Mail for hosts that take connections and say nothing."""
    while not me.over():
        for domain in ("mute.example", "hang.example", "slow.example"):
            me.submit(MESSAGE, *[f"x{me.dice.randrange(10**6)}@{domain}" for _ in range(30)])


def nexthop(me):
    """Recipients whose domain is an address, a port, a socket, a program."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    listener.setblocking(False)
    port = listener.getsockname()[1]
    path = f"{me.home}/socket"
    unix = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    unix.bind(path)
    unix.listen(100)
    unix.setblocking(False)
    domains = (f"127.0.0.1:{port}", f"[127.0.0.1]:{port}", f"localhost:{port}", f"unix:{path}", "keep", "[127.0.0.1]",
               f"[::1]:{port}", f"0:{port}", f"127.1:{port}", "pipe", "local", "-", "a" * 250, "..", "/etc/passwd")
    while not me.over(0.1):
        me.submit(MESSAGE, f"x@{me.dice.choice(domains)}")
        for server in (listener, unix):
            with contextlib.suppress(OSError):
                server.accept()[0].close()
                achieved["done: connections to a next hop of one's own"] += 1


def squat(me):
    """Names in shared memory, and message queues until there are no more."""
    limit = resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1]
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (limit, limit))
    while not me.over(0.5):
        for n in range(1, 30):
            with contextlib.suppress(OSError):
                os.close(os.open(f"/dev/shm/{me.instance}.queue{n}", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
                achieved["names taken in shared memory"] += 1
        for n in range(300):
            fd = libc.mq_open(f"/{me.instance}.queue{n}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
            if fd >= 0:
                achieved["message queues had"] += 1
            fd = libc.mq_open(f"/{me.name}.{n}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
            if fd < 0:
                achieved[f"message queues end with {errno.errorcode[ctypes.get_errno()]}"] += 1
                break
    for n in range(300):
        libc.mq_unlink(f"/{me.name}.{n}".encode())
        libc.mq_unlink(f"/{me.instance}.queue{n}".encode())


def spool(me):
    """Everything that can be tried with the paths of the spool."""
    number = 0
    while not me.over(0.05):
        number += 1
        queue = f"{me.base}/queue{me.dice.randrange(1, 7)}"
        for state in ("maildrop", "gate", "gate/maildrop", "incoming", "incoming/0", "active/0", "deferred/0", "hold", "corrupt", "lock", ".", ".."):
            where = f"{queue}/{state}"
            if state != "..":  # which all may list
                attempt(f"list {state}", os.listdir, where)
            name = f"{where}/{me.dice.randrange(10**7)}"
            fd = attempt(f"file in {state}", os.open, name, os.O_CREAT | os.O_WRONLY, 0o644)
            if fd is not None:
                near = os.fstat(fd).st_ino
                os.write(fd, b"garbage")
                os.close(fd)
                with contextlib.suppress(OSError):
                    os.rename(name, f"{where}/{near}")
                for n in range(near, near + 50):  # names that are to come
                    attempt(f"directory in {state}", os.mkdir, f"{where}/{n}")
            attempt(f"directory in {state}", os.mkdir, name + "d")
            attempt(f"link in {state}", os.symlink, "/etc/passwd", name + "l")
            attempt(f"link in {state}", os.link, me.conf, name + "h")
            attempt(f"rename of {state}", os.rename, where, f"{queue}/x{number}")
            attempt(f"chmod of {state}", os.chmod, where, 0o777)
        for path in (f"{me.base}/conf", f"{me.base}/queues", f"{me.base}/lock", me.conf, f"{queue}/queue"):
            attempt(f"write to {os.path.basename(path)}", os.open, path, os.O_WRONLY)
            with contextlib.suppress(OSError), open(path, "rb") as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                achieved["locks on files that may be read"] += 1


def proc(me):
    """Signals to daemons, their memory, descriptors and environment."""
    while not me.over(0.5):
        for name in ("qscheduler", "queue-send", "todo-proc", "deliver-smtp", "queue-drop", "queue-inject"):
            for pid in own_processes(me, name):
                with contextlib.suppress(OSError):
                    if f"\nUid:\t{me.uid}\t" in pathlib.Path(f"/proc/{pid}/status").read_text():
                        continue
                for number in (0, signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP, signal.SIGTERM):
                    attempt(f"signal to {name}", os.kill, pid, number)
                for file in ("mem", "environ", "maps", "auxv"):
                    attempt(f"read {file} of {name}", first_octet, f"/proc/{pid}/{file}")
                attempt(f"descriptors of {name}", os.listdir, f"/proc/{pid}/fd")
                if libc.ptrace(0x4206, pid, 0, 0) == 0:
                    achieved[f"done: trace of {name}"] += 1


def garbage(me):
    """Nonsense for each face and the door: octets, arguments, environment."""
    settings = ({"QUEUE_BASE": me.home}, {"QSCHED_CONF": "/etc/passwd"}, {"QSCHED_INSTANCE": "x" * 1000},
                {"LD_PRELOAD": f"{me.home}/no.so"}, {"TZ": f":{me.home}/zone"}, {"PATH": me.home, "QUEUE_BASE": ""})
    names = [n for n in ("sendmail", "qmail-queue", "queue-inject", "queue-drop") if os.path.exists(me.program(n))]
    while not me.over():
        name = me.dice.choice(names)
        words = [me.program(name), *("".join(chr(me.dice.randrange(1, 128)) for _ in range(me.dice.randrange(9)))
                                     for _ in range(me.dice.randrange(4)))]
        content = me.dice.randbytes(me.dice.randrange(3000))
        env = me.environment | (me.dice.choice(settings) if me.dice.randrange(3) == 0 else {})
        limits = {} if me.dice.randrange(3) else {"preexec_fn": me.dice.choice((
            lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
            lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6)),
            lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 23, 1 << 23)),
            lambda: os.close(1), lambda: os.umask(0)))}
        try:
            done = subprocess.run(words, input=content, capture_output=True, check=False, timeout=60, env=env, **limits)
            achieved[f"{name}: " + ("signal" if done.returncode < 0 else "0" if done.returncode == 0 else "refused")] += 1
        except (OSError, subprocess.SubprocessError) as error:
            achieved[f"{name}: {type(error).__name__}"] += 1


def others(me):
    """Others' mail, wherever it lies."""
    while not me.over(0.2):
        for home in me.honest:
            attempt("list of another's home", os.listdir, home)
            attempt("list of another's maildir", os.listdir, f"{home}/Maildir/new")
        for directory, names, files in os.walk(me.base):
            for name in names + files:
                path = os.path.join(directory, name)
                if name.isdigit() and os.path.isfile(path):
                    attempt("read of a queue file", lambda p: os.read(os.open(p, os.O_RDONLY), 1), path)
        for entry in os.listdir("/dev/shm"):
            with contextlib.suppress(OSError):
                if os.stat(f"/dev/shm/{entry}").st_uid != me.uid:
                    attempt("write to shared memory", os.open, f"/dev/shm/{entry}", os.O_RDWR)


def maildir(me):
    """One's own maildir is made of links, or is none."""
    target = f"{me.honest[0]}/Maildir"
    mine = f"{me.home}/Maildir"
    while not me.over(0.05):
        if me.hanging:
            me.submit(MESSAGE, f"{me.name}@home.example")
            continue
        subprocess.run(["rm", "-rf", mine], check=False)
        how = me.dice.randrange(5)
        with contextlib.suppress(OSError):
            if how == 0:
                os.symlink(target, mine)
            elif how == 1:
                os.mkfifo(mine)
            else:
                os.mkdir(mine)
                for part in ("tmp", "new", "cur"):
                    if me.dice.randrange(2):
                        os.symlink(me.dice.choice((f"{target}/new", "/etc", "/dev/full", mine)), f"{mine}/{part}")
                    else:
                        os.mkfifo(f"{mine}/{part}")
        me.submit(MESSAGE, *[f"{me.name}+{n}@home.example" for n in range(5)])
        achieved["maildirs made"] += 1


def expand(me):
    """Large messages to an alias of many members, none of whom can be reached."""
    while not me.over():
        me.submit(LARGE, "crowd@local.example")


def reports(me):
    """Mail that fails for good; the reports go to a maildir that refuses them."""
    maildir_of = pathlib.Path(me.home) / "Maildir"
    if not me.hanging:
        subprocess.run(["rm", "-rf", maildir_of], check=False)
        with contextlib.suppress(OSError):
            os.mkfifo(maildir_of)
    number = 0
    while not me.over():
        number += 1
        me.submit(MESSAGE, f"x{number}@fail.example", sender=f"{me.name}+{number}@local.example")


def mailbox(me):
    """Large messages to root, whose mail is appended to one file."""
    while not me.over():
        me.submit(LARGE, "root@local.example")


def memory(me):
    """All bytes and all inodes of /dev/shm, for as long as possible."""
    made = []
    while not me.over(0.001):
        for size in (4 << 20, 4096, 0):
            with contextlib.suppress(OSError):
                for _ in range(100):
                    made.append(pathlib.Path(f"/dev/shm/{me.name}.{os.getpid()}.{len(made)}"))
                    with open(made[-1], "wb", buffering=0) as f:
                        f.write(bytes(size))
    achieved["files in shared memory"] += len(made)
    for path in made:
        path.unlink(missing_ok=True)


def silent(me):
    """Mail to many names of one server that takes connections and never greets."""
    while not me.over():
        for n in range(SILENT_NAMES):
            me.submit(MESSAGE, f"x@silent{n}.example")


def unknown(me):
    """Five messages with recipients that the server of honest mail does not know."""
    for _ in range(5):
        me.submit(MESSAGE, *[f"unknown{me.dice.randrange(10**6)}@ok.example" for _ in range(50)])
    while not me.over(1):
        pass


BEHAVIOURS = {f.__name__: f for f in (flood, huge, doors, bomb, hole, nexthop, squat, spool, proc, garbage, others, maildir)}
# Behaviours that aim at what all users share. A siege has all behaviours, a storm the others.
AIMED = {f.__name__: f for f in (expand, reports, mailbox, memory, silent, unknown)}


def main():
    me = Me(json.loads(sys.stdin.readline()))
    (BEHAVIOURS | AIMED)[sys.argv[1]](me)
    print(json.dumps(achieved), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
