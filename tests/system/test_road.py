"""The road of a message: in by each face, out by each transport."""
import pathlib

from case import SystemTest, needs_root
from instance import wait
from peer import Peer

HELLO = b"Subject: hello\n\nhello\n"


def body(delivered):
    return pathlib.Path(delivered).read_bytes().split(b"\n\n", 1)[1]


class Road(SystemTest):
    def test_sendmail_to_maildir(self):
        i = self.running()
        i.inject(HELLO, "alice@test.example")
        [mail] = i.wait_delivered("alice", 1)
        self.assertEqual(body(mail), b"hello\n")
        i.wait_empty()
        i.stop()
        self.assertEqual(i.files(), [])

    def test_smtp_in_entries_of_at_most_50(self):
        i = self.instance()
        peer = Peer(i.dir / "peer")
        self.addCleanup(peer.stop)
        i.routing_file.write_text(f"* smtp:127.0.0.1:{peer.port}\n")
        i.start()
        rcpts = [f"r{n}@away.example" for n in range(120)]
        i.inject(HELLO, *rcpts)
        i.wait_empty()
        got = [r for e in peer.envelopes() for r in e["to"]]
        self.assertEqual(sorted(got), sorted(rcpts))
        self.assertLessEqual(max(len(e["to"]) for e in peer.envelopes()), 50)
        i.stop()

    def test_failed_recipient_goes_to_hold_with_its_reason(self):
        i = self.running(routing="bad.example error:\"no such place\"\n* local\n")
        i.inject(HELLO, "x@bad.example")
        wait(lambda: i.files("hold"), what="a held message")
        self.assertTrue(i.log_has(r"to=<x@bad\.example>.*status=bounced \(.*no such place"))
        self.assertEqual(len(i.files("bounce")), 1)
        i.stop()
        self.assertEqual(len(i.files("hold")), 1)

    @needs_root
    def test_X11_largest_message_passes_through_the_door(self):
        i = self.running(conf={"message_size_limit": "20k"})
        largest = HELLO.ljust(20 << 10, b"x")
        i.inject(largest, "alice@test.example", uid=65534)
        i.wait_delivered("alice", 1)
        self.assertEqual(i.files("corrupt"), [])
        self.assertNotEqual(
            i.inject(largest + b"x", "alice@test.example", uid=65534, check=False).returncode, 0)
        i.stop()
