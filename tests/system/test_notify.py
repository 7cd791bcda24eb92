"""What a sender asks of reports (RFC 3461) is kept on every way, and done."""
import email
import json
import subprocess

from case import cost, needs_root
from instance import BIN, wait
from peer import Peer
from smtp_site import Site
from test_report import HELLO, ROUTING, Reports

ALIASES = "one: alice\ntwo: alice, carol\nlist: alice, carol\nowner-list: boss\ngone: x@never.example\n"


class Notify(Reports):
    def parts(self, report):
        """Fields of the message, and of each recipient."""
        self.assertEqual(report.get_content_type(), "multipart/report")
        head, *rest = report.get_payload()[1].get_payload()
        return head, rest

    def ended(self, i):
        i.wait_empty()
        i.stop()
        self.assertEqual(i.files(), [])

    def test_a_delivery_is_reported_where_it_was_asked_for(self):
        i = self.running(routing=ROUTING)
        i.inject(HELLO, "alice@test.example", sender="bob@test.example",
                 args=["-N", "success,failure", "-V", "QQ+2B1", "-R", "full"])
        [report] = self.reports(i, "bob")
        head, [rcpt] = self.parts(report)
        self.ended(i)
        self.assertEqual(report["Subject"], "Successful Mail Delivery Report")
        self.assertEqual(head["Original-Envelope-Id"], "QQ+1")
        self.assertEqual((rcpt["Action"], rcpt["Final-Recipient"], rcpt["Original-Recipient"]),
                         ("delivered", "rfc822; alice@test.example", None))
        self.assertEqual(report.get_payload()[2].get_content_type(), "text/rfc822-headers")
        self.assertTrue(i.log_has(r": sender delivery status notification: [0-9A-F]+$"))
        self.assertEqual(len(i.maildir("bob")), 1)

    def test_no_failure_is_reported_where_none_is_wanted(self):
        i = self.running(routing=ROUTING)
        i.inject(HELLO, "x@never.example", "alice@test.example", sender="bob@test.example", args=["-N", "never"])
        i.inject(HELLO, "y@never.example", sender="bob@test.example", args=["-N", "success,delay"])
        i.wait_delivered("alice", 1)
        self.ended(i)
        self.assertEqual(len(i.maildir("bob")), 0)
        self.assertEqual(i.log().count("status=bounced"), 2)
        self.assertEqual(i.log().count("without a report: 1 (the sender asked for none)"), 2)

    def test_a_failure_returns_what_was_asked_for(self):
        i = self.running(routing=ROUTING)
        i.inject(HELLO, "x@never.example", sender="bob@test.example", face="queue-inject",
                 args=["--return", "hdrs", "--envid", "id", "--orcpt", "rfc822;Old+40test.example"])
        [report] = self.reports(i, "bob")
        head, [rcpt] = self.parts(report)
        self.ended(i)
        self.assertEqual(head["Original-Envelope-Id"], "id")
        self.assertEqual(rcpt["Original-Recipient"], "rfc822; Old@test.example")
        self.assertEqual(report.get_payload()[2].get_content_type(), "text/rfc822-headers")

    def test_another_host_takes_it(self):
        i = self.instance(queues=1)
        peer = Peer(i.dir / "peer")
        self.addCleanup(peer.stop)
        i.routing_file.write_text(f"away.example smtp:127.0.0.1:{peer.port}\n* local\n")
        i.start()
        i.inject(HELLO, "x@away.example", sender="bob@test.example", args=["-N", "success"])
        [report] = self.reports(i, "bob")
        _, [rcpt] = self.parts(report)
        self.ended(i)
        self.assertEqual(rcpt["Action"], "relayed")
        self.assertEqual(rcpt["Remote-MTA"], "dns; 127.0.0.1")
        self.assertTrue(rcpt["Status"].startswith("2."))

    def test_N20_a_host_that_offers_dsn_has_the_wishes(self):
        i = self.instance(queues=1)
        site = Site(keywords=[b"PIPELINING", b"DSN"])
        self.addCleanup(site.stop)
        i.routing_file.write_text(f"away.example smtp:127.0.0.1:{site.port}\n* local\n")
        i.start()
        i.inject(HELLO, "x@away.example", sender="bob@test.example", face="queue-inject",
                 args=["--notify", "success,failure", "--return", "hdrs", "--envid", "a+2Bb",
                       "--orcpt", "rfc822;Old+40test.example"])
        i.inject(HELLO, "y@away.example", sender="bob@test.example")
        wait(lambda: len(site.deliveries) == 2, what="both deliveries")
        self.ended(i)
        self.assertEqual(len(i.maildir("bob")), 0)
        lines = [line for line in site.lines if line[:4] in (b"MAIL", b"RCPT")]
        for want in (b"MAIL FROM:<bob@test.example> RET=HDRS ENVID=a+2Bb",
                     b"RCPT TO:<x@away.example> NOTIFY=success,failure ORCPT=rfc822;Old+40test.example",
                     b"MAIL FROM:<bob@test.example>", b"RCPT TO:<y@away.example>"):
            self.assertIn(want, lines)

    def test_aliases(self):
        """One recipient: told of at its delivery. Several: of the expansion. A list: of its delivery."""
        i = self.running(queues=1, routing=ROUTING, aliases=ALIASES)
        for name, sender in (("one", "s1"), ("two", "s2"), ("list", "s3"), ("gone", "s4")):
            i.inject(HELLO, f"{name}@test.example", sender=f"{sender}@test.example", face="queue-inject",
                     args=["--notify", "success,failure", "--envid", f"id-{name}",
                           "--orcpt", f"rfc822;{name.upper()}@test.example"])
        found = {}
        for sender in ("s1", "s2", "s3", "s4"):
            [report] = self.reports(i, sender)
            head, rcpts = self.parts(report)
            found[sender] = (head["Original-Envelope-Id"], [(r["Action"], r["Original-Recipient"], r["Final-Recipient"])
                                                            for r in rcpts])
        i.wait_delivered("alice", 3)
        i.wait_delivered("carol", 2)
        self.ended(i)
        self.assertEqual(found, {
            "s1": ("id-one", [("delivered", "rfc822; ONE@test.example", "rfc822; alice@test.example")]),
            "s2": ("id-two", [("expanded", "rfc822; TWO@test.example", "rfc822; two@test.example")]),
            "s3": ("id-list", [("delivered", "rfc822; LIST@test.example", "rfc822; list@test.example")]),
            "s4": ("id-gone", [("failed", "rfc822; GONE@test.example", "rfc822; x@never.example")])})
        self.assertEqual([len(i.maildir(s)) for s in ("s1", "s2", "s3", "s4", "boss")], [1, 1, 1, 1, 0])

    # mutation: deliver-local/inherit.c, add_wish() without dsn_orcpt_write().
    def test_a_report_names_the_alias_or_list_that_was_written(self):
        i = self.running(queues=1, routing=ROUTING,
                         aliases="team: x@never.example, alice\nlist: y@never.example, alice\nowner-list: boss\n")
        for name in ("team", "list"):
            i.inject(HELLO, f"{name}@test.example", sender="bob@test.example")
        for reader, written, rcpt, words in (
                ("bob", "rfc822; team@test.example", "x", "<x@never.example> (sent to <team@test.example>): "),
                ("boss", None, "y", "from <owner-list@test.example>, ")):
            [report] = self.reports(i, reader)
            [fields] = self.parts(report)[1]
            self.assertEqual((fields["Original-Recipient"], fields["Final-Recipient"]),
                             (written, f"rfc822; {rcpt}@never.example"))
            self.assertIn(words, " ".join(report.get_payload(0).get_payload(decode=True).decode().split()))
        i.wait_delivered("alice", 2)
        self.ended(i)

    def listed(self, i):
        done = subprocess.run([BIN / "qctl", "list", "--json", "-c", i.conf_file], capture_output=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def setqload(self, i, *words):
        subprocess.run([BIN / "setqload", "-c", i.conf_file, *words], check=True, capture_output=True)

    def count(self, i, number):
        self.setqload(i, "--count", str(number))

    def qctl(self, i, *words):
        subprocess.run([BIN / "qctl", *words, "--yes", "-c", i.conf_file], check=True, capture_output=True)

    def requeued(self, count, *args):
        """The reports of a message that has told of a delivery and a failure, and delivers all after a requeue."""
        i = self.running(queues=1, routing=ROUTING, conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        i.inject(HELLO, "alice@test.example", "x@never.example", "y@later.example", sender="bob@test.example",
                 face="sendmail", args=["-N", "success,failure", *args])
        wait(lambda: len(i.files("deferred")) == 1 and not i.files("active", "prepared"), what="the message to wait")
        i.routing_file.write_text("* local\n")
        i.reload()
        wait(lambda: i.log_has("reloaded"), what="the reload")
        self.qctl(i, "requeue", "ALL", "--failed")
        i.wait_delivered("x", 1)
        i.wait_delivered("y", 1)
        self.ended(i)
        found = [(p.parent.parent.name, f) for p in i.mail.glob("bob*/new/*")
                 for f in self.parts(email.message_from_bytes(p.read_bytes()))[1]]
        self.assertEqual(sorted((f["Action"], f["Final-Recipient"]) for _, f in found), [
            ("delivered", "rfc822; alice@test.example"), ("delivered", "rfc822; x@never.example"),
            ("delivered", "rfc822; y@later.example"), ("failed", "rfc822; x@never.example")])
        self.assertEqual(len(list(i.mail.glob("bob*/new/*"))), count)

    def test_what_is_requeued_tells_of_no_delivery_again(self):
        self.requeued(2)

    def test_C15_what_is_requeued_of_a_VERP_message_tells_of_no_delivery_again(self):
        self.requeued(4, "-XV")

    def test_a_message_that_was_warned_of_and_requeued_may_fail(self):
        i = self.running(queues=1, routing=ROUTING, conf={
            "delay_warning_time": "1s", "minimal_backoff_time": "1s", "maximal_backoff_time": "1s"})
        i.inject(HELLO, "x@never.example", "y@later.example", sender="bob@test.example")
        self.reports(i, "bob", 2)
        self.qctl(i, "hold", "ALL")
        i.routing_file.write_text('test.example local\n* error:"5.1.1 gone"\n')
        i.reload()
        wait(lambda: i.log_has("reloaded"), what="the reload")
        self.qctl(i, "requeue", "ALL", "--failed")
        reports = self.reports(i, "bob", 3)
        self.ended(i)
        self.assertEqual(sorted((f["Action"], f["Final-Recipient"]) for r in reports for f in self.parts(r)[1]), [
            ("delayed", "rfc822; y@later.example"), ("failed", "rfc822; x@never.example"),
            ("failed", "rfc822; x@never.example"), ("failed", "rfc822; y@later.example")])

    @needs_root
    def test_through_the_door_and_into_another_queue(self):
        i = self.instance(queues=1, routing=ROUTING, conf={
            "queue_count": 1, "queue_max": 3, "queue_drain_time": "0s", "minimal_backoff_time": "1h",
            "maximal_backoff_time": "2h"})
        i.numbers = [1, 2]
        i.start()
        self.count(i, 2)
        i.wait_open(1, 2)
        i.door()
        for n in range(6):
            if n == 3:
                self.setqload(i, "--disable", "-q", "1")
            i.inject(HELLO, "x@later.example", uid=65534, args=["-N", "success,delay", "-R", "hdrs", "-V", "QQ+2B1"])
        wait(lambda: [m["queue_name"] for m in self.listed(i)] == ["deferred"] * 6, what="the messages")
        before = [m["queue"] for m in self.listed(i)]
        self.setqload(i, "--enable", "-q", "1")
        self.count(i, 1)
        wait(lambda: {m["queue"] for m in self.listed(i)} == {1}, what="all in queue 1")
        self.assertIn(2, before, "one was handed over")
        for message in self.listed(i):
            self.assertEqual((message["ret"], message["envid"]), ("hdrs", "QQ+2B1"))
            self.assertEqual([r["notify"] for r in message["recipients"]], ["success,delay"])
        self.assertEqual(len(self.listed(i)), 6)
        i.stop()

    @cost(30)
    def test_D39_P1_each_delivery_is_reported_once_under_kill_9(self):
        for reports in self.under_kill_9(11, "a{}@test.example", ["-N", "success"]):
            self.assertEqual(self.parts(reports[0])[1][0]["Action"], "delivered")
