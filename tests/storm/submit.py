"""Submitters: what they send is decided by the seed, through each face, as
each kind of user, of any size and for any number of recipients."""
import contextlib
import itertools
import os
import random
import signal
import subprocess
import threading
import time

from ledger import body_digest

# Exit statuses that say "try again": the message was not accepted, and will be.
TEMPORARY = {"inject": {75}, "sendmail": {75}, "sendmail-t": {75}, "qmail-queue": {51, 52, 53, 54, 61, 63, 71, 81}}
USERS = 10
ORDINARY = range(60101, 60107)  # uids without an entry in the user database
BLOCK = 1 << 16


def text_block(dice):
    """Lines of every kind that SMTP passes byte for byte; some begin with a dot."""
    lines = []
    size = 0
    while size < BLOCK:
        line = "." * dice.choice((0, 0, 0, 0, 0, 1, 2)) + format(dice.getrandbits(4 * 60), "060x")[:dice.randrange(60)]
        lines.append(line.encode() + b"\n")
        size += len(lines[-1])
    return b"".join(lines)[:BLOCK - 1] + b"\n"


def body(block, number, size):
    """size octets that are this submission's only, with a line end behind."""
    if size == 0:
        return b""
    start = number * 977 % BLOCK
    text = (b"%d\n" % number) + block[start:] + block * (size // BLOCK + 1)
    return text[:size - 1] + b"\n"


class Mail:
    """One message to be: who sends it, to whom, of which size."""

    def __init__(self, dice, users, largest, crowd):
        self.uid = dice.choice(users)
        self.face = dice.choice(("inject", "inject", "sendmail", "sendmail-t", "qmail-queue"))
        self.size = int(dice.choice((0, 1, 300, 2000, 4000, 4000, 16000, 100_000, largest))
                        * dice.uniform(0.5, 1.0))
        # A large one now and then: most mail is small.
        if self.size > 50_000 and dice.randrange(4):
            self.size = 1000
        count = dice.choice((1, 1, 1, 1, 1, 2, 3, 7, 20, 60, crowd))
        if count > 30 and dice.randrange(4):
            count = 1
        if self.face != "qmail-queue" and dice.randrange(30) == 0:
            self.size = -1  # without any content at all
        places = ("local",) * 8 + ("prog", "ok", "ok", "ok", "slow", "temp", "mute", "hang", "drop",
                                   "dead", "perm", "fail", "error")
        if count > 7:  # thousands to a program would take the whole storm
            places = ("local", "ok", "temp", "drop")
        self.domains = [dice.choice(places) for _ in range(count)]


class Submitter:
    def __init__(self, world, ledger, seed, name, users, largest=2 << 20, crowd=1500):
        self.world, self.ledger = world, ledger
        self.dice = random.Random(f"{seed} {name}")
        self.users, self.largest, self.crowd = users, largest, crowd
        self.block = text_block(random.Random(f"{seed}"))
        self.pause = 0.1
        self.recipients = [f"u{n}" for n in range(USERS)]
        self.running = None
        self.doomed = None  # seconds after which the next one is killed
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._end.set()

    def join(self, limit):
        self._thread.join(limit)
        return not self._thread.is_alive()

    def kill(self, after=None):
        """The one that runs, or the next one some time after its start."""
        process = self.running
        if after is not None:
            self.doomed = after
        elif process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def started(self, process):
        self.running = process
        if self.doomed is not None:
            threading.Timer(self.doomed, process.kill).start()
            self.doomed = None

    def _run(self):
        while not self._end.is_set():
            self.send(Mail(self.dice, self.users, self.largest, self.crowd))
            self._end.wait(self.dice.expovariate(1 / self.pause))  # the rate of this one

    def content(self, submission, mail):
        if mail.size < 0:
            return b""
        text = body(self.block, submission.number, mail.size)
        digest = body_digest(text)
        submission.digest = bytes.fromhex(digest)
        head = f"Subject: S{submission.number}\nX-Storm: {submission.number} {len(text)} {digest}\n"
        return head.encode() + b"\n" + text

    def send(self, mail):
        submission = self.ledger.open(mail.domains, mail.face)
        number = submission.number
        rcpts = [f"{self.recipients[(number + n) % len(self.recipients)]}+S{number}.{n}@{d}.example"
                 for n, d in enumerate(mail.domains)]
        sender = f"ret+R{number}@local.example"
        status, why, took = submit(self.world, mail.face, mail.uid, self.content(submission, mail),
                                   sender, rcpts, self)
        self.ledger.close(submission, status, took, why, status in TEMPORARY[mail.face])
        return submission


class Honest(Submitter):
    """Small mail to each of some places in turn. The delay of the mail is measured."""
    places = ("local",)

    def _run(self):
        mail = Mail(self.dice, self.users, 0, 1)
        mail.size = 1000
        for place in itertools.cycle(self.places):
            if self._end.is_set():
                return
            mail.domains = [place]
            mail.face = self.dice.choice(("sendmail", "inject"))
            mail.uid = self.dice.choice(self.users)
            submission = self.send(mail)
            with self.ledger.lock:
                self.ledger.honest.append(submission.number)
            self._end.wait(self.pause)


def command(world, face, sender, rcpts):
    if face == "inject":
        return [world.program("queue-inject"), "-c", world.conf_file, "-i", "-f", sender, "--", *rcpts]
    if face == "qmail-queue":
        return [world.program("qmail-queue")]
    extra = ["-t"] if face == "sendmail-t" else []
    return [world.program("sendmail"), "-i", *extra, "-f", sender, "--", *([] if extra else rcpts)]


def envelope(sender, rcpts):
    return b"F" + sender.encode() + b"\0" + b"".join(b"T" + r.encode() + b"\0" for r in rcpts) + b"\0"


def fed(text):
    """A descriptor that gives this text, then its end, whoever reads how slowly."""
    fd = os.memfd_create("envelope")
    os.write(fd, text)
    os.lseek(fd, 0, 0)
    return fd


def submit(world, face, uid, content, sender, rcpts, watcher=None):
    """(exit status, what it said, seconds)."""
    if face == "sendmail-t":
        content = ("To: " + ",\n ".join(rcpts) + "\n").encode() + (content or b"\n")
    who = {} if uid is None else {"user": uid, "group": world.group_of(uid), "extra_groups": world.groups_of(uid)}
    out = fed(envelope(sender, rcpts)) if face == "qmail-queue" else subprocess.DEVNULL
    began = time.monotonic()
    try:
        process = subprocess.Popen(command(world, face, sender, rcpts), stdin=subprocess.PIPE, stdout=out,
                                   stderr=subprocess.PIPE, env=world.environment(), **who)
    finally:
        if out != subprocess.DEVNULL:
            os.close(out)
    if watcher is not None:
        watcher.started(process)
    _, said = process.communicate(content)
    if watcher is not None:
        watcher.running = None
    why = said.decode(errors="replace").strip()[-120:]
    if process.returncode == -signal.SIGKILL:
        why = "killed"
    return process.returncode, why, time.monotonic() - began
