"""One destination, one window, however many queues (docs/SITES.md)."""
import collections
import concurrent.futures
import contextlib
import ctypes
import os
import random
import re
import signal

from case import SystemTest, cost
from counting_site import CountingSite
from instance import HANG, wait

HELLO = b"Subject: hello\n\nhello\n"
SENT = re.compile(r"queue-send/(\d+)\b.*status=sent")
SUSPENDED = re.compile(r"queue-send/(\d+)\b.*status=deferred \(delivery temporarily suspended: .*421 4\.3\.2 not now")
LIMIT = 20
PR_SET_CHILD_SUBREAPER = 36


class Sites(SystemTest):
    def site(self, **options):
        made = CountingSite(**options)
        self.addCleanup(made.stop)
        return made

    def away(self, site, queues, limit=LIMIT, **conf):
        """away.example goes to the site, two recipients at a time."""
        return self.instance(
            queues=queues, routing=f"away.example smtp:127.0.0.1:{site.port}\n* local\n",
            conf={"smtp_destination_concurrency_limit": limit,
                  "smtp_initial_destination_concurrency": limit,
                  "smtp_destination_recipient_limit": 2} | conf)

    def submit(self, i, messages, rcpts, name="m"):
        """So many messages, several submitters at once: equal queues are taken in
        turn. All recipients."""
        wanted = [[f"{name}{m}-{r}@away.example" for r in range(rcpts)] for m in range(messages)]
        i.face("sendmail")  # made before they all want it
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda to: i.inject(HELLO, *to), wanted))
        return sum(wanted, [])

    def submit_everywhere(self, i, rcpts, name="e"):
        """Messages until each queue has one."""
        wanted = []
        while len({path.relative_to(i.base).parts[0] for path in i.files("active")}) < len(i.numbers):
            wanted += self.submit(i, 1, rcpts, f"{name}{len(wanted)}-")
        return wanted


class Limit(Sites):
    @cost(10)
    def test_P1_twenty_queues_never_more_than_the_limit_under_kill_9(self):
        site = self.site(service=0.02)
        i = self.away(site, queues=20).start_open()
        site.hold = True
        wanted = self.submit(i, messages=40, rcpts=40)
        wait(lambda: site.held == LIMIT, what="a window that is used")
        site.left, site.hold = 0, False
        dice = random.Random(4)
        kills = 0
        while len(site.rcpts) < len(wanted) * 3 // 4:
            victim = dice.choice(i.pids(dice.choice(["queue-send", "deliver-smtp"])) or [0])
            with contextlib.suppress(ProcessLookupError):
                if victim:
                    os.kill(victim, signal.SIGKILL)
                    kills += 1
            before, site.left = len(site.rcpts), 30  # however late the look at them is
            wait(lambda: len(site.rcpts) > before + 20, what="deliveries between two kills")
        site.left = None
        i.wait_empty()
        i.stop()
        self.assertGreater(kills, 10)
        self.assertEqual(site.peak, LIMIT)
        self.assertLess(site.connections, len(site.rcpts) // 2, "connections are used again")
        self.assertEqual(set(site.rcpts), set(wanted))
        twice = sum(n - 1 for n in collections.Counter(site.rcpts).values())
        self.assertLessEqual(twice, 2 * LIMIT * kills, "more than what was in flight")

    @cost(4)
    def test_P2_a_supervisor_that_is_killed_and_started_anew(self):
        site = self.site(service=0.05)
        i = self.away(site, queues=6).start_open()
        wanted = self.submit(i, messages=12, rcpts=80)
        for _ in range(2):
            before = len(site.rcpts)
            wait(lambda: len(site.rcpts) > before + 100, what="deliveries")
            i.kill()
            i.start()
        i.wait_empty()
        i.stop()
        self.assertEqual(site.peak, LIMIT)
        self.assertEqual(set(site.rcpts), set(wanted))


class Pairs(Sites):
    """Any two die, while an agent that has connections is stopped, or goes on:
    the places of its group stay taken until it is gone.
    mutation: queue_is_clear() that knows no orphans; no orphans_record()"""
    LIMIT = 4

    def setUp(self):
        """The kernel wakes what is stopped in a process group that becomes an
        orphan; not while the new parent is of the same session, as here."""
        super().setUp()
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)

    def pid_of(self, i, program, number):
        for pid in i.pids(program):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read().split(b"\0")[-2] == str(number).encode():
                    return pid
        return None

    def busy_queue(self, i):
        used = {n: i.page(n)["remote_used"] for n in i.numbers}
        return max(used, key=used.get) if any(used.values()) else None

    def pair(self, one, other, stopped):
        site = self.site()
        i = self.away(site, queues=2, limit=self.LIMIT, stop_time_limit="2s").start(session=False)
        site.hold = True
        wanted = self.submit_everywhere(i, rcpts=40)
        wait(lambda: site.held == self.LIMIT, what="a window that is used")
        number = wait(lambda: self.busy_queue(i), what="a queue that is seen to deliver")
        agent = self.pid_of(i, "deliver-smtp", number)
        if stopped:
            os.kill(agent, signal.SIGSTOP)
        before = site.connections
        victims = [self.pid_of(i, program, number) for program in (one, other) if program != "qscheduler"]
        if "qscheduler" in (one, other):
            i.kill()
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):  # it saw the end of the other
                os.kill(pid, signal.SIGKILL)
        if i.process is None:
            i.start(session=False)
        wait(lambda: site.connections > before, what="a connection of the next ones")
        site.hold = False
        i.wait_empty()
        self.assertEqual(set(site.rcpts), set(wanted))
        self.assertLessEqual(site.peak, self.LIMIT)
        i.stop()

    def both(self, one, other):
        for stopped in (False, True):
            with self.subTest(agent="stopped" if stopped else "live"):
                self.pair(one, other, stopped)

    @cost(15)
    def test_P1_P2_P3_supervisor_and_queue_send(self):
        self.both("qscheduler", "queue-send")

    @cost(15)
    def test_P1_P2_P3_supervisor_and_todo_proc(self):
        self.both("qscheduler", "todo-proc")

    @cost(15)
    def test_P1_P2_P3_supervisor_and_agent(self):
        self.both("qscheduler", "deliver-smtp")

    @cost(10)
    def test_P1_P3_queue_send_and_todo_proc(self):
        self.both("queue-send", "todo-proc")

    @cost(10)
    def test_P1_P3_queue_send_and_agent(self):
        self.both("queue-send", "deliver-smtp")

    @cost(10)
    def test_P1_P3_todo_proc_and_agent(self):
        self.both("todo-proc", "deliver-smtp")


