"""Queues come and go with the load, and no mail is lost on the way."""
import collections
import concurrent.futures
import contextlib
import ctypes
import itertools
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading

from case import SystemTest, cost, needs_root
from instance import BIN, HANG, wait
from load import Load
from pages import sched, states
from peer import Peer
from smtp_site import Site

# Hold times in which a test can see a day go by.
QUICK = {"queue_grow_time": "0", "queue_shrink_time": "1s", "queue_change_interval": "0s",
         "queue_drain_time": "2s", "restart_delay_max": "1s"}


class Flow:
    """Submitters of messages of one recipient each, every one different."""

    def __init__(self, instance, threads=2):
        self.instance = instance
        self.accepted, self.refused = [], []
        self._numbers = itertools.count()
        self._end = threading.Event()
        self.pause = 0.03
        instance.face("queue-inject")  # made once, before all want it
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)
        self._submitters = [self._pool.submit(self._submit) for _ in range(threads)]

    def _submit(self):
        while not self._end.is_set():
            rcpt = f"m{next(self._numbers)}@away.example"
            done = self.instance.inject(b"Subject: one\n\none\n", rcpt, face="queue-inject", check=False)
            if done.returncode == 0:
                self.accepted.append(rcpt)
            else:
                self.refused.append((rcpt, done.returncode, done.stderr))
            self._end.wait(self.pause)  # the rate of this hour

    def stop(self):
        self._end.set()
        self._pool.shutdown()
        for submitter in self._submitters:
            submitter.result()


class Flood:
    """The message queue of requests is kept full, with records that mean
    nothing and with load reports of queues that are not there."""

    def __init__(self, instance):
        self.librt = ctypes.CDLL(None, use_errno=True)
        self.fd = self.librt.mq_open(f"/{instance.name}.qscheduler".encode(), os.O_WRONLY | os.O_NONBLOCK)
        self.full = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._end.is_set():
            record = struct.pack("=iIQ", os.getpid(), random.randrange(1 << 32), 99)
            while not self._end.is_set() and self.librt.mq_send(self.fd, record, len(record), 0) == 0:
                pass
            self.full += 1
            self._end.wait(0.001)

    def stop(self):
        if not self._end.is_set():
            self._end.set()
            self._thread.join()
            os.close(self.fd)


