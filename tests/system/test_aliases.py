"""Aliases: what mail to a name becomes, exactly once."""
import collections
import contextlib
import os
import pwd
import random
import re
import resource
import signal
import subprocess
import time

from case import SystemTest, cost, needs_root
from instance import AS_ROOT, PYTHON, wait

ID = r"[0-9A-F]{20,}"
MESSAGE = b"Subject: one\n\nhello\n"
LOCAL = "far.test discard\n* local\n"
FILES = 4096
# A user with more than so many descriptors on their way to nobody.
HOARD = """
import os, resource, socket, sys
uid, most = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (3 * most, 3 * most))
os.setuid(uid)
null, kept, sent = os.open("/dev/null", 0), [], 0
while sent < 2 * most:
    kept += socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    socket.send_fds(kept[-1], [b"x"], [null] * 250)
    sent += 250
print("ready", flush=True)
sys.stdin.read()
"""


class Aliases(SystemTest):
    def with_aliases(self, text, **options):
        i = self.instance(aliases=text, routing=LOCAL, **options)
        i.write_conf(admin_recipient=None, myhostname="test.example", mydestination="test.example")
        return i

    def send(self, i, *rcpts, sender="sender@far.test"):
        return re.search(ID, i.inject(MESSAGE, *rcpts, sender=sender, face="queue-inject").stdout.decode())[0]

    # mutation: deliver-local/expand.c, release() rings nobody and moves nothing.
    def test_an_alias_can_be_followed_in_the_log(self):
        i = self.with_aliases("team: ann, bob@far.test\nowner-team: boss\n").start()
        parent = self.send(i, "team@test.example")
        said = wait(lambda: i.log_has(rf"{parent}: to=<team@test.example>, relay=alias, .*status=sent "
                                      rf"\(alias team: 2 recipients as ({ID})\)"), what="the expansion")
        child = said[1]
        wait(lambda: i.log_has(rf"{child}: uid=\d+, .*from=<owner-team@test.example>"), what="its line of acceptance")
        wait(lambda: i.log_has(rf"{child}: to=<bob@far.test>, relay=discard"), what="the far member")
        [mail] = i.wait_delivered("ann", 1)
        text = mail.read_text()
        self.assertIn("Return-Path: <owner-team@test.example>\n", text)
        self.assertRegex(text, rf"Received: by test\.example \(qscheduler, from uid \d+\)\n\tid {child}; ")
        self.assertIn(f"\tid {parent}; ", text)
        wait(lambda: i.log_has(rf"{child}: removed"), what="its end")
        i.wait_empty()

    # mutation: deliver-local/members.c, take_address() enters an alias that refuses.
    def test_F10_a_member_that_refuses_mail_is_refused_alone(self):
        i = self.with_aliases("staff: ann, bob@far.test, carol\ncarol: :fail: 5.1.6 she left\n").start()
        parent = self.send(i, "staff@test.example")
        wait(lambda: i.log_has(rf"{parent}: to=<staff@test\.example>, .*status=sent \(alias staff: 3 recipients"),
             what="the expansion")
        wait(lambda: i.log_has(r"to=<carol@test\.example>, relay=alias, .*dsn=5\.1\.6, status=bounced \(she left\)"),
             what="the refusal")
        wait(lambda: i.log_has(r"to=<bob@far\.test>, relay=discard, .*status=sent"), what="the far member")
        i.wait_delivered("ann", 1)
        self.assertEqual(i.maildir("carol"), [])
        i.wait_empty()
        i.stop()

    def test_unknown_members_fail_and_others_get_it(self):
        i = self.with_aliases("team: no-such-user-here, ann@far.test\n")
        i.write_conf(maildir_user=None, maildir_path=None)
        i.start()
        self.send(i, "team@test.example")
        wait(lambda: i.log_has(r"to=<no-such-user-here@test.example>, relay=local, .*5\.1\.1"), what="the failure")
        wait(lambda: i.log_has(r"to=<ann@far.test>, .*status=sent"), what="the other one")

    # mutation: deliver-local/alias.c, alias_needs_mailbox() is always false.
    @needs_root
    def test_root_and_postmaster_lead_to_the_mailbox(self):
        i = self.with_aliases("")
        i.write_conf(maildir_user=None, maildir_path=None)
        i.start()
        for name in ("root", "POSTMASTER@test.example", "Mailer-Daemon@test.example", "root+x"):
            self.send(i, name)
        new = i.base / "mailbox" / "new"
        wait(lambda: new.is_dir() and len(list(new.iterdir())) == 4, what="four messages in the mailbox")
        owner = pwd.getpwnam(i.settings["qmails_user"]).pw_uid
        for path in (i.base / "mailbox", new, *new.iterdir()):
            self.assertEqual(path.stat().st_uid, owner)
            self.assertEqual(path.stat().st_mode & 0o077, 0)

    def test_the_administrator_gets_what_has_no_alias(self):
        i = self.with_aliases("postmaster: root\n")
        i.write_conf(admin_recipient="boss")
        i.start()
        for name in ("root", "postmaster", "ROOT@test.example"):
            self.send(i, name)
        self.assertEqual(len(i.wait_delivered("boss", 3)), 3)

    def program(self, i, path):
        """The command of a program that notes its user and what it reads."""
        path.write_text(f"#!/bin/sh\n{{ id -un; echo \"$SENDER\"; cat; }} >{i.dir}/out/$1.$$\n")
        os.chmod(path, 0o755)
        return f"{path} {path.name}"

    def outputs(self, i, name):
        return [p.read_text() for p in (i.dir / "out").glob(f"{name}.*")]

    # mutation: deliver-local/alias.c, is_member() is always true; find_user() takes the owner of any file.
    def test_programs_run_as_the_owner_of_their_file(self):
        i = self.instance()
        out = i.dir / "out"
        out.mkdir()
        os.chmod(out, 0o777)
        theirs = i.dir / "list"
        command = self.program(i, i.dir / "theirs")
        theirs.write_text(f'"|{command}"\nann@far.test\n')
        mine = self.program(i, i.dir / "mine")
        i.alias_file.write_text(f'prog: "|{mine}"\nlist: :include:{theirs}\n')
        i.routing_file.write_text(LOCAL)
        i.write_conf(admin_recipient=None, mydestination="test.example")
        me = pwd.getpwuid(os.geteuid()).pw_name
        if AS_ROOT:
            os.chown(theirs, pwd.getpwnam("man").pw_uid, -1)
        i.start()
        for name in ("prog", "list"):
            self.send(i, f"{name}@test.example")
        for name, user in (("mine", "nobody" if AS_ROOT else me), ("theirs", "man" if AS_ROOT else me)):
            [text] = wait(lambda n=name: self.outputs(i, n), what=name)
            wait(lambda n=name: self.outputs(i, n)[0].endswith("hello\n"), what="all of it")
            [text] = self.outputs(i, name)
            self.assertEqual(text.splitlines()[:2], [user, "sender@far.test"], text)
        i.wait_empty()

    @needs_root
    def test_no_program_runs_as_root_or_as_the_mail_system(self):
        i = self.with_aliases("")
        theirs = i.dir / "list"
        theirs.write_text('"|/bin/id"\n')
        os.chown(theirs, pwd.getpwnam(i.settings["qmails_user"]).pw_uid, -1)
        i.alias_file.write_text(f"list: :include:{theirs}\n")
        i.start()
        self.send(i, "list@test.example")
        wait(lambda: i.log_has(r"dsn=4\.3\.5, status=deferred \(user \d+, who names it, must not get mail"), what="the refusal")

    # mutation: deliver-local/include.c, become_owner() answers false.
    @needs_root
    def test_include_files_are_read_as_their_reader(self):
        i = self.with_aliases("")
        man = pwd.getpwnam("man").pw_uid
        home, secret = i.dir / "home", i.dir / "secret"
        home.mkdir()
        (home / "list").write_text(f"ann\n:include:{secret}\n")
        os.chmod(home / "list", 0o600)
        secret.write_text("carl\n")
        os.chmod(secret, 0o600)
        for path in (home, home / "list"):
            os.chown(path, man, -1)
        os.chmod(home, 0o700)
        i.alias_file.write_text(f"list: :include:{home}/list\n")
        i.start()
        self.send(i, "list@test.example")
        wait(lambda: i.log_has(rf"dsn=4\.2\.4, status=deferred \(alias list: include file {secret}: Permission denied"), what="the refusal")
        os.chown(secret, man, -1)
        i.flush()
        i.wait_delivered("ann", 1)
        i.wait_delivered("carl", 1)

    # mutation: deliver-local/include.c, answer_one() ends with 0 always.
    @needs_root
    def test_an_include_file_that_cannot_be_handed_over_is_deferred_at_once(self):
        i = self.with_aliases("", conf={"maildir_time_limit": "1h"})
        man = pwd.getpwnam("man")
        if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 3 * FILES:
            self.skipTest("no process may have so many files")
        hoard = subprocess.Popen([PYTHON, "-c", HOARD, str(man.pw_uid), str(FILES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(hoard.communicate)
        self.assertEqual(hoard.stdout.readline(), b"ready\n")
        theirs, inner = i.dir / "list", i.dir / "inner"
        theirs.write_text(f":include:{inner}\n")
        inner.write_text("ann\n")
        os.chown(theirs, man.pw_uid, -1)
        i.alias_file.write_text(f"list: :include:{theirs}\n")
        i.start(prefix=("prlimit", f"--nofile={FILES}:{FILES}"))
        self.send(i, "list@test.example")
        wait(lambda: i.log_has(r"dsn=4\.2\.4, status=deferred \(alias list: include file .*inner: the process that opens it died"), what="the deferral")

    def test_a_program_that_is_no_longer_named_fails(self):
        i = self.with_aliases('prog: "|exit 75"\n').start()
        self.send(i, "prog@test.example")
        wait(lambda: i.log_has(r"to=<\|exit\\x2075>, relay=alias, .*status=deferred"), what="an attempt")
        i.alias_file.write_text("prog: ann\n")
        i.reload()
        wait(lambda: i.log_has(r"configuration reloaded"), what="the reload")
        i.flush()
        wait(lambda: i.log_has(r"dsn=5\.1\.1, status=bounced \(no alias names the program \|exit 75 any more"), what="the failure")

    # mutation: common/report/report.c, as_written() leaves the address.
    def test_a_report_of_a_program_names_what_was_written(self):
        i = self.with_aliases('prog: "|/bin/echo secret; exit 67", ann\n').start()
        self.send(i, "prog@test.example", sender="eve@test.example")
        [report] = i.wait_delivered("eve", 1)
        text = report.read_text()
        self.assertIn("<prog@test.example>:", text)
        self.assertIn("\nFinal-Recipient: rfc822; prog@test.example\n", text)
        self.assertIn("\nOriginal-Recipient: rfc822; prog@test.example\n", text)
        self.assertNotIn("/bin/echo", text)
        i.wait_delivered("ann", 1)
        i.stop()

    # mutation: deliver-local/expand.c, mark_done() is not called.
    @cost(20)
    def test_P1_each_of_2000_members_once_while_agents_are_killed(self):
        members, mails = 2000, 8
        i = self.with_aliases("")
        names = [f"m{n}@far.test" for n in range(members)]
        dice = random.Random(35)
        dice.shuffle(names)
        half = i.dir / "half"
        half.write_text("".join(f"{n}\n" for n in names[:1200] + names[300:700]))
        i.alias_file.write_text(f"list: :include:{half}, sub, {', '.join(names[1000:1900])}, sub\nowner-list: ann\n"
                                f"sub: {', '.join(names[1800:])}, list\nowner-sub: boss\n")
        i.start()
        for _ in range(mails):
            self.send(i, "list@test.example")
            time.sleep(dice.random() * 0.1)  # so that each is killed at another moment
            pid = dice.choice(wait(lambda: i.pids("deliver-local"), what="an agent, or its child"))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        i.flush()
        i.wait_empty()
        got = collections.Counter(re.findall(r"to=<(m\d+@far\.test)>, .*status=sent", i.log()))
        self.assertEqual(len(got), members)
        self.assertEqual({n for n in got.values()}, {mails}, got.most_common(5))
        self.assertFalse(i.files("prepared"))
