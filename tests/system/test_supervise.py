"""P rows of the supervisor, with programs that are not what they should be."""
import os
import signal
import subprocess

from case import SystemTest, cost
from instance import BIN, wait

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

    def fds(self, pid):
        return sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0]
                      for fd in os.listdir(f"/proc/{pid}/fd"))

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
            pids = i.pids("queue-send")
            return len(i.pids()) == 5 and len(pids) == 1 and pids[0]
        wait(settled, what="all")
        before, restarts = self.fds(i.process.pid), 0
        while restarts < 200:
            old = wait(settled, what="all again")
            os.kill(old, signal.SIGKILL)
            wait(lambda: settled() not in (0, False, old), what="the next")
            restarts += len(CHILDREN)
        wait(lambda: self.fds(i.process.pid) == before, 10, "as many descriptors as before")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_P18_standard_descriptors_closed(self):
        i = self.instance()
        done = subprocess.run(["/bin/sh", "-c", 'exec 0<&- 1>&- 2>&-; exec "$@"', "sh", BIN / "qscheduler",
                               "--check", "-c", i.conf_file], check=False, env=i.environment())
        self.assertEqual(done.returncode, 0)
        i.start(prefix=("/bin/sh", "-c", 'exec 0<&- 1>&- 2>&-; exec "$@"', "sh"))
        for pid in i.pids():
            try:
                for fd in range(3):
                    self.assertEqual(os.readlink(f"/proc/{pid}/fd/{fd}"), "/dev/null")
            except PermissionError:
                pass  # not dumpable: only root may look
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()
