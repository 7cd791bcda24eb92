"""Control sequences from outside, in each place where text from outside lies, and
each output that somebody may have on his terminal."""
import contextlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import socketserver
import subprocess
import threading
import time

from case import SystemTest
from instance import AS_ROOT, BIN, HANG, USERS, wait

# ESC, CSI as one byte and in UTF-8, BEL, DEL, back, a title, and half a character.
EVIL = b"\x1b[2J\x9b31m\xc2\x9b1m\x07\x7f\x08\x1b]0;owned\x07\xff\xe2\x82"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
TYPED = os.fsdecode(EVIL)  # as an argument


class Reply(socketserver.StreamRequestHandler):
    """An SMTP server with words of its own for each recipient."""

    def handle(self):
        self.wfile.write(b"220 " + EVIL + b"\r\n")
        for line in self.rfile:
            verb = line[:4].upper()
            if verb == b"RCPT":
                self.wfile.write((b"450 4.2.1 " if b"later" in line else b"550 5.1.1 ") + EVIL + b" wait\r\n")
            elif verb == b"EHLO":
                self.wfile.write(b"250-" + EVIL + b"\r\n250 SMTPUTF8\r\n")
            elif verb == b"QUIT":
                return
            else:
                self.wfile.write(b"250 " + EVIL + b"\r\n")


