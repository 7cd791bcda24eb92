"""New mail comes faster than the queue takes it, and queue-send is killed. The
same at full size, with times: make bench-flood."""
import ctypes
import os
import re
import signal
import subprocess
import time

from case import SystemTest, cost, needs_root
from instance import wait

_librt = ctypes.CDLL(None, use_errno=True)
HELLO = b"Subject: hello\n\nhello\n"
MALLORY, OTHER = 65534, 60123
LONGEST = 10  # seconds of in_flow_delay


class Flood(SystemTest):
    def dialogue(self, i, count):
        """One submitter of many messages: a dialogue whose input is there at once."""
        path = i.dir / f"flood{count}"
        path.write_bytes(b"EHLO flood.example\r\n" + count * (
            b"MAIL FROM:<flood@test.example>\r\nRCPT TO:<x@away.example>\r\nDATA\r\n"
            b"Subject: flood\r\n\r\nflood\r\n.\r\n") + b"QUIT\r\n")
        with open(path, "rb") as given:
            process = subprocess.Popen([i.face("sendmail"), "-bs"], stdin=given, stdout=subprocess.DEVNULL,
                                       env=i.environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def stopped(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGCONT))
        return pid

    def depth(self, i):
        """How many rings the doorbell takes while nobody hears."""
        bell = _librt.mq_open(f"/{i.name}.queue1".encode(), os.O_RDONLY | os.O_NONBLOCK)
        attr = (ctypes.c_long * 8)()
        self.assertEqual(_librt.mq_getattr(bell, attr), 0)
        os.close(bell)
        return attr[1]

    def left(self, i):
        """Senders, in the order in which their messages left incoming/."""
        return re.findall(r"/pickup: .*from=<(\w+)@test\.example>", i.log())

    @cost(20)
    def test_N49_a_submitter_of_many_messages_waits_for_the_queue(self):
        """While nothing leaves incoming/, little comes: as many messages as the doorbell takes,
        and one each in_flow_delay."""
        i = self.instance(queues=1, routing="* discard\n", conf={"in_flow_delay": f"{LONGEST}s"}).start_open()
        todo = self.stopped(i.daemons("todo-proc")[0])
        began = time.monotonic()
        flood = self.dialogue(i, 2000)
        full = wait(lambda: len(i.files("incoming")) > self.depth(i) and self.depth(i) + 1, what="a full doorbell")
        for _ in range(50):
            subprocess.run([i.face("sendmail"), "-bv", "x@test.example"], capture_output=True, check=False)
        later = (time.monotonic() - began) // LONGEST
        self.assertLessEqual(len(i.files("incoming")), full + 1 + later)
        self.assertIsNone(flood.poll(), "2000 messages were accepted while nothing left incoming/")
        os.kill(todo, signal.SIGCONT)
        self.assertEqual(flood.wait(), 0)
        i.wait_empty()
        self.assertEqual(len(self.left(i)), 2000)
        i.stop()

    @cost(20)
    def test_N50_after_a_kill_new_mail_does_not_wait_for_the_backlog(self):
        """The ring of the new message is lost: todo-proc, which ended with queue-send, finds the
        message behind 3000 others."""
        i = self.instance(queues=1, routing="* discard\n").start_open()
        supervisor = self.stopped(i.process.pid)
        os.kill(i.daemons("queue-send")[0], signal.SIGKILL)
        wait(lambda: not i.pids("todo-proc"), what="the end of todo-proc")
        self.assertEqual(self.dialogue(i, 3000).wait(), 0)
        i.inject(HELLO, "x@away.example", sender="new@test.example")
        self.assertEqual(len(i.files("incoming")), 3001)
        os.kill(supervisor, signal.SIGCONT)
        i.wait_empty()
        order = self.left(i)
        self.assertEqual(sorted(order), ["flood"] * 3000 + ["new"])
        self.assertLess(order.index("new"), 1500)
        i.stop()

    @needs_root
    @cost(15)
    def test_N51_a_user_who_floods_the_door_waits_and_others_do_not(self):
        i = self.instance(queues=1, routing="* discard\n", conf={"in_flow_delay": f"{LONGEST}s"})
        i.door()
        i.start_open()
        todo = self.stopped(i.daemons("todo-proc")[0])
        for _ in range(20):
            i.inject(HELLO, "x@away.example", uid=MALLORY)
        waits = subprocess.Popen([i.face("sendmail"), "-f", "last@test.example", "x@away.example"], stdin=subprocess.PIPE,
                                 env=i.environment(), user=MALLORY, group=MALLORY, extra_groups=[])
        self.addCleanup(waits.kill)
        waits.stdin.write(HELLO)
        waits.stdin.close()
        for _ in range(5):
            i.inject(HELLO, "x@away.example", uid=OTHER)
        self.assertIsNone(waits.poll(), "the door took another one of the user with 20 drops at once")
        self.assertEqual(len(i.files("gate/maildrop")), 25)
        os.kill(todo, signal.SIGCONT)
        self.assertEqual(waits.wait(), 0)
        i.wait_empty()
        self.assertEqual(len(self.left(i)), 26)
        i.stop()
