"""TLS with servers of other people: each level, with certificates that are right
or wrong in one way, and with a port that does not offer it."""
import re
import smtplib
import ssl
import unittest

import dovecot
import exim
import opensmtpd
import postfix
from cases import BOXES, HELLO, Peer
from certificates import KINDS, Certificates
from instance import wait

SECURE, CLEAR = "over TLS", "in the clear"
# What must become of mail for a port with this certificate, or `without` TLS.
LEVELS = {
    "none": {"without": CLEAR, "good": CLEAR},
    "may": {"without": CLEAR, "good": SECURE, "expired": SECURE, "wrong": SECURE, "unknown": SECURE},
    "encrypt": {"without": "4.7.4", "good": SECURE, "expired": SECURE, "wrong": SECURE, "unknown": SECURE},
    "verify": {"without": "4.7.4", "good": SECURE, "expired": "4.7.5", "wrong": "4.7.5", "unknown": "4.7.5"},
}
# The same of a server that offers TLS, and fails at it.
FAILING = {
    "none": {"good": CLEAR},
    "may": {"good": CLEAR, "expired": CLEAR},
    "encrypt": {"good": "4.7.5", "expired": "4.7.5"},
    "verify": {"good": "4.7.5"},
}


def other_client(port):
    """None, or why another client cannot speak TLS with this server."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with smtplib.SMTP("127.0.0.1", port) as client:
            client.starttls(context=context)
    except (OSError, smtplib.SMTPException) as why:
        return why
    return None


class Judged(Peer):
    """A server that offers TLS, and what became of mail for it."""
    front = re.compile(rb"(?:(?:Return-Path|X-Original-To|Delivered-To): [^\n]*\n)*Received: [^\n]*\n(?:[ \t][^\n]*\n)*")

    def result(self, i, user):
        """The status of this recipient, and its code."""
        found = re.search(rf"to=<{user}@{self.domain}>, .*dsn=([\d.]+), status=(\w+)", i.log())
        return found and (found[2], found[1])

    def judge(self, i, user, copy, want):
        status, dsn = wait(lambda: self.result(i, user), what=f"a result of {user}")
        if want not in (SECURE, CLEAR):
            self.assertEqual((status, dsn), ("deferred", want))
            self.assertEqual(self.box(user), [])
            return
        self.assertEqual(status, "sent")
        text = wait(lambda: self.box(user), what=f"mail of {user}")[0].read_bytes()
        front = self.front.match(text)
        self.assertEqual(text[front.end():], self.queued(i, copy))
        self.assertEqual(bool(re.search(self.secure, front[0])), want is SECURE, front[0])


class Secure(Judged):
    """A port of the server for each kind of certificate, in peer.ports."""
    levels = LEVELS

    def check_level(self, level):
        self.empty()
        wanted = {kind: want for kind, want in self.levels[level].items() if kind in self.peer.ports}
        routing = "".join(f"u{n}@{self.domain} {self.kind}:127.0.0.1:{self.peer.ports[kind]}\n"
                          for n, kind in enumerate(wanted))
        i = self.instance(routing=routing, default_tls_security_level=level,
                          smtp_tls_CAfile=self.peer.certificates.authority)
        for n in range(len(wanted)):
            self.send(i, HELLO, n)
        for n, (kind, want) in enumerate(wanted.items()):
            with self.subTest(f"{level}, {kind}"):
                self.judge(i, f"u{n}", f"copy{n}", want)
        i.stop()

    def test_level_none(self):
        self.check_level("none")

    def test_level_may(self):
        self.check_level("may")

    def test_level_encrypt(self):
        self.check_level("encrypt")

    def test_level_verify(self):
        self.check_level("verify")


def certified(peer):
    peer.certificates = Certificates(peer.root / "etc/tls")
    return peer


class PostfixSecure(Secure, unittest.TestCase):
    name = "postfix"
    secure = rb"with ESMTPS id"

    @staticmethod
    def make():
        peer = certified(postfix.Receiver(BOXES))
        return peer.listen({kind: f"/etc/tls/{kind}" for kind in KINDS})


class EximSecure(Secure, unittest.TestCase):
    name = "exim"
    secure = rb"with esmtps +\(TLS"

    @staticmethod
    def make():
        return certified(exim.Receiver(BOXES, KINDS))


class OpenSmtpdSecure(Secure, unittest.TestCase):
    name = "opensmtpd"
    secure = rb"with ESMTPS id"

    @staticmethod
    def make():
        return certified(opensmtpd.Receiver(KINDS))

    @classmethod
    def setUpClass(cls):
        """OpenSMTPD 6.8 of Debian 12 breaks off every handshake with OpenSSL 3,
        whoever asks: then it is the server whose TLS does not work."""
        super().setUpClass()
        why = other_client(cls.peer.ports["good"])
        if why is not None:
            print(f"peers: OpenSMTPD fails at TLS with Python's client, too ({why}): tested as such", flush=True)
            cls.levels = FAILING


class DovecotSecure(Secure, unittest.TestCase):
    name = "dovecot"
    kind = "lmtp"
    secure = rb"with LMTPS"

    @staticmethod
    def make():
        return certified(dovecot.Receiver(BOXES, "good"))
