"""Retries: of which mail, when, for how long, and over a restart."""
import os
import re
import signal
import time

from case import SystemTest
from instance import AS_ROOT, wait

HELLO = b"Subject: hello\n\nhello\n"
LATER = "later.example smtp:127.0.0.1:1\nbad.example error:\"no\"\n* local\n"  # 1: refused
OWNER = "games" if AS_ROOT else "-"


def attempts(i, user):
    return i.log().count(f"to=<{user}@")


class Retry(SystemTest):
    def due_times(self, i):
        return {f.name: f.stat().st_mtime for f in i.files("defer")}

    def test_due_time_outlives_a_restart_and_a_flush_overrides_it(self):
        i = self.running(queues=1, routing=LATER,
                         conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        i.inject(HELLO, "x@later.example")
        wait(lambda: i.files("deferred"), what="a deferred message")
        due = self.due_times(i)
        self.assertGreater(min(due.values()), time.time() + 1800)
        i.stop()
        i.start()
        wait(lambda: i.page(1)["deferred"] == 1, what="the deferred one is known again")
        for n in range(3):  # incoming and deferred in turn: it would have had its turn
            i.inject(HELLO, "alice@test.example")
            i.wait_delivered("alice", n + 1)
        self.assertEqual(attempts(i, "x"), 1, "no attempt before it is due")
        self.assertEqual(self.due_times(i), due)
        i.flush()
        wait(lambda: attempts(i, "x") == 2, what="the attempt after a flush")
        wait(lambda: i.files("deferred"), what="deferred again")
        i.stop()

    def test_jitter_spreads_what_was_deferred_at_once(self):
        i = self.running(queues=1, routing=LATER,
                         conf={"minimal_backoff_time": "1000s", "maximal_backoff_time": "1000s"})
        count = 20
        for n in range(count):
            i.inject(HELLO, f"x{n}@later.example")
        wait(lambda: len(i.files("deferred")) == count, what="all of them deferred")
        # When the due time was written, and what was written.
        delays = [f.stat().st_mtime - f.stat().st_ctime for f in i.files("defer")]
        self.assertEqual(len(delays), count)
        self.assertGreater(min(delays), 890)
        self.assertLess(max(delays), 1110)
        self.assertGreater(max(delays) - min(delays), 20)
        i.stop()

    def test_expired_mail_is_reported_with_its_reason(self):
        i = self.running(queues=1, routing=LATER, conf={"maximal_queue_lifetime": "10s"})
        i.inject(HELLO, "x@later.example", "alice@test.example")
        i.wait_delivered("alice", 1)
        [report] = i.wait_delivered("sender", 1)
        self.assertTrue(i.log_has(r"to=<x@later\.example>.*status=deferred"))
        self.assertTrue(i.log_has(r"to=<x@later\.example>.*dsn=4\.4\.7.*status=expired"))
        text = report.read_text()
        self.assertIn("\nFinal-Recipient: rfc822; x@later.example\n", text)
        self.assertIn("\nStatus: 4.4.7\n", text)
        i.wait_empty()
        i.stop()
        self.assertEqual(i.files(), [])
        self.assertEqual(len(i.maildir("alice")), 1)

    def test_P1_done_recipients_are_done_after_a_kill_and_after_a_restart(self):
        """One recipient is delivered, the other waits: neither a kill of
        queue-send, nor one of the supervisor, nor a retry repeats the first."""
        i = self.running(queues=1, routing=LATER)
        i.inject(HELLO, "alice@test.example", "x@later.example")
        i.wait_delivered("alice", 1)
        wait(lambda: attempts(i, "x") >= 2, what="a retry")
        [pid] = i.pids("queue-send")
        os.kill(pid, signal.SIGKILL)
        count = attempts(i, "x")
        wait(lambda: attempts(i, "x") >= count + 2, what="retries after the kill of queue-send")
        i.kill()
        i.start()
        count = attempts(i, "x")
        wait(lambda: attempts(i, "x") >= count + 2, what="retries after the kill of the supervisor")
        self.assertEqual(len(i.maildir("alice")), 1)
        i.stop()

    def test_P1_done_recipients_of_a_message_that_is_being_delivered(self):
        """The kill comes while the other recipient is with its agent."""
        i = self.instance(queues=1, routing="slow.example pipe:slow\n* local\n")
        gate, began = i.mail / "gate", i.mail / "began"  # its user may write there
        os.mkfifo(gate)
        os.chmod(gate, 0o666)
        i.programs_file.write_text(
            f"slow {OWNER} /bin/sh -c \"echo >>{began}; read x <{gate}; cat >/dev/null\"\n")
        i.start()

        def begun():
            return began.stat().st_size if began.exists() else 0
        i.inject(HELLO, "alice@test.example", "x@slow.example")
        i.wait_delivered("alice", 1)
        wait(lambda: attempts(i, "alice") == 1 and begun() == 1, what="one done, one with its agent")
        [pid] = i.pids("queue-send")
        os.kill(pid, signal.SIGKILL)
        wait(lambda: begun() == 2, what="the other one again")
        gate.write_text("go\n")
        i.wait_empty()
        i.stop()
        self.assertEqual(len(i.maildir("alice")), 1)
        self.assertEqual(i.files(), [])


class Steering(SystemTest):
    """Submission takes the queue with the least load, then the least backlog."""

    def with_gate(self, transports=("pipe",), **options):
        """Mail for a transport's name .example waits until the gate is opened."""
        slow = "".join(f"{t}.example {t}:slow\n" for t in transports)
        i = self.instance(routing=f"{slow}bad.example error:\"no\"\n* local\n", **options)
        gate = i.mail / "gate"
        os.mkfifo(gate)
        os.chmod(gate, 0o666)
        i.programs_file.write_text(f"slow {OWNER} /bin/sh -c \"read x <{gate}; cat >/dev/null\"\n")
        return i, gate

    def start_known(self, i):
        """Ready, and each queue has published its page: one without is the last to be chosen."""
        i.start()
        wait(lambda: all(i.heartbeat(n) for n in i.numbers), what="a page of each queue")

    def opened(self, gate, count):
        fd = os.open(gate, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, fd)
        os.write(fd, b"\n" * count)

    def test_the_queue_with_less_load(self):
        """Load comes first: the queue with less of it has more backlog."""
        i, gate = self.with_gate(("one", "two"), queues=2, conf={
            "transports": "smtp lmtp local pipe discard error one:pipe two:pipe",
            "one_process_limit": "1", "two_process_limit": "4", "double_bounce_recipient": "",
            "two_destination_concurrency_limit": "1"})
        self.start_known(i)
        i.inject(HELLO, "x@one.example")
        busy = wait(lambda: next((n for n in i.numbers if i.page(n)["local_used"] == 1), None),
                    what="a queue that publishes its load")
        [other] = set(i.numbers) - {busy}
        for _ in range(3):  # one of them runs, the others wait for it
            i.inject(HELLO, "y@two.example")
        wait(lambda: i.page(other)["active"] == 3 and i.page(other)["local_used"] == 1, what="a backlog")
        count = 8
        for n in range(count):  # refused at once, without a report: they make no load of their own
            i.inject(HELLO, f"z{n}@bad.example", sender="")
        refused = rf"queue-send/(\d+): .*to=<z\d+@bad\.example>.*status=bounced"
        wait(lambda: len(re.findall(refused, i.log())) == count, what="all of them refused")
        self.assertEqual(set(re.findall(refused, i.log())), {str(other)})
        self.opened(gate, 4)
        i.wait_empty()
        i.stop()

    def test_the_queue_with_less_backlog(self):
        i, gate = self.with_gate(queues=1, conf={"pipe_process_limit": "1", "local_process_limit": "1"})
        i.start()
        i.stop()
        many = 8
        for n in range(many):  # there is one queue, and nothing runs
            i.inject(HELLO, f"x{n}@pipe.example")
        i.numbers = [1, 2]
        i.write_conf(queue_count=2)
        self.start_known(i)
        wait(lambda: i.page(1)["active"] == many and i.page(1)["local_used"] == 1, what="a backlog")
        i.inject(HELLO, "first@pipe.example")
        wait(lambda: i.page(2)["local_used"] == 1, what="both of one load")
        for n in range(many - 2):  # the other stays the one with less
            i.inject(HELLO, f"y{n}@pipe.example")
        wait(lambda: i.page(2)["active"] == many - 1, what="all of them in the queue with less")
        self.assertEqual(i.page(1)["active"], many)
        self.opened(gate, 2 * many)
        i.wait_empty()
        i.stop()
