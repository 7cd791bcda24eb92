"""AUTH with servers of other people: passwords that are right or wrong, and
servers to which none may be told. The certificate is verified, so that a
password goes to the server that is meant."""
import base64
import re
import unittest

import exim
import postfix
import readme
from cases import BOXES, HELLO
from instance import Instance, wait
from secure import CLEAR, SECURE, Judged, certified

USER = "me@peer.test"
RIGHT, WRONG = 'a "good" pass\\word, ü', 'a "bad" pass\\word, ü'


def forms(password):
    """The password as it is, as it is in the file, and as PLAIN and LOGIN send it."""
    yield password
    yield quoted(password)
    for words in (password, f"\0{USER}\0{password}"):
        yield base64.b64encode(words.encode()).decode()


def quoted(words):
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Proof(Judged):
    """Ports of the server: `good` offers AUTH behind STARTTLS, PLAIN and LOGIN;
    `login` likewise, LOGIN alone; `without` has no TLS and offers AUTH at once."""

    def smarthost(self, levels, password=RIGHT, **conf):
        """An instance that has a password for each port; u0 is at the first of
        `levels`, u1 at the second."""
        hops = [f"127.0.0.1:{self.peer.ports[kind]}" for kind in levels]
        table = self.peer.dir / "tls"
        table.write_text("".join(f"{hop} {level}\n" for hop, level in zip(hops, levels.values())))
        self.tell(levels, password)
        routing = "".join(f"u{n}@{self.domain} smtp:{hop}\n" for n, hop in enumerate(hops))
        files = {"smtp_password_file": self.peer.dir / "passwords", "smtp_tls_policy_file": table,
                 "smtp_tls_CAfile": self.peer.certificates.authority}
        return self.instance(routing=routing, **files | {"log_level": "debug"} | conf)

    def tell(self, kinds, password):
        fresh = self.peer.dir / "passwords.new"
        fresh.touch(0o600)
        fresh.write_text("".join(f"127.0.0.1:{self.peer.ports[kind]} {USER} {quoted(password)}\n" for kind in kinds))
        fresh.rename(self.peer.dir / "passwords")

    def seen(self, pattern, before, count):
        """Matches in the log of the server behind the first `before`, when there are `count`."""
        def more():
            found = re.findall(pattern, self.peer.log())
            return found if len(found) >= before + count else None
        return wait(more, what=f"{pattern} of {self.name}")[before:]

    def count(self, pattern):
        return len(re.findall(pattern, self.peer.log()))

    def nobody_was_told(self, i):
        for password in RIGHT, WRONG:
            for form in forms(password):
                self.assertNotIn(form, i.log())
                self.assertNotIn(form, self.peer.log())

    def check_good(self, kind, mechanism):
        self.empty()
        pattern = self.proved.format(mechanism=mechanism, user=re.escape(USER))
        before = self.count(pattern)
        i = self.smarthost({kind: "verify"})
        self.send(i, HELLO, 0)
        self.judge(i, "u0", "copy0", SECURE)
        self.seen(pattern, before, 1)
        self.nobody_was_told(i)
        i.stop()

    def test_a_good_password_by_PLAIN(self):
        self.check_good("good", "PLAIN")

    def test_a_good_password_by_LOGIN(self):
        self.check_good("login", "LOGIN")

    def test_a_wrong_password(self):
        """The mail waits for the right one."""
        self.empty()
        kinds = {"good": "verify", "login": "verify"}
        before, failed = self.count(self.commands), self.count(self.refused)
        i = self.smarthost(kinds, WRONG)
        for number in range(2):
            self.send(i, HELLO, number)
        for number in range(2):
            with self.subTest(number):
                self.judge(i, f"u{number}", f"copy{number}", self.wrong)
        # PLAIN, then LOGIN; and LOGIN alone.
        self.seen(self.refused, failed, 3)
        self.assertEqual(sorted(self.seen(self.commands, before, 2)), sorted(self.attempts))
        self.assertEqual(len(re.findall("said: 535 ", i.log())), 2)
        self.nobody_was_told(i)
        self.tell(kinds, RIGHT)
        i.reload()
        wait(lambda: i.log_has("reload"), what="a reload")
        i.flush()
        i.wait_empty()
        for number in range(2):
            wait(lambda n=number: self.box(f"u{n}"), what=f"mail of u{number}")
        self.nobody_was_told(i)
        i.stop()

    def test_no_password_without_TLS(self):
        self.empty()
        for levels, wanted in (({"without": "may", "good": "none"}, ("4.7.4", "4.7.11")),
                               ({"without": "none"}, ("4.7.11",)), ({"without": "verify"}, ("4.7.4",))):
            with self.subTest(levels=levels):
                before = self.count(self.commands)
                i = self.smarthost(levels)
                for number in range(len(wanted)):
                    self.send(i, HELLO, number)
                for number, want in enumerate(wanted):
                    self.judge(i, f"u{number}", f"copy{number}", want)
                self.assertEqual(self.seen(self.commands, before, len(wanted)), [self.greeting] * len(wanted))
                i.stop()

    def test_in_the_clear_where_it_may(self):
        """A server that offers AUTH only behind TLS is not asked, all the same."""
        self.empty()
        before = self.count(self.commands)
        pattern = self.proved.format(mechanism="PLAIN", user=re.escape(USER))
        proved = self.count(pattern)
        i = self.smarthost({"without": "may", "good": "none"}, smtp_auth_in_clear="yes")
        self.send(i, HELLO, 0)
        self.send(i, HELLO, 1)
        self.judge(i, "u0", "copy0", CLEAR)
        self.judge(i, "u1", "copy1", "4.7.9")
        self.seen(pattern, proved, 1)
        self.assertIn(self.greeting, self.seen(self.commands, before, 1))
        self.nobody_was_told(i)
        i.stop()

    def test_nobody_who_is_not_known_may_send(self):
        """So the other cases show that it was AUTH which let the mail in."""
        self.empty()
        i = self.smarthost({"good": "verify"}, smtp_password_file=None)
        self.send(i, HELLO, 0)
        wait(lambda: self.result(i, "u0"), what="a result")
        self.assertEqual(self.result(i, "u0")[0], "bounced")
        self.assertEqual(self.box("u0"), [])
        i.stop()


