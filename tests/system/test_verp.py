"""A sender of its own for each recipient (VERP), in the form of qmail and by sendmail -XV."""
import email
import os
import signal

from case import SystemTest, cost
from instance import wait
from peer import Peer

HELLO = b"Subject: hello\n\nhello\n"
LIST = "list-@test.example-@[]"


class Verp(SystemTest):
    def peer(self, i, *options):
        made = Peer(i.dir / "peer", *options)
        self.addCleanup(made.stop)
        return made

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
