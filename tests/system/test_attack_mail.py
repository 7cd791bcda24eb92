"""Forbidden to mail: the attacks 11 to 15 of the fault catalogue, by
addresses, programs and mailboxes."""
import ast
import os
import re
import subprocess

from accounts import Accounts
from case import SystemTest, needs_root
from instance import AS_ROOT, HANG, PYTHON, USERS, status_of, wait

HELLO = b"Subject: hello\n\nhello\n"
PROGRAM_USER = USERS["maildir_user"] if AS_ROOT else "-"
ATTACKER = 65534

TELL = """
import os, sys
found = {"argv": sys.argv[2:], "fds": sorted(os.listdir("/proc/self/fd")), "mail": sys.stdin.buffer.read(),
         "ids": (os.getresuid(), os.getresgid(), os.getgroups()), "env": dict(os.environ),
         "status": open("/proc/self/status").read()}
with open(sys.argv[1], "a") as f:
    f.write(repr(found) + "\\n")
"""


def fields(line):
    """Name and value of each field, as tools for mail logs split them."""
    return [part.split("=", 1) for part in line.split(" (")[0].split(": ")[-1].split(", ")]


class Mail(SystemTest):
    def telling(self, *words):
        """A program that writes down what it got, on `program.example`."""
        i = self.instance(queues=1, routing="program.example pipe:tell\n* local\n")
        out = i.dir / "out"
        out.mkdir()
        out.chmod(0o777)
        (i.dir / "tell.py").write_text(TELL)
        i.programs_file.write_text(
            f"tell {PROGRAM_USER} {PYTHON} {i.dir}/tell.py {out}/told {' '.join(words)}\n")
        return i, out / "told"

    def told(self, path, count):
        wait(lambda: path.exists() and path.read_text().count("\n") >= count, what=f"{count} runs")
        return [ast.literal_eval(line) for line in path.read_text().splitlines()]

    # mutation: common/log/line.c, ends_value without `>`, `,` or the blank.
    def test_X14_attack_11_a_recipient_forges_no_line_of_the_log(self):
        i = self.running(queues=1, routing="* error:no\n", conf={"double_bounce_recipient": ""})
        hostile = ['"x>, relay=h[1.2.3.4]:25, delay=1, dsn=2.0.0, status=sent (250 ok) to=<y"@test.example',
                   '"a, b=c"@test.example', '"<>"@test.example', '"a (status=sent)"@test.example']
        for recipient in hostile:
            i.inject(HELLO, recipient, face="queue-inject", sender="")  # nobody gets a report
        wait(lambda: i.log().count("status=bounced") == len(hostile), what="all refused")
        lines = [line for line in i.log().splitlines() if "status=bounced" in line]
        self.assertEqual(len(lines), len(hostile))
        for line in lines:
            self.assertEqual([name for name, _ in fields(line)],
                             ["to", "relay", "delay", "delays", "dsn", "status"], line)
            self.assertEqual(fields(line)[-1][1], "bounced")
            self.assertRegex(fields(line)[0][1], r"^<[^<>, ]*>$")
        unescaped = {re.sub(r"\\x(..)", lambda m: chr(int(m[1], 16)), fields(line)[0][1][1:-1]) for line in lines}
        self.assertEqual(unescaped, set(hostile))
        for recipient in ("a\nto=<b>@test.example", "a\rb@test.example"):
            done = i.inject(HELLO, recipient, face="queue-inject", check=False)
            self.assertNotEqual(done.returncode, 0, "a line end is refused")
        i.stop()

    # mutation: common/route/programs.c, program_argv() without the check of a leading `-`.
    def test_X9_attack_12_an_address_is_no_option_and_no_word_of_a_shell(self):
        i, path = self.telling("${user}", "x${recipient}")
        i.start()
        hostile = [";id", "$(id)", "`id`", "a|b", "&", "..", "%n"]
        for user in hostile:
            i.inject(HELLO, f'"{user}"@program.example', face="queue-inject")
        told = self.told(path, len(hostile))
        for found in told:
            self.assertEqual(len(found["argv"]), 2)
            self.assertEqual(found["argv"][1], f'x{found["argv"][0]}@program.example')
        self.assertEqual({f["argv"][0].strip('"') for f in told}, set(hostile))
        i.inject(HELLO, "-oProxy@program.example", face="queue-inject")
        wait(lambda: i.log_has(r"to=<-oProxy@program\.example>.*dsn=5\.1\.3, status=bounced"), what="refused")
        self.assertEqual(len(self.told(path, len(hostile))), len(hostile), "it was not run")
        i.stop()

    # mutation: deliver-local/account.c, account_become() without initgroups(), or command.c,
    # place_descriptors() without close_range().
    @needs_root
    def test_X8_attack_13_a_program_has_nothing_of_the_mail_system(self):
        import grp
        import pwd
        i, path = self.telling()
        i.start()
        i.inject(HELLO, "x@program.example", face="queue-inject")
        i.inject(b"Subject: large\n\n" + b"x" * 100000, "x@program.example", face="queue-inject")
        user = pwd.getpwnam(USERS["maildir_user"])
        system = {pwd.getpwnam(USERS[u]).pw_gid for u in ("qmailq_user", "qmails_user", "qmailr_user")}
        system |= {0, grp.getgrnam(USERS["qmail_group"]).gr_gid}
        for found in self.told(path, 2):
            uids, gids, groups = found["ids"]
            self.assertEqual((set(uids), set(gids)), ({user.pw_uid}, {user.pw_gid}))
            self.assertFalse(system & set(groups))
            self.assertEqual(found["fds"], ["0", "1", "2", "3"], "3 is the directory that it lists")
            for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                self.assertIn(f"\n{name}:\t0000000000000000\n", found["status"])
        i.stop()

    # mutation: deliver-local/child.c, bind_to_parent() without PR_SET_DUMPABLE; queue-send/agents/dispatch.c puts a
    # recipient into an argument of a process.
    @needs_root
    def test_X7_attack_14_nobody_reads_recipients_in_proc(self):
        i = self.instance(queues=1, conf={"maildir_user": "", "maildir_path": "%h/Maildir"},
                          routing="slow.example pipe:slow\n* local\n",
                          programs=f"slow {PROGRAM_USER} /bin/sleep 1000\n")
        try:
            made = Accounts(i, "alice", "secret-name", hang="secret-name")
        except OSError as error:
            self.skipTest(f"no mount namespace, or no fuse: {error}")
        self.addCleanup(made.end)
        i.start(prefix=made.prefix)
        large = b"Subject: large\n\n" + b"x" * 100000
        i.inject(large, "secret-name@test.example", "secret-name@slow.example", "alice@test.example",
                 face="queue-inject")
        uid = made.uids["secret-name"]

        def child():
            for p in i.pids("deliver-local"):
                if f"\nUid:\t{uid}\t" in status_of(p):
                    return p
            return None
        wait(child, what="a delivery that waits")
        code = """
import os, sys
for entry in set(os.listdir("/proc")) - {sys.argv[1]}:
    for name in ("cmdline", "environ", "comm", "status", "wchan", "maps", "syscall", "stack"):
        try:
            text = open(f"/proc/{entry}/{name}", "rb").read()
        except OSError:
            continue
        if b"secret-" + b"name" in text:
            print(entry, name)
    if entry in sys.argv[2:]:
        for what in ("fd", "map_files"):
            try:
                os.listdir(f"/proc/{entry}/{what}")
                print(entry, what)
            except OSError:
                pass
        for n in range(8):
            try:
                os.open(f"/proc/{entry}/fd/{n}", os.O_RDONLY)
                print(entry, "fd", n)
            except OSError:
                pass
"""
        for reader in (ATTACKER, made.uids["alice"], uid):
            done = subprocess.run(["setpriv", "--reuid", str(reader), "--regid", str(reader), "--clear-groups",
                                   PYTHON, "-c", code, str(made.holder.pid), *map(str, i.pids())], capture_output=True, text=True,
                                  check=True, timeout=HANG)
            self.assertEqual(done.stdout, "", f"read by {reader}")

    # mutation: deliver-local/verdict.c, a class 5 for ENOTDIR, ELOOP or EACCES.
    @needs_root
    def test_X13_attack_15_a_strange_mailbox_makes_nobodys_mail_bounce(self):
        i = self.instance(queues=1, conf={"maildir_user": "", "maildir_path": "%h/Maildir"})
        try:
            made = Accounts(i, "alice", "link", "file", "fifo", "closed", "loop")
        except OSError as error:
            self.skipTest(f"no mount namespace: {error}")
        self.addCleanup(made.end)
        (made.home / "link/Maildir").symlink_to(made.home / "alice")
        (made.home / "loop/Maildir").symlink_to("Maildir")
        (made.home / "file/Maildir").write_text("x")
        os.mkfifo(made.home / "fifo/Maildir")
        (made.home / "closed").chmod(0)
        strange = ["link", "file", "fifo", "closed", "loop"]
        i.start(prefix=made.prefix)
        i.inject(HELLO, *[f"{name}@test.example" for name in ["alice", *strange]], face="queue-inject")
        wait(lambda: len(made.maildir("alice")) == 1, what="her mail")
        for name in strange:
            wait(lambda name=name: i.log_has(rf"to=<{name}@test\.example>.*dsn=4\.\S+, status=deferred"),
                 what=f"{name} waits")
        self.assertFalse(i.log_has("status=bounced"))
        self.assertEqual(sorted(p.name for p in (made.home / "alice").iterdir()), ["Maildir"])
        i.stop()
