"""sendmail -bs: SMTP on standard input and output, as mailers of PHP, Java and
Python speak it, to queues that this user may write to and through the door."""
import email
import pathlib
import smtplib
import subprocess

from case import SystemTest
from instance import AS_ROOT, HANG

NOBODY = 65534
MESSAGE = b"From: app@site.example\r\nTo: alice@test.example\r\nSubject: %d\r\n\r\nhello\r\n.\r\n..\r\nworld\r\n"


class Pipe(smtplib.SMTP):
    """Python's client on the pipes of a command."""

    def __init__(self, instance, *arguments, uid=None):
        self.process = subprocess.Popen(
            [instance.face("sendmail"), "-bs", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=instance.environment(),
            **({} if uid is None else {"user": uid, "group": uid, "extra_groups": []}))
        super().__init__(local_hostname="me.example", timeout=HANG)
        self.sock, self.file = self, self.process.stdout
        self.greeting = self.getreply()

    def sendall(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def close(self):
        self.sock = self.file = None

    def end(self):
        """The exit code and standard error."""
        self.process.stdin.close()
        said = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.wait(HANG), said


class Dialogue(SystemTest):
    def users(self):
        """Who submits: root, or the user, directly; somebody else through the door."""
        return [None, NOBODY] if AS_ROOT else [None]

    def dialogue(self, instance, *arguments, uid=None):
        client = Pipe(instance, *arguments, uid=uid)
        self.addCleanup(client.process.wait)
        self.addCleanup(client.process.kill)
        return client

    def test_S16_several_messages_of_a_mailer(self):
        i = self.running(conf={"myhostname": "host.example.test"})
        for count, uid in enumerate(self.users(), 1):
            with self.subTest(uid=uid):
                smtp = self.dialogue(i, uid=uid)
                self.assertEqual(smtp.greeting, (220, b"host.example.test ESMTP qscheduler"))
                for number in range(3):
                    self.assertEqual(smtp.sendmail("app@site.example", ["alice@test.example"], MESSAGE % number), {})
                code, said = smtp.quit()
                self.assertEqual((code, said), (221, b"2.0.0 Bye"))
                self.assertEqual(smtp.end(), (0, ""))
                mails = [email.message_from_bytes(pathlib.Path(m).read_bytes())
                         for m in i.wait_delivered("alice", 3 * count)]
                self.assertEqual(sorted(m["Subject"] for m in mails), sorted(["0", "1", "2"] * count))
                for mail in mails:
                    self.assertEqual(mail["Return-Path"], "<app@site.example>")
                    self.assertEqual(mail.get_payload(), "hello\n.\n..\nworld\n")
                received = [m["Received"] for m in mails if f"from uid {uid or 0}" in m["Received"]]
                if AS_ROOT:
                    self.assertEqual(len(received), 3, "the user is that of the process")
        i.stop()

    def test_S16_the_steps_of_a_mailer_of_php(self):
        """As Symfony and Swift do: a reply after each command, a blind copy that
        is a recipient alone, RSET or NOOP before the next message."""
        i = self.running()
        for uid in self.users():
            with self.subTest(uid=uid):
                smtp = self.dialogue(i, uid=uid)
                self.assertEqual(smtp.docmd("EHLO [127.0.0.1]")[0], 250)
                for name in "bob", "carol":
                    self.assertEqual(smtp.docmd("NOOP")[0], 250)
                    self.assertEqual(smtp.docmd("MAIL FROM:<app@site.example>"), (250, b"2.1.0 Ok"))
                    for rcpt in f"{name}@test.example", f"secret-{name}@test.example":
                        self.assertEqual(smtp.docmd(f"RCPT TO:<{rcpt}>"), (250, b"2.1.5 Ok"))
                    self.assertEqual(smtp.docmd("DATA")[0], 354)
                    smtp.sendall(b"Subject: s\r\nBcc: secret@test.example\r\n\r\n..\r\n...a\r\n")
                    code, said = smtp.docmd(".")
                    self.assertEqual(code, 250)
                    self.assertRegex(said, rb"^2\.0\.0 Ok: queued as [0-9A-F]+$")
                    identity = said.split()[-1].decode()
                    for box in name, f"secret-{name}":
                        text = pathlib.Path(i.wait_delivered(box, 1)[0]).read_text()
                        self.assertIn(f"\tid {identity};", text)
                        self.assertNotIn("Bcc", text)
                        self.assertTrue(text.endswith("\n\n.\n..a\n"), text)
                # A process that keeps its mailer is ended without QUIT.
                self.assertEqual(smtp.end(), (0, ""))
            for box in "bob", "carol", "secret-bob", "secret-carol":
                for mail in i.maildir(box):
                    pathlib.Path(mail).unlink()
        i.stop()

    def test_S16_refusals_and_what_comes_after(self):
        i = self.instance(conf={"message_size_limit": "2000", "message_recipient_limit": 2, "mydomain": "home.example"})
        i.start()
        i.stop()
        for uid in self.users():
            with self.subTest(uid=uid):
                smtp = self.dialogue(i, uid=uid)
                smtp.ehlo()
                self.assertTrue(smtp.has_extn("dsn") and smtp.has_extn("smtputf8"))
                self.assertEqual(smtp.esmtp_features["size"], "2000")
                self.assertEqual(smtp.docmd("MAIL FROM:<me@x.example> SIZE=2001")[0], 552)
                self.assertEqual(smtp.docmd("MAIL FROM:<me>")[0], 250)
                self.assertEqual(smtp.docmd("RCPT TO:<a b@x.example>")[0], 501)
                for name, code in ("joe", 250), ("ann", 250), ("eve", 452):
                    self.assertEqual(smtp.docmd(f"RCPT TO:<{name}>")[0], code)
                code, said = smtp.data(b"x" * 3000)
                self.assertEqual((code, said[:6]), (552, b"5.3.4 "))
                before = len(i.files())
                self.assertEqual(smtp.sendmail("me", ["joe"], b"Subject: s\n\nlast\n"), {})
                self.assertEqual(smtp.docmd("MAIL FROM:<half@x.example>")[0], 250)
                self.assertEqual(smtp.docmd("RCPT TO:<joe>")[0], 250)
                self.assertEqual(smtp.docmd("DATA")[0], 354)
                smtp.sendall(b"Subject: s\r\n\r\nhalf\r\n")
                code, said = smtp.end()
                self.assertEqual(code, 74)
                self.assertIn("4.3.0 the input ends inside of a message, which is not taken", said)
                self.assertEqual(len(i.files()), before + 1)
                self.assertEqual([t for t in i.texts() if "half" in t], [])
