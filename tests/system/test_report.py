"""Senders learn what became of their mail, once."""
import contextlib
import email
import os
import random
import signal
import time

from case import SystemTest, cost, needs_root
from instance import wait

HELLO = b"Subject: hello\n\nhello\n"
ROUTING = 'never.example error:"5.1.1 no such user"\nlater.example smtp:127.0.0.1:1\n* local\n'


class Reports(SystemTest):
    def reports(self, i, user, count=1):
        return [email.message_from_bytes(p.read_bytes()) for p in i.wait_delivered(user, count)]

    def under_kill_9(self, seed, recipient, args=()):
        """The reports of 60 senders, one message each, while queue-send is killed again and again. Copies of one
        report are what any mail may have that was in flight; its Message-ID tells."""
        i = self.running(queues=1, routing=ROUTING,
                         conf={"restart_delay_max": "1s", "quarantine_delay_max": "1s"})
        dice, count, kills = random.Random(seed), 60, 0
        for n in range(count):
            i.inject(HELLO, recipient.format(n), sender=f"s{n}@test.example", args=args)
            if n % 4 == 3:
                wait(lambda: i.pids("queue-send"), what="a queue-send")
                time.sleep(dice.random() * 0.03)  # somewhere in its work
                for pid in i.pids("queue-send"):
                    with contextlib.suppress(ProcessLookupError):  # of the last turn
                        os.kill(pid, signal.SIGKILL)
                        kills += 1
        i.wait_empty()
        wait(lambda: not i.files(), what="reasons without a message to go")
        i.stop()
        self.assertGreater(kills, 10)
        found = [self.reports(i, f"s{n}") for n in range(count)]
        for n, reports in enumerate(found):
            self.assertEqual(len({r["Message-ID"] for r in reports}), 1, f"s{n}")
        return found


