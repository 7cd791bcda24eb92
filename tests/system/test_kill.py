"""P1, P2: kill -9 of everything, at any time, and no accepted mail is lost."""
import contextlib
import fcntl
import os
import pathlib
import random
import re
import signal

from case import SystemTest, cost
from instance import wait
from load import Load

KILLS = 200
IN_FLIGHT = 2  # deliveries at once in one queue: the most that one kill repeats
PROGRAMS = ("queue-send", "todo-proc", "deliver-local", "deliver-smtp", "queue-inject")


def waits_for_a_lock(pid):
    """As the kernel lists it: `3: -> FLOCK ADVISORY WRITE PID …`."""
    with open("/proc/locks", encoding="ascii") as locks:
        return any(re.search(rf"-> FLOCK +ADVISORY +WRITE {pid} ", line) for line in locks)


class Kill(SystemTest):
    def test_sound_without_kills(self):
        """The negative control of the count: no kill, no duplicate."""
        i = self.running()
        load = Load(i)
        wait(lambda: len(load.accepted) >= 50, what="50 accepted messages")
        load.stop()
        i.wait_empty()
        self.assertEqual(load.delivered(), {s: 1 for s in load.accepted})
        i.stop()
        self.assertEqual(i.files(), [])

    @cost(300)
    def test_P1_kill_at_random_200_times_under_load(self):
        i = self.instance(conf={"restart_delay_max": "1s", "quarantine_delay_max": "1s", "local_process_limit": IN_FLIGHT})
        i.start()
        dice = random.Random(20240229)
        load = Load(i)
        self.addCleanup(load.stop)
        duplicates_allowed = 0
        for _ in range(KILLS):
            program = dice.choice(PROGRAMS)
            before = len(load.accepted)
            if program == "queue-inject":
                load.kill_one(dice)
            else:
                pid = dice.choice(wait(lambda p=program: i.daemons(p), what=f"a running {program}"))
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                if program in ("queue-send", "deliver-local"):
                    duplicates_allowed += IN_FLIGHT
            wait(lambda n=before + dice.randrange(4): len(load.accepted) > n, what="submission goes on")
        load.stop()
        i.wait_empty()
        self.assertIsNone(i.process.poll(), "the supervisor outlives its children")
        i.stop()
        delivered = load.delivered()
        lost = [s for s in load.accepted if s not in delivered]
        self.assertEqual(lost, [])
        killed = [s for s, status, _ in load.refused if status == -signal.SIGKILL]
        refused = [r for r in load.refused if r[1] != -signal.SIGKILL]
        self.assertEqual(refused, [], "no submission is refused for a kill elsewhere")
        unknown = set(delivered) - set(load.accepted) - set(killed)
        self.assertEqual(unknown, set(), "nothing is delivered that was not submitted")
        self.assertLessEqual(sum(n - 1 for n in delivered.values()), duplicates_allowed)
        self.assertEqual(i.files(), [], "nothing is left in the queues")
        self.assertEqual([p for p in i.mail.glob("*/tmp/*")], [], "nothing is left in the maildirs")

    @cost(60)
    def test_P2_kill_of_the_supervisor_and_the_next_takes_over(self):
        i = self.instance(conf={"local_process_limit": IN_FLIGHT}).start()
        load = Load(i)
        self.addCleanup(load.stop)
        kills = 8
        for _ in range(kills):
            before = len(load.accepted)
            wait(lambda n=before + 5: len(load.accepted) > n, what="submission goes on")
            i.kill()
            i.start()  # the children of the dead one still run: it waits for their locks
        load.stop()
        i.wait_empty()
        i.stop()
        delivered = load.delivered()
        self.assertEqual([s for s in load.accepted if s not in delivered], [])
        self.assertEqual(load.refused, [], "mail is taken in while no supervisor runs")
        self.assertEqual(sum(n - 1 for n in delivered.values()), 0,
                         "orphans end their deliveries in order")
        self.assertEqual(i.files(), [])

    def test_P2_never_two_queue_sends_of_one_queue(self):
        """Somebody has the lock of the queue, as a queue-send does whose
        supervisor died and which has not ended yet."""
        i = self.running(queues=1)
        i.stop()
        with open(i.queue(1) / "lock/queue-send", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            i.start(ready=False)
            [pid] = wait(lambda: i.pids("queue-send"), what="a queue-send")
            wait(lambda: waits_for_a_lock(pid), what="it waits for the lock")
            i.inject(b"Subject: one\n\n", "alice@test.example")
            self.assertEqual(i.maildir("alice"), [])
        i.wait_delivered("alice", 1)
        i.stop()

    @staticmethod
    def children_in(pid, state):
        """Children of this process that are in this state."""
        found = []
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                if fields[:2] == [state, str(pid)]:
                    found.append(int(entry))
        return found

    @staticmethod
    def name_of(pid):
        with contextlib.suppress(OSError):  # one that has just ended
            return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        return ""

    def test_P8_children_that_are_not_its_own_do_not_disturb_it(self):
        """The supervisor inherits three from its starter, which end while it runs.
        mutation: children_reap() does not wait for who is none of ours."""
        i = self.instance(queues=1, conf={"log_level": "debug"})
        script = 'for n in 1 2 3; do (read x <"$0") & done; exec "$@"'
        fifo = i.dir / "fifo"
        os.mkfifo(fifo)
        i.start(prefix=("/bin/sh", "-c", script, fifo))
        # Looks at disks are processes of its own that come and go: the three have another name.
        three = wait(lambda: len(found := [pid for pid in self.children_in(i.process.pid, "S")
                                           if self.name_of(pid) == "sh"]) == 3 and found, what="three that wait")
        with open(fifo, "w", encoding="ascii"):
            pass  # all three come to the end of it
        wait(lambda: all(f"process {pid} ended, which is none of ours" in i.log() for pid in three),
             what="three that are none of its own")
        wait(lambda: self.children_in(i.process.pid, "Z") == [], what="no zombie")
        i.inject(b"Subject: one\n\n", "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_P9_ends_that_come_as_one_signal(self):
        """Children die while it is stopped: one SIGCHLD is left of all.
        mutation: children_reap() takes one and returns."""
        i = self.running(queues=3)
        old = set(i.all_daemons()) - {i.process.pid}
        os.kill(i.process.pid, signal.SIGSTOP)
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        wait(lambda: len(self.children_in(i.process.pid, "Z")) == 12, what="twelve ends that nobody has seen")
        os.kill(i.process.pid, signal.SIGCONT)
        wait(lambda: self.children_in(i.process.pid, "Z") == [], what="all are waited for")
        wait(lambda: len(set(i.daemons()) - old) == 13, what="twelve new ones")
        i.inject(b"Subject: one\n\n", "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()
