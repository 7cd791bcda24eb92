"""Delivery over SMTP and LMTP: servers that are down, refuse, or stop to read."""
import email
import os
import signal
import socket

from case import SystemTest
from counting_site import CountingSite
from instance import HANG, wait
from peer import Peer
from smtp_site import Site

HELLO = b"Subject: hello\n\nhello\n"


class Reuse(SystemTest):
    MESSAGES = 40

    def deliver(self, window, **conf):
        """So many messages, one after the other; the site that got them."""
        site = CountingSite()
        self.addCleanup(site.stop)
        site.hang_up = conf.pop("hang_up", False)
        i = self.instance(queues=1, routing=f"* smtp:127.0.0.1:{site.port}\n",
                          conf={"smtp_destination_concurrency_limit": window} | conf).start()
        for m in range(self.MESSAGES):
            i.inject(HELLO, f"m{m}@away.example")
        i.wait_empty()
        i.stop()
        self.assertEqual(sorted(site.rcpts), sorted(f"m{m}@away.example" for m in range(self.MESSAGES)))
        self.assertNotIn("status=deferred", i.log())
        self.assertLessEqual(site.peak, window)
        return site

    def test_N14_messages_go_over_connections_that_are_open(self):
        self.assertLessEqual(self.deliver(3, smtp_connection_cache_time_limit="10m").connections, 3)

    def test_N14_a_server_that_closes_behind_each_message(self):
        site = self.deliver(3, smtp_connection_cache_time_limit="10m", hang_up=True)
        self.assertEqual(site.connections, self.MESSAGES)

    def test_at_most_so_many_messages(self):
        site = self.deliver(1, smtp_connection_cache_time_limit="10m", smtp_connection_reuse_count_limit=5)
        self.assertEqual(site.connections, self.MESSAGES // 5)

    def test_none_is_kept(self):
        self.assertEqual(self.deliver(3, smtp_connection_cache_time_limit=0).connections, self.MESSAGES)


class Smtp(SystemTest):
    def peer(self, i, *options):
        """A server, in a directory of its own; what was there before stays."""
        made = Peer(i.dir / "peer", *options)
        self.addCleanup(made.stop)
        return made

    def routed(self, port, kind="smtp", **options):
        return self.running(queues=1, routing=f"* {kind}:127.0.0.1:{port}\n", **options)

    def bound(self, port=0):
        """A port that is ours, and on which nobody listens; a server of ours can get it, too."""
        own = socket.socket()
        self.addCleanup(own.close)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        own.bind(("127.0.0.1", port))
        return own, own.getsockname()[1]

    def content(self, peer):
        """The message that came, without the Received field that we put in front."""
        data = [m.read_bytes() for m in peer.messages()]
        return [d[d.index(b"Subject:"):] for d in data]

    def test_N1_refused_and_tried_again_until_the_server_is_up(self):
        own, port = self.bound()
        i = self.routed(port)
        i.inject(HELLO, "x@away.example")
        wait(lambda: i.log().count("to=<x@away.example>") >= 2, what="two attempts")
        self.assertTrue(i.log_has(r"to=<x@away\.example>.*dsn=4\.\S+, status=deferred"))
        peer = self.peer(i, "--port", str(port))
        own.close()
        i.wait_empty()
        i.stop()
        self.assertEqual(self.content(peer), [HELLO.replace(b"\n", b"\r\n")])
        self.assertEqual(i.files(), [])

    def test_lmtp(self):
        i = self.instance(queues=1)
        peer = self.peer(i, "--lmtp")
        i.routing_file.write_text(f"* lmtp:127.0.0.1:{peer.port}\n")
        i.start()
        i.inject(HELLO, "x@away.example")
        i.wait_empty()
        i.stop()
        self.assertEqual([e["to"] for e in peer.envelopes()], [["x@away.example"]])
        self.assertEqual(self.content(peer), [HELLO.replace(b"\n", b"\r\n")])
        self.assertTrue(i.log_has(r"to=<x@away\.example>.*status=sent"))

    def test_N10_each_recipient_has_its_own_answer(self):
        i = self.instance(queues=1, conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        peer = self.peer(i)
        i.routing_file.write_text(f"test.example local\n* smtp:127.0.0.1:{peer.port}\n")
        i.start()
        i.inject(HELLO, "good@away.example", "451-x@away.example", "550-y@away.example",
                 "fine@away.example")
        wait(lambda: i.files("deferred"), what="the one with a 4xx reply")
        i.flush()
        wait(lambda: i.log().count("to=<451-x@away.example>") == 2 and i.files("deferred"), what="again")
        self.assertTrue(i.log_has(r"to=<451-x@away\.example>.*dsn=4\.7\.1, status=deferred \(.*not wanted"))
        self.assertTrue(i.log_has(r"to=<550-y@away\.example>.*dsn=5\.7\.1, status=bounced \(.*not wanted"))
        self.assertEqual(i.log().count("to=<550-y@away.example>"), 1, "failed is failed")
        self.assertEqual([e["to"] for e in peer.envelopes()], [["good@away.example", "fine@away.example"]])
        self.assertEqual((len(i.files("bounce")), len(i.files("defer"))), (1, 1))
        [report] = i.wait_delivered("sender", 1)
        text = report.read_text()
        self.assertIn("\nFinal-Recipient: rfc822; 550-y@away.example\n", text)
        self.assertRegex(text, r"\nDiagnostic-Code: smtp; 550 ")
        self.assertNotIn("451-x@", text)
        i.stop()
        self.assertEqual(len(peer.messages()), 1)

    def test_8_bit_content_arrives_as_it_is(self):
        i = self.instance(queues=1)
        peer = self.peer(i)
        i.routing_file.write_text(f"* smtp:127.0.0.1:{peer.port}\n")
        i.start()
        octets = bytes(n for n in range(1, 256) if n not in b"\r\n")
        message = b"Subject: \xc3\xa4\n\n" + octets + b"\n.\n..\n.\xff\nend\n"
        i.inject(message, "x@away.example")
        i.wait_empty()
        i.stop()
        self.assertEqual(self.content(peer), [message.replace(b"\n", b"\r\n")])
        self.assertIn("BODY=8BITMIME", peer.envelopes()[0]["options"])

    def test_N25_8_bit_content_for_a_server_of_7_bit(self):
        site = Site()
        self.addCleanup(site.stop)
        i = self.instance(queues=1, routing=f"seven.example smtp:127.0.0.1:{site.port}\n"
                          f"plain.example raw:127.0.0.1:{site.port}\n",
                          conf={"transports": "smtp raw:smtp lmtp local pipe discard error", "raw_8bit_conversion": "as-is",
                                "raw_discard_ehlo_keywords": "pipelining"}).start()
        text = "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\ngr\u00fcn\n".encode()
        for to in ("a@seven.example", "b@plain.example"):
            i.inject(text, to)
        i.wait_empty()
        i.stop()
        bodies = sorted(email.message_from_bytes(content).get_payload() for content in site.contents)
        self.assertEqual(bodies[0], "gr=C3=BCn\r\n")
        self.assertEqual([b"gr\xc3\xbcn\r\n" in content for content in site.contents].count(True), 1)
        self.assertEqual([email.message_from_bytes(content).get_payload(decode=True) for content in site.contents],
                         [b"gr\xc3\xbcn\r\n"] * 2)

    def test_P1_kill_of_the_agent_in_the_middle_of_the_content(self):
        """The server reads no further than DATA; then the agent is killed."""
        own, port = self.bound()
        self.bound(port)  # it stays ours
        own.listen(1)
        own.settimeout(HANG)
        i = self.routed(port, conf={"smtp_connect_timeout": "5s", "restart_delay_max": "1s", "quarantine_delay_max": "1s"})
        message = HELLO + b"0123456789abcde\n" * (1 << 20)
        i.inject(message, "x@away.example", "y@away.example")
        server, _ = own.accept()
        server.settimeout(HANG)
        lines = server.makefile("rwb", buffering=0)
        lines.write(b"220 hello\r\n")
        answers = {b"EHLO": b"250 hello", b"MAIL": b"250 fine", b"RCPT": b"250 fine", b"DATA": b"354 go on"}
        verb = b""
        while verb != b"DATA":
            verb = lines.readline()[:4].upper()
            lines.write(answers[verb] + b"\r\n")
        self.assertTrue(lines.read(100000), "content comes")
        [pid] = i.pids("deliver-smtp")
        os.kill(pid, signal.SIGKILL)
        rest = b""
        while piece := server.recv(1 << 20):
            rest = (rest + piece)[-5:]
        self.assertNotEqual(rest, b"\r\n.\r\n", "a message that was cut has no end")
        lines.close()
        server.close()
        own.close()
        peer = self.peer(i, "--port", str(port))
        i.wait_empty()
        i.stop()
        self.assertEqual(self.content(peer), [message.replace(b"\n", b"\r\n")])
        self.assertEqual(peer.envelopes()[0]["to"], ["x@away.example", "y@away.example"])
        self.assertTrue(i.log_has("the delivery agent died"))
        self.assertEqual(i.files(), [])