class Report(Reports):
    def fields(self, report):
        """The fields of each recipient."""
        self.assertEqual(report.get_content_type(), "multipart/report")
        return report.get_payload()[1].get_payload()[1:]

    def test_a_report_has_the_recipients_and_the_message(self):
        i = self.running(routing=ROUTING)
        i.inject(HELLO, "x@never.example", "alice@test.example", "y@never.example", sender="bob@test.example")
        [report] = self.reports(i, "bob")
        i.wait_delivered("alice", 1)
        i.wait_empty()
        i.stop()
        self.assertEqual([f["Final-Recipient"] for f in self.fields(report)],
                         ["rfc822; x@never.example", "rfc822; y@never.example"])
        self.assertEqual({f["Status"] for f in self.fields(report)}, {"5.1.1"})
        self.assertEqual(report["Return-Path"], "<>")
        self.assertEqual(report["Auto-Submitted"], "auto-replied")
        self.assertTrue(report.get_payload()[2].as_bytes().endswith(b"\n" + HELLO))
        self.assertTrue(i.log_has(r": sender non-delivery notification: [0-9A-F]+$"))
        self.assertEqual(i.files(), [])
        self.assertEqual(len(i.maildir("bob")), 1)

    def test_D36_a_report_that_fails_goes_to_postmaster_once(self):
        i = self.running(queues=1, routing='* error:"5.1.1 closed"\n')
        i.inject(HELLO, "x@never.example")
        wait(lambda: i.log_has("without a report"), what="the end")
        i.wait_empty()
        i.stop()
        self.assertEqual([i.log().count(f"{who} non-delivery notification") for who in ("sender", "postmaster")],
                         [1, 1])
        self.assertEqual(i.log().count("status=bounced"), 3)
        self.assertEqual(i.files(), [])

    def test_D36_aliases_of_postmaster_make_no_circle(self):
        i = self.running(queues=1, routing='never.example error:"5.1.1 closed"\n* local\n',
                         aliases="postmaster: p@never.example\n")
        i.inject(HELLO, "x@never.example", sender="s@never.example")
        wait(lambda: i.log_has("without a report"), what="the end")
        i.wait_empty()
        i.stop()
        self.assertEqual([i.log().count(f"{who} non-delivery notification") for who in ("sender", "postmaster")],
                         [1, 1])
        self.assertEqual(i.files(), [])

    @cost(30)
    def test_D36_P1_each_sender_has_one_report_under_kill_9(self):
        self.under_kill_9(5, "x{}@never.example")

    DELAYS = {"delay_warning_time": "1s", "minimal_backoff_time": "1s", "maximal_backoff_time": "1s",
              "restart_delay_max": "1s", "quarantine_delay_max": "1s"}

    def test_D37_the_sender_of_late_mail_is_told_once(self):
        """Not of a list, nor before its time, and with a failure beside it in a report of its own."""
        i = self.running(queues=1, routing=ROUTING, conf=self.DELAYS)
        i.inject(HELLO, "x@later.example", "y@never.example", "alice@test.example", sender="bob@test.example")
        i.inject(b"List-Id: <l.test.example>\n" + HELLO, "x@later.example", sender="list@test.example")
        reports = self.reports(i, "bob", 2)
        wait(lambda: i.log().count("status=deferred") >= 12, what="more attempts")
        i.stop()
        fields = sorted((f["Action"], f["Final-Recipient"]) for r in reports for f in self.fields(r))
        self.assertEqual(fields, [("delayed", "rfc822; x@later.example"), ("failed", "rfc822; y@never.example")])
        [late] = [r for r in reports if r["Subject"].startswith("Delayed")]
        self.assertIn("Will-Retry-Until", self.fields(late)[0])
        self.assertEqual(late["Auto-Submitted"], "auto-replied")
        self.assertEqual(i.log().count("sender delay notification"), 1)
        self.assertEqual(len(i.maildir("bob")), 2)
        self.assertEqual(len(i.maildir("list")), 0)

    @cost(30)
    def test_D37_P1_each_sender_is_warned_once_under_kill_9(self):
        i = self.running(queues=1, routing=ROUTING, conf=self.DELAYS)
        dice, count = random.Random(7), 40
        for n in range(count):
            i.inject(HELLO, f"x{n}@later.example", sender=f"s{n}@test.example")
        for _ in range(15):
            wait(lambda: i.pids("queue-send"), what="a queue-send")
            time.sleep(dice.random() * 0.3)  # somewhere in its work
            for pid in i.pids("queue-send"):
                with contextlib.suppress(ProcessLookupError):  # of the last turn
                    os.kill(pid, signal.SIGKILL)
        for n in range(count):
            i.wait_delivered(f"s{n}", 1)
        seen = i.log().count("status=deferred")
        wait(lambda: i.log().count("status=deferred") > seen + 2 * count, what="more attempts")
        i.stop()
        for n in range(count):
            self.assertEqual(len({r["Message-ID"] for r in self.reports(i, f"s{n}")}), 1, f"s{n}")

    def test_C9_reports_above_the_rate_go_later(self):
        i = self.running(queues=1, routing=ROUTING,
                         conf={"report_rate_limit": "3", "minimal_backoff_time": "1s", "maximal_backoff_time": "1s"})
        for n in range(5):
            i.inject(HELLO, f"x{n}@never.example", sender="bob@test.example")
        wait(lambda: i.log_has("waits, since report_rate_limit is reached"), what="a report that waits")
        self.reports(i, "bob", 3)
        wait(lambda: len(i.files("deferred")) == 2, what="two that wait")
        i.write_conf(report_rate_limit="0")
        i.stop()
        i.start()
        self.assertEqual(len(self.reports(i, "bob", 5)), 5)
        i.wait_empty()
        i.stop()
        self.assertEqual(i.files(), [])

    def test_X30_many_failures_are_told_in_reports_of_bounded_size(self):
        """mutation: measure() never ends."""
        count = 600
        i = self.running(queues=1, routing=ROUTING, conf={"bounce_size_limit": "1k"})
        i.inject(HELLO, *(f"x{n}@never.example" for n in range(count)), sender="bob@test.example")
        wait(lambda: not i.files("incoming", "active", "deferred", "prepared", "bounce") and i.maildir("bob"),
             what="the end of the message")
        told = []
        for report, path in zip(self.reports(i, "bob", 2), i.maildir("bob")):
            self.assertLess(path.stat().st_size, 80000)
            self.assertEqual(report.get_content_type(), "multipart/report")
            words, fields, returned = report.get_payload()
            told += [rcpt["Final-Recipient"] for rcpt in fields.get_payload()[1:]]
            self.assertEqual({rcpt["Action"] for rcpt in fields.get_payload()[1:]}, {"failed"})
            self.assertIn(returned.get_content_type(), ("message/rfc822", "text/rfc822-headers"))
        self.assertEqual(sorted(told), sorted(f"rfc822; x{n}@never.example" for n in range(count)))
        self.assertEqual(i.log().count("sender non-delivery notification: "), len(i.maildir("bob")))

    @needs_root
    def test_X28_mail_of_another_user_holds_back_no_report(self):
        """mutation: message_set_file() leaves the uid out."""
        mallory, alice = 65534, 65533
        i = self.running(queues=1, routing=ROUTING, conf={"report_rate_limit": "3", "minimal_backoff_time": "1h",
                                                          "maximal_backoff_time": "1h"})
        for n in range(8):
            i.inject(HELLO, f"x{n}@never.example", sender="alice@test.example", uid=mallory)
        wait(lambda: i.log().count(f"report_to=<alice@test.example>, uid={mallory} (its report waits, since") == 5,
             what="reports that wait")
        self.reports(i, "alice", 3)
        for n in range(3):
            i.inject(HELLO, f"own{n}@never.example", sender="alice@test.example", uid=alice)
        texts = [str(report) for report in self.reports(i, "alice", 6)]
        for n in range(3):
            self.assertEqual(sum(f"own{n}@never.example" in text for text in texts), 1, n)
        self.assertFalse(i.log_has(f"report_to=<alice@test.example>, uid={alice} "))
