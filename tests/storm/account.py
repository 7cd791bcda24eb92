"""The end: what lies in the spool, and whether everything is accounted for."""
import collections
import contextlib
import os
import re
import struct

from ledger import ACCEPTED, FAILING, IDENTITY, NEVER, REFUSED, UNKNOWN
from namespace import HOSTILE

STATES = ("maildrop", "gate/maildrop", "prepared", "incoming", "active", "deferred", "hold", "corrupt", "defer", "bounce")
TRAILER = struct.Struct("<7Qq6I")  # docs/SPOOL.md, "Queue file, version 1"
TRAILER_SIZE = 128
CRASH = re.compile(r"died of signal (4|6|7|8|11|31)\b|assertion|AddressSanitizer|runtime error")
SLACK = 3.0  # seconds: clocks of files, and a mark that waits for its disk
PERCENTILES = ((50, "p50"), (99, "p99"), (100, "worst"))


def queue_file(data):
    """The recipients of a queue file: [(address, mark)], or None when it is none."""
    if len(data) < TRAILER_SIZE + 16 or data[:8] != b"QSMAIL\r\n" or data[-12:-4] != b"QSEND\r\n\0":
        return None
    fields = TRAILER.unpack_from(data, len(data) - TRAILER_SIZE)
    start, length = fields[5], fields[6]
    found, at = [], start
    while at + 4 <= start + length:
        kind, mark, size = struct.unpack_from("<BBH", data, at)
        if kind != ord("R"):
            break
        found.append((data[at + 4:at + 4 + size], chr(mark)))
        at += 4 + size
    return found


def read(path, limit=64 << 20):
    with contextlib.suppress(OSError):
        if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > limit:
            return b""
        with open(path, "rb") as f:
            return f.read()
    return b""


