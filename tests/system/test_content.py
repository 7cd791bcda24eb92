"""Each sample message through each face, by each way out: the octets that a
server gets are those of the rules (docs/DELIVERY.md, "Content")."""
import re
import subprocess
import sys

from case import SystemTest
from instance import ROOT
from smtp_site import Site

sys.path.insert(0, str(ROOT / "tests/peers"))
from wire import FIELD, as_received  # noqa: E402

SAMPLES = sorted((ROOT / "tests/mail").glob("*.eml"))
# Fields that stand in front of those that were submitted.
ADDED = re.compile(rb"\A(?:(?:Received|From|Date|Message-ID|To): [^\n]*\n(?:[ \t][^\n]*\n)*)*\n?\Z", re.I)
CRON = b"From: root (Cron Daemon)\nTo: root\nSubject: Cron <root@host> job\n\nFrom: root\njob failed\n"
WAYS = ("smtp", "bdat", "lmtp")


def without_dots(content):
    return re.sub(rb"(?m)^\.\.", b".", content)


class Content(SystemTest):
    def submit(self, i, face, content, to):
        """The content as the queue should have it."""
        if face == "qmail-queue":
            envelope = f"Fsender@test.example\0T{to}\0\0".encode()
            path = i.dir / "envelope"
            path.write_bytes(envelope)
            with path.open("rb") as descriptor:
                subprocess.run([i.face(face)], input=content, stdout=descriptor.fileno(), check=True,
                               env=i.environment())
            return content
        if face == "sendmail -t":
            others = re.sub(rb"(?im)^(to|cc|bcc|resent-[a-z]*)([ \t]*):", rb"X-\1\2:", content)
            content = f"To: {to}\n".encode() + (b"" if FIELD.match(others) else b"\n") + others
            i.inject(content, args=["-t"])
        else:
            i.inject(content, to, face=face)
        return content if face == "queue-inject" else re.sub(rb"\r+\n", b"\n", content)

    def by_face(self, face):
        site = Site(keywords=[b"8BITMIME", b"SMTPUTF8", b"CHUNKING"])
        self.addCleanup(site.stop)
        i = self.running(queues=1, routing="".join(f"{way}.example {way}:127.0.0.1:{site.port}\n" for way in WAYS),
                         conf={"transports": "smtp bdat:smtp lmtp local pipe discard error", "bdat_chunking": "yes"})
        for path in SAMPLES:
            for way in WAYS:
                site.contents.clear()
                to = f"{path.stem}@{way}.example"
                want = as_received(self.submit(i, face, path.read_bytes(), to))
                i.wait_empty()
                [got] = site.contents
                got = got.replace(b"\r\n", b"\n")
                if way != "bdat":
                    got = without_dots(got)
                self.assertLessEqual(max(map(len, got.split(b"\n"))), 998)
                self.assertEqual(got[len(got) - len(want):], want, f"{path.name} by {face} and {way}")
                self.assertRegex(got[:len(got) - len(want)], ADDED)
        self.assertEqual(sum(line.startswith(b"BDAT") for line in site.lines), len(SAMPLES))
        i.stop()

    def test_C11_mail_of_cron_leaves_with_a_domain(self):
        site = Site()
        self.addCleanup(site.stop)
        i = self.running(queues=1, routing=f"* smtp:127.0.0.1:{site.port}\n", conf={"mydomain": "host.example"})
        for face in ("sendmail", "queue-inject", "qmail-queue"):
            self.submit(i, face, CRON, f"{face}@away.example")
            i.wait_empty()
        i.stop()
        got = [content.replace(b"\r\n", b"\n") for content in site.contents]
        want = CRON.replace(b"From: root", b"From: root@host.example", 1).replace(b"\nTo: root", b"\nTo: root@host.example")
        self.assertTrue(got[0].endswith(want), got[0])
        self.assertTrue(got[1].endswith(CRON), got[1])
        self.assertTrue(got[2].endswith(CRON), got[2])

    def test_C10_sendmail(self):
        self.by_face("sendmail")

    def test_C10_sendmail_t(self):
        self.by_face("sendmail -t")

    def test_C10_queue_inject(self):
        self.by_face("queue-inject")

    def test_C10_qmail_queue(self):
        self.by_face("qmail-queue")
