"""D rows: disks that stop answering, reads as well as writes, and answer again."""
import contextlib
import os
import pathlib
import re
import signal
import struct
import subprocess
import time
import unittest

from case import SystemTest, cost
from hung_disk import HungDisk, missing
from instance import BIN, HANG, wait
from smtp_site import Site
from test_ipc import Bell
from test_grow import sched, states

HELLO = b"Subject: hello\n\nhello\n"
QUICK = {"disk_time_limit": "2s", "stop_time_limit": "3s", "restart_delay_max": "1s"}
BELL = struct.Struct("=iIQ")
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
    with contextlib.suppress(OSError):  # one that has just ended
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "D"
    return False


def threads_that_sleep(pid):
    """Threads of the process that are in the kernel, where no signal reaches them."""
    return [int(t) for t in os.listdir(f"/proc/{pid}/task") if sleeps_in_kernel(f"{pid}/task/{t}")]


def loop_runs(pid):
    """Has its first thread not ended?"""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


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
        """mutation: wait_for() of inventory.c has no end."""
        i, disk = self.prepare()
        i.start_open()
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
        wait(lambda: states(i) == [1, 3], what="the others")
        i.wait_delivered("alice", sent - there)
        self.others_go_on(i, "bob")
        self.assertTrue(i.log_has("ALERT: queue 2: its disk has not answered"))
        disk.go_on()
        wait(lambda: states(i) == [1, 2, 3], what="its return, by itself")
        i.wait_delivered("alice", sent)
        i.wait_empty()
        i.stop()

    @cost(15)
    def test_D31_a_start_waits_for_the_first_disk_that_answers(self):
        """A slow disk is not one that hangs, and without a queue there is nothing to be ready
        for; queue7 has answered, and is none. mutation: wait_for() of inventory.c ends
        START_WAIT after it began; it does not ask is_one()."""
        i, disk = self.prepare(queues=1, hung=1, conf={"disk_time_limit": "10m"})
        (i.base / "queue7").mkdir()
        disk.hang()
        i.start(ready=False)
        late = time.monotonic() + 8
        wait(lambda: i.log_has("ready: ") or time.monotonic() > late, what="some time")
        self.assertFalse(i.log_has("ready: "), "it waits")
        disk.go_on()
        wait(lambda: i.log_has("ready: 1 queue open"), what="its start")
        self.inject(i, "alice", 1)
        i.wait_delivered("alice", 1)
        i.stop()

    def hangs_while_running(self, hang, go_on):
        i, disk = self.prepare()
        i.start_open()
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
        """A flush walks over all of them. mutation: walk_next() reads in the loop."""
        i, disk = self.prepare(queues=2, conf={"disk_time_limit": "10m"})
        i.start_open()
        pid = child(i, "queue-send", 2)
        disk.hang()
        i.process.send_signal(signal.SIGALRM)
        wait(lambda: [t for t in threads_that_sleep(pid) if t != pid], what="a thread that waits for the disk")
        began = i.heartbeat(2)
        wait(lambda: i.heartbeat(2) > began + 6_000_000, what="heartbeats all the while")
        disk.go_on()
        self.inject(i, "alice", 4)
        i.wait_delivered("alice", 4)
        i.stop()

    @cost(10)
    def test_D41_deliveries_go_on_while_files_move_slowly(self):
        """mutation: executor_do() does all work in the loop."""
        site = Site(hold=True)
        self.addCleanup(site.stop)
        i, disk = self.prepare(queues=1, hung=1, routing=f"* smtp:127.0.0.1:{site.port}\n", conf={
            "disk_time_limit": "10m", "minimal_backoff_time": "1h", "maximal_backoff_time": "1h",
            "smtp_destination_recipient_limit": "1", "smtp_process_limit": "4"})
        i.start_open()
        self.inject(i, "leaves", 3)
        wait(lambda: len(site.held) == 3, what="messages that are about to leave")
        i.inject(HELLO, *(f"stays{n}@test.example" for n in range(20)))
        wait(lambda: len(site.held) == 4, what="another one, which stays")
        pid = child(i, "queue-send", 1)
        site.answer = b"451 4.3.2 later"
        disk.hang()
        site.release(3)
        wait(lambda: [t for t in threads_that_sleep(pid) if t != pid], what="a move that waits for the disk")
        for n in range(20):
            wait(lambda: site.held, what=f"delivery {n} of the message in memory")
            site.release(1)
        began = i.heartbeat(1)
        wait(lambda: i.heartbeat(1) > began + 2_000_000, what="heartbeats all the while")
        self.assertEqual(len(site.deliveries), 23)
        self.assertTrue([t for t in threads_that_sleep(pid) if t != pid], "it waits still")
        disk.go_on()
        wait(lambda: i.page(1)["deferred"] == 4, what="all moves")
        site.answer = b"250 2.0.0 ok"
        site.release(hold=False)
        i.flush()
        i.wait_empty()
        self.assertEqual(len(site.deliveries), 46)
        i.stop()

    @cost(10)
    def test_D42_rings_and_a_stop_are_heard_while_files_are_not_read(self):
        """mutation: disk_do() of common/daemon/executor.c gives nothing to the pool."""
        i, disk = self.prepare(queues=1, hung=1, conf={"disk_time_limit": "10m"})
        i.start_open()
        pid = child(i, "todo-proc", 1)
        bell = Bell(i, 1)
        self.addCleanup(bell.close)
        disk.hang()
        self.assertTrue(bell.send(BELL.pack(1, 0, 4711)))
        wait(lambda: threads_that_sleep(pid), what="a thread that waits for the disk")
        wait(lambda: pid not in threads_that_sleep(pid), what="its loop, which writes to other disks, too")
        before = i.page(1)["rings"]
        for n in range(20):
            wait(lambda n=n: bell.send(BELL.pack(1, 0, 5000 + n)), what="room in the bell")
        wait(lambda: i.page(1)["rings"] >= before + 20, what="its counts, on the page")
        wait(lambda: pid not in threads_that_sleep(pid), what="its loop, which writes to other disks, too")
        os.kill(pid, signal.SIGTERM)
        wait(lambda: not loop_runs(pid), what="the end of its loop")
        disk.go_on()
        self.inject(i, "bob", 4)
        i.wait_delivered("bob", 4)
        i.stop()

    @cost(20)
    def test_D43_selections_go_on_while_a_disk_takes_3_s(self):
        """Of messages in memory, and of another queue; others come and leave. mutation:
        set_threads() of control.c sets none."""
        site = Site(hold=True)
        self.addCleanup(site.stop)
        i, disk = self.prepare(queues=2, hung=1, routing=f"alice@test.example local\n* smtp:127.0.0.1:{site.port}\n",
                               conf={"disk_time_limit": "10m", "minimal_backoff_time": "1h",
                                     "maximal_backoff_time": "1h", "smtp_destination_recipient_limit": "1",
                                     "smtp_initial_destination_concurrency": "44", "smtp_process_limit": "44",
                                     "smtp_destination_concurrency_limit": "44"})
        i.start_open()
        self.only_queue(i, 1)
        self.inject(i, "leaves", 40)
        wait(lambda: len(site.held) == 40, what="messages that are about to leave")
        i.inject(HELLO, *(f"stays{n}@test.example" for n in range(100)))
        wait(lambda: len(site.held) == 44, what="one that stays")
        self.only_queue(i, 2)
        site.answer = b"451 4.3.2 later"
        disk.be_slow()
        site.release(40)
        site.answer = b"250 2.0.0 ok"
        site.release(hold=False)
        self.inject(i, "alice", 10)
        wait(lambda: len(site.deliveries) == 140, what="100 selections of the message in memory")
        i.wait_delivered("alice", 10)
        self.assertLess(i.page(1)["deferred"], 40, "moves have not ended, which take longer than any wait here")
        disk.go_on()
        wait(lambda: i.page(1)["deferred"] == 40, what="those that leave")
        i.flush()
        i.wait_empty()
        self.assertEqual(len(site.deliveries), 180)
        i.stop()

    def begin_act(self, i, verb, sender):
        """Of qctl, which reads what it acts on first."""
        act = subprocess.Popen([BIN / "qctl", "-c", i.conf_file, verb, f"sender={sender}@*"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=i.environment())
        self.addCleanup(act.wait, HANG)
        self.addCleanup(act.kill)
        return act

    @cost(15)
    def test_D43_acts_of_operators_wait_for_a_frozen_disk_and_nothing_else_does(self):
        """Reads are answered, so qctl finds the messages. mutation: act_run() of act_run.c
        gives nothing to the pool."""
        site = Site(hold=True)
        self.addCleanup(site.stop)
        i, disk = self.prepare(queues=2, hung=1, routing=f"alice@test.example local\n* smtp:127.0.0.1:{site.port}\n",
                               conf={"disk_time_limit": "10m", "minimal_backoff_time": "1h",
                                     "maximal_backoff_time": "1h", "smtp_destination_recipient_limit": "1",
                                     "smtp_process_limit": "3"})
        i.start_open()
        self.only_queue(i, 1)
        site.answer = b"451 4.3.2 later"
        verbs = {"held": ("hold", "Held"), "again": ("requeue", "Requeued"), "gone": ("delete", "Deleted")}
        for name in verbs:
            i.inject(HELLO, f"{name}@test.example", sender=f"{name}@test.example")
        wait(lambda: len(site.held) == 3, what="messages that are about to wait")
        site.release(3)
        wait(lambda: len(i.files("deferred")) == 3, what="them on the disk")
        for name, count in (("first", 10), ("last", 10)):
            i.inject(HELLO, *(f"{name}{n}@test.example" for n in range(count)), sender=f"{name}@test.example")
        wait(lambda: len(site.held) == 3 and len(i.files("active")) == 2, what="messages in memory")
        self.only_queue(i, 2)
        pid = child(i, "queue-send", 1)
        disk.freeze()
        acts = {name: self.begin_act(i, verb, name) for name, (verb, _) in verbs.items()}
        wait(lambda: len(set(threads_that_sleep(pid)) - {pid}) == 3, what="three acts that wait for the disk")
        for n in range(10):
            wait(lambda: site.held, what=f"delivery {n} of the messages in memory")
            site.release(1)
        self.inject(i, "alice", 3)
        i.wait_delivered("alice", 3)
        self.assertEqual(self.qctl(i, "requeue", "sender=last@*"), (0, "", "qctl: Requeued: 1 message\n"))
        self.assertEqual({act.poll() for act in acts.values()}, {None})
        self.assertEqual(len(i.files("deferred")), 3, "nothing has moved")
        disk.thaw()
        for name, (_, said) in verbs.items():
            self.assertEqual(acts[name].communicate(timeout=HANG), ("", f"qctl: {said}: 1 message\n"))
        self.assertEqual([len(i.files(state)) for state in ("hold", "deleted")], [1, 1])
        site.answer = b"250 2.0.0 ok"
        site.deliveries.clear()
        site.release(hold=False)
        for words in (("undelete", "sender=gone@*"), ("release", "ALL")):
            self.assertEqual(self.qctl(i, *words)[0], 0)
        wait(lambda: not i.files("hold", "deleted", "active", "incoming"), what="the end of each attempt")
        i.flush()
        i.wait_empty()
        got = sorted(rcpt for _, rcpts in site.deliveries for rcpt in rcpts)
        self.assertEqual(got, sorted(f"{user}@test.example" for user in (
            *verbs, *(f"{name}{n}" for name in ("first", "last") for n in range(10)))))
        i.stop()

    @cost(10)
    def test_D43_an_order_without_an_answer_is_carried_out_later(self):
        """mutation: actor_do() of rounds.c asks again with the serial 1."""
        i, disk = self.prepare(queues=1, hung=1, routing="* smtp:127.0.0.1:9\n",
                               conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        i.start_open()
        self.inject(i, "bob", 3)
        wait(lambda: len(i.files("deferred")) == 3, what="deferred mail")
        disk.freeze()
        code, _, said = self.qctl(i, "hold", "queue=1")
        self.assertEqual((code, said), (
            75, "qctl: queue 1: it was asked, and has not answered: the order may still be carried out when its disk "
            "answers\nqctl: Held: 0 messages\nqctl: 3 messages are without an answer, and may still be held: "
            "run the command again\n"))
        code, _, said = self.qctl(i, "hold", "queue=1", "--reason", "again")
        self.assertEqual((code, said.count("an order about it waits for the disk: try again")), (75, 3), said)
        disk.thaw()
        wait(lambda: len(i.files("hold")) == 3, what="the order")
        wait(lambda: i.log_has(r"operator uid=0: hold 3 messages \(.*hold queue=1, interrupted\)"), what="its line")
        self.assertTrue(i.log_has(r"operator uid=0: hold 0 messages, 3 not \(.*hold queue=1 --reason again\)"), i.log())
        i.stop()

    def only_queue(self, i, number):
        """New mail goes there."""
        for args in (("--enable", "-q", str(number)), ("--disable", "-q", str(3 - number))):
            done = self.setqload(i, *args)
            self.assertEqual(done.returncode, 0, done.stderr)

    @cost(20)
    def test_D31_P10_a_stop_while_a_disk_hangs(self):
        """mutation: on_tick() does not look at stop_deadline."""
        i, disk = self.prepare()
        i.start_open()
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
        i.start_open()
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

    def base_on_disk(self, **options):
        """QUEUE_BASE itself hangs, its queues are elsewhere."""
        i = self.instance(conf=QUICK | {"heartbeat_time_limit": "60s"}, **options)
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
        i.start_open()
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

    def qctl(self, i, *words):
        done = subprocess.run([BIN / "qctl", "-c", i.conf_file, *words], capture_output=True, text=True, check=False,
                              timeout=HANG, env=i.environment())
        return done.returncode, done.stdout, done.stderr

    @cost(10)
    def test_D31_qctl_while_QUEUE_BASE_hangs(self):
        """mutation: qctl/task/queues.c, queues_find() calls read_base() itself."""
        i, disk = self.base_on_disk(routing="later.example smtp:127.0.0.1:1\n* local\n")
        i.start_open()
        i.inject(HELLO, "x@later.example")
        wait(lambda: len(i.files("deferred")) == 1, what="the message to wait")
        disk.hang()
        silent = f"qctl: {i.base}: its disk does not answer; the queues are those that the supervisor knows\n"
        code, said, complaint = self.qctl(i, "list", "--json")
        self.assertEqual((code, said.count("x@later.example"), complaint), (75, 1, silent))
        code, said, complaint = self.qctl(i, "hold", "ALL")
        self.assertEqual((code, said, complaint), (75, "", silent + "qctl: Held: 1 message\n"))
        self.assertEqual(self.qctl(i, "check"), (75, "no flaw\n", silent))
        self.assertEqual(self.qctl(i, "rules"), (75, "", silent))
        disk.go_on()
        self.assertEqual(self.qctl(i, "release", "ALL")[2], "qctl: Released: 1 message\n")
        i.stop()
        disk.hang()
        self.assertEqual(self.qctl(i, "list"), (75, "", silent +
                         "qctl: no queue is known: no supervisor of this instance is running: start qscheduler\n"))
        disk.go_on()

    @cost(25)
    def test_D31_rules_of_hold_on_a_disk_that_hangs(self):
        """mutation: queue-send/rules/rules.c, put() takes a pool of no threads."""
        i = self.instance(queues=1, conf=QUICK)
        i.base.mkdir()
        disk = HungDisk(i.dir / "disk", i.base / "rules")
        self.addCleanup(disk.close)
        i.start_open()
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
        i.start_open()
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
