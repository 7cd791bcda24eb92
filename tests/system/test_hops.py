"""A message that has passed through too many systems goes nowhere, whatever it is for."""
import email

from case import SystemTest
from instance import wait
from peer import Peer

LIMIT = 50


def hops(count, body=b"hello\n"):
    """A message with so many Received fields; the system it comes into adds one."""
    fields = b"".join(b"Received: from a%d by b%d; Fri, 27 Nov 2026 20:00:00 +0000\n" % (n, n) for n in range(count))
    return fields + b"Subject: hops\n\n" + body


class Hops(SystemTest):
    def test_C16_the_limit_holds_on_every_road(self):
        i = self.instance(queues=1, programs=None)
        peers = {}
        for kind in ("smtp", "lmtp"):
            peers[kind] = Peer(i.dir / kind, *(["--lmtp"] if kind == "lmtp" else []))
            self.addCleanup(peers[kind].stop)
        i.routing_file.write_text(
            "".join(f"{kind}.example {kind}:127.0.0.1:{peer.port}\n" for kind, peer in peers.items()) +
            "discard.example discard\n* local\n")
        i.start()
        roads = ["u@smtp.example", "u@lmtp.example", "u@discard.example", "u@test.example"]
        i.inject(hops(LIMIT - 1), *roads)
        wait(lambda: i.log().count("status=sent") == len(roads), what="each recipient of the first message")
        i.inject(hops(LIMIT), *roads, sender="bob@test.example")
        i.inject(hops(121), *roads, sender="bob@test.example")
        reports = [email.message_from_bytes(p.read_bytes()) for p in i.wait_delivered("bob", 2)]
        i.wait_empty()
        i.stop()
        for report in reports:
            fields = report.get_payload()[1].get_payload()[1:]
            self.assertEqual(sorted(f["Final-Recipient"] for f in fields), sorted(f"rfc822; {r}" for r in roads))
            self.assertEqual({f["Status"] for f in fields}, {"5.4.6"})
        self.assertTrue(i.log_has(r"dsn=5\.4\.6, status=bounced \(too many hops: 122 Received fields, and "
                                  r"hopcount_limit is 50\)"))
        for peer in peers.values():
            self.assertEqual(len(peer.messages()), 1)
        self.assertEqual(len(i.maildir("u")), 1)

    def test_C16_a_report_that_goes_round_ends(self):
        """As any report that fails: the postmaster is told, once."""
        i = self.running(queues=1)
        i.inject(hops(121), "u@test.example", sender="")
        i.wait_delivered("postmaster", 1)
        i.wait_empty()
        i.stop()
        self.assertEqual(i.maildir("u"), [])
        self.assertEqual(i.log().count("notification: "), 1)
