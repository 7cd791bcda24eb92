"""What every server of other people is asked, and how its answer is read."""
import pathlib
import re
import unittest

import cell
import packages
from instance import Instance, wait
from wire import as_received

MAIL = pathlib.Path(__file__).resolve().parents[1] / "mail"
BOXES = 60
HELLO = b"Subject: hello\n\nhello\n"
ADDRESS = rb"<[^>\n]*>"
STAMP = rb"[A-Z][a-z]{2}, +\d+ [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [-+]\d{4}(?: \(UTC\))?"


def fields(*lines):
    return re.compile(b"".join(lines).replace(b"ADDRESS", ADDRESS).replace(b"STAMP", STAMP))


class Peer:
    """A server, started once for its cases, and mail that is sent to it."""
    kind = "smtp"

    @classmethod
    def setUpClass(cls):
        try:
            cell.can_run()
            cls.peer = cls.make()
        except packages.Unavailable as why:
            raise unittest.SkipTest(str(why)) from None
        cls.addClassCleanup(cls.peer.destroy)
        cls.peer.run()

    def setUp(self):
        self.domain = f"{self.name}.test"
        self.addCleanup(self.show)

    def show(self):
        if self._outcome.result.is_bad(self):
            print(f"---- {self.name}\n{self.peer.log()[-4000:]}----")

    def destination(self):
        return f"127.0.0.1:{self.peer.port}"

    def instance(self, routing=None, **conf):
        """A running instance: mail for the server goes there, a copy of each
        message into a maildir of ours."""
        there = routing or f"{self.domain} {self.kind}:{self.destination()}\n"
        i = Instance(queues=1, routing=f"{there}* local\n",
                     conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "2h"} | conf)
        self.addCleanup(i.destroy)
        return i.start()

    def box(self, user):
        new = self.peer.root / "mail" / user / "new"
        return sorted(f for f in new.glob("*") if f.is_file()) if new.is_dir() else []

    def empty(self):
        for user in range(BOXES):
            for file in self.box(f"u{user}"):
                file.unlink()

    def arrived(self, user):
        """The one message that arrived for `user`, without the server's fields."""
        files = wait(lambda: self.box(user), what=f"mail of {user} at {self.name}")
        self.assertEqual(len(files), 1, user)
        text = files[0].read_bytes()
        front = self.trace.match(text)
        self.assertIsNotNone(front, f"{self.name} has put something else in front: {text[:600]!r}")
        return text[front.end():]

    def queued(self, i, user):
        """What the queue had, as our own maildir has it."""
        text = i.wait_delivered(user, 1)[0].read_bytes()
        front = re.match(rb"Return-Path: [^\n]*\nDelivered-To: [^\n]*\n", text)
        return text[front.end():]

    def send(self, i, message, number):
        i.inject(message, f"u{number}@{self.domain}", f"copy{number}@test.example", face="queue-inject")

    def compare(self, i, number, what):
        got, want = self.arrived(f"u{number}"), as_received(self.queued(i, f"copy{number}"))
        self.assertEqual(got, self.as_kept(want), what)

    def as_kept(self, text):
        return text

    def addresses(self, i, status):
        return sorted(re.findall(rf"to=<([^>@]*)@{self.domain}>.* status={status}", i.log()))


