"""P rows of the supervisor, with programs that are not what they should be."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

from case import SystemTest, cost
from instance import AS_ROOT, BIN, HANG, wait

HELLO = b"Subject: hello\n\nhello\n"
CHILDREN = ("queue-send", "todo-proc", "deliver-local", "deliver-smtp")


class Supervision(SystemTest):
    def programs(self, i, **scripts):
        """A program_dir with scripts in place of some programs."""
        directory = i.dir / "programs.d"
        directory.mkdir()
        for name in CHILDREN:
            script = scripts.get(name.replace("-", "_"))
            if script is None:
                (directory / name).symlink_to(BIN / name)
            else:
                (directory / name).write_text(script)
                (directory / name).chmod(0o755)
        i.write_conf(program_dir=directory, restart_delay_max="1s", quarantine_delay_max="1s")

    def fds(self, i):
        """Of the supervisor; None while a worker of it has some."""
        pid = i.process.pid
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found = sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0]
                           for fd in os.listdir(f"/proc/{pid}/fd"))
            return found if i.pids("qscheduler") == [pid] else None
        return None

    @cost(15)
    def test_P5_P6_P7_an_agent_that_cannot_be(self):
        for script, said in (("no program\n", "exec: Exec format error"),
                             ("#!/no/such/shell\n", "exec: No such file or directory"),
                             ("#!/bin/sh\nexit 0\n", "ended with status 0"),
                             ("#!/bin/sh\nkill -SEGV $$\n", "died of signal 11")):
            i = self.instance()
            self.programs(i, deliver_smtp=script)
            i.start()
            wait(lambda: i.log_has(f"error: deliver-smtp/1.*{said}"), what=said)
            wait(lambda: i.log_has("queue 2 is quarantined: deliver-smtp failed 5 times"),
                 what="quarantine")
            # Nothing else is disturbed: the other agent delivers.
            i.inject(HELLO, "alice@test.example")
            i.wait_delivered("alice", 1)
            self.assertFalse(i.log_has("error: (queue-send|todo-proc|deliver-local)"), i.log())
            i.stop()

    @cost(40)
    def test_P1_200_restarts_leak_nothing(self):
        i = self.instance(queues=1, conf={"restart_delay_max": "1s", "quarantine_delay_max": "1s"})
        i.start()

        def settled():
            pids = i.daemons("queue-send")
            return len(i.daemons()) == 5 and len(pids) == 1 and pids[0]
        wait(settled, what="all")
        before, restarts = wait(lambda: self.fds(i), what="rest"), 0
        while restarts < 200:
            old = wait(settled, what="all again")
            os.kill(old, signal.SIGKILL)
            wait(lambda: settled() not in (0, False, old), what="the next")
            restarts += len(CHILDREN)
        wait(lambda: self.fds(i) == before, what="as many descriptors as before")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_queue_send_and_todo_proc_gather_work_and_others_have_the_class_of_the_supervisor(self):
        i = self.instance(queues=1)
        for ours, gathers in ((os.SCHED_OTHER, os.SCHED_BATCH), (os.SCHED_IDLE, os.SCHED_IDLE)):
            i.start(prefix=("chrt", "--idle" if ours == os.SCHED_IDLE else "--other", "0"))
            for program in CHILDREN:
                [pid] = i.pids(program)
                want = gathers if program in ("queue-send", "todo-proc") else ours
                self.assertEqual(os.sched_getscheduler(pid), want, program)
            i.inject(HELLO, "alice@test.example")
            i.wait_empty()
            i.stop()

    def test_P18_standard_descriptors_closed(self):
        i = self.instance()
        done = subprocess.run(["/bin/sh", "-c", 'exec 0<&- 1>&- 2>&-; exec "$@"', "sh", BIN / "qscheduler",
                               "--check", "-c", i.conf_file], check=False, env=i.environment())
        self.assertEqual(done.returncode, 0)
        i.start(prefix=("/bin/sh", "-c", 'exec 0<&- 1>&- 2>&-; exec "$@"', "sh"))
        for pid in i.all_daemons():
            try:
                for fd in range(3):
                    self.assertEqual(os.readlink(f"/proc/{pid}/fd/{fd}"), "/dev/null")
            except PermissionError:
                pass  # not dumpable: only root may look
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def stopped(self, pid):
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        return stat.rsplit(")", 1)[1].split()[0] == "T"

    def stop_process(self, pid):
        os.kill(pid, signal.SIGSTOP)
        wait(lambda: self.stopped(pid), what="it is stopped")

    def test_P7_a_sender_that_loses_a_helper_and_exits_0_is_restarted(self):
        i = self.running(queues=1)
        i.all_daemons()
        [old] = i.pids("queue-send")
        os.kill(i.pids("deliver-smtp")[0], signal.SIGKILL)
        os.kill(old, signal.SIGTERM)  # nobody of ours asks it: it ends well
        wait(lambda: i.log_has("queue-send/1 .pid .*ended with status 0: again"), what="a failure")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        self.assertNotEqual(i.pids("queue-send"), [old])
        i.stop()

    def test_P1_a_killed_group_is_back_soon(self):
        i = self.running(queues=1)
        old = i.all_daemons()
        [sender] = i.pids("queue-send")
        os.kill(sender, signal.SIGKILL)
        again = wait(lambda: re.findall(rf"queue-send/1 .pid {sender}. .*: again in (-?[0-9.]+) s", i.log()),
                     what="its end in the log")
        self.assertLessEqual(float(again[0]), 0.25)
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        wait(lambda: len(i.daemons()) == 5, what="all of it")
        self.assertEqual(set(i.daemons()) & set(old), {i.process.pid}, "nobody of the old group")
        self.assertFalse(i.log_has("status 0: again"), "who followed queue-send is not to blame")
        i.stop()

    @cost(15)
    def test_P3_a_stopped_queue_send_is_noticed_and_told_to_go_on(self):
        """The heartbeat is in the page, which is as old as that of a queue that hangs."""
        i = self.running(queues=2)
        victim = i.pids("queue-send")[0]
        self.stop_process(victim)
        i.write_conf(heartbeat_time_limit="2s")
        i.reload()
        wait(lambda: i.log_has("no sign of life.*stopped by a signal; it is told to go on"), what="notice")
        i.write_conf(heartbeat_time_limit="1h")
        i.reload()  # its answer may take as long as it likes
        wait(lambda: i.log_has("answers again"), what="its answer")
        self.assertIn(victim, i.pids("queue-send"))
        for n in range(4):
            i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 4)
        i.stop()

    def test_P10_a_stop_ends_children_that_are_stopped(self):
        i = self.running(queues=2)
        for pid in i.all_daemons():
            if pid != i.process.pid:
                self.stop_process(pid)
        i.stop()
        self.assertFalse(i.log_has("killed"), "they go on, and end in order")

    def test_P10_term_together_with_a_reload_and_an_end(self):
        """All three are there when it looks; what a reload says that falls into a stop is
        in test_disks. mutation: super_stop() is not among the signals."""
        i = self.running(queues=2)
        self.stop_process(i.process.pid)
        os.kill(i.pids("queue-send")[0], signal.SIGKILL)
        i.reload()
        i.process.send_signal(signal.SIGTERM)
        i.process.send_signal(signal.SIGCONT)
        self.assertEqual(i.process.wait(HANG), 0)
        self.assertTrue(i.log_has("qscheduler: stopping"))
        self.assertFalse(i.log_has("configuration reloaded|again in"), "nothing begins after TERM")
        i.stop()

    @cost(10)
    def test_P13_too_little_memory_for_a_child(self):
        i = self.instance(queues=1, conf={"process_memory_limit": "2m", "restart_delay_max": "1s"})
        i.start()  # whoever cannot start is not waited for
        wait(lambda: i.log_has("queue 1 is quarantined"), what="quarantine")
        i.write_conf(process_memory_limit="4g")
        i.reload()  # and what waits is tried at once
        wait(lambda: i.log_has("queue 1 is out of quarantine"), what="recovery")
        wait(lambda: i.inject(HELLO, "alice@test.example", check=False).returncode == 0, what="acceptance")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_P13_children_are_bound_and_programs_are_not(self):
        i = self.instance(queues=1, routing="prog.example pipe:limits\n* local\n")
        record = i.mail / "limit"  # its user may write there
        owner = "games" if AS_ROOT else "-"
        i.programs_file.write_text(
            f"limits {owner} /bin/sh -c \"cat >/dev/null; ulimit -S -v >{record}.new; mv {record}.new {record}\"\n")
        i.start()
        i.all_daemons()
        for name in CHILDREN:
            [pid] = i.pids(name)
            limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
            self.assertRegex(limits, rf"Max address space +{4 << 30} ", name)
        i.inject(HELLO, "x@prog.example")
        wait(record.exists, what="the program")
        self.assertEqual(record.read_text().strip(), "unlimited")
        i.stop()

    def test_P19_hostile_environment(self):
        hostile = """