class Escapes(SystemTest):
    def harmless(self, name, said):
        """Valid UTF-8 without a control character but LF and TAB."""
        text = said.decode()  # raises
        found = CONTROL.search(text)
        self.assertIsNone(found, f"{name}: {text[max(0, found.start() - 80):found.end() + 20]!r}" if found else "")
        self.assertNotIn("\u009b", text)
        return text

    def run_it(self, i, *words, name=None, **options):
        done = subprocess.run([name or words[0], *words[1:]], executable=words[0], capture_output=True,
                              check=False, env=i.environment(), timeout=HANG, **options)
        self.harmless(f"{words}, standard output", done.stdout)
        self.harmless(f"{words}, standard error", done.stderr)
        return done.stdout.decode() + done.stderr.decode()

    def server(self):
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Reply)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    def planted(self, **conf):
        """Mail that waits, is on hold, has failed, was reported, is damaged."""
        i = self.instance(queues=2, conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"} | conf,
                          routing=f"smtp.example smtp:127.0.0.1:{self.server()}\npipe.example pipe:tell\n* local\n")
        words = i.dir / "words"
        words.write_bytes(EVIL + b" said\n")
        user = USERS["maildir_user"] if AS_ROOT else "-"
        i.programs_file.write_text(f'tell {user} /bin/sh -c "cat {words} >&2; cat {words}; exit $EXIT"\n'
                                   .replace("$EXIT", "75"))
        i.alias_file.write_bytes(b'team: bob@test.example, later@smtp.example, ":include:' +
                                 os.fsencode(i.dir) + b'/\xc2\x9b1m.list"\n')
        i.start()
        message = b"Subject: " + EVIL + b"\nMessage-ID: <" + EVIL + b"@x>\nX-" + EVIL + b": x\n\n" + EVIL + b"\n"
        for sender, *rcpts in (("s@test.example", "gone@smtp.example", "\u009b31m@smtp.example"),
                               ("\u009b1m@test.example", "p@pipe.example"), ("s@test.example", "team@test.example"),
                               ("\u009b1m@test.example", "later@smtp.example"),
                               ("s@test.example", "later@smtp.example", "later.\u009b31m@smtp.example")):
            i.inject(message, *rcpts, sender=sender)
        wait(lambda: not i.files("incoming", "active", "gate/maildrop", "prepared") and len(i.files("deferred")) == 4,
             what="all were tried")
        return i

    def damage(self, i):
        """What a disk, or a user of the mail system, may have done."""
        for path in i.files("defer"):
            path.write_bytes(path.read_bytes() + b"0\t1\t4.0.0\t" + EVIL + b"\t" + EVIL + b"\t" + EVIL + b"\n" + EVIL)
        whole, broken = i.files("deferred")[:2]
        text = whole.read_bytes()
        for inside in (b"later@smtp.example", b"p@pipe.example", b"team@test.example"):
            text = text.replace(inside, EVIL[:len(inside)].ljust(len(inside), b"\x1b"))
        whole.write_bytes(text)
        with open(broken, "r+b") as f:
            f.seek(-20, os.SEEK_END)
            f.write(b"\033]0;x\007")
        for state in ("hold", "corrupt", "deleted"):
            (pathlib.Path(os.fsencode(i.queue(1) / state).decode()) / os.fsdecode(EVIL.replace(b"/", b""))).write_bytes(EVIL)

    def on_a_terminal(self, i, *words):
        """What a program writes that has a terminal before it."""
        main, end = pty.openpty()
        with subprocess.Popen(words, stdin=end, stdout=end, stderr=end, env=i.environment() | {"TERM": "xterm"}) as process:
            os.close(end)
            said = b""
            with contextlib.suppress(OSError):  # the other end is closed
                while select.select([main], [], [], HANG)[0] and (part := os.read(main, 65536)):
                    said += part
            process.wait(HANG)
        os.close(main)
        return self.harmless(str(words), said.replace(b"\r\n", b"\n"))

    def outputs(self, i):
        helped = self.run_it(i, BIN / "qctl", "--help", name="qctl").split("\n\n")[2]
        verbs = re.findall(r"\b[a-z]+\b", " ".join(re.findall(r"^  ((?:[a-z]+,? )+) ", helped, re.M)))
        self.assertTrue({"list", "show", "shape", "hold", "retry", "undelete"} <= set(verbs), verbs)
        for verb in verbs:
            for words in ([TYPED], ["ALL", "--dry-run"], ["--" + TYPED]):
                self.run_it(i, BIN / "qctl", verb, *words, *(["--for", "1s"] if verb == "trace" else []), name="qctl")
        for words in (["list"], ["show", "ALL"], ["shape"], ["shape", "--senders"], ["list", "state=corrupt,deleted,hold"],
                      ["check"], ["check", "--content"], ["list", "reason=" + TYPED], [TYPED], ["list", "state=" + TYPED], ["list", "--json"]):
            said = self.run_it(i, BIN / "qctl", *words, name="qctl")
        for line in said.splitlines():
            if line.startswith("{"):
                json.loads(line)
        for words in (["list"], ["show", "ALL", "--content"], ["shape"]):
            self.on_a_terminal(i, BIN / "qctl", *words)
        for name, words in (("mailq", []), ("postqueue", ["-p"]), ("postqueue", ["-j"]), ("postqueue", [TYPED]),
                            ("postsuper", ["-d", TYPED]), ("postqueue", ["-i", TYPED]), ("postqueue", ["-s", TYPED])):
            self.run_it(i, BIN / "qctl", *words, name=name)
        for program, words in (("setqload", ["--list"]), ("setqload", ["--list", "--json"]), ("setqload", ["-q", TYPED]),
                               ("setqload", ["--disable", "-q", "1", "--reason", TYPED]), ("qtop", ["-b", "-n", "1"]),
                               ("qtop", [TYPED]), ("qtop", ["-i", TYPED]), ("qscheduler", ["--check"]),
                               ("qscheduler", ["--check", TYPED]), ("qscheduler", ["-" + TYPED]), ("qscheduler", ["--dump"]),
                               ("qsim", [TYPED]), ("qsim", ["replay", TYPED]), ("queue-inject", ["-" + TYPED]),
                               ("queue-inject", ["-c", TYPED, "x"])):
            self.run_it(i, BIN / program, *words, name=program, stdin=subprocess.DEVNULL)
        for face, words in (("sendmail", ["-" + TYPED]), ("sendmail", ["-b" + TYPED]), ("sendmail", ["-bi"]),
                            ("sendmail", [TYPED + "@x"]), ("sendmail", ["-f", TYPED, "x"]), ("newaliases", [])):
            self.run_it(i, i.face(face), *words, name=face, stdin=subprocess.DEVNULL)

    def test_A7_each_output_of_running_queues(self):
        i = self.planted()
        self.outputs(i)
        self.assertEqual(subprocess.run([BIN / "setqload", "-c", i.conf_file, "--disable", "-q", "1", "--reason", TYPED],
                                        capture_output=True, check=False, env=i.environment()).returncode, 64)
        self.run_it(i, BIN / "qctl", "hold", "ALL", name="qctl")
        self.run_it(i, BIN / "qctl", "release", "ALL", name="qctl")
        i.stop()
        log = self.harmless("the log", i.log_file.read_bytes())
        self.assertRegex(log, r"status=deferred \([^\n]*\[2J")
        self.assertRegex(log, r"status=bounced \([^\n]*\[2J")

    def test_A7_each_output_of_damaged_queues(self):
        i = self.planted()
        i.stop()
        self.damage(i)
        (i.base / "by-hand").write_bytes(b"disabled 1 0 " + EVIL + b"\n")
        i.alias_file.write_bytes(b"x" + EVIL + b"\n" + EVIL + b": a\nb: " + EVIL + b"\n")
        self.outputs(i)
        i.alias_file.write_text("")
        with open(i.routing_file, "ab") as f:
            f.write(b"\xc2\x9b.example " + EVIL + b"\n")
        self.outputs(i)
        i.conf_file.write_bytes(i.conf_file.read_bytes() + EVIL + b" = " + EVIL + b"\n")
        self.outputs(i)
        i.write_conf()
        i.routing_file.write_text("* local\n")
        i.start()
        wait(lambda: i.log_has("corrupt"), what="damage is found")
        self.outputs(i)
        i.stop()
        self.harmless("the log", i.log_file.read_bytes())

    def test_A7_reports_have_no_control_sequence(self):
        """The readable part and the fields for programs; what the sender wrote is
        returned to him as he wrote it."""
        i = self.planted()
        def reports():
            return [path for user in i.mail.iterdir() for path in i.maildir(user.name)
                    if b"multipart/report" in path.read_bytes()]
        wait(reports, what="a report")
        i.stop()
        for path in reports():
            data = path.read_bytes()
            returned = re.search(rb"\nContent-Type: (message/rfc822|text/rfc822-headers|message/global|message/global-headers)", data)
            ours = data[:returned.start()]
            self.harmless(str(path), ours)
            self.assertIn(b"[2J", ours)

    def test_A7_json_log(self):
        i = self.planted(log_format="json", log_level="debug")
        i.stop()
        self.harmless("the log", i.log_file.read_bytes())
        for line in i.log_file.read_text().splitlines():
            if line.startswith("{"):
                event = json.loads(line)
                self.assertIsNone(CONTROL.search(json.dumps(event, ensure_ascii=False).replace("\\u001b", "ESC")), line)


