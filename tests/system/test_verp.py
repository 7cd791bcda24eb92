"""A sender of its own for each recipient (VERP), in the form of qmail and by sendmail -XV."""
import email
import os
import signal

from case import SystemTest, cost
from instance import wait
from peer import Peer
from smtp_site import Site

HELLO = b"Subject: hello\n\nhello\n"
LIST = "list-@test.example-@[]"


class Verp(SystemTest):
    def peer(self, i, *options):
        made = Peer(i.dir / "peer", *options)
        self.addCleanup(self.stop, made)
        return made

    def stop(self, peer):
        if peer.process.returncode is None:
            peer.stop()

    def served(self, kind="smtp", **options):
        """An instance that sends everything but what is for test.example and never.example to a server."""
        i = self.instance(queues=1, **options)
        peer = self.peer(i, *(["--lmtp"] if kind == "lmtp" else []))
        i.routing_file.write_text(f'never.example error:"5.1.1 no such user"\ntest.example local\n'
                             f'* {kind}:127.0.0.1:{peer.port}\n')
        i.start()
        return i, peer

    def senders(self, peer):
        return sorted((e["from"], *e["to"]) for e in peer.envelopes())

    def test_C14_each_recipient_has_its_sender(self):
        for kind in ("smtp", "lmtp"):
            with self.subTest(kind):
                i, peer = self.served(kind)
                for face in ("queue-inject", "sendmail"):
                    i.inject(HELLO, "bob@sink.test", "ann@sink.test", '"a b"@sink.test', sender=LIST, face=face)
                i.inject(HELLO, "bob@sink.test", "ann@sink.test", sender="owner@test.example", args=["-XV"])
                i.wait_empty()
                i.stop()
                want = [("list-ann=sink.test@test.example", "ann@sink.test"),
                        ("list-bob=sink.test@test.example", "bob@sink.test"),
                        ('"list-a b=sink.test"@test.example', '"a b"@sink.test')] * 2
                want += [("owner+ann=sink.test@test.example", "ann@sink.test"),
                         ("owner+bob=sink.test@test.example", "bob@sink.test")]
                self.assertEqual(self.senders(peer), sorted(want))
                self.assertTrue(i.log_has(r"sender=<list-bob=sink\.test@test\.example>, to=<bob@sink\.test>, relay="))
                self.assertTrue(i.log_has(r"from=<list-@test\.example-@\[\]>"))

    def reports(self, i, user, count=1):
        return [email.message_from_bytes(p.read_bytes()) for p in i.wait_delivered(user, count)]

    def test_C15_bounces_go_to_the_sender_of_the_recipient(self):
        i, peer = self.served()
        i.inject(HELLO, "x@never.example", "bob@sink.test", "554-y@sink.test", sender=LIST)
        one, two = self.reports(i, "list-x=never.example"), self.reports(i, "list-554-y=sink.test")
        i.wait_empty()
        i.stop()
        for [report], to in ((one, "x@never.example"), (two, "554-y@sink.test")):
            self.assertEqual([f["Final-Recipient"] for f in report.get_payload()[1].get_payload()[1:]],
                             [f"rfc822; {to}"])
            self.assertEqual(report["Return-Path"], "<>")
        self.assertEqual(self.senders(peer), [("list-bob=sink.test@test.example", "bob@sink.test")])
        self.assertEqual(i.log().count("sender non-delivery notification"), 2)

    # mutation: common/smtp/verp.c, add_domain() leaves U-labels as they are.
    def test_C14_a_recipient_in_U_labels_needs_no_SMTPUTF8(self):
        site = Site(keywords=[])
        self.addCleanup(site.stop)
        i = self.running(queues=1, routing=f"nö.example error:\"5.1.1 no\"\n"
                                           f"test.example local\n* smtp:[127.0.0.1]:{site.port}\n")
        i.inject(HELLO, "bob@bücher.example", "eve@nö.example", sender=LIST)
        wait(lambda: site.deliveries, what="the delivery")
        self.assertEqual(site.deliveries, [("list-bob=xn--bcher-kva.example@test.example",
                                            ["bob@xn--bcher-kva.example"])])
        i.wait_delivered("list-eve=xn--n-1ga.example", 1)
        i.stop()

    def test_C14_local_mail_programs_and_aliases_see_the_sender(self):
        """The members of an alias get the sender of the recipient that named it, as with qmail-local."""
        i, peer = self.served(aliases="team: bob@sink.test, ann\n")
        i.inject(HELLO, "carol@test.example", "team@test.example", sender=LIST)
        [carol] = self.reports(i, "carol")
        [ann] = self.reports(i, "ann")
        i.wait_empty()
        i.stop()
        self.assertEqual(carol["Return-Path"], "<list-carol=test.example@test.example>")
        self.assertEqual(ann["Return-Path"], "<list-team=test.example@test.example>")
        self.assertEqual(self.senders(peer), [("list-team=test.example@test.example", "bob@sink.test")])

    def test_C15_reports_reach_an_alias(self):
        """As docs/MIGRATION.md says: by `+`, or by a domain of the list's own."""
        i, _ = self.served(aliases="list: ann\n@lists.example.org: owner\n")
        i.inject(HELLO, "x@never.example", sender="list@test.example", args=["-XV"])
        for sender in ("list-@lists.example.org-@[]", "list=@lists.example.org-@[]"):
            i.inject(HELLO, "x@never.example", sender=sender)
        [ann] = self.reports(i, "ann")
        owner = self.reports(i, "owner", 2)
        i.wait_empty()
        i.stop()
        self.assertEqual([r["To"] for r in [ann]], ["<list+x=never.example@test.example>"])
        self.assertEqual(sorted(r["To"] for r in owner), ["<list-x=never.example@lists.example.org>",
                                                          "<list=x=never.example@lists.example.org>"])

    def test_C14_a_double_bounce_goes_with_the_null_sender_and_ends(self):
        i, peer = self.served()
        i.inject(HELLO, "bob@sink.test", "x@never.example", sender="#@[]")
        wait(lambda: i.log_has("without a report: 1"), what="the end")
        i.wait_empty()
        i.stop()
        self.assertEqual([e["to"] for e in peer.envelopes()], [["bob@sink.test"]])
        self.assertEqual(peer.envelopes()[0]["from"], "<>")
        self.assertNotIn("notification", i.log())

    @cost(20)
    def test_C14_C15_P1_kill_9_repeats_no_report_and_loses_none(self):
        """What was in flight may come twice, as any mail; each bounce has one Message-ID."""
        i, peer = self.served(conf={"restart_delay_max": "1s", "quarantine_delay_max": "1s"})
        rcpts = [f"r{n}@{'sink.test' if n % 2 else 'never.example'}" for n in range(100)]
        i.inject(HELLO, *rcpts, sender=LIST)
        for _ in range(5):
            seen = i.log().count("status=")
            wait(lambda s=seen: i.log().count("status=") > s or not i.files("incoming", "active", "prepared"),
                 what="some results")
            for pid in i.pids("queue-send"):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        i.wait_empty()
        wait(lambda: not i.files(), what="reasons without a message to go")
        i.stop()
        sent = {e["to"][0]: e["from"] for e in peer.envelopes()}
        self.assertEqual(sent, {r: f"list-{r.replace('@', '=')}@test.example" for r in rcpts[1::2]})
        for r in rcpts[::2]:
            found = self.reports(i, f"list-{r.replace('@', '=')}")
            self.assertEqual(len({f["Message-ID"] for f in found}), 1, r)

    def test_C14_a_restart_goes_on_with_the_senders(self):
        i, peer = self.served()
        port = peer.port
        peer.stop()
        i.inject(HELLO, "bob@sink.test", "ann@sink.test", sender=LIST)
        wait(lambda: i.log().count("status=deferred") >= 2, what="an attempt without the server")
        i.stop()
        again = Peer(i.dir / "again", "--port", str(port))
        self.addCleanup(again.stop)
        i.start()
        i.flush()
        i.wait_empty()
        i.stop()
        self.assertEqual(self.senders(again), [("list-ann=sink.test@test.example", "ann@sink.test"),
                                               ("list-bob=sink.test@test.example", "bob@sink.test")])