import os, resource, signal, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
os.umask(0)
for number in set(range(1, 65)) - {9, 19, 32, 33}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
os.environ["QUEUE_HUGE"] = "x" * 100000
os.environ["IFS"] = "/"
os.chdir("/proc")
os.execv(sys.argv[1], sys.argv[1:])
"""
        i = self.instance()
        i.start(prefix=("/usr/bin/python3", "-c", hostile))
        for n in range(2):
            i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 2)
        i.wait_empty()
        i.stop()  # nothing moves any more
        for path in i.base.rglob("*"):
            if path.name != "maildrop":  # behind the gate
                self.assertEqual(path.stat().st_mode & 0o002, 0, path)

    def test_P20_a_queue_of_another_layout_is_refused_and_the_others_go_on(self):
        i = self.running(queues=2)
        i.stop()
        queue = i.queue(2)
        marker = queue / "queue"
        was = marker.read_bytes()

        def state():
            """Of each file and directory of the queue: identity, owner, mode, size, changes."""
            stats = {path: path.lstat() for path in (queue, *queue.rglob("*"))}
            return {path: (s.st_ino, s.st_uid, s.st_gid, s.st_mode, s.st_size, s.st_ctime_ns) for path, s in stats.items()}

        def refuses(*command):
            done = subprocess.run(command, env=i.environment(), capture_output=True, text=True, check=False)
            self.assertRegex(done.stdout + done.stderr, told, command)
            return done.returncode

        for version in "0", "2":  # older, newer
            told = (rf"{queue}: layout version {version}, this program reads version 1; nothing was changed: "
                    "deliver its mail with the qscheduler that made it, then remove")
            marker.write_bytes(was.replace(b" 1 ", b" %s " % version.encode(), 1))
            before = state()
            refuses(BIN / "qscheduler", "--check", i.conf_file)
            i.start()
            wait(lambda: i.log_has(f"ALERT: queue 2 is disabled: {queue}: layout version {version}, this program"),
                 what="refusal")
            for _ in range(3):
                i.inject(HELLO, "alice@test.example")
            i.wait_delivered("alice", 3 + 3 * int(version) // 2)
            for command in ("list",), ("check",), ("check", "--repair"), ("hold", "state=deferred"):
                self.assertNotEqual(refuses(BIN / "qctl", *command), 0, command)
            self.assertEqual(refuses(i.door(), i.base, "2"), 75)
            self.assertEqual(state(), before)
            marker.write_bytes(was)
            i.reload()
            wait(lambda: i.log_has("queue 2 is enabled again"), what="its return")
            i.stop()

    @cost(10)
    def test_P6_quarantine_says_what_the_child_said_last(self):
        i = self.running(queues=2)
        i.stop()
        lock = i.queue(2) / "lock/todo-proc"
        lock.unlink()
        lock.mkdir()
        i.start()
        wait(lambda: i.log_has("queue 2 is quarantined: todo-proc failed 5 times in a row, ended with status"
                               r".*: Is a directory"), what="the reason with its cause, however long the path is")
        for _ in range(3):
            i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 3)
        lock.rmdir()
        i.reload()  # tries at once what would be tried in a minute
        wait(lambda: i.log_has("queue 2 is out of quarantine"), what="recovery")
        wait(lambda: len(i.pids("todo-proc")) == 2, what="todo-proc")
        i.stop()
