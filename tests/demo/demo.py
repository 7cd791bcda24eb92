#!/usr/bin/python3
"""make demo: the newcomer's tour of qscheduler, which is a test as well.

A private instance of two queues, as an ordinary user. The sample messages of
tests/mail go in through the sendmail face and out four ways: to maildirs,
into a program, over SMTP to aiosmtpd, and over TLS, with a certificate that is
verified, to Debian's Postfix (mta.py), which only root can start: where that
cannot be, the demo says why. What came out is compared with what went in, byte
by byte; `sendmail` makes LF of CRLF (docs/SENDMAIL.md). Exit 0 only if all of
it is true.

    demo.py [UID]    root shows it as this user, who needs no account; nobody by default
"""
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
sys.path.insert(0, str(TESTS / "system"))

import mta  # noqa: E402
import packages  # noqa: E402
import wire  # noqa: E402

# Fields that this system puts in front of what was submitted.
ADDED = re.compile(rb"\A(?:(?:Return-Path|X-Original-To|Delivered-To|Received|From|Date|Message-ID): "
                   rb"[^\n]*\n(?:[ \t][^\n]*\n)*)*", re.I)
WAYS = ("maildir", "program", "smtp")
TLS = "debian"
BULK = 5000


def step(text):
    print(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}", flush=True)


def say(text):
    print(f"   {text}", flush=True)


def as_ordinary_user(uid, gid):
    """Root shows it as another user, from a copy that this one can read."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="qsched-demo-"))
    with contextlib.ExitStack() as end:
        end.callback(shutil.rmtree, top, ignore_errors=True)
        told = tell_of_mta(uid, end)
        shutil.copytree(ROOT / "build/bin", top / "build/bin", symlinks=True)
        shutil.copytree(TESTS, top / "tests", symlinks=True)
        subprocess.run(["chmod", "-R", "a+rX", top], check=True)
        (top / "tmp").mkdir()
        shutil.chown(top / "tmp", uid, gid)
        done = subprocess.run(
            [sys.executable, "-B", top / "tests/demo/demo.py"], check=False, cwd=top,
            user=uid, group=gid, extra_groups=[],
            env={"PATH": os.environ["PATH"], "TMPDIR": str(top / "tmp"), "HOME": str(top / "tmp"), "DEMO_MTA": told})
        return done.returncode


def tell_of_mta(uid, end):
    """Where Debian's server is, or why there is none."""
    try:
        server = mta.start(uid)
    except packages.Unavailable as why:
        return json.dumps({"why": str(why)})
    end.callback(server.destroy)
    return server.told


def as_postfix_has_it(content):
    """Postfix takes blanks before the colon of a field away."""
    header, body = re.fullmatch(rb"(.*?)(\n\n.*|\n?)", content, re.S).groups()
    return re.sub(rb"(?m)^([!-9;-~]+)[ \t]+:", rb"\1:", header) + body