class Plain(Peer):
    """The cases of every server."""

    def test_a_message(self):
        self.empty()
        i = self.instance()
        self.send(i, HELLO, 0)
        i.wait_empty()
        self.compare(i, 0, "hello")
        i.stop()

    def test_contents(self):
        self.empty()
        i = self.instance()
        names = [f for f in sorted(MAIL.glob("*.eml")) if f.name not in self.changed]
        for number, file in enumerate(names):
            self.send(i, file.read_bytes(), number)
        i.wait_empty()
        for number, file in enumerate(names):
            with self.subTest(file.name):
                self.compare(i, number, file.name)
        i.stop()

    def test_a_large_message(self):
        """It goes to the agent as a descriptor, and takes many turns."""
        self.empty()
        i = self.instance()
        self.send(i, b"Subject: large\n\n" + b"".join(b".%d %s\n" % (n, b"x" * (n % 90)) for n in range(60000)), 1)
        i.wait_empty()
        self.compare(i, 1, "a large message")
        i.stop()

    def by_bdat(self):
        """How many messages the server has taken by BDAT."""
        return sum(int(n or 1) for n in re.findall(self.bdat, self.peer.log()))

    def test_contents_by_BDAT(self):
        """In one chunk each, where the server offers CHUNKING, else by DATA."""
        self.empty()
        before = self.by_bdat() if self.bdat else 0
        i = self.instance(**{f"{self.kind}_chunking": "yes"})
        contents = [(f.name, f.read_bytes()) for f in sorted(MAIL.glob("*.eml")) if f.name not in self.changed]
        contents.append(("large", b"Subject: large\n\n" + b"".join(b".%d\n.\n%s\n" % (n, b"x" * (n % 90)) for n in range(20000))))
        for number, (_, content) in enumerate(contents):
            self.send(i, content, number)
        i.wait_empty()
        for number, (name, _) in enumerate(contents):
            with self.subTest(name):
                self.compare(i, number, name)
        if self.bdat is not None:
            wait(lambda: self.by_bdat() - before == len(contents), what="BDAT in the log")
        i.stop()

    bdat = None  # the server does not offer it, or its log does not tell

    def test_many_recipients(self):
        """Each has an answer of its own: taken, refused, not now."""
        self.empty()
        i = self.instance()
        taken = [f"u{n}" for n in range(BOXES)]
        i.inject(HELLO, *(f"{name}@{self.domain}" for name in [*taken, *self.refused, *self.later]),
                 face="queue-inject")
        results = {"sent": sorted(taken), "bounced": sorted(self.refused), "deferred": sorted(self.later)}
        for status, want in results.items():
            wait(lambda s=status, w=want: self.addresses(i, s) == w, what=status)
        for name in taken:
            self.arrived(name)
        i.stop()

    def test_connections_are_used_again(self):
        self.empty()
        i = self.instance(smtp_destination_concurrency_limit=1, lmtp_destination_concurrency_limit=1,
                          smtp_connection_cache_time_limit="10m")
        before = self.connections()
        for number in range(20):
            i.inject(HELLO, f"u{number}@{self.domain}", face="queue-inject")
        i.wait_empty()
        self.assertEqual(self.connections() - before, 1)
        for number in range(20):
            self.arrived(f"u{number}")
        i.stop()

    def connections(self):
        return len(re.findall(self.connected, self.peer.log()))


class Notifies(Plain):
    """Servers that offer DSN: what the sender asked is theirs to do."""

    def test_the_wishes_of_a_sender_go_on(self):
        self.empty()
        i = self.instance()
        i.inject(HELLO, f"u0@{self.domain}", sender=f"u9@{self.domain}", face="queue-inject",
                 args=("--notify", "success,failure", "--envid", "order+2B7", "--return", "hdrs",
                       "--orcpt", "rfc822;first+3D@test.example"))
        i.wait_empty()
        self.arrived("u0")
        report = wait(lambda: self.box("u9"), what=f"a report of {self.name}")[0].read_text(errors="replace")
        for words in self.reported:
            self.assertRegex(report, f"(?mi)^{words}$")
        self.assertNotIn("sender delivery status notification", i.log())
        i.stop()

    reported = ("Original-Envelope-Id: order\\+7", "Original-Recipient: rfc822; ?first=@test.example",
                "Action: delivered", r"Status: 2\.\d\.\d.*")

    def test_and_their_silence(self):
        """NOTIFY=NEVER: nobody tells the sender anything."""
        self.empty()
        i = self.instance()
        for number, when in enumerate(("never", "success")):
            i.inject(HELLO, f"u{number}@{self.domain}", sender=f"u9@{self.domain}", face="queue-inject",
                     args=("--notify", when))
            i.wait_empty()
            self.arrived(f"u{number}")
        report = wait(lambda: self.box("u9"), what=f"a report of {self.name}")
        self.assertEqual(len(report), 1)
        self.assertIn(f"u1@{self.domain}", report[0].read_text(errors="replace"))
        i.stop()
