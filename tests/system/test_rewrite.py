"""Other addresses of senders over SMTP: in the envelope and the header, nowhere else."""
import subprocess

from case import SystemTest
from instance import BIN, wait
from smtp_site import Site

HEADER = (b"From: \"Ann, ann@test.example\" <ann@test.example>,\n (ann@test.example) bob@test.example\n"
          b"Sender: Ann@Test.Example\nReply-To: g: eve@far.example;\nTo: ann@test.example\n"
          b"Date: Thu, 1 Jan 2026 00:00:00 +0000\nMessage-ID: <1@test.example>\nSubject: ann@test.example\n")
BODY = b"\nFrom: ann@test.example\n.ann@test.example\n" + 8000 * b"0123456789 abcdefgh\n"  # not in memory of the agent
ROWS = "ann@test.example shop@relay.example\n@test.example @relay.example\n"


def rewritten(header):
    """As the relay is to get the header."""
    return header.replace(b"<ann@test.example>", b"<shop@relay.example>") \
        .replace(b") bob@test.example", b") bob@relay.example").replace(b"Ann@Test.Example", b"shop@relay.example")


class Rewrite(SystemTest):
    def site(self, **options):
        site = Site(**options)
        self.addCleanup(site.stop)
        return site

    def start(self, routing, rows=ROWS, **conf):
        i = self.instance(queues=1, routing=routing)
        table = i.dir / "rewrites"
        table.write_text(rows)
        i.write_conf(sender_rewrite=table, **conf)
        i.start()
        return i, table

    # mutation: deliver-smtp/session/session.c, task_of() with the sender of the delivery; deliver-smtp/session/session.c,
    # take_sender() for LMTP, too.
    def test_C13_envelope_and_header_over_SMTP_alone(self):
        smtp = self.site(keywords=[b"PIPELINING", b"SIZE 1000000"])
        chunks = self.site(keywords=[b"SIZE 1000000", b"CHUNKING"])
        lmtp = self.site()
        i, _ = self.start(f"plain.example smtp:[127.0.0.1]:{smtp.port}\nchunk.example smtp:[127.0.0.1]:{chunks.port}\n"
                          f"lmtp.example lmtp:[127.0.0.1]:{lmtp.port}\ntest.example local\n", default_chunking="yes")
        i.inject(HEADER + BODY, "x@plain.example", "x@chunk.example", "x@lmtp.example", "bob@test.example",
                 sender="ann@test.example")
        wait(lambda: smtp.deliveries and chunks.deliveries and lmtp.deliveries, what="three servers")
        here = i.wait_delivered("bob", 1)[0].read_bytes()
        self.assertIn(HEADER + BODY, here)
        self.assertIn(b"Return-Path: <ann@test.example>", here)
        self.assertEqual(smtp.deliveries, [("shop@relay.example", ["x@plain.example"])])
        self.assertEqual(chunks.deliveries, [("shop@relay.example", ["x@chunk.example"])])
        self.assertEqual(lmtp.deliveries, [("ann@test.example", ["x@lmtp.example"])])
        wire = HEADER.replace(b"\n", b"\r\n"), BODY.replace(b"\n", b"\r\n")
        stuffed = wire[1].replace(b"\r\n.", b"\r\n..")
        self.assertTrue(smtp.contents[0].endswith(rewritten(wire[0]) + stuffed))
        self.assertTrue(chunks.contents[0].endswith(rewritten(wire[0]) + wire[1]))
        self.assertTrue(lmtp.contents[0].endswith(wire[0] + stuffed))
        trace = smtp.contents[0][:-len(rewritten(wire[0]) + stuffed)]
        self.assertTrue(trace.startswith(b"Received: ") and lmtp.contents[0].startswith(trace))
        # Octets as they go over the wire, but for the dots that are doubled.
        size = len(trace + rewritten(wire[0]) + wire[1])
        for site in (smtp, chunks):
            self.assertTrue([line for line in site.lines if b" SIZE=%d" % size in line], site.lines)
        i.stop()

    # mutation: deliver-smtp/session/sender.c, session_rewrite_sender() without verp_restore().
    def test_C13_a_sender_of_VERP_keeps_the_recipient(self):
        site = self.site()
        i, _ = self.start(f"* smtp:[127.0.0.1]:{site.port}\n",
                          "list-@test.example list-@relay.example\nnews@test.example news@relay.example\n"
                          "@two.example office@relay.example\n@three.example @relay.example\n"
                          "own-x=far.example@test.example own@relay.example\n")
        for sender in ("list-@test.example-@[]", "news+@test.example-@[]", "ann-@two.example-@[]",
                       "ann-@three.example-@[]", "ann-@four.example-@[]"):
            i.inject(HEADER + BODY, "x@far.example", "y@far.example", sender=sender)
        # Of a program that makes the sender of each recipient itself, and an extension that is none of VERP.
        i.inject(HEADER + BODY, "x@far.example", sender="news+owner-x=far.example@test.example")
        i.inject(HEADER + BODY, "x@far.example", sender="news+y=far.example@test.example")
        # Accounts that look as if they were of VERP: one with a row of its own, and one with nothing in front.
        i.inject(HEADER + BODY, "x@far.example", sender="own-x=far.example@test.example")
        i.inject(HEADER + BODY, "x@far.example", sender="x=far.example@two.example")
        wait(lambda: len(site.deliveries) == 14, what="all of them")
        self.assertEqual(sorted(site.deliveries), sorted(
            [(f"{base}{user}=far.example@{domain}", [f"{user}@far.example"]) for user in "xy" for base, domain in (
                ("list-", "relay.example"), ("news+", "relay.example"), ("office+", "relay.example"),
                ("ann-", "relay.example"), ("ann-", "four.example"))] +
            [("news+x=far.example@relay.example", ["x@far.example"]), ("news@relay.example", ["x@far.example"]),
             ("own@relay.example", ["x@far.example"]), ("office@relay.example", ["x@far.example"])]))
        i.stop()

    def test_C13_reports_go_to_the_sender(self):
        site = self.site(says=lambda _c, verb, _l: b"550 5.1.1 no such user" if verb == b"RCPT" else None)
        i, _ = self.start(f"far.example smtp:[127.0.0.1]:{site.port}\ntest.example local\n")
        i.inject(HEADER + BODY, "x@far.example", sender="ann@test.example")
        report = i.wait_delivered("ann", 1)[0].read_bytes()
        self.assertIn(HEADER, report)
        self.assertNotIn(b"shop@relay.example", report)
        self.assertTrue([line for line in site.lines if line.startswith(b"MAIL FROM:<shop@relay.example>")])
        i.inject(HEADER + BODY, "x@far.example", sender="")
        wait(lambda: [line for line in site.lines if line.startswith(b"MAIL FROM:<>")], what="the null sender")
        i.stop()

    # mutation: deliver-smtp/smtp.c, smtp_reload() without take_rewrites(); qscheduler/supervisor/files.c,
    # files_check_lines() without the file.
    def test_C13_a_reload_and_wrong_lines(self):
        site = self.site()
        i, table = self.start(f"* smtp:[127.0.0.1]:{site.port}\n", log_level="debug")
        table.write_text("@test.example new@relay.example\n")
        i.reload()
        wait(lambda: i.log_has(r"deliver-smtp.*configuration reloaded"), what="the reload")
        i.inject(HEADER + BODY, "x@far.example", sender="ann@test.example")
        wait(lambda: len(site.deliveries) == 1, what="the new row")
        self.assertEqual(site.deliveries[0][0], "new@relay.example")
        self.assertIn(b"\r\nSender: new@relay.example\r\n", site.contents[0])
        table.write_text("@test.example\n# x\nann@test.example relay.example\n")
        i.reload()
        wait(lambda: i.log_has(r"rewrites:1: not `user@domain address`"), what="the complaint")
        done = subprocess.run([BIN / "qscheduler", "--check", "-c", i.conf_file], capture_output=True, check=False)
        said = done.stderr.decode() + done.stdout.decode()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"{table}:1: not `user@domain address`", said)
        self.assertIn(f'{table}:3: "relay.example" is not user@domain or @domain; add the domain', said)
        i.inject(HEADER + BODY, "y@far.example", sender="ann@test.example")
        wait(lambda: len(site.deliveries) == 2, what="the old row")
        self.assertEqual(site.deliveries[1][0], "new@relay.example")
        i.stop()