class Use(Sites):
    @cost(4)
    def test_a_queue_that_waits_gets_its_share(self):
        """While all of them have work, none has less than half the mean: in turns
        that are short beside the work."""
        site = self.site(service=0.01)
        i = self.away(site, queues=6, limit=4, smtp_connection_turn_time="0").start()
        site.hold = True
        wanted = self.submit_everywhere(i, rcpts=100)
        site.hold = False
        i.wait_empty()
        i.stop()
        sent = SENT.findall(i.log())
        self.assertEqual(sorted(site.rcpts), sorted(wanted))
        self.assertEqual(site.peak, 4)
        whole, share = collections.Counter(sent), collections.Counter()
        for queue in sent:  # until one of them has nothing left
            share[queue] += 1
            if share[queue] == whole[queue]:
                break
        self.assertEqual(len(share), 6, share)
        self.assertGreaterEqual(min(share.values()), share.total() / 6 / 2, share)


class Learned(Sites):
    def deferring(self, i):
        return set(re.findall(SUSPENDED, i.log()))

    def test_what_is_dead_for_one_queue_is_left_alone_by_all(self):
        site = self.site()
        i = self.away(site, queues=4, smtp_initial_destination_concurrency=1,
                      minimal_backoff_time="1h", maximal_backoff_time="2h").start()
        site.refuse = True
        i.inject(HELLO, "first@away.example")
        wait(lambda: i.log_has("state=dead"), what="a dead destination")
        self.assertEqual(site.connections, 1)
        wanted = []
        while len(self.deferring(i)) < 4:
            wanted += self.submit(i, 1, rcpts=2, name=f"e{len(wanted)}-")
        wait(lambda: not i.files("incoming", "active"), what="everything deferred")
        self.assertEqual(site.connections, 1, "a connection to a dead destination")
        self.assertEqual(len(re.findall("state=dead", i.log())), 1, "told by who found it")
        self.assertEqual(len(re.findall(SUSPENDED, i.log())), len(wanted))
        # One flush opens it for everybody.
        site.refuse = False
        i.flush()
        i.wait_empty()
        i.stop()
        self.assertEqual(set(site.rcpts), set(wanted) | {"first@away.example"})

    def test_a_window_that_one_queue_has_opened_is_open_for_all(self):
        site = self.site()
        i = self.away(site, queues=2, smtp_initial_destination_concurrency=1).start()
        i.inject(HELLO, *[f"a{n}@away.example" for n in range(400)])
        i.wait_empty()
        first = set(SENT.findall(i.log()))
        self.assertEqual(len(first), 1)
        site.hold = True
        before = len(i.log())
        self.submit_everywhere(i, rcpts=80)
        wait(lambda: site.held == LIMIT, what="the window that was learned")
        site.hold = False
        i.wait_empty()
        i.stop()
        self.assertEqual(set(SENT.findall(i.log()[before:])), {"1", "2"})
        self.assertEqual(site.peak, LIMIT)


class Without(Sites):
    def test_without_the_segment_mail_waits_for_it(self):
        """The second segment that is made is that of the destinations, the third
        one without a name in its place: no memory is left for either."""
        site = self.site()
        i = self.away(site, queues=4)
        i.start(prefix=("strace", "-qq", "-o", "/dev/null", "-e", "trace=fallocate",
                        "-e", "inject=fallocate:error=ENOMEM:when=2..3"))
        self.assertTrue(i.log_has(r"ALERT: shared memory /\S+\.sites: Cannot allocate memory: no delivery starts"))
        site.hold = True
        wanted = self.submit_everywhere(i, rcpts=40)
        wait(lambda: site.held == LIMIT, what="the window")
        site.hold = False
        i.wait_empty()
        self.assertEqual(site.peak, LIMIT)
        self.assertEqual(sorted(site.rcpts), sorted(wanted))
        for pid in i.daemons("qscheduler"):  # strace passes no signal on
            os.kill(pid, signal.SIGTERM)
        i.process.wait(HANG)
