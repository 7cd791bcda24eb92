"""A storm from its beginning to the account of it."""
import collections
import json
import os
import pathlib
import random
import re
import threading
import time

import account
import plan
from acts import IN_FLIGHT, REPEATS, Acts
from hostile import Hostile
from instance import AS_ROOT, Failed, wait
from ledger import ACCEPTED, FAILING, NEVER, Ledger
from namespace import HOSTILE, MEMBER, SYSTEM_USERS, homes_made, users_known
from submit import ORDINARY, Honest, Submitter
from world import QUEUES, Collector, Servers, World

IDLE = 60  # seconds without any delivery, after which what waits is stuck
DRAIN = 600
KNOWN = re.compile(r"lock|children|ask|queues|queues\.lock|conf|routing|programs|users|aliases|mailbox|rules|by-hand(\.aside-\d+)?|queue\d+|new\.queue\d+|ballast.*")
# Lines of the log about ends that the storm did not cause itself.
ENDS = re.compile(r"(queue-send|deliver-local|deliver-smtp)/\d+ \(pid (\d+)\) "
                  r"(died of|ended with|closed its channel|hangs|does not answer|was asked to stop and|is out of time)")


class Log:
    """The output of the instance, each line with its time, in a file; what it says
    of processes that ended is noted."""

    def __init__(self, path, ledger):
        self.ledger = ledger
        self.causes, self.crashes = [], []
        self.lines = 0
        reader, self.writer = os.pipe()
        self._thread = threading.Thread(target=self._read, args=(reader, path), daemon=True)
        self._thread.start()

    def _read(self, reader, path):
        with os.fdopen(reader, "rb") as lines, open(path, "wb") as log:
            for line in lines:
                at = self.ledger.now()
                log.write(b"%.3f " % at + line)
                text = line.decode(errors="replace")
                self.lines += 1
                if account.CRASH.search(text) and len(self.crashes) < 100:
                    self.crashes.append(f"{at:.2f} {text.strip()}")
                found = ENDS.search(text)
                if found and len(self.causes) < 100_000:
                    self.causes.append((at, f"{found[1]} {found[3]}", IN_FLIGHT[found[1]], REPEATS[found[1]],
                                        int(found[2])))

    def stop(self):
        os.close(self.writer)
        self._thread.join(10)


