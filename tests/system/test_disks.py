"""D rows: disks that stop answering, reads as well as writes, and answer again."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import unittest

from case import SystemTest, cost
from hung_disk import HungDisk, missing
from instance import BIN, HANG, wait
from test_grow import sched, states

HELLO = b"Subject: hello\n\nhello\n"
QUICK = {"disk_time_limit": "2s", "stop_time_limit": "3s", "restart_delay_max": "1s"}
SILENT = "its disk does not answer"


def child(i, program, queue):
    """The pid of a process of this queue, 0: none."""
    for pid in i.pids(program):
        with contextlib.suppress(OSError):  # one that has just ended
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[-2:-1] == [str(queue).encode()]:
                return pid
    return 0


def sleeps_in_kernel(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "D"


def threads_that_sleep(pid):
    """Threads of the process that are in the kernel, where no signal reaches them."""
    return [int(t) for t in os.listdir(f"/proc/{pid}/task") if sleeps_in_kernel(f"{pid}/task/{t}")]


def heartbeat(i, queue):
    """The time of the last publication of its page (struct page_head), in microseconds."""
    with open(f"/dev/shm/{i.name}.queue{queue}", "rb") as f:
        f.seek(56)
        return int.from_bytes(f.read(8), "little")


@unittest.skipIf(missing(), missing())
class Disks(SystemTest):
    def prepare(self, queues=3, hung=2, **options):
        """An instance, not started, with the disk of one queue in our hands."""
        i = self.instance(queues=queues, conf=QUICK | options.pop("conf", {}), **options)
        i.base.mkdir()
        disk = HungDisk(i.dir / "disk", i.queue(hung))
        self.addCleanup(disk.close)
        return i, disk

    def setqload(self, i, *args):
        return subprocess.run([BIN / "setqload", "-c", i.conf_file, *args], capture_output=True, text=True,
                              check=False, timeout=HANG, env=i.environment())

    def silent(self, i, queue=2):
        row = sched(i)[1].get(queue)
        return row and row["state"] == "disabled" and row["reason"] == SILENT

    def inject(self, i, user, count):
        for _ in range(count):
            i.inject(HELLO, f"{user}@test.example")

    def waiting_in(self, i, queue):
        return [f for f in i.files("incoming", "active", "deferred") if f.is_relative_to(i.queue(queue))]

    def others_go_on(self, i, user):
        """The duties of the supervisor and the other queues all the while."""
        self.inject(i, user, 6)
        i.wait_delivered(user, 6)
        for args in (("--disable", "-q", "3"), ("--enable", "-q", "3"), ("-q", "1", "1")):
            done = self.setqload(i, *args)
            self.assertEqual((done.returncode, done.stdout.count("not yet")), (0, 0), done.stdout + done.stderr)
        before = i.log().count("configuration reloaded")
        i.reload()
        wait(lambda: i.log().count("configuration reloaded") > before, what="the reload")
        old = child(i, "todo-proc", 1)
        os.kill(old, signal.SIGKILL)
        wait(lambda: child(i, "todo-proc", 1) not in (0, old), what="the next todo-proc of queue 1")

    @cost(15)
    def test_D31_a_disk_that_hangs_before_the_start(self):
        """mutation: look_at_all() of inventory.c looks at the disks itself."""
        i, disk = self.prepare()
        i.start()
        i.stop()
        sent = 0
        while sent < 9 or not self.waiting_in(i, 2):  # each where chance puts it
            self.inject(i, "alice", 1)
            sent += 1
        there = len(self.waiting_in(i, 2))
        disk.remount()
        disk.hang()
        i.start()
        wait(lambda: self.silent(i), what="queue 2 is shown as put aside, with its reason")
        self.assertEqual(states(i), [1, 3])
        i.wait_delivered("alice", sent - there)
        self.others_go_on(i, "bob")
        self.assertTrue(i.log_has("ALERT: queue 2: its disk has not answered"))
        disk.go_on()
        wait(lambda: states(i) == [1, 2, 3], what="its return, by itself")
        i.wait_delivered("alice", sent)
        i.wait_empty()
        i.stop()

    def hangs_while_running(self, hang, go_on):
        i, disk = self.prepare()
        i.start()
        face = i.face("queue-inject")
        held = []

        def submit_until_silent():
            """Submitters may choose the queue until it is known to hang."""
            held.append(subprocess.Popen(
                [face, "-c", i.conf_file, "-i", "-f", "sender@test.example", "--", "carol@test.example"],
                stdin=subprocess.PIPE, env=i.environment(), stderr=subprocess.DEVNULL))
            held[-1].stdin.write(HELLO)
            held[-1].stdin.close()
            return self.silent(i)
        hang(disk)
        wait(submit_until_silent, what="queue 2 is shown as put aside")
        self.others_go_on(i, "bob")
        go_on(disk)
        wait(lambda: states(i) == [1, 2, 3], what="its return, by itself")
        accepted = sum(p.wait(HANG) == 0 for p in held)
        self.assertGreater(accepted, 0)
        i.wait_delivered("carol", accepted)
        i.wait_empty()
        self.assertEqual(len(i.maildir("carol")), accepted)
        self.assertFalse(i.log_has("/2 .pid.*(again in|killed)"), "its processes are left alone")
        i.stop()

    @cost(30)
    def test_D31_D25_a_disk_that_hangs_with_mail_under_way(self):
        """mutation: on_check() does not set q->unanswered."""
        self.hangs_while_running(HungDisk.hang, HungDisk.go_on)

    @cost(30)
    def test_D25_a_file_system_that_is_frozen_with_mail_under_way(self):
        """Reads are answered, writes are not. mutation: base_check() writes nothing."""
        self.hangs_while_running(HungDisk.freeze, HungDisk.thaw)

    @cost(20)
    def test_D25_a_directory_that_is_not_read_holds_up_no_loop(self):
        """A flush walks over all of them. mutation: give_to_thread() of walk.c is false."""
        i, disk = self.prepare(queues=2, conf={"disk_time_limit": "10m"})
        i.start()
        pid = child(i, "queue-send", 2)
        disk.hang()
        i.process.send_signal(signal.SIGALRM)
        wait(lambda: [t for t in threads_that_sleep(pid) if t != pid], what="a thread that waits for the disk")
        began = heartbeat(i, 2)
        wait(lambda: heartbeat(i, 2) > began + 6_000_000, what="heartbeats all the while")
        disk.go_on()
        self.inject(i, "alice", 4)
        i.wait_delivered("alice", 4)
        i.stop()

    @cost(20)
    def test_D31_P10_a_stop_while_a_disk_hangs(self):
        """mutation: on_tick() does not look at stop_deadline."""
        i, disk = self.prepare()
        i.start()
        disk.hang()
        wait(lambda: self.silent(i), what="queue 2 is shown as put aside")
        i.process.send_signal(signal.SIGTERM)
        self.assertEqual(i.process.wait(HANG), 111)
        self.assertTrue(i.log_has(rf"todo-proc/2 .pid \d+. does not end: left behind: {SILENT}"), i.log())
        left = i.pids()
        self.assertTrue(left)
        i.start()  # nor does the next one wait for them
        wait(lambda: self.silent(i), what="queue 2 is put aside again")
        self.inject(i, "alice", 4)
        i.wait_delivered("alice", 4)
        disk.go_on()
        wait(lambda: states(i) == [1, 2, 3], what="its return, by itself")
        wait(lambda: not set(left) & set(i.pids()), what="the end of what was left behind")
        wait(lambda: all(child(i, p, 2) for p in ("queue-send", "todo-proc")), what="its processes")
        self.inject(i, "alice", 6)
        i.wait_delivered("alice", 10)
        i.stop()

    @cost(10)
    def test_P10_term_falls_into_a_reload(self):
        """The file of routing lies on the disk that hangs: the reload has begun, and cannot
        end. mutation: load() of reload.c in the loop."""
        i, disk = self.prepare(queues=1, hung=9)
        for name in ("routing", "new"):
            (i.queue(9) / name).write_text("* local\n")
        disk.remount()
        i.write_conf(routing_file=i.queue(9) / "routing")
        i.start()
        disk.hang()
        i.write_conf(routing_file=i.queue(9) / "new")
        i.reload()
        wait(lambda: any(sleeps_in_kernel(p) for p in i.pids("qscheduler")), what="one that reads it")
        self.inject(i, "alice", 1)
        i.wait_delivered("alice", 1)
        i.process.send_signal(signal.SIGTERM)
        i.reload()
        i.process.send_signal(signal.SIGTERM)
        self.assertEqual(i.process.wait(HANG), 0)
        self.assertFalse(i.log_has("configuration reloaded"))
        disk.go_on()
        wait(lambda: not i.pids(), what="the end of the one that read")

    def base_on_disk(self):
        """QUEUE_BASE itself hangs, its queues are elsewhere."""
        i = self.instance(conf=QUICK | {"heartbeat_time_limit": "60s"})
        disk = HungDisk(i.dir / "disk", i.base)
        self.addCleanup(disk.close)
        for n in i.numbers:
            i.queue(n).mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "none", i.queue(n)], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", i.queue(n)], check=False)
        return i, disk

    @cost(15)
    def test_D31_QUEUE_BASE_hangs_while_running(self):
        """mutation: store_save() writes by itself."""
        i, disk = self.base_on_disk()
        i.start()
        disk.hang()
        done = self.setqload(i, "--disable", "-q", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not yet on disk", done.stdout)
        self.assertEqual(states(i), [1])
        self.inject(i, "alice", 3)
        i.wait_delivered("alice", 3)
        i.reload()
        wait(lambda: i.log_has(rf"ALERT: {i.base}: its disk has not answered.*configuration"), what="the alert")
        wait(lambda: i.log_has("old configuration stays in force until it does"), what="words of the reload")
        for program in ("deliver-local", "todo-proc"):
            old = child(i, program, 1)
            os.kill(old, signal.SIGKILL)
            wait(lambda o=old, p=program: child(i, p, 1) not in (0, o), what=f"the next {program}")
        self.inject(i, "alice", 3)
        i.wait_delivered("alice", 6)
        disk.go_on()
        wait(lambda: i.log_has("configuration reloaded"), what="the reload, late")
        wait(lambda: (i.base / "by-hand").exists(), what="what was set, on disk")
        i.stop()

    @cost(25)
    def test_D31_rules_of_hold_on_a_disk_that_hangs(self):
        """mutation: queue-send/rules_file.c, put() takes a pool of no threads."""
        i = self.instance(queues=1, conf=QUICK)
        i.base.mkdir()
        disk = HungDisk(i.dir / "disk", i.base / "rules")
        self.addCleanup(disk.close)
        i.start()
        made = self.hold_rule(i, "sender=one@*")
        self.assertEqual(made.communicate(timeout=HANG)[0], "rule 1\n")
        disk.hang()
        made = self.hold_rule(i, "sender=two@*")
        wait(lambda: any(self.threads_in_kernel(pid) for pid in i.pids("queue-send")), what="a thread that waits")
        self.inject(i, "alice", 6)
        i.wait_delivered("alice", 6)
        i.inject(HELLO, "bob@test.example", sender="one@test.example")
        wait(lambda: len(i.files("hold")) == 1, what="mail that the rules in force hold")
        wait(lambda: i.log_has(r"ALERT: .*/rules/hold: its disk does not answer: 1 rules of hold"), what="the alert")
        disk.go_on()
        made.communicate(timeout=HANG)
        wait(lambda: i.log_has(r"operator uid=0: rule 2 holds mail: sender=two"), what="the rule, late")
        wait(lambda: i.log_has(r"/rules/hold: \d rules of hold are read, and in force"), what="the end of the alert")
        i.inject(HELLO, "bob@test.example", sender="two@test.example")
        wait(lambda: len(i.files("hold")) == 2, what="mail that the new rule holds")
        i.stop()

    def hold_rule(self, i, *words):
        return subprocess.Popen([BIN / "qctl", "-c", i.conf_file, "hold", "--rule", *words], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=i.environment())

    def threads_in_kernel(self, pid):
        with contextlib.suppress(OSError):
            return any(path.read_text().rsplit(")", 1)[1].split()[0] == "D"
                       for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"))
        return False

    @cost(15)
    def test_D31_QUEUE_BASE_hangs_before_the_start(self):
        i, disk = self.base_on_disk()
        i.start()
        i.stop()
        disk.forget()
        disk.hang()
        i.start(ready=False)
        wait(lambda: i.log_has(rf"ALERT: {i.base}: its disk has not answered for 2 s: nothing is started"),
             what="the name of what hangs")
        i.process.send_signal(signal.SIGTERM)
        self.assertEqual(i.process.wait(HANG), -signal.SIGTERM)
        i.start(ready=False)
        wait(lambda: len(re.findall("its disk has not answered", i.log())) >= 2, what="the same again")
        disk.go_on()
        wait(lambda: i.log().count("ready: 2 queues open") == 2, what="readiness")
        i.stop()
