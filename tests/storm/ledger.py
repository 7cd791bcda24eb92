"""Accepted messages, and the result of each of their recipients.

The identity of a delivery is in the address, USER+S<submission>.<index>@DOMAIN,
so that also a message without content has one. Memory: some hundred bytes for
a submission, and seven for a recipient."""
import array
import hashlib
import re
import threading
import time

IDENTITY = re.compile(rb"\+S(\d+)\.(\d+)@")
HEADER = re.compile(rb"^X-Storm: (\d+) (\d+) ([0-9a-f]{32})\r?$", re.M)

RUNNING, ACCEPTED, REFUSED, UNKNOWN = range(4)
DOMAINS = ("local", "prog", "ok", "slow", "temp", "mute", "hang", "drop", "dead",
           "perm", "fail", "error")
FAILING = frozenset(("perm", "fail", "error"))  # refused for good, always
NEVER = frozenset(("dead",))  # nobody is there, also in the end


class Submission:
    __slots__ = ("number", "domains", "counts", "first", "state", "took", "ended", "face", "fate",
                 "digest")

    def __init__(self, number, domains, face):
        self.number = number
        self.domains = bytes(DOMAINS.index(d) for d in domains)
        self.counts = bytearray(len(domains))
        self.first = array.array("f", bytes(4 * len(domains)))
        self.state = RUNNING
        self.took = self.ended = 0.0
        self.face = face
        self.digest = None  # of its body
        self.fate = None  # set at the end: index -> word

    def domain(self, index):
        return DOMAINS[self.domains[index]]


class Ledger:
    """All times are seconds since the storm began, by the wall clock: files
    and servers have no other."""

    def __init__(self):
        self.lock = threading.Lock()
        self.began = time.time()
        self.submissions = []
        self.refusals = {}
        self.repeats = []  # (submission, index, first, again, where)
        self.honest = []  # delays of the honest user's mail
        self.honest_took = []
        self.wrong = []  # content that is not what was sent
        self.unknown = []  # identities that nobody submitted
        self.returned = set()
        self.deliveries = 0
        self.last_delivery = 0.0

    def now(self):
        return time.time() - self.began

    def open(self, domains, face):
        with self.lock:
            made = Submission(len(self.submissions), domains, face)
            self.submissions.append(made)
        return made

    def close(self, submission, status, took, why, temporary):
        """A submitter has ended. Killed, the message may be there or not."""
        with self.lock:
            submission.took = took
            submission.ended = self.now()
            if status == 0:
                submission.state = ACCEPTED
            else:
                submission.state = UNKNOWN if status < 0 else REFUSED
                key = (submission.face, status, temporary, why)
                if key in self.refusals or len(self.refusals) < 500:
                    self.refusals[key] = self.refusals.get(key, 0) + 1

    def delivered(self, number, index, when, where, fine=True):
        """One recipient has one copy; when is a time of the wall clock."""
        with self.lock:
            self.deliveries += 1
            self.last_delivery = self.now()
            if number >= len(self.submissions) or index >= len(self.submissions[number].counts):
                self.unknown.append(f"S{number}.{index} {where}")
                return
            s = self.submissions[number]
            at = when - self.began
            if not fine:
                self.wrong.append(f"S{number}.{index} {where}")
            if s.counts[index]:
                self.repeats.append((number, index, s.first[index], at, where))
            else:
                s.first[index] = at
            s.counts[index] = min(255, s.counts[index] + 1)

    def is_bare(self, number):
        """Nothing was in it that could be compared."""
        return number < len(self.submissions) and self.submissions[number].digest is None

    def digest_is(self, number, digest):
        if number >= len(self.submissions):
            return False
        return self.submissions[number].digest in (None, bytes.fromhex(digest.decode()))

    def pending(self):
        """Recipients of accepted mail that are to be delivered, and were not."""
        count = 0
        with self.lock:
            for s in self.submissions:
                if s.state != ACCEPTED:
                    continue
                for index, had in enumerate(s.counts):
                    if not had and (s.fate is None or index not in s.fate):
                        count += DOMAINS[s.domains[index]] not in FAILING | NEVER
        return count


def body_digest(body):
    return hashlib.md5(body.replace(b"\r\n", b"\n")).hexdigest()


def judge(message):
    """Whether the content is what was sent: (identity or None, fine)."""
    head, _, body = message.replace(b"\r\n", b"\n").partition(b"\n\n")
    found = HEADER.search(head)
    if found is None:  # an empty one: what is there was added to it
        return None, True
    return int(found[1]), len(body) == int(found[2]) and body_digest(body).encode() == found[3]