class PostfixProof(Proof, unittest.TestCase):
    """Dovecot looks at the password."""
    name = "postfix"
    secure = rb"with ESMTPSA? id"
    proved = "sasl_method={mechanism}, sasl_username={user}"
    refused = "SASL (?:PLAIN|LOGIN) authentication failed"
    wrong = "4.7.8"
    commands = r"disconnect from localhost\[127\.0\.0\.1\] (.*)"
    greeting = "ehlo=1 quit=1 commands=2"
    attempts = ("ehlo=2 starttls=1 auth=0/2 quit=1 commands=4/6", "ehlo=2 starttls=1 auth=0/1 quit=1 commands=4/5")

    # The user and the password that README has.
    newcomer = ("me@provider.example", "pass word")

    @staticmethod
    def make():
        return certified(postfix.Smarthost(BOXES, dict([(USER, RIGHT), PostfixProof.newcomer])))

    def test_a_good_password_by_SCRAM(self):
        """Each side proves to the other that it knows the password."""
        self.check_good("scram", "SCRAM-SHA-256")

    def test_the_five_lines_of_README(self):
        self.empty()
        user, password = self.newcomer
        pattern = self.proved.format(mechanism="PLAIN", user=re.escape(user))
        before = self.count(pattern)
        i = Instance(queues=1, routing="copy0@test.example local\n", conf={"mydestination": "here.test", "smtp_host_lookup": "native"})
        self.addCleanup(i.destroy)
        readme.smarthost(i, self.peer.ports["good"])
        with open(i.conf_file, "a", encoding="ascii") as conf:
            conf.write(f"smtp_tls_CAfile = {self.peer.certificates.authority}\n")
        i.start()
        self.send(i, HELLO, 0)
        self.judge(i, "u0", "copy0", SECURE)
        self.seen(pattern, before, 1)
        self.assertRegex(i.log(), "verified=yes")
        self.assertNotIn(password, i.log())
        i.stop()


class EximProof(Proof, unittest.TestCase):
    name = "exim"
    secure = rb"with esmtpsa? +\(TLS"
    proved = "<= .* A=(?i:{mechanism}):{user}"
    refused = "(?:plain|login) authenticator failed"
    wrong = "4.7.8"
    commands = r"no MAIL in SMTP connection from .* C=(\S+)"
    greeting = "EHLO,QUIT"
    attempts = ("EHLO,STARTTLS,EHLO,AUTH,AUTH,QUIT", "EHLO,STARTTLS,EHLO,AUTH,QUIT")

    @staticmethod
    def make():
        return certified(exim.Smarthost(BOXES, {USER: RIGHT}))
