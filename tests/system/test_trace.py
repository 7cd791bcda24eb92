"""`qctl trace`: the dialogue with a destination, as it goes on (docs/QCTL.md, "Dialogues")."""
import json
import os
import re
import signal
import subprocess

import readme
from case import SystemTest
from instance import BIN, wait
from smtp_site import Site
from tls_site import TlsSite

HELLO = b"Subject: hello\n\nconfidential\n"
SECRET = "Gr4ss-green"
SECRET_B64 = "AG1lQHByb3ZpZGVyLmV4YW1wbGUAR3I0c3MtZ3JlZW4="


class Tracing(SystemTest):
    def traced(self, i, *words):
        """The command, when its queue knows of it, and the file that it writes."""
        begun = i.log().count(": trace of ")
        path = i.dir / f"trace-{begun}"
        with open(path, "wb") as out, open(f"{path}-errors", "wb") as errors:
            command = subprocess.Popen([BIN / "qctl", "trace", *words], env=i.environment(), stdout=out,
                                       stderr=errors)
        self.addCleanup(self.end, command)
        wait(lambda: i.log().count(": trace of ") > begun or command.poll() is not None, what="a trace")
        return command, path

    def end(self, command):
        if command.poll() is None:
            command.send_signal(signal.SIGINT)
        command.wait()


class Trace(Tracing):
    def site(self, **options):
        made = Site(**options)
        self.addCleanup(made.stop)
        return made

    def test_A11_a_dialogue_is_shown_without_the_message(self):
        site = self.site()
        i = self.running(queues=1, routing=f"* smtp:127.0.0.1:{site.port}\n")
        _, path = self.traced(i, f"127.0.0.1:{site.port}")
        _, by_address = self.traced(i, "127.0.0.1", "--json")
        _, other = self.traced(i, "elsewhere.example")
        i.inject(HELLO, "x@away.example", "y@away.example")
        i.wait_empty()
        wait(lambda: "< 250 2.0.0 ok" in path.read_text(), what="the last reply")
        wait(lambda: "2.0.0 ok" in by_address.read_text(), what="the last reply")
        said = [re.sub(r"^\d\d:\d\d:\d\d\.\d{3}  q1  \w+  \[?127\.0\.0\.1\]?\S* ", "", line)
                for line in path.read_text().splitlines()]
        said = [re.sub(r"SIZE=\d+|EHLO \S+", lambda m: m[0][:4], line) for line in said]
        self.assertEqual(said[:14], [
            "* connected", "< 220 site ESMTP", "> EHLO", "< 250-site", "< 250 PIPELINING",
            "> MAIL FROM:<sender@test.example>", "> RCPT TO:<x@away.example>", "> RCPT TO:<y@away.example>",
            "> DATA", "< 250 2.1.0 ok", "< 250 2.1.5 ok", "< 250 2.1.5 ok", "< 354 go on", "> (the message)"])
        self.assertNotIn("confidential", path.read_text())
        rows = [json.loads(line) for line in by_address.read_text().splitlines()]
        self.assertEqual({row["who"] for row in rows}, {"client", "server", "event"})
        self.assertEqual({row["queue"] for row in rows}, {1})
        self.assertEqual(other.read_text(), "")

    def test_A11_no_secret_is_shown(self):
        i = self.instance(queues=1, routing="# none\n", conf={
            "mydestination": "here.example", "smtp_connection_cache_time_limit": 0, "smtp_host_lookup": "native"})
        site = TlsSite(i.dir / "site", users={"me@provider.example": SECRET})
        self.addCleanup(site.stop)
        site.refusal = f"535 5.7.8 {SECRET} or {SECRET_B64} is wrong".encode()
        readme.smarthost(i, site.port, **{"pass word": SECRET})
        with open(i.conf_file, "a") as f:
            f.write(f"smtp_tls_CAfile = {site.authority}\n")
        i.start()
        _, path = self.traced(i, "localhost")
        i.inject(HELLO, "x@away.example")
        i.wait_empty()
        site.users = {"me@provider.example": "another"}
        i.inject(HELLO, "y@away.example")
        wait(lambda: "(left out" in path.read_text(), what="the refusal")
        text = path.read_text()
        self.assertIn("> AUTH PLAIN (hidden)\n", text)
        self.assertIn("* TLSv1.3", text)
        for secret in (SECRET, SECRET_B64):
            self.assertNotIn(secret, text)

    def test_another_deliver_smtp_goes_on_with_the_trace(self):
        site = self.site()
        i = self.running(queues=1, routing=f"* smtp:127.0.0.1:{site.port}\n")
        _, path = self.traced(i, "*")
        before = i.pids("deliver-smtp")
        os.kill(before[0], signal.SIGKILL)
        wait(lambda: i.pids("deliver-smtp") not in ([], before), what="another agent")
        i.inject(HELLO, "x@away.example")
        wait(lambda: "(the message)" in path.read_text(), what="the dialogue")

    # mutation: qctl/show/trace.c, trace_take_row() without sites_have().
    def test_no_destination_fits_yet(self):
        site = self.site()
        i = self.running(queues=2, routing=f"* smtp:127.0.0.1:{site.port}\n")
        i.inject(HELLO, "x@away.example")
        i.wait_empty()
        for word, fits, hint in (
                (f"127.0.0.1:{site.port}", True, ""), (f"smtp/127.0.0.1:{site.port}", True, ""), ("*", True, ""),
                ("away.example", False, ". `qctl route user@away.example' shows the next hop of the domain"),
                ("smtp/away.example", False, ". `qctl route user@away.example' shows the next hop of the domain"),
                ("lmtp/*", False, ""), ("127.0.0.1:1", False, "")):
            command, path = self.traced(i, word)
            told = path.with_name(path.name + "-errors")
            wait(lambda: told.read_text().count("\n") == 2 - fits, what=f"what is told of {word}")
            self.end(command)
            said = told.read_text().splitlines()[1:]
            self.assertEqual(said, [] if fits else [
                f"qctl: no destination fits `{word}' now; waiting, also for a server of that name{hint}"])

    def test_the_end_and_refusals(self):
        site = self.site()
        i = self.running(queues=1, routing=f"* smtp:127.0.0.1:{site.port}\n")
        command, path = self.traced(i, "*", "--for", "1s")
        self.assertEqual(command.wait(), 0)
        self.assertEqual(path.read_text(), "")
        for words, code in (((), 64), (("a", "b"), 64), (("a", "--for", "2d"), 64), (("a", "--for", "0"), 64)):
            said = subprocess.run([BIN / "qctl", "trace", *words], env=i.environment(), capture_output=True)
            self.assertEqual(said.returncode, code, said.stderr)
        four = [self.traced(i, f"{n}.example")[0] for n in range(4)]
        fifth, path = self.traced(i, "5.example")
        self.assertEqual(fifth.wait(), 75)
        self.assertIn("too many traces", path.with_name(path.name + "-errors").read_text())
        self.end(four[0])
        # The queue sees the end of the first command before it takes another.
        wait(lambda: self.traced(i, "6.example")[0].poll() is None, what="room for a trace")
        i.stop()
        self.assertEqual(four[1].wait(), 75)
