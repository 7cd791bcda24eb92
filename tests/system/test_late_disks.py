"""D rows: a disk that is late is seen at once, and new mail goes elsewhere."""
import os
import re
import struct
import subprocess
import threading
import time
import unittest

from case import SystemTest, cost
from hung_disk import HungDisk, missing
from instance import BIN, HANG, wait
from smtp_site import Site

MALLORY = 65534
COUNT, SPAN = 300, 25.0  # submissions, in so many seconds
HANGS_AT, HANGS_FOR = 8.0, 10.0
FOUND = 60.0  # all of it is delivered so long after the last was accepted
SEEN_AFTER = 0.5  # a submission reads the page after it has begun, so this is ample
SINCE = 352  # disk_since_mono in the page of a queue (docs/IPC.md)
# With QSCHED_STRICT in the environment, no more submissions than this wait longer. How many begin
# before the page shows the hang depends on how busy the machine is.
WAIT, FEW = 2.0, 5 if "QSCHED_STRICT" in os.environ else COUNT


@unittest.skipIf(missing(), missing())
class LateDisks(SystemTest):
    def prepare(self):
        """Queue 2 is on a disk in our hands; queue 1 has a load, so that queue 2 is chosen first."""
        site = Site(hold=True)
        self.addCleanup(site.stop)
        i = self.instance(queues=2, routing=f"load.example smtp:127.0.0.1:{site.port}\n* local\n",
                          conf={"smtp_process_limit": "20", "smtp_destination_concurrency_limit": "20",
                                "smtp_initial_destination_concurrency": "20"})
        i.base.mkdir()
        disk = HungDisk(i.dir / "disk", i.queue(2))
        self.addCleanup(disk.close)
        i.start_open()
        self.setqload(i, "--disable", "-q", "2")
        for n in range(20):
            i.inject(b"Subject: load\n\n", f"{n}@load.example")
        wait(lambda: len(site.held) == 20, what="the load of queue 1")
        self.setqload(i, "--enable", "-q", "2")
        i.wait_open(1, 2)
        return i, disk, site

    def setqload(self, i, *args):
        done = subprocess.run([BIN / "setqload", "-c", i.conf_file, *args], capture_output=True, text=True,
                              check=False, timeout=HANG, env=i.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def submit(self, i, n, took):
        began = time.monotonic()
        uid = MALLORY if n % 2 else None
        done = i.inject(b"Subject: %d\n\nhello\n" % n, "alice@test.example", uid=uid, check=False)
        took[n] = (began, time.monotonic(), done.returncode, done.stderr)

    def watch(self, i):
        """The time at which the page of queue 2 says that a call waits for the disk."""
        def is_late():
            with open(f"/dev/shm/{i.name}.queue2", "rb") as page:
                page.seek(SINCE)
                since = struct.unpack("=q", page.read(8))[0]
            return since > 0 and time.monotonic() - since / 1e6 > 0.15
        wait(is_late, what="a page that says late")
        self.seen = time.monotonic()

    def stream(self, i, disk, forget):
        """COUNT submissions, each begun at its time whatever became of the others: the time of each."""
        i.face("sendmail")
        self.said = []
        took, threads, began, hung = {}, [], time.monotonic(), False
        for n in range(COUNT):
            at = began + n * SPAN / COUNT
            time.sleep(max(0.0, at - time.monotonic()))  # the rate is what is tested
            if not hung and at - began >= HANGS_AT:
                self.hung_at = time.monotonic()
                disk.hang(forget=forget)
                hung = True
                thaw = threading.Timer(HANGS_FOR, self.go_on, (disk,))
                thaw.start()
                watcher = threading.Thread(target=self.watch, args=(i,))
                watcher.start()
                told = threading.Timer(HANGS_FOR / 2, lambda: self.said.append(self.setqload(i, "--list")))
                told.start()
            threads.append(threading.Thread(target=self.submit, args=(i, n, took)))
            threads[-1].start()
        thaw.join()
        told.join()
        watcher.join()
        for thread in threads:
            thread.join(HANG)
        return took

    def go_on(self, disk):
        self.thaw = time.monotonic()
        disk.go_on()

    def few_wait(self, forget):
        i, disk, site = self.prepare()
        took = self.stream(i, disk, forget)
        self.assertEqual(len(took), COUNT)
        self.assertEqual([t for t in took.values() if t[2] != 0], [], "each is accepted")
        slow = sorted((round(t[1] - t[0], 2), "user" if n % 2 else "root") for n, t in took.items() if t[1] - t[0] > WAIT)
        blind = [n for n, t in took.items() if self.seen + SEEN_AFTER < t[0] < self.thaw - WAIT and t[1] > self.thaw]
        print(f"{len(slow)} of {COUNT} waited longer than {WAIT:g} s: {slow}")
        i.wait_delivered("alice", COUNT, limit=FOUND)
        got = sorted(int(re.search(rb"^Subject: (\d+)", f.read_bytes(), re.M).group(1)) for f in i.maildir("alice"))
        self.assertEqual(got, list(range(COUNT)), "each message once")
        self.assertLess(self.seen - self.hung_at, HANGS_FOR / 2, "the page says late too late")
        self.assertEqual(blind, [], "submissions that began when the page said late, and waited for the disk")
        self.assertLessEqual(len(slow), FEW, slow)
        self.assertRegex(self.said[0], r"(?m)^queue 2: open, disk late for \d+ s \(.*\)$")
        directory = re.escape(str(i.queue(2)))
        wait(lambda: i.log_has(f"queue 2: {directory}: the disk answers again, after"), what="the end")
        begins = re.findall(f"queue 2: {directory}: late: .* for \\d+s; new mail goes", i.log())
        self.assertEqual(len(begins), i.log().count(f"queue 2: {i.queue(2)}: the disk answers again"), i.log())
        site.release(hold=False)
        i.wait_empty()

    @cost(45)
    def test_D50_D51_D53_few_submissions_wait_for_a_disk_that_hangs(self):
        """Reads hang, too. mutation: choose.c, judge_page() never takes a disk for late."""
        self.few_wait(forget=True)

    @cost(45)
    def test_D50_D51_few_submissions_wait_where_only_syncs_hang(self):
        """What a submission does before its sync is answered from memory."""
        self.few_wait(forget=False)
