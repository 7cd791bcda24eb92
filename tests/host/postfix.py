"""Postfix's sendmail, in a bare root with Debian's package: what it queues is
delivered to a program that writes each message to files."""
import contextlib
import os
import pathlib
import subprocess
import time

import cases
import outcome

NOBODY = 65534
MAIN_CF = f"""
compatibility_level = 3.6
myhostname = {cases.DOMAIN}
myorigin = $myhostname
mydestination =
inet_interfaces = loopback-only
inet_protocols = ipv4
alias_maps =
alias_database =
default_transport = capture
relay_transport = capture
capture_destination_recipient_limit = 10000
capture_initial_destination_concurrency = 1
capture_destination_concurrency_limit = 1
message_size_limit = {cases.SIZE_LIMIT}
maillog_file = /dev/null
maillog_file_prefixes = /dev
"""
CAPTURE = """#!/bin/sh
umask 022
name=$(mktemp /var/capture/XXXXXX)
cat >"$name.content"
printf '%s\\n' "$@" >"$name.envelope"
"""
SERVICE = "capture unix - n n - - pipe flags=q user=daemon null_sender= argv=/usr/local/bin/capture -${sender}- ${recipient}\n"


class Postfix:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.captured = self.root / "var/capture"
        self.captured.mkdir(exist_ok=True)
        os.chmod(self.captured, 0o777)
        (self.root / "etc/postfix/main.cf").write_text(MAIN_CF)
        program = self.root / "usr/local/bin/capture"
        program.write_text(CAPTURE)
        program.chmod(0o755)
        master = self.root / "etc/postfix/master.cf"
        kept = [s for s in master.read_text().splitlines(True) if not s.startswith(("capture ", "smtp      inet"))]
        master.write_text("".join(kept) + SERVICE)
        (self.root / "var/spool/postfix/etc").mkdir(exist_ok=True)
        self._running = False

    def command(self, *words, check=True):
        return subprocess.run(["chroot", self.root, *words], check=check, capture_output=True)

    def start(self):
        if not self._running:
            self.command("/usr/sbin/postfix", "start")
            self._running = True

    def stop(self):
        if self._running:
            self.command("/usr/sbin/postfix", "stop")
            self._running = False

    def _waiting(self):
        spool = self.root / "var/spool/postfix"
        return [n for d in ("maildrop", "incoming", "active", "deferred") for _, _, names in os.walk(spool / d)
                for n in names]

    def _messages(self):
        end = time.monotonic() + 30
        while self._waiting() and time.monotonic() < end:
            time.sleep(0.02)  # between two looks
        found = []
        for path in sorted(self.captured.glob("*.envelope")):
            sender, *rcpts = path.read_text().splitlines()
            content = path.with_suffix(".content")
            found.append(outcome.MESSAGE(sender[1:-1], rcpts, content.read_bytes()))
        for path in self.captured.iterdir():
            path.unlink()
        return found

    @contextlib.contextmanager
    def _state(self, name):
        drop = self.root / "var/spool/postfix/maildrop"
        if name in ("", "stopped"):
            self.start() if name == "" else self.stop()
            yield
        elif name == "full":
            self.start()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,mode=1730", "tmpfs", drop], check=True)
            try:
                group = (self.root / "usr/sbin/postdrop").stat().st_gid
                os.chown(drop, -1, group)
                (drop / "filler").write_bytes(b"x" * 4096)
                yield
            finally:
                subprocess.run(["umount", "-l", drop], check=True)
        elif name == "unwritable":
            self.start()
            mode = drop.stat().st_mode
            os.chmod(drop, 0o500)
            try:
                yield
            finally:
                os.chmod(drop, mode)
        else:
            main = self.root / "etc/postfix/main.cf"
            main.rename(main.with_suffix(".aside"))
            try:
                yield
            finally:
                main.with_suffix(".aside").rename(main)

    def run(self, case):
        path = {"sendmail": "/usr/sbin/sendmail", "mailq": "/usr/bin/mailq", "newaliases": "/usr/bin/newaliases"}

        def before():
            os.chroot(self.root)
            os.chdir("/")
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        with self._state(case.state):
            status, said = outcome.run(case, [path[case.face], *case.args], before,
                                       env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        messages = self._messages()
        if case.state == "stopped":
            self.start()
            messages = self._messages()
        return outcome.of_case(case, status, said, messages, ("nobody", cases.DOMAIN))