class Storm:
    def __init__(self, place, scratch, out, given):
        self.place, self.scratch, self.out, self.given = place, scratch, out, given
        self.seed, self.seconds = given.seed, given.seconds
        self.ledger = Ledger()
        self.events = open(out / "events", "w", encoding="utf-8", buffering=1)
        self.count = collections.Counter()
        self.problems = []
        self.notes = []
        self.lock = threading.Lock()

    # ---- the beginning ----

    def build(self):
        shared = self.place == "shared"
        if shared:
            users_known(self.scratch, self.scratch / "home")
            homes_made(self.scratch / "home")
        self.servers = Servers(self.ledger, self.seed, [self.given.fault] if self.given.fault else [])
        base = self.scratch / "queue"
        self.world = World(self.ledger, self.scratch, self.servers, base if base.is_dir() else None)
        if shared:
            self.world.mount_more()
        self.log = Log(self.out / "log", self.ledger)
        self.world.log_to = self.log.writer
        everybody = [None, None, SYSTEM_USERS["qmailq"], MEMBER[1], *ORDINARY] if shared else [None]
        self.submitters = [Submitter(self.world, self.ledger, self.seed, f"{self.place} {n}", everybody)
                           for n in range(4)]
        self.honest = Honest(self.world, self.ledger, self.seed, f"{self.place} honest",
                             [ORDINARY[0]] if shared else [None])
        for submitter in self.submitters:
            submitter.pause = 0.4
        self.honest.pause = 0.5
        hostile = Hostile(self.world, self.scratch / "home", self.seed) if shared else None
        self.acts = Acts(self.world, self.ledger, self.submitters, hostile)
        self.collector = Collector(self.world, self.ledger)

    def ready(self):
        return all(os.path.exists(f"/dev/shm{n}") for n in self.world.ipc_names())

    # ---- the storm ----

    def one(self, at, name, args):
        began = self.ledger.now()
        outcome = self.acts.act(name, args)
        with self.lock:
            if not name.endswith("-over"):
                self.count[name] += 1
            self.events.write(json.dumps({"planned": at, "at": round(began, 3), "event": name, "args": args,
                                          "outcome": str(outcome),
                                          "took": round(self.ledger.now() - began, 3)}) + "\n")

    def blow(self):
        """Each event in a thread of its own, for one may wait for a disk."""
        without = [w for w in self.given.without.split(",") if w]
        events = plan.make(self.seed, self.seconds, self.place, without=without)
        with open(self.out / "plan", "w", encoding="utf-8") as f:
            f.writelines(json.dumps(e) + "\n" for e in events)
        began = time.monotonic()
        lose = self.seconds / 2 if self.given.fault == "lose" else None
        running = []
        for at, name, args in events:
            if lose is not None and at > lose:
                lose = None
                running.append(self.aside(self.lose))
            time.sleep(max(0.0, began + at - time.monotonic()))
            running.append(self.aside(self.one, at, name, args))
            running = [t for t in running if t.is_alive()]
        time.sleep(max(0.0, began + self.seconds - time.monotonic()))
        return running

    @staticmethod
    def aside(call, *args):
        thread = threading.Thread(target=call, args=args, daemon=True)
        thread.start()
        return thread

    def lose(self):
        """The fault that a storm must find: one accepted message is gone."""
        dice = random.Random(self.seed)

        def one():
            files = self.world.files("deferred")  # nobody has it open
            dice.shuffle(files)
            for path in files:
                recipients = account.queue_file(account.read(path))
                if recipients and any(mark == "." for _, mark in recipients):
                    path.unlink()
                    self.notes.append(f"taken away on purpose: {path}")
                    return True
            return False
        wait(one, 60, "a message to take away")

    # ---- the end ----

    def drain(self):
        """Everything is put right; what waits is delivered, or it is stuck."""
        for submitter in [*self.submitters, self.honest]:
            submitter.stop()
        self.acts.calm()
        for submitter in [*self.submitters, self.honest]:
            if not submitter.join(60):
                self.problems.append("a submitter did not end within 60 s")
                submitter.kill()
        for n in range(1, 10):
            self.world.setqload("--enable", "-q", str(n))
        self.world.setqload("--clear")
        began = moved = time.monotonic()
        deliveries, hopeless = -1, 0
        waiting = [s for s in self.ledger.submissions if s.state == ACCEPTED]
        while True:
            waiting = [s for s in waiting if self.waits(s)]
            now = time.monotonic()
            if self.ledger.deliveries != deliveries:
                deliveries, moved = self.ledger.deliveries, now
            hopeless = hopeless + 1 if now - moved > 3 and self.hopeless(waiting) else 0
            if not waiting or hopeless > 2:  # it may have moved behind the first look
                break
            if now - moved > IDLE or now - began > DRAIN:
                self.notes.append(f"{len(waiting)} messages still wait after {now - began:.0f} s")
                break
            self.acts.act("flush", {})
            time.sleep(1.0)  # between two looks
        while self.goes_on() and time.monotonic() - moved < IDLE and time.monotonic() - began < DRAIN:
            time.sleep(0.1)  # between two looks
        self.notes.append(f"drained in {time.monotonic() - began:.1f} s")

    def goes_on(self):
        """Reports of what failed are on their way after the last delivery. A file that the storm put there is no
        message; one in a queue that is closed is looked at each minute."""
        return any(account.queue_file(account.read(p)) for p in self.world.files("prepared", "incoming", "active"))

    @staticmethod
    def waits(submission):
        return any(not had and submission.domain(n) not in FAILING | NEVER
                   for n, had in enumerate(submission.counts))

    def hopeless(self, waiting):
        """Nothing that waits is where it could be delivered from: it is in hold/,
        having been in flight in three deaths, or it is lost."""
        there = set()
        for path in self.world.files("maildrop", "gate/maildrop", "incoming", "active", "deferred"):
            for address, _ in account.queue_file(account.read(path)) or []:
                found = account.IDENTITY.search(address)
                if found:
                    there.add(int(found[1]))
        return not any(s.number in there for s in waiting)

    def quiet(self):
        """As many queues as at the start, and then none."""
        wait(lambda: self.world.setqload("--count", str(QUEUES)) == 0, 30, "an answer to setqload")
        names = {f"{self.world.name}.queue{n}" for n in range(1, QUEUES + 1)}
        try:
            wait(lambda: {n for n in os.listdir("/dev/shm") if n.startswith(f"{self.world.name}.queue")
                          and not self.of_hostile(f"/dev/shm/{n}")} == names, 60, "as many queues as at the start")
        except Failed as error:
            self.problems.append(str(error))
        status = self.world.end(60)
        if status != 0:
            self.problems.append(f"the last stop: {'not within 60 s' if status is None else f'exit {status}'}")
        self.world.give_up()

    def strays(self):
        """Processes, objects and files that should have gone."""
        found = [f"process {pid}: {command}" for pid, command in self.processes()]
        try:
            wait(lambda: not self.processes(), 10, "")
            found = []
        except Failed:
            pass
        found += [f"shared memory {n}" for n in os.listdir("/dev/shm")
                  if (AS_ROOT or n.startswith(self.world.name)) and not self.of_hostile(f"/dev/shm/{n}")]
        found += [o for o in self.world.ipc_objects() if not o.startswith("shm ")]
        found += [f"temporary file {p}" for p in self.world.base.iterdir() if not KNOWN.fullmatch(p.name)]
        found += [f"temporary file {p}" for p in self.world.files("incoming") if p.name.startswith("tmp.")]
        found += [f"unsettled {p}" for p in self.world.files("prepared")]
        found += [f"temporary file {p}" for p in self.world.mail.glob("*/tmp/*")]
        return found

    @staticmethod
    def of_hostile(path):
        try:
            return os.stat(path).st_uid in HOSTILE.values()
        except FileNotFoundError:
            return True

    def processes(self):
        mine = {os.getpid(), self.servers.process.pid}
        if self.world.disk is not None:
            mine.add(self.world.disk.server.pid)
        if not (self.scratch / "mqueue").exists():  # no namespace of its own
            return [(p, "") for p in self.world.pids()]
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) not in mine | {1}:
                try:
                    command = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                    state = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                except (OSError, IndexError):
                    continue
                if command and state[0] != "Z":
                    found.append((int(entry), f"{state[0]} {command[:80]}"))
        return found

    def run(self):
        try:
            self.build()
            self.world.keep_running()
            wait(self.ready, 60, "the start")
            for submitter in [*self.submitters, self.honest]:
                submitter.start()
            self.blow()
            self.drain()
            self.quiet()
            self.collector.stop()
            self.servers.stop()
            return self.report()
        finally:
            self.events.close()
            self.world.give_up()
            if self.world.disk is not None:
                self.world.disk.close()
            if not AS_ROOT:
                self.world.destroy()

    # ---- the account ----

    def report(self):
        strays = self.strays()
        self.log.stop()
        a = account.Account(self.world, self.ledger, self.acts, self.collector.strange, self.log.causes)
        a.look()
        a.judge()
        by_cause, unexplained, over = a.repeats()
        permanent = {k: n for k, n in self.ledger.refusals.items() if not k[2] and k[1] > 0}
        bad = [("lost", a.lost), ("stuck", a.stuck), ("wrong content", self.ledger.wrong),
               ("delivered, and nobody had sent it", self.ledger.unknown + a.strange),
               ("kept although refused", a.kept), ("outcome that cannot be", a.failed_wrongly),
               ("refused for good", [f"{n} times: {k[0]} exits {k[1]}: {k[3]}" for k, n in permanent.items()]),
               ("repeated without a cause", unexplained), ("repeated more than was in flight", over),
               ("left behind", strays), ("of no message of ours in the spool", a.leftovers),
               ("crashes", self.log.crashes), ("ends of the supervisor by itself", self.world.deaths),
               ("done by a hostile user", self.acts.hostile.forbidden() if self.acts.hostile else []),
               ("other", self.problems + self.acts.failed)]
        self.print(a, by_cause)
        failed = 0
        for word, items in bad:
            if items:
                failed = 1
                print(f"{self.place}: FAILED {word}: {len(items)}")
                for item in items[:10]:
                    print(f"{self.place}:     {item}")
        return failed

    def print(self, a, by_cause):
        def row(word, value):
            print(f"{self.place}: {word:40} {value}")
        states = account.states(self.ledger)
        for word in ("accepted", "recipients", "refused for now", "killed", "not ended"):
            row(f"submissions: {word}" if word != "recipients" else "recipients of accepted mail", states[word])
        for word, n in sorted(a.words.items()):
            row(f"recipients: {word}", n)
        row("lost", len(a.lost))
        row("deliveries", self.ledger.deliveries)
        for word, n in by_cause.most_common():
            row(f"repeated: {word}", n)
        took, delay = account.honest_delays(self.ledger)
        for word, values in (("acceptance", took), ("delivery", delay)):
            figures = ", ".join(f"{w} {v:.2f} s" for w, v in account.percentiles(values).items())
            row(f"honest mail, {word} ({len(values)})", figures)
        row("starts of the supervisor", self.world.starts)
        row("events", ", ".join(f"{n} {w}" for w, n in sorted(self.count.items())))
        reasons = collections.Counter()
        for (face, status, _, why), n in self.ledger.refusals.items():
            reasons[f"{face} {status}: {re.sub(r'[0-9]+', 'N', why)[-90:]}"] += n
        for why, n in reasons.most_common(12):
            row("  not accepted", f"{n} × {why}")
        for name, what in self.acts.hostile.rows() if self.acts.hostile else ():
            row(f"  hostile: {name}", what)
        for note in self.notes:
            row("note", note)
