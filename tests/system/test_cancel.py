"""Sessions that hang, while an operator acts on their messages or the instance
stops (docs/DELIVERY.md, "CANCEL")."""
import contextlib
import os
import re
import signal
import subprocess
import time

from case import SystemTest, cost
from instance import BIN, wait
from smtp_site import Site

HELLO = b"Subject: hello\n\nhello\n"
CONF = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}


class Cancel(SystemTest):
    def call(self, i, *words, name="qctl", status=0, **options):
        done = subprocess.run([name, *words], executable=BIN / "qctl", capture_output=True, text=True, check=False,
                              env=i.environment(), **options)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done

    def hanging(self, count=1, hold=False, conf=None):
        """Messages in sessions: that wait for a greeting, or for the last reply."""
        site = Site(mute=not hold, hold=hold)
        self.addCleanup(site.stop)
        i = self.running(queues=1, conf=CONF | (conf or {}), routing=f"* smtp:127.0.0.1:{site.port}\n")
        for n in range(count):
            i.inject(HELLO, f"r{n}@later.example")
        if hold:
            wait(lambda: len(site.held) == count, what="the messages at the server")
        else:
            wait(lambda: site.connections >= count, what="connections")
        return i, site

    def ids(self, i):
        return re.findall(r"^(\w{20,})", self.call(i, "list").stdout, re.M)

    def test_P23_delete_ends_a_session_without_a_greeting(self):
        i, _ = self.hanging()
        [name] = self.ids(i)
        done = self.call(i, "delete", name)
        self.assertIn("qctl: Deleted: 1 message\n", done.stderr)
        self.assertEqual((len(i.files("deleted")), i.files("active")), (1, []))
        wait(lambda: i.log_has(rf"{name}: deleted by an operator"), what="the line of the message")
        wait(lambda: i.log_has(r"operator uid=\d+: delete 1 message \(1 when its delivery has ended\) \(delete " + name),
             what="the line of the act")
        self.assertRegex(i.log(), r"status=deferred \(delivery interrupted by an operator\)")
        i.stop()

    def test_P23_each_act_and_face(self):
        i, site = self.hanging(count=5)
        first, second, third, *_ = self.ids(i)
        self.assertIn("postsuper: Held: 1 message\n", self.call(i, "-h", first, name="postsuper").stderr)
        self.assertIn("postsuper: Deleted: 1 message\n", self.call(i, "-d", second, name="postsuper").stderr)
        connections = site.connections
        self.call(i, "-r", third, name="postsuper")
        wait(lambda: site.connections > connections, what="the next attempt of the message that was requeued")
        self.assertIn("Deleted: 3 messages", self.call(i, "delete", "recipient=*@later.example", "state=active", "--yes").stderr)
        self.assertEqual((len(i.files("hold")), len(i.files("deleted")), i.files("active")), (1, 4, []))
        i.stop()

    def decided(self, act):
        """An act on a message whose server has all of it, and says nothing."""
        i, site = self.hanging(hold=True)
        [name] = self.ids(i)
        done = self.call(i, act, name)
        past = {"delete": "deleted", "hold": "held"}[act]
        self.assertEqual(done.stdout, f"{name}: is being delivered now; it will be {past} when that attempt ends, "
                         "within 16m at most\n")
        self.assertIn("0 messages", done.stderr)
        return i, site, name

    def kill_all(self, i):
        """All processes at once, as a machine that ends."""
        for pid in i.pids():
            with contextlib.suppress(ProcessLookupError):  # its leader was killed before it
                os.kill(pid, signal.SIGKILL)
        i.kill()
        wait(lambda: not i.pids(), what="the end of all processes")

    def killed(self, act):
        i, site, name = self.decided(act)
        self.kill_all(i)
        site.release(hold=False)
        i.start()
        wait(lambda: i.files("deleted", "hold"), 60, what="the message where the act leads")
        self.assertEqual(i.files("incoming", "active", "deferred"), [])
        return i, site, name

    @cost(8)
    def test_P23_a_delete_behind_the_end_of_the_content_survives_a_kill(self):
        i, site, name = self.killed("delete")
        self.assertEqual(len(i.files("deleted")), 1)
        self.call(i, "undelete", name)
        self.call(i, "release", name)
        wait(lambda: site.deliveries, 60, what="the delivery of a message that was undeleted and released")
        i.wait_empty()
        i.stop()

    @cost(8)
    def test_P23_a_hold_behind_the_end_of_the_content_survives_a_kill(self):
        i, site, name = self.killed("hold")
        self.assertEqual(len(i.files("hold")), 1)
        self.assertIn("by an operator (", self.call(i, "explain", name).stdout)
        self.call(i, "release", name)
        wait(lambda: site.deliveries, 60, what="the delivery of a message that was released")
        i.wait_empty()
        i.stop()

    @cost(8)
    def test_P23_a_later_act_replaces_the_earlier_one(self):
        i, site, name = self.decided("delete")
        self.call(i, "requeue", name)
        self.kill_all(i)
        site.release(hold=False)
        i.start()
        wait(lambda: site.deliveries, 60, what="the delivery of a message that was requeued")
        self.assertEqual(i.files("deleted", "hold"), [])
        i.stop()

    @cost(8)
    def test_P23_a_recipient_that_was_accepted_is_delivered(self):
        i, site, name = self.decided("delete")
        site.release()
        wait(lambda: i.log_has(rf"{name}: to=<r0@later\.example>.*status=sent"), what="the line of the delivery")
        i.wait_empty()
        self.assertEqual(i.files("deleted"), [])
        i.stop()

    @cost(8)
    def test_P24_a_stop_ends_sessions_without_a_greeting(self):
        """In no part of the limit of a stop: the two times are far apart."""
        i, _ = self.hanging(count=3, conf={"stop_time_limit": "200s", "smtp_greeting_timeout": "1h"})
        began = time.monotonic()
        i.stop()
        self.assertLess(time.monotonic() - began, 60)
        self.assertEqual(len(re.findall(r"status=deferred \(delivery interrupted: qscheduler was stopped\)", i.log())), 3)
        self.assertNotIn("agent died", i.log())
        self.assertEqual(len(i.files("deferred")), 3)