class Growing(SystemTest):
    def scratch(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return pathlib.Path(directory.name) / "peer"

    def site(self, **options):
        made = Site(**options)
        self.addCleanup(made.stop)
        return made

    def dynamic(self, site, queues=1, most=4, ready=True, **conf):
        i = self.instance(
            queues=queues, routing=f"away.example smtp:127.0.0.1:{site.port}\n* local\n",
            conf=QUICK | {"queue_max": most, "smtp_process_limit": 10, "queue_load": "90%",
                          "smtp_destination_concurrency_limit": 50,
                          "smtp_initial_destination_concurrency": 50} | conf)
        return i.start("-d", ready=ready)

    def flow(self, i, **options):
        made = Flow(i, **options)
        self.addCleanup(made.stop)
        return made

    def resources(self, i):
        """Of the supervisor; None while it works, or a worker of it does."""
        pid = i.process.pid
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            status = f.read()
        if i.pids("qscheduler") != [pid] or "\nState:\tS" not in status:
            return None
        try:
            fds = sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0].split(".")[0]
                         for fd in os.listdir(f"/proc/{pid}/fd"))
        except FileNotFoundError:
            return None
        return fds, int(re.search(r"VmData:\s+(\d+)", status).group(1))

    def as_before(self, i, before):
        now = self.resources(i)
        return now if now and now[0] == before[0] else None

    def once(self, site, flow):
        """Every accepted message was delivered, and none twice."""
        count = collections.Counter(rcpt for _, rcpts in site.deliveries for rcpt in rcpts)
        self.assertEqual([r for r in flow.accepted if count[r] == 0], [], "lost")
        self.assertEqual([r for r, n in count.items() if n > 1], [], "delivered twice")

    @cost(20)
    def test_load_rises_and_falls_and_so_do_the_queues(self):
        site = self.site(hold=True, service=1.0)
        i = self.dynamic(site)
        before = wait(lambda: self.resources(i), what="rest")
        flow = self.flow(i)
        wait(lambda: states(i) == [1, 2, 3, 4], what="queues up to QUEUE_MAX")
        self.assertEqual(sched(i)[0]["qcount"], 4)
        flow.pause = 1  # two at once: one queue can carry that
        site.release(hold=False)
        wait(lambda: states(i) == [1], what="all but QUEUE_COUNT closed")
        wait(lambda: list(sched(i)[1]) == [1], what="all but QUEUE_COUNT retired")
        flow.stop()
        i.wait_empty()
        self.assertEqual(flow.refused, [])
        self.once(site, flow)
        for n in (2, 3, 4):
            self.assertTrue((i.queue(n) / "closed").exists())
            self.assertFalse(os.path.exists(f"/dev/shm/{i.name}.queue{n}"))
        after = wait(lambda: self.as_before(i, before), what="as many descriptors as before")
        self.assertLess(after[1] - before[1], 400, "kilobytes")
        self.assertRegex(i.log(), r"queue 2 added: mean load \d+ % for \d+ s \(threshold 90 %\), \d+ waiting; 2 queues")
        fields, _ = sched(i)
        self.assertEqual(fields["changes"], 6)
        self.assertTrue(fields["change"].startswith(b"queue 2 closed: mean load"))
        i.stop()
        self.assertEqual(i.files(), [])

    def test_A12_deleted_mail_of_a_queue_that_is_gone(self):
        """As the user of queue-send: the supervisor is root."""
        i = self.running(queues=2)
        i.stop()
        for n in range(8):
            i.inject(b"Subject: %d\n\nbody\n" % n, "alice@test.example")
        subprocess.run([BIN / "qctl", "delete", "ALL"], env=i.environment(), capture_output=True, check=True,
                       timeout=HANG)
        gone = list(i.queue(2).glob("deleted/*"))
        self.assertTrue(gone, "queue 2 had mail")
        later = gone.pop()
        for path in gone:
            for due in i.queue(2).glob(f"defer/*/{path.name}"):
                os.utime(due, (1, 1))
        i.write_conf(queue_count=1)
        i.start()
        i.reload()
        wait(lambda: list(i.queue(2).glob("deleted/*")) == [later], what="the end of the day")
        self.assertEqual([p.name for p in i.queue(2).glob("defer/*/*")], [later.name])
        i.stop()

    def test_D20_QUEUE_START_other_than_1_stranding_mail(self):
        for mode, conf in (("-s", {}), ("-d", {"queue_max": 2})):
            i = self.instance(queues=6, conf=QUICK)
            i.start()
            i.stop()
            users = [f"u{n}" for n in range(36)]
            for user in users:  # nobody runs: into each directory in turn
                i.inject(b"Subject: one\n\none\n", f"{user}@test.example")
            self.assertGreater(len({p.parts[-4] for p in i.files("incoming")}), 4)
            i.write_conf(queue_start=3, queue_count=2, **conf)
            i.start(mode)
            for user in users:
                i.wait_delivered(user, 1)
            wait(lambda i=i: list(sched(i)[1]) == [3, 4], what="the others are retired")
            i.stop()
            self.assertEqual(i.files(), [])
            self.assertEqual([len(i.maildir(u)) for u in users], [1] * len(users))

    # ---- everything at once ----

    def setqload(self, i, *args):
        return subprocess.run([BIN / "setqload", "-c", i.conf_file, *args], capture_output=True,
                              check=False, env=i.environment())

    def request(self, i, dice):
        """One of everything that can be asked for, wrong ones among them."""
        queue = str(dice.choice((1, 2, 3, 4, 5, 6, 7, 4095)))
        self.setqload(i, *dice.choice((
            ("--count", str(dice.randrange(0, 8))),
            ("--count", str(dice.randrange(2, 7)), "--for", "1s"),
            ("-q", queue, "--for", "2s", str(dice.randrange(101))),
            ("--clear",),
            ("--disable", "-q", queue, "--for", "1s", "--reason", "chance"),
            ("--enable", "-q", queue))))

    @staticmethod
    def kill_child(i, dice):
        """How many deliveries that may repeat."""
        pids = i.pids(dice.choice(("queue-send", "todo-proc", "deliver-local", "deliver-smtp")))
        try:
            os.kill(dice.choice(pids), signal.SIGKILL)
        except (IndexError, ProcessLookupError):
            pass

    def chaos(self, seed, act, rounds=60, flood=False, **conf):
        """Queues come and go by chance while mail flows, and act() does what it
        does; then it is quiet, and all is as at the start."""
        limit = 2
        i = self.instance(queues=2, conf=QUICK | {"queue_max": 6, "local_process_limit": limit,
                                                  "queue_drain_time": "1s"} | conf)
        i.start("-d")
        dice = random.Random(seed)
        self.assertEqual(self.setqload(i, "--count", "6").returncode, 0)
        wait(lambda: len(states(i)) == 6, what="six")
        self.assertEqual(self.setqload(i, "--count", "2").returncode, 0)
        wait(lambda: list(sched(i)[1]) == [1, 2], what="two again")
        before = wait(lambda: self.resources(i), what="rest")
        load = Load(i)
        self.addCleanup(load.stop)
        if flood:
            flood = Flood(i)
            self.addCleanup(flood.stop)
        acts = 0
        for _ in range(rounds):
            accepted = len(load.accepted)
            acts += act(i, dice) or 0
            wait(lambda n=accepted + dice.randrange(6): len(load.accepted) >= n, what="submission goes on")
        if flood:
            wait(lambda: flood.full > 10, what="a full message queue")
            flood.stop()
        self.assertIsNone(i.process.poll(), i.log()[-2000:])
        for n in range(1, 7):
            self.setqload(i, "--enable", "-q", str(n))
        self.setqload(i, "--clear")
        # Held: else the load, which goes on, opens a third as soon as it fills two.
        wait(lambda: self.setqload(i, "--count", "2", "--for", "1h").returncode == 0, what="heard")
        wait(lambda: list(sched(i)[1]) == [1, 2], what="all others are retired")
        load.stop()
        i.wait_empty()
        delivered = load.delivered()
        self.assertEqual([s for s in load.accepted if s not in delivered], [], "lost")
        self.assertEqual([s for s in delivered if s not in load.accepted], [], "from nowhere")
        self.assertLessEqual(sum(n - 1 for n in delivered.values()), acts * limit, "repeated")
        after = wait(lambda: self.as_before(i, before), what="as many descriptors as before")
        self.assertLess(after[1] - before[1], 400, "kilobytes")
        self.assertNotEqual(sched(i)[0]["changes"], 0)
        i.stop()
        self.assertEqual(i.files(), [])
        self.assertNotIn("is not among those that run", i.log(), "nothing was left in a retired one")

    @cost(20)
    def test_requests_at_random_lose_and_repeat_nothing(self):
        self.chaos(1, self.request)

    @cost(20)
    def test_P1_I1_kills_and_a_full_message_queue(self):
        def act(i, dice):
            self.request(i, dice)
            if dice.randrange(3) == 0:
                self.kill_child(i, dice)
                return 1
            return 0
        self.chaos(2, act, flood=True)

    @needs_root
    @cost(15)
    def test_D1_the_file_system_of_one_queue_is_full(self):
        """Mail that cannot leave a queue that drains, and cannot move to
        another file system, stays and is not abandoned."""
        kept = socket.socket()  # nobody answers there yet, and nobody else gets it
        self.addCleanup(kept.close)
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        i = self.instance(queues=1, routing=f"away.example smtp:127.0.0.1:{port}\n* local\n",
                          conf=QUICK | {"queue_max": 3, "minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        i.base.mkdir()
        i.queue(2).mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "tmpfs", i.queue(2)], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", i.queue(2)], check=False)
        i.start("-d")
        self.assertEqual(self.setqload(i, "--count", "3").returncode, 0)
        i.wait_open(1, 2, 3)
        sent = [f"m{n}@away.example" for n in range(60)]
        for rcpt in sent:
            i.inject(b"Subject: one\n\none\n", rcpt)
        wait(lambda: len(i.files("deferred")) == len(sent), what="all of it deferred")
        self.assertTrue([f for f in i.files("deferred") if "queue2" in f.parts])
        with open(i.queue(2) / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        for n in range(20):  # whoever would choose it goes elsewhere
            i.inject(b"Subject: two\n\ntwo\n", f"u{n}@test.example")
        for n in range(20):
            i.wait_delivered(f"u{n}", 1)
        self.assertEqual(self.setqload(i, "--count", "1").returncode, 0)
        wait(lambda: states(i) == [1] and sched(i)[1][2]["flags"] & 4, what="what is in it is to be handed over")
        self.assertEqual(states(i, "closing")[0], 2)
        peer = Peer(self.scratch(), "--port", str(port))
        self.addCleanup(peer.stop)
        # A message that is handed over at that moment misses a flush.
        wait(lambda: (i.flush(), list(sched(i)[1]))[1] == [1], what="they are retired")
        wait(lambda: (i.flush(), len(peer.messages()))[1] == len(sent), what="all of it delivered")
        self.assertEqual(sorted(r for e in peer.envelopes() for r in e["to"]), sorted(sent))
        self.assertTrue((i.queue(2) / "closed").exists())
        i.stop()
        self.assertEqual(i.files(), [])

    @needs_root
    @cost(10)
    def test_D25_a_disk_that_does_not_answer_stops_nobody_else(self):
        """The file system of a queue that is to be made is frozen: whoever
        writes to it waits where no signal reaches it."""
        i = self.instance(queues=1, conf=QUICK | {"queue_max": 3})
        image = i.dir / "image"
        with open(image, "wb") as f:
            f.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        i.base.mkdir()
        i.queue(2).mkdir()
        subprocess.run(["mount", "-o", "loop", image, i.queue(2)], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", i.queue(2)], check=False)
        i.start("-d")
        freeze = ["fsfreeze", "--freeze", i.queue(2)]
        thaw = ["fsfreeze", "--unfreeze", i.queue(2)]
        subprocess.run(freeze, check=True)
        self.addCleanup(subprocess.run, thaw, check=False, stderr=subprocess.DEVNULL)
        self.assertEqual(self.setqload(i, "--count", "2").returncode, 0)
        wait(lambda: len(i.pids("qscheduler")) == 2, what="one that asks the disk")
        # Requests are answered, pages written, mail delivered.
        for n in range(3):
            self.assertEqual(self.setqload(i, "-q", "1", str(n)).returncode, 0)
            i.inject(b"Subject: one\n\none\n", "alice@test.example")
        i.wait_delivered("alice", 3)
        self.assertEqual(states(i), [1])
        # Not even the stop waits for it, nor the next supervisor.
        i.process.send_signal(signal.SIGTERM)
        self.assertEqual(i.process.wait(HANG), 0)
        i.start("-d")
        i.inject(b"Subject: one\n\none\n", "alice@test.example")
        i.wait_delivered("alice", 4)
        subprocess.run(thaw, check=True)
        self.assertEqual(self.setqload(i, "--count", "2").returncode, 0)
        wait(lambda: states(i) == [1, 2], what="it is made when the disk answers")
        i.stop()