def user_name():
    """The user, or the number of one that has no account, as in a container."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}, which has no account"


class Tour:
    def __init__(self):
        from instance import Instance
        from peer import Peer
        self.mta = json.loads(os.environ.get("DEMO_MTA", '{"why": "needs root"}'))
        self.ways = WAYS if "why" in self.mta else (*WAYS, TLS)
        self.instance = Instance(queues=2)
        self.keep = self.instance.dir / "program"
        self.keep.mkdir()
        self.peer = Peer(self.instance.dir / "smtp")
        self.instance.programs_file.write_text(
            f'archive - /usr/bin/python3 {TESTS}/demo/archive.py {self.keep} "${{user}}"\n')
        self.instance.routing_file.write_text(
            "maildir.example local\nprogram.example pipe:archive\n"
            f"smtp.example    smtp:127.0.0.1:{self.peer.port}\n")
        if TLS in self.ways:
            self.verify()
        self.samples = {}
        self.wrong = 0

    def verify(self):
        """Mail for Debian's server goes over TLS, or waits."""
        i, hop = self.instance, f"127.0.0.1:{self.mta['port']}"
        with open(i.routing_file, "a", encoding="ascii") as routing:
            routing.write(f"{mta.DOMAIN} smtp:{hop}\n")
        (i.dir / "tls").write_text(f"{hop} verify\n")
        i.write_conf(smtp_tls_policy_file=i.dir / "tls", smtp_tls_CAfile=self.mta["authority"])

    def check(self, true, what):
        if not true:
            self.wrong += 1
            say(f"WRONG: {what}")

    def start(self):
        step("A private instance of two queues")
        i = self.instance
        say(f"as {user_name()}, below {i.dir}")
        i.start()
        say(f"running: {', '.join(sorted(self.program(p) for p in i.pids()))}")
        say(f"SMTP server: aiosmtpd on 127.0.0.1:{self.peer.port}")
        if TLS in self.ways:
            say(f"TLS server: Debian's Postfix on 127.0.0.1:{self.mta['port']}, its certificate verified")
        else:
            say(f"SKIP delivery over TLS to Debian's Postfix: {self.mta['why']}")

    @staticmethod
    def program(pid):
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        queue = words[-2] if words[-2].isdigit() and words[-3] != "--ready-fd" else ""
        return os.path.basename(words[0]) + (f"/{queue}" if queue else "")

    def submit(self):
        step("Sample messages, each to a maildir, a program and " + ("two servers" if TLS in self.ways else "a server"))
        made = self.instance.dir / "made"
        made.mkdir()
        subprocess.run([TESTS / "mail/generate", made], check=True, stdout=subprocess.DEVNULL)
        files = [p for d in (TESTS / "mail", made) for p in sorted(d.iterdir())
                 if p.suffix == ".eml"]
        for number, path in enumerate(files):
            name = f"s{number:02d}"
            content = path.read_bytes()
            self.samples[name] = re.sub(rb"\r+\n", b"\n", content)
            self.instance.inject(content, *[f"{name}@{way}.example" for way in self.ways])
            say(f"{name}  {len(content):>10} bytes  {path.name}")
        self.rcpts = [f"list{n}@{'smtp' if n % 5 else 'maildir'}.example" for n in range(BULK)]
        self.bulk = b"Subject: to everybody\n\nOne message, many recipients.\n"
        self.instance.inject(self.bulk, *self.rcpts)
        say(f"bulk  {len(self.bulk):>8} bytes  to {BULK} recipients")
        self.expected = len(self.ways) * len(files) + BULK

    def deliver(self):
        step(f"{self.expected} deliveries")
        began, last = time.monotonic(), -1

        def done():
            nonlocal last
            log = self.instance.log()
            count = log.count("status=sent")
            if count // 500 != last // 500:
                say(f"{count} of {self.expected} delivered after {time.monotonic() - began:.1f} s")
                last = count
            return count >= self.expected
        from instance import wait
        wait(done, what="all deliveries")
        self.instance.wait_empty()

    def compare(self):
        step("What came out, compared with what went in, byte by byte")
        out = {way: {} for way in self.ways}
        for name in self.samples:
            for path in self.instance.maildir(name):
                out["maildir"].setdefault(name, []).append(path.read_bytes())
        for path in self.keep.iterdir():
            out["program"].setdefault(path.name.split(".")[0], []).append(path.read_bytes())
        if TLS in self.ways:
            self.compare_tls(out[TLS])
        bulk = []
        for path, envelope in zip(self.peer.messages(), self.peer.envelopes()):
            for rcpt in envelope["to"]:
                if rcpt.startswith("list"):
                    bulk.append(rcpt)
                else:
                    out["smtp"].setdefault(rcpt.split("@")[0], []).append(path.read_bytes())
        for way in self.ways:
            same = sum(self.is_same(way, n, out[way].get(n, [])) for n in self.samples)
            say(f"{way:8} {same} of {len(self.samples)} messages the same")
        bulk += [r for r in self.rcpts if r.endswith("@maildir.example")
                 for _ in self.instance.maildir(r.split("@")[0])]
        self.check(sorted(bulk) == sorted(self.rcpts), "each of the many recipients has one")
        count = sum(len(m) for w in out.values() for m in w.values()) + len(bulk)
        say(f"in {self.expected}, out {count}")
        self.check(count == self.expected, "as many out as in")
        self.check(not self.instance.files(), f"nothing stays behind: {self.instance.files()[:3]}")

    def compare_tls(self, out):
        """Postfix took it over TLS, and says so in its Received field."""
        from instance import wait
        boxes = pathlib.Path(self.mta["mail"])
        wait(lambda: len(list(boxes.glob("*/new/*"))) >= len(self.samples), what="all mail in Postfix's maildirs")
        for path in boxes.glob("*/new/*"):
            content = path.read_bytes()
            out.setdefault(path.parts[-3], []).append(content)
            self.check(re.search(rb"\sby peer\.test \(Postfix\) with (?:E|UTF8)SMTPS ", content), f"{path.parts[-3]} came over TLS")
        lines = re.findall(r"tls=(TLSv\S+), cipher=(\S+), .*verified=yes", self.instance.log())
        self.check(lines, "the log tells of TLS that was verified")
        say(f"over TLS: {' '.join(sorted(set(sum(lines, ()))))}, certificate verified, {len(lines)} handshakes")

    def is_same(self, way, name, copies):
        want = self.samples[name]
        if len(copies) != 1:
            self.check(False, f"{name} by {way}: {len(copies)} copies")
            return False
        got = copies[0]
        if way in ("smtp", TLS):
            want, got = wire.as_received(want), got.replace(b"\r\n", b"\n")
        if way == TLS:
            want = as_postfix_has_it(want)
        # Everything that stands before the submitted bytes was put there by us.
        front = got[:len(got) - len(want)]
        same = got.endswith(want) and ADDED.sub(b"", front, count=1) in (b"", b"\n")
        self.check(same, f"{name} by {way} is not what went in")
        return same

    def show(self):
        step("qtop -b -n 1")
        from instance import BIN
        done = subprocess.run([BIN / "qtop", "-b", "-n", "1", "-i", self.instance.name],
                              capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="")
        self.check(done.returncode == 0, "qtop shows the queues")
        step("The log of one message, from end to end")
        lines = self.instance.log().splitlines()
        ident = re.search(r"([0-9A-F]{20,}): to=<s01@smtp", self.instance.log())
        story = [line for line in lines if ident and ident.group(1) in line]
        for line in story:
            print(line)
        self.check(len(story) >= 5 and "removed" in story[-1], "from taken in to removed")

    def call(self, *words):
        """A command of the operator, as he types it and with what it prints."""
        from instance import BIN
        say(f"$ {' '.join(words)}")
        done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True,
                              check=False, env=self.instance.environment())
        print(done.stdout + done.stderr, end="", flush=True)
        self.check(done.returncode == 0, " ".join(words))
        return done.stdout + done.stderr

    def operate(self):
        """Mail that waits for a route: found, put aside, let go, and delivered."""
        step("Mail that waits, in the operator's hands")
        from instance import wait
        i = self.instance
        i.inject(b"Subject: where to?\n\nhello\n", "friend@away.example")
        wait(lambda: i.files("deferred"), what="the message is deferred")
        self.check("no route" in self.call("qctl", "list"), "the list says why")
        self.call("qctl", "hold", "domain=away.example", "--yes")
        self.check("State: hold" in self.call("qctl", "show", "recipient=friend@*"), "on hold")
        self.call("qctl", "release", "ALL", "--yes")
        say("routing: away.example local; reload")
        with open(i.routing_file, "a", encoding="ascii") as routing:
            routing.write("away.example local\n")
        i.reload()
        wait(lambda: i.log_has("configuration reloaded"), what="the reload")
        self.call("qctl", "requeue", "ALL", "--yes")
        i.wait_delivered("friend", 1)
        i.wait_empty()
        self.check(self.call("qctl", "list") == "Mail queue is empty\n", "nothing waits any more")

    def stop(self):
        step("A clean stop")
        self.instance.stop()
        say("exit 0, no process, no shared memory, no message queue left")

    def run(self):
        began = time.monotonic()
        try:
            self.start()
            self.submit()
            self.deliver()
            self.compare()
            self.show()
            self.operate()
            self.stop()
        except AssertionError as failed:
            self.check(False, failed)
        finally:
            self.peer.stop()
            self.instance.destroy()
        took = time.monotonic() - began
        step(f"{'All of it is true' if not self.wrong else f'{self.wrong} things are WRONG'} ({took:.1f} s)")
        return 1 if self.wrong else 0


def main():
    if os.geteuid() != 0:
        return Tour().run()
    if len(sys.argv) > 1:
        return as_ordinary_user(int(sys.argv[1]), int(sys.argv[1]))
    nobody = pwd.getpwnam("nobody")
    return as_ordinary_user(nobody.pw_uid, nobody.pw_gid)


sys.exit(main())
