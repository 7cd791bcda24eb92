"""The log: the line of an acceptance, one id from there to removal, JSON, and
what pflogsumm makes of it."""
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import unittest

from case import SystemTest
from instance import AS_ROOT, BIN, ROOT, wait
from smtp_site import Site

HELLO = b"Subject: hello\nMessage-ID: <m.%d@test.example>\n\nhello\n"
USER = 65534
CONTENT_LEN = struct.Struct("<QQQ")  # the head of a trailer: size, offset and length of the content
PFLOGSUMM = shutil.which("pflogsumm", path=os.environ["PATH"] + ":/usr/sbin:/usr/bin")
PAGE = (ROOT / "etc/man/qscheduler-log.5").read_text()


def silent_port(case):
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    case.addCleanup(s.close)
    return s.getsockname()[1]


def told(done):
    return done.stdout.decode().strip()


def lines_of(i, queue_id):
    return [line.replace(f" {queue_id}: ", " ", 1) for line in i.log().splitlines() if f": {queue_id}: " in line]


class Accepted(SystemTest):
    def mixed(self, **conf):
        port = silent_port(self)
        return self.instance(
            queues=2, conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "2h"} | conf,
            routing=f'later.example smtp:127.0.0.1:{port}\nnever.example error:"5.1.1 no such user"\n* local\n')

    def test_one_line_by_every_way_in(self):
        i = self.mixed()
        i.start()
        ways = [(None, os.geteuid())] + ([(USER, USER)] if AS_ROOT else [])
        ids = {}
        for uid, number in ways:
            for head in (HELLO % number, b"Subject: none\n\n"):
                done = i.inject(head, "bob@test.example", uid=uid, face="queue-inject")
                ids[told(done)] = (number, head)
        i.wait_delivered("bob", len(ids))
        wait(lambda: i.log().count(": removed") == len(ids), what="the end of all")
        for queue_id, (number, head) in ids.items():
            accepted = [line for line in lines_of(i, queue_id) if "/pickup: " in line]
            self.assertEqual(len(accepted), 1, accepted)
            # queue-inject adds a Message-ID where there is none.
            named = rf"m\.{number}@test\.example" if b"Message-ID" in head else r"[0-9a-f.]+@test\.example"
            self.assertRegex(accepted[0], rf"^queue-send/\d/pickup: uid={number}, size=\d+, "
                             rf"from=<sender@test\.example>, message-id=<{named}>$")
        i.stop()

    def test_a_message_id_from_outside_ends_no_field(self):
        i = self.mixed()
        i.start()
        done = i.inject(b"Message-ID: <a,\x1bstatus=sent\"(x)>\n\nx\n", "bob@test.example", face="queue-inject")
        wait(lambda: i.log_has(f"{told(done)}: removed"), what="the end")
        self.assertTrue(i.log_has(rf"{told(done)}: uid=\d+, .*, message-id=<a\\x2c\?status=sent\\x22\\x28x\\x29>$"))
        i.stop()

    def test_once_over_deaths_and_restarts(self):
        """Messages in active/, deferred/ and parked; queue-send is killed, then
        all of it stopped."""
        site = Site(hold=True)
        self.addCleanup(site.stop)
        i = self.instance(queues=1, conf={"qmgr_message_active_limit": "10", "destination_active_share": "20%"},
                          routing=f"slow.example smtp:127.0.0.1:{site.port}\n* local\n")
        i.start()
        for n in range(12):
            i.inject(HELLO % n, f"u{n}@slow.example")
        wait(lambda: i.page(1)["accepted"] == 12, what="all are taken")
        wait(lambda: i.files("active") and i.files("deferred"), what="both places")
        [old] = i.pids("queue-send")
        os.kill(old, signal.SIGKILL)
        wait(lambda: i.log_has("active queue of the last run: [1-9]"), what="the next queue-send")
        wait(lambda: i.files("active") and not i.files("incoming"), what="it has them")
        i.process.send_signal(signal.SIGTERM)
        site.release(hold=False)
        i.stop()
        i.inject(HELLO % 12, "u12@slow.example")
        i.start()
        i.flush()
        i.wait_empty()
        ids = re.findall(r"/pickup: ([0-9A-F]+): ", i.log())
        self.assertEqual((len(ids), len(set(ids))), (13, 13))
        i.stop()

    def test_one_id_from_acceptance_to_removal(self):
        """Through the door, deferred, into another queue, delivered, removed."""
        port = silent_port(self)
        i = self.instance(
            queues=1, routing=f"later.example smtp:127.0.0.1:{port}\n* local\n",
            conf={"queue_max": 3, "queue_drain_time": "0s", "minimal_backoff_time": "1h", "maximal_backoff_time": "2h"})
        i.numbers = [1, 2]
        i.start()
        self.setqload(i, "--count", "2")
        i.wait_open(1, 2)

        def send(n):
            return told(i.inject(HELLO % n, f"u{n}@later.example", uid=USER if AS_ROOT else None, face="queue-inject"))
        ids = [send(n) for n in range(3)]
        self.setqload(i, "--disable", "-q", "1")
        ids += [send(n) for n in range(3, 6)]
        self.setqload(i, "--enable", "-q", "1")
        wait(lambda: len(i.files("deferred")) == 6, what="all are deferred")
        self.assertTrue([p for p in i.files("deferred") if p.is_relative_to(i.queue(2))])
        self.setqload(i, "--count", "1")
        wait(lambda: not os.path.exists(f"/dev/shm/{i.name}.queue2"), what="the end of queue 2")
        i.routing_file.write_text("* local\n")
        i.reload()
        wait(lambda: i.log_has("configuration reloaded"), what="the new routing")
        wait(lambda: (i.flush(), len([n for n in range(6) if i.maildir(f"u{n}")]))[1] == 6, what="all are delivered")
        wait(lambda: i.log().count(": removed") == 6, what="the end of all")
        for n, queue_id in enumerate(ids):
            lines = "\n".join(lines_of(i, queue_id))
            self.assertRegex(
                lines, rf"(?s)^queue-send/(\d)/pickup: uid=\d+, .*message-id=<m\.{n}@test\.example>\n"
                rf"queue-send/\1: from=<sender@test\.example>, .*\(queue active\)\n"
                rf"queue-send/\1: to=<u{n}@later\.example>.*status=deferred.*\n"
                rf"queue-send/1: from=.*\(queue active\)\n.*status=sent.*\nqueue-send/1: removed$")
            self.assertEqual(lines.count("/pickup: "), 1)
            [mail] = i.maildir(f"u{n}")
            self.assertIn(f"id {queue_id}", " ".join(mail.read_text().split()))
        i.stop()

    def test_once_by_a_queue_that_goes(self):
        """What waits in incoming/ is logged by the queue that gives it away."""
        site = Site(hold=True)
        self.addCleanup(site.stop)
        i = self.instance(
            queues=1, routing=f"slow.example smtp:127.0.0.1:{site.port}\n* local\n",
            conf={"queue_max": 3, "queue_drain_time": "0s", "qmgr_message_active_limit": "2",
                  "destination_active_share": "100%"})
        i.numbers = [1, 2]
        i.start()
        self.setqload(i, "--count", "2")
        i.wait_open(1, 2)
        ids = [told(i.inject(HELLO % n, f"u{n}@slow.example", face="queue-inject")) for n in range(20)]

        def there(state):
            return [p for p in i.files(state) if p.is_relative_to(i.queue(2))]
        wait(lambda: len(there("active")) == 2, what="a full active queue")
        waiting = {p.name for p in there("incoming")}
        self.assertTrue(waiting)
        self.setqload(i, "--count", "1")
        wait(lambda: not there("incoming"), what="queue 1 has them")
        site.release(hold=False)
        i.wait_empty()
        wait(lambda: i.log().count(": removed") == len(ids), what="the end of all")
        logged = re.findall(r"queue-send/(\d)/pickup: ([0-9A-F]+): ", i.log())
        self.assertEqual(sorted(queue_id for _, queue_id in logged), sorted(ids))
        for queue, queue_id in logged:
            self.assertEqual(int(queue_id[16:19], 16), int(queue))
        i.stop()

    def setqload(self, i, *args):
        done = subprocess.run([BIN / "setqload", "-c", i.conf_file, *args],
                              capture_output=True, text=True, env=i.environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    # ---- pflogsumm ----

    def summary(self, i, form):
        """The totals of pflogsumm; form makes of a line what the reader gets."""
        option = re.search(r"--syslog-name='([^']+)'", PAGE).group(1).replace(r"\e", "\\")
        path = i.dir / "mail.log"
        path.write_text("".join(f"Nov 22 09:00:00 host {form(line)}\n" for line in i.log().splitlines()))
        done = subprocess.run([PFLOGSUMM, f"--syslog-name={option}", str(path)],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        totals = done.stdout.split("Per-Hour")[0]
        return {name: int(number) for number, name in re.findall(r"^ +(\d+)   ([a-z][a-z /]*[a-z])", totals, re.M)}

    @unittest.skipUnless(PFLOGSUMM, "pflogsumm is not installed")
    def test_pflogsumm_counts_what_happened(self):
        i = self.mixed()
        i.start().stop()  # the directories are there
        sent = [("bob@test.example",), ("bob@test.example", "eve@test.example"), ("x@later.example",),
                ("y@never.example",), ("bob@test.example", "z@later.example", "z@never.example")] * 3
        senders = ["a@one.example", "b@two.example", ""]
        for n, rcpts in enumerate(sent):
            i.inject(HELLO % n + b"x" * 100 * n, *rcpts, sender=senders[n % 3],
                     uid=USER if AS_ROOT and n % 2 else None)
        files = i.files("incoming", "gate/maildrop")
        bytes_in = sum(CONTENT_LEN.unpack_from(p.read_bytes()[-128:])[2] for p in files)
        i.start()
        everything = [r for rcpts in sent for r in rcpts]
        reports = sum(any("never" in r for r in rcpts) for rcpts in sent)  # mail as any other
        wait(lambda: i.log().count(", status=") == len(everything) + reports, what="all results")
        made = re.findall(r"(?:sender|postmaster) non-delivery notification: (\w+)$", i.log(), re.M)
        self.assertEqual(len(made), reports)
        bytes_in += sum(int(re.search(rf"{id}: uid=\d+, size=(\d+), from=<>", i.log()).group(1)) for id in made)
        i.stop()
        i.start()  # what was deferred does not count as received again
        i.stop()
        want = {"received": len(sent) + reports, "delivered": sum("@test" in r for r in everything) + reports,
                "deferred": sum(any("later" in r for r in rcpts) for rcpts in sent),
                "bounced": sum("never" in r for r in everything), "bytes received": bytes_in,
                "senders": 3, "sending hosts/domains": 3,
                "recipients": 5, "recipient hosts/domains": 4}  # two senders and postmaster get reports
        self.assertEqual(len(files), len(sent))
        forms = {"syslog": lambda line: re.sub(r"^([^:]+): ", r"\1[77]: ", line),
                 "journal": lambda line: "qscheduler[77]: " + line}
        for name, form in forms.items():
            got = self.summary(i, form)
            self.assertEqual({key: got.get(key) for key in want}, want, name)


    @unittest.skipUnless(PFLOGSUMM, "pflogsumm is not installed")
    def test_pflogsumm_counts_expansions_and_reports(self):
        """A name that becomes several recipients is delivered, and what it became
        is a message of its own; a report, and what its owner's name became, too."""
        i = self.mixed()
        i.alias_file.write_text("team: bob, eve, x@never.example\nowner-team: carl\n")
        i.start()
        for n in range(3):
            i.inject(HELLO % n, "team@test.example", sender="boss@one.example")
        # Of each: itself, its expansion, a report to the owner, and that one's expansion.
        wait(lambda: i.log().count(": removed") == 12, what="the end of all")
        i.stop()
        for user, count in (("bob", 3), ("eve", 3), ("carl", 3)):
            self.assertEqual(len(i.maildir(user)), count)
        sizes = re.findall(r"/pickup: \w+: uid=\d+, size=(\d+),", i.log())
        want = {"received": 12, "delivered": 3 + 6 + 3 + 3, "bounced": 3, "deferred": 0,
                "bytes received": sum(map(int, sizes)), "senders": 3, "recipients": 5}
        self.assertEqual(len(sizes), 12)
        for form in (lambda line: re.sub(r"^([^:]+): ", r"\1[77]: ", line), lambda line: "qscheduler[77]: " + line):
            got = self.summary(i, form)
            self.assertEqual({key: got.get(key, 0) for key in want}, want)


class Form(SystemTest):
    def test_json_has_events_ids_and_numbers(self):
        i = self.instance(queues=1, conf={"log_format": "json", "log_level": "debug"},
                          routing='never.example error:"5.1.1 no such user"\n* local\n')
        i.start()
        done = i.inject(HELLO % 1, "bob@test.example", "x@never.example", face="queue-inject")
        wait(lambda: i.log().count('"event":"removed"') == 2, what="its end, and that of its report")
        i.reload()
        wait(lambda: i.log().count("configuration reloaded") == 5, what="a reload by all")
        i.stop()
        events = [json.loads(line) for line in i.log().splitlines() if line.startswith("{")]
        self.assertEqual(len(events), len(i.log().splitlines()), i.log())
        for event in events:
            self.assertIn(f".It Cm {event['event']}\n", PAGE)
            self.assertNotEqual(event["event"], "note", event)
            self.assertNotRegex(event.get("text", ""), r"\b[0-9A-F]{19,}\b: ")
        # The counts of a stopping queue-send are for debugging.
        self.assertIn("delivery slots granted", i.log())
        i.write_conf(log_level="info")
        i.start()
        before = len(i.log())
        i.stop()
        self.assertNotIn("table of destinations", i.log()[before:])
        of = {e["event"]: e for e in events if e.get("queue_id") == told(done)}
        self.assertEqual(set(of), {"accepted", "active", "delivery", "notification", "removed"} | ({"picked-up"} & set(of)))
        accepted, delivery = of["accepted"], of["delivery"]
        self.assertEqual((accepted["uid"], accepted["from"], accepted["message-id"], accepted["program"]),
                         (os.geteuid(), "sender@test.example", "m.1@test.example", "queue-send/1"))
        self.assertEqual(accepted["size"], of["active"]["size"])
        self.assertIsInstance(delivery["delay"], (int, float))
        self.assertEqual(list(delivery["delays"]), ["before", "active", "connect", "send"])
        for value in delivery["delays"].values():
            self.assertIsInstance(value, (int, float))

    def test_one_reload_is_told_once(self):
        i = self.running(queues=3)
        for count in (1, 2):
            i.write_conf(maximal_backoff_time=f"{count + 2}s")
            i.reload()
            wait(lambda n=count: i.log().count("configuration reloaded") >= n, what="the reload")
        i.inject(HELLO % 1, "bob@test.example")
        i.wait_delivered("bob", 1)
        i.stop()
        self.assertEqual(i.log().count("configuration reloaded"), 2)
