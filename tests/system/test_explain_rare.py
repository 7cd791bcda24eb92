"""Situations of `qctl explain` that take a fault, or last for a moment: each is
made for real, and its sentence compared (docs/QCTL.md; the others are in
test_explain.py).

Faults that need no privilege: a stopped supervisor, which starts nothing again;
the limit of file sizes of a process that runs (prlimit), so that writes in place
fail; and directories without the permission to write. SITUATION_SYNCING and
SITUATION_REPORTING last for one sync: unit/queue-send/explain.c has both.
SITUATION_UNKNOWN has no sentence: the answer is where the file lies."""
import os
import pathlib
import re
import signal
import subprocess

from case import cost
from instance import AS_ROOT, BIN, wait
from test_explain import HELLO, HOUR, IN, Explain


class Rare(Explain):
    def act(self, i, *words):
        subprocess.run([BIN / "qctl", *words, "--yes"], check=True, capture_output=True, env=i.environment())

    def limit(self, pid, what, value=None):
        """The soft limit of a process, as low as the value or as high as may be,
        set by its own user: a root without all capabilities may not do that."""
        proc = pathlib.Path(f"/proc/{pid}")
        name = {"fsize": "Max file size"}[what]
        if value is None:
            value = re.search(rf"^{name} +\S+ +(\S+)", (proc / "limits").read_text(), re.M).group(1)
        owner = {}
        if AS_ROOT:
            status = (proc / "status").read_text()
            owner = {key: int(re.search(rf"^{field}:\s+(\d+)", status, re.M).group(1))
                     for key, field in (("user", "Uid"), ("group", "Gid"))} | {"extra_groups": []}
        subprocess.run(["/usr/bin/prlimit", f"--pid={pid}", f"--{what}={value}:"], check=True, **owner)

    def stopped_supervisor(self, i):
        os.kill(i.process.pid, signal.SIGSTOP)
        self.addCleanup(lambda: i.process is not None and os.kill(i.process.pid, signal.SIGCONT))

    def held(self, count, rcpts=1, **conf):
        """A host that takes messages and does not answer; each has a delivery."""
        site = self.site(hold=True)
        i = self.running(queues=1, routing=f"away.example smtp:127.0.0.1:{site.port}\n* local\n",
                         conf=HOUR | {"smtp_data_done_timeout": "1h"} | conf)
        for n in range(count):
            i.inject(HELLO, *[f"x{r}@away.example" for r in range(rcpts)], sender=f"s{n}@test.example")
            wait(lambda n=n: i.page(1)["active"] == n + 1, what="in the active queue")
        return i, site

    # ---- the whole queue ----

    def test_about_to_stop(self):
        i, site = self.held(2, smtp_destination_concurrency_limit=1, smtp_initial_destination_concurrency=1,
                            stop_time_limit="1h")
        wait(lambda: site.held, what="in delivery")
        i.process.send_signal(signal.SIGTERM)
        stopping = r"Queue: it is stopping\. Next: the message is delivered after the next start\."
        self.expect(i, ["sender=s0@*"], stopping, r"Being delivered for \d+s: 1 recipient to .*")
        self.expect(i, ["sender=s1@*"], stopping,
                    rf"Waiting: 1 recipient for smtp/127\.0\.0\.1:{site.port}: this queue starts no delivery now\. "
                    r"Next: one starts when it can\.")
        site.release(hold=False)
        i.stop()

    def test_no_todo_proc_and_what_is_due(self):
        i, _ = self.later()
        self.stopped_supervisor(i)
        for pid in i.pids("todo-proc"):
            os.kill(pid, signal.SIGKILL)
        self.expect(i, ["ALL"], r"Queue: its todo-proc does not run, so no message enters the active queue\. "
                    r"Next: the supervisor starts todo-proc\.", rf"Next: the message is due {IN}; .*")
        self.act(i, "retry", "ALL")
        self.expect(i, ["ALL"], r"Next: the message is due, and waits to be prepared \(0 of \d+ are being prepared\)\.")

    def test_no_table_of_destinations(self):
        i, site = self.held(1)
        self.stopped_supervisor(i)
        with open(f"/dev/shm/{i.name}.qscheduler.sites", "r+b") as f:
            f.write(b"\xff" * 64)
        lost = r"Queue: it has no table of destinations, so no delivery starts\. Next: the supervisor makes that table\."
        self.expect(i, ["ALL"], lost)
        os.kill(i.process.pid, signal.SIGCONT)
        wait(lambda: "no table" not in self.explain(i, "ALL"), what="another table")
        site.release(hold=False)

    # ---- outside the active queue ----

    def test_being_prepared(self):
        i, _ = self.later()
        for pid in i.pids("todo-proc"):
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(os.kill, pid, signal.SIGCONT)
        self.act(i, "retry", "ALL")
        self.expect(i, ["ALL"], r"Next: the message is due, and todo-proc prepares it for the active queue\.")

    def test_no_next_hop_any_more(self):
        port = self.closed_port()
        i = self.running(queues=1, conf=HOUR, routing=f"* smtp:127.0.0.1:{port}\n")
        i.inject(HELLO, "a@[192.0.2.1]")
        wait(lambda: len(i.files("deferred")) == 1, what="deferred")
        i.routing_file.write_text("* smtp\n")
        i.reload()
        self.expect(i, ["ALL"], r"No next hop: mail to an address literal is not sent\. "
                    r"Next: it fails in the next attempt, and is reported\.")

    # ---- in the active queue ----

    def test_memory_has_no_room(self):
        i, site = self.held(1, rcpts=60, smtp_destination_recipient_limit=1, smtp_process_limit=1,
                            qmgr_message_recipient_limit=10, default_recipient_limit=10,
                            default_extra_recipient_limit=0)
        wait(lambda: site.held, what="in delivery")
        said = self.expect(i, ["ALL"], r"Waiting: \d+ recipients not read yet, since the memory for recipients is full\. "
                           r"Next: they are read when other recipients of the message are done\.")
        unread = int(re.search(r"(\d+) recipients not read yet", said).group(1))
        self.assertGreater(unread, 20)
        site.release(hold=False)

    def test_results_that_cannot_be_recorded(self):
        i, site = self.held(1, error_interval="1s")
        wait(lambda: site.held, what="in delivery")
        [pid] = i.pids("queue-send")
        self.limit(pid, "fsize", 0)
        site.release(hold=False)
        self.expect(i, ["ALL"], r"Unrecorded: the results of 1 recipient cannot be written\. "
                    r"Next: the queue tries to write them again; no recipient gets the message twice\.")
        self.limit(pid, "fsize")
        wait(lambda: not i.files("active", "deferred"), what="delivered")
        self.assertEqual(len(site.deliveries), 1)

    def test_leaving(self):
        """Reasons cannot be written: after the third error nothing moves. Threads may
        move 64 messages before it is known."""
        i, site = self.held(80, error_interval="1h", smtp_initial_destination_concurrency=100,
                            smtp_destination_concurrency_limit=100,
                            smtp_destination_concurrency_failed_cohort_limit=0)
        wait(lambda: len(site.held) == 80, what="in delivery")
        [pid] = i.pids("queue-send")
        self.limit(pid, "fsize", 0)
        site.drop()
        self.expect(i, ["ALL"], r"Queue: its disk cannot be written \(File too large\), so nothing is delivered or moved\. .*",
                    r"Leaving: this attempt is over\. Next: the message leaves the active queue\.")
        self.limit(pid, "fsize")

    def test_stuck(self):
        i, site = self.held(1, error_interval="1h")
        wait(lambda: site.held, what="in delivery")
        for path in (i.queue(1) / "deferred").iterdir():
            self.addCleanup(os.chmod, path, path.stat().st_mode & 0o7777)
            os.chmod(path, 0o555)
        site.drop()
        self.expect(i, ["ALL"], rf"Stuck: this attempt is over, but the file could not be moved\. "
                    rf"Next: the queue tries to move it again {IN}\.")

    # ---- for a moment ----

    @cost(20)
    def test_being_read_and_next(self):
        """A message of so many recipients is read for many turns of the loop, and
        its deliveries start in as many; a question is answered in between."""
        i = self.running(queues=1, routing="* discard\n", conf=HOUR | {
            "qmgr_message_recipient_limit": 1000000, "default_recipient_limit": 1000000,
            "local_process_limit": 2000, "local_destination_recipient_limit": 1})
        wanted = [r"Reading: recipients are being read and routed; \d+ recipients left\. Next: deliveries start\.",
                  r"Waiting: \d+ recipients? for \S+\. Next: a delivery starts at once\."]

        def seen(_=None):
            said = subprocess.run([BIN / "qctl", "explain", "ALL"], capture_output=True, text=True, check=False,
                                  env=i.environment()).stdout
            wanted[:] = [w for w in wanted if not re.search(rf"^ *{w}$", said, re.M)]
            return not wanted

        def tried():
            to = ",".join(f"{n:x}@d.e" + "\n " * (n % 50 == 49) for n in range(60000))
            i.inject(f"To: {to}\nSubject: x\n\nx\n".encode(), args=["-t"])
            wait(lambda: seen() or not i.files("incoming", "active"), what="read, or delivered")
            return not wanted
        wait(tried, what="both sentences")
