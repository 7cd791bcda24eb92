"""Queues come and go with the load, and no mail is lost on the way."""
import collections
import itertools
import os
import re
import struct
import threading

from case import SystemTest, cost
from instance import wait
from smtp_site import Site

ROW = struct.Struct("=8I2qiI96s")
SCHED = struct.Struct("=2I48x4IQ6I2Qq160s")
STATES = ("none", "open", "closing", "disabled", "quarantined")
# Hold times in which a test can see a day go by.
QUICK = {"queue_grow_time": "0", "queue_shrink_time": "1s", "queue_change_interval": "0s",
         "queue_drain_time": "2s", "restart_delay_max": "1s"}


def sched(i):
    """The page of /qscheduler (common/ipc/page.h): its fields and its rows."""
    with open(f"/dev/shm/{i.name}.qscheduler", "rb") as f:
        data = f.read()
    fields = dict(zip("""qcount qconf threshold queue_start queue_max dynamic bad_requests answer_next
        qmails_uid queue_count mean_load held_count spare held_until changes change_wall change""".split(),
                      SCHED.unpack_from(data)))
    rows = {}
    for at in range(len(data) - 256 * ROW.size, len(data), ROW.size):
        row = ROW.unpack_from(data, at)
        if row[0]:
            rows[row[0]] = {"state": STATES[row[1]], "generation": row[2], "flags": row[5],
                            "load": row[6], "reason": row[12].split(b"\0")[0].decode()}
    return fields, rows


def states(i, state="open"):
    return [n for n, row in sched(i)[1].items() if row["state"] == state]


class Flow:
    """Submitters of messages of one recipient each, every one different."""

    def __init__(self, instance, threads=2):
        self.instance = instance
        self.accepted, self.refused = [], []
        self._numbers = itertools.count()
        self._end = threading.Event()
        self.pause = 0.03
        instance.face("queue-inject")  # made once, before all want it
        self._threads = [threading.Thread(target=self._submit) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

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
        for thread in self._threads:
            thread.join()


class Growing(SystemTest):
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
        pid = i.process.pid
        fds = sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0].split(".")[0]
                     for fd in os.listdir(f"/proc/{pid}/fd"))
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            status = f.read()
        return fds, int(re.search(r"VmData:\s+(\d+)", status).group(1))

    def once(self, site, flow):
        """Every accepted message was delivered, and none twice."""
        count = collections.Counter(rcpt for _, rcpts in site.deliveries for rcpt in rcpts)
        self.assertEqual([r for r in flow.accepted if count[r] == 0], [], "lost")
        self.assertEqual([r for r, n in count.items() if n > 1], [], "delivered twice")

    @cost(20)
    def test_load_rises_and_falls_and_so_do_the_queues(self):
        site = self.site(service=0.5)
        i = self.dynamic(site)
        before = self.resources(i)
        flow = self.flow(i)
        wait(lambda: states(i) == [1, 2, 3, 4], 15, "queues up to QUEUE_MAX")
        self.assertEqual(sched(i)[0]["qcount"], 4)
        flow.pause = 0.3
        wait(lambda: states(i) == [1], 20, "all but QUEUE_COUNT closed")
        wait(lambda: list(sched(i)[1]) == [1], 10, "all but QUEUE_COUNT retired")
        flow.stop()
        i.wait_empty()
        self.assertEqual(flow.refused, [])
        self.once(site, flow)
        for n in (2, 3, 4):
            self.assertTrue((i.queue(n) / "closed").exists())
            self.assertFalse(os.path.exists(f"/dev/shm/{i.name}.queue{n}"))
        wait(lambda: self.resources(i)[0] == before[0], 5, "as many descriptors as before")
        self.assertLess(self.resources(i)[1] - before[1], 400, "kilobytes")
        self.assertRegex(i.log(), r"queue 2 added: mean load \d+ % for \d s \(threshold 90 %\), \d+ waiting; 2 queues")
        fields, _ = sched(i)
        self.assertEqual(fields["changes"], 6)
        self.assertTrue(fields["change"].startswith(b"queue 2 closed: mean load"))
        i.stop()
        self.assertEqual(i.files(), [])