class Account:
    def __init__(self, world, ledger, acts, strange, log_causes):
        self.world, self.ledger, self.acts = world, ledger, acts
        # A line of the log about an end that was an act is not a cause of its own.
        self.causes = sorted(acts.causes + [c[:4] for c in log_causes if c[4] not in acts.killed])
        self.strange = strange
        self.leftovers = []
        self.lost, self.stuck, self.kept, self.failed_wrongly = [], [], [], []
        self.words = collections.Counter()

    # ---- the spool ----

    def look(self):
        """Each recipient that the spool still speaks of gets its fate there."""
        for queue in sorted(self.world.base.glob("queue*")):
            for state in STATES:
                for directory, _, names in os.walk(queue / state):
                    for name in names:
                        self.file(queue, state, os.path.join(directory, name))

    def file(self, queue, state, path):
        seen = os.lstat(path)
        if seen.st_uid in HOSTILE.values() or state in ("defer", "bounce"):
            return
        data = read(path)
        recipients = queue_file(data)
        if state == "corrupt":
            for found in {(int(m[1]), int(m[2])) for m in IDENTITY.finditer(data)}:
                self.spoken_of(*found, ("corrupt", path, False))
            return
        if recipients is None:
            if data and not data.startswith(b"foreign"):
                self.leftovers.append(path)
            return
        name = os.path.basename(path)
        kinds = {"F": "bounce", ".": "bounce" if state == "hold" else "defer"}
        reasons = {mark: self.reasons(queue, kind, name) for mark, kind in kinds.items()}
        for address, mark in recipients:
            found = IDENTITY.search(address)
            if found:
                self.spoken_of(int(found[1]), int(found[2]), (state, mark, reasons.get(mark, False)))

    def spoken_of(self, number, index, fate):
        if number < len(self.ledger.submissions):
            s = self.ledger.submissions[number]
            s.fate = s.fate or {}
            s.fate[index] = fate

    @staticmethod
    def reasons(queue, kind, name):
        with contextlib.suppress(OSError):
            for directory, _, names in os.walk(queue / kind):
                if name in names:
                    return os.path.getsize(os.path.join(directory, name)) > 0
        return False

    # ---- judgement ----

    def judge(self):
        for s in self.ledger.submissions:
            for index, had in enumerate(s.counts):
                if s.state == ACCEPTED:
                    self.accepted(s, index, had)
                elif s.state == REFUSED and (had or (s.fate and index in s.fate)):
                    self.kept.append(f"S{s.number}.{index} {s.face}")

        self.lost.sort(key=lambda what: "/corrupt/" in what)  # the worst first

    def accepted(self, s, index, had):
        domain, what = s.domain(index), f"S{s.number}.{index}@{s.domain(index)} {s.face}"
        state, mark, reasons = (s.fate or {}).get(index, (None, None, False))
        if had:
            self.words["delivered"] += 1
            if domain in FAILING | NEVER:
                self.failed_wrongly.append(f"{what} delivered")
        elif s.number in self.ledger.returned and domain in FAILING:
            self.words["returned"] += 1
        elif mark == "F" and reasons and (state == "hold" or self.waits_for_nobody(s)):
            self.words["refused for good"] += 1
            if domain not in FAILING:
                self.failed_wrongly.append(f"{what} failed for good")
        elif state == "hold" and mark == "." and reasons:
            self.words["in hold, in flight in three deaths"] += 1
        elif state in ("deferred", "incoming", "active") and domain in NEVER and mark == ".":
            self.words["deferred, nobody is there"] += 1
        elif state in (None, "corrupt"):
            self.lost.append(f"{what} in {mark}" if state else what)
        elif mark == "D":
            self.lost.append(f"{what} marked as delivered in {state}")
        else:
            self.stuck.append(f"{what} in {state}, mark {mark}, {'with' if reasons else 'no'} reason")

    @staticmethod
    def waits_for_nobody(s):
        return any(s.domain(n) in NEVER for n in range(len(s.counts)))

    def repeats(self):
        """Repeated deliveries by cause, and those that have none. A cause of a
        repetition lies between the two deliveries; the first one counts."""
        by_cause, unexplained, over = collections.Counter(), [], []
        used = collections.Counter()
        for number, index, *times, where in self.ledger.repeats:
            first, again = sorted(times)  # found in whatever order
            what = f"S{number}.{index} at {first:.1f} and {again:.1f} {where}"
            if "dropped" in where or self.dropped(number, index):
                by_cause["a server that dropped the reply"] += 1
                continue
            place = where if where in ("local", "prog") else "smtp"
            near = [(n, c) for n, c in enumerate(self.causes)
                    if first - SLACK <= c[0] <= again + SLACK and place in c[3]]
            room = [(n, c) for n, c in near if used[n] < c[2]]
            if not near:
                unexplained.append(what)
            elif not room:
                over.append(what)
            else:
                n, cause = min(room, key=lambda item: abs(item[1][0] - first))
                used[n] += 1
                by_cause[f"{cause[1]} ({where})"] += 1
        return by_cause, unexplained, over

    def dropped(self, number, index):
        """The domain of servers that may keep a message and not say so."""
        return self.ledger.submissions[number].domain(index) in ("drop", "hang")


def percentiles(values):
    values = sorted(values)
    return {word: values[min(len(values) - 1, len(values) * p // 100)] for p, word in PERCENTILES} if values else {}


def honest_delays(ledger):
    """Acceptance and delivery of the honest users' mail, in seconds."""
    took, delay = [], []
    for number in ledger.honest:
        s = ledger.submissions[number]
        if s.state == ACCEPTED:
            took.append(s.took)
            if s.counts[0]:
                delay.append(max(0.0, s.first[0] - s.ended))
    return took, delay


def states(ledger):
    names = {ACCEPTED: "accepted", REFUSED: "refused for now", UNKNOWN: "killed"}
    count = collections.Counter()
    for s in ledger.submissions:
        count[names.get(s.state, "not ended")] += 1
        if s.state == ACCEPTED:
            count["recipients"] += len(s.counts)
    return count

