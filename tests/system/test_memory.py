"""Shared memory that is cut off, written over or taken away while mail flows."""
import contextlib
import itertools
import os
import re
import subprocess
import threading
import time

from case import SystemTest, cost
from counting_site import CountingSite
from instance import AS_ROOT, BIN, HANG, PYTHON, wait

HELLO = b"Subject: hello\n\nhello\n"
LIMIT = 6
QUEUES = 4

# As its owner, which for the pages of queues is not root: path, what.
DAMAGE = """
import os, sys
path, what = sys.argv[1:]
size = os.stat(path).st_size
fill = {"zeros": lambda n: bytes(n), "ones": lambda n: b"\\xff" * n, "noise": os.urandom}
if what == "nothing":
    os.truncate(path, 0)
elif what == "half":
    os.truncate(path, size // 2)
elif what == "unlink":
    os.unlink(path)
else:
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, fill[what](size), 0)
"""
WAYS = ("nothing", "half", "unlink", "zeros", "ones", "noise")


def damage(path, what):
    owner = os.stat(path).st_uid
    who = {"user": owner} if AS_ROOT and what != "unlink" else {}
    subprocess.run([PYTHON, "-c", DAMAGE, path, what], check=True, **who)


class Flow:
    """Mail for the site all the time, until it is stopped."""

    def __init__(self, i):
        self.i = i
        self.wanted = []
        self._end = False
        i.face("sendmail")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        for n in itertools.count():
            while len(self.i.files("incoming", "active")) > 30 and not self._end:
                time.sleep(0.02)
            if self._end:
                return
            to = [f"m{n}-{r}@away.example" for r in range(10)]
            self.i.inject(HELLO, *to)
            self.wanted += to

    def stop(self):
        self._end = True
        self._thread.join()


class Lost(SystemTest):
    def flowing(self, service=0.02):
        site = CountingSite(service=service)
        self.addCleanup(site.stop)
        i = self.running(
            queues=QUEUES, routing=f"away.example smtp:127.0.0.1:{site.port}\n* local\n",
            conf={"smtp_destination_concurrency_limit": LIMIT,
                  "smtp_initial_destination_concurrency": LIMIT,
                  "smtp_destination_recipient_limit": 2})
        site.hold = True
        flow = Flow(i)
        self.addCleanup(flow.stop)
        wait(lambda: site.peak == LIMIT, what="a window that is used")
        site.hold = False
        return i, site, flow

    def more(self, site, count=30):
        before = len(site.rcpts)
        wait(lambda: len(site.rcpts) >= before + count, what="deliveries")

    def finish(self, i, site, flow, pids, limit=LIMIT):
        self.assertEqual(i.daemons(), pids, "a process has ended")
        flow.stop()
        i.wait_empty()
        i.stop()
        self.assertEqual(sorted(set(flow.wanted) - set(site.rcpts)), [], "lost")
        self.assertEqual(len(site.rcpts), len(set(site.rcpts)), "twice")
        self.assertLessEqual(site.peak, limit)

    def said(self, i, name, before):
        return re.search(rf"shared memory /{i.name}\.{name} was ", i.log()[before:])

    @cost(20)
    def test_I11_the_table_of_destinations(self):
        """mutation: renew() that opens at once; move() that counts nothing"""
        i, site, flow = self.flowing()
        pids = i.all_daemons()
        for what in WAYS:
            before = len(i.log())
            damage(f"/dev/shm/{i.name}.qscheduler.sites", what)
            wait(lambda at=before: self.said(i, "qscheduler.sites", at), what=f"{what}: said")
            wait(lambda at=before: "the new table of destinations is in use" in i.log()[at:],
                 what=f"{what}: a new table")
            self.more(site)
        # A queue can take a place between the two halves of what is written over: one for each.
        self.finish(i, site, flow, pids, LIMIT + QUEUES)

    @cost(15)
    def test_I11_the_pages_of_the_queues(self):
        """mutation: no objects_tick(); no look_after_page()"""
        i, site, flow = self.flowing()
        pids = i.all_daemons()
        for what in WAYS:
            for n in range(1, QUEUES + 1):
                before = len(i.log())
                damage(f"/dev/shm/{i.name}.queue{n}", what)
                wait(lambda at=before, name=f"queue{n}": self.said(i, name, at),
                     what=f"{what}: said")
                self.published(i, n)
            self.more(site)
        self.finish(i, site, flow, pids)

    def published(self, i, n):
        """With figures, since its writer has it again."""
        def limit():
            with contextlib.suppress(OSError, Exception):
                page = i.page(n)
                return page["remote_limit"] > 0 and page["queue"] == n
        wait(limit, what=f"the page of queue {n}")

    @cost(15)
    def test_I11_the_page_of_the_supervisor(self):
        """mutation: no publish_tick()"""
        i, site, flow = self.flowing()
        pids = i.all_daemons()
        for what in WAYS:
            before = len(i.log())
            damage(f"/dev/shm/{i.name}.qscheduler", what)
            wait(lambda at=before: self.said(i, "qscheduler", at), what=f"{what}: said")
            wait(lambda: self.seen(i), what=f"{what}: seen again")
            self.more(site)
        self.finish(i, site, flow, pids)

    def seen(self, i):
        """By the tools that read it, and by what answers there."""
        top = subprocess.run([BIN / "qtop", "-b", "-n", "1", "-i", i.name], capture_output=True,
                             text=True, check=False, timeout=HANG)
        load = subprocess.run([BIN / "setqload", "-i", i.name, "-q", "1", "5"],
                              capture_output=True, check=False, timeout=HANG)
        return top.returncode == 0 and load.returncode == 0 and "open" in top.stdout

    @cost(10)
    def test_I11_all_of_it_again_and_again(self):
        i, site, flow = self.flowing(service=0.01)
        pids = i.all_daemons()
        names = [n.removeprefix("/") for n in i.ipc_names()] + [
            f"{i.name}.qscheduler.sites"]
        for what in ("nothing", "zeros", "half", "noise"):
            for name in names:
                with contextlib.suppress(FileNotFoundError, subprocess.CalledProcessError):
                    damage(f"/dev/shm/{name}", what)
            self.more(site)
        for n in range(1, QUEUES + 1):
            self.published(i, n)
        # The table of destinations was damaged, too.
        self.finish(i, site, flow, pids, LIMIT + QUEUES)
