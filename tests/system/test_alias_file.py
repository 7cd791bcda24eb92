"""The file of aliases: what --check says of it, and what a wrong one does."""
import os
import pwd
import re
import subprocess

from case import SystemTest, needs_root
from instance import AS_ROOT, BIN, but_file_systems, wait


class AliasFile(SystemTest):
    def check(self, instance, status=0):
        """Lines of --check, without the name of the program."""
        done = subprocess.run([BIN / "qscheduler", "-c", instance.conf_file, "--check"], capture_output=True,
                              text=True, env=instance.environment(), check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return [line.removeprefix("qscheduler: ") for line in but_file_systems(done.stderr)]

    def accounts(self, **options):
        """An instance whose recipients are accounts of the system."""
        i = self.instance(routing="far.example discard\n", **options)
        i.write_conf(maildir_user=None, maildir_path=None)
        return i

    # mutation: qscheduler/supervisor/files.c, files_check() without aliases;
    # files_alias_complaints() adds nothing.
    def test_F10_check_names_file_and_line(self):
        user = pwd.getpwuid(1).pw_name
        i = self.instance(aliases=f"root: {user}\n\n# list\nx: {user}\n c d\nROOT: x\n")
        i.write_conf(admin_recipient=user)
        f = i.alias_file
        self.assertEqual(self.check(i), [
            f"warning: {f}:5: a blank within an address: members stand between commas, names with blanks in quotes",
            f"warning: {f}:6: alias `root' is in line 1; this second line is ignored"])
        if AS_ROOT:
            f.write_text(f"x: {user}\n")
            os.chmod(f, 0o666)
            [said] = self.check(i, 100)
            self.assertTrue(said.endswith(f"alias_file: {f}: not trusted: others than root may write (chmod go-w)"), said)
            os.chmod(f, 0o600)
            [said] = self.check(i, 100)
            self.assertRegex(said, r"cannot be read by user \w+: Permission denied")

    # mutation: qscheduler/supervisor/warn_aliases.c, each check by itself.
    def test_F10_check_warns_of_what_cannot_be_meant(self):
        me = pwd.getpwuid(os.geteuid()).pw_name
        user = "games" if AS_ROOT else me
        i = self.accounts()
        f = i.alias_file
        left = f"mail for {{}} goes to the maildir {i.base}/mailbox: there is no alias, and admin_recipient is empty"
        no_account = "there is no such account, and no such alias"
        for text, admin, warnings in (
                (None, user, [f"{f}: is not there: there is no alias"]),
                ("", None, [left.format("root and postmaster")]),
                ("", "nosuch", [f"admin_recipient: nosuch: {no_account}"]),
                ("", f"{user}+root", []),
                (f"root: {user}\n", None, [left.format("postmaster")]),
                (f"root: {user}, x@far.example\npostmaster: root\n", None, []),
                ("a: nosuch, nosuch@test.example, x@away.example\n", user,
                 [f"{f}:1: a: nosuch: {no_account}", f"{f}:1: a: nosuch@test.example: {no_account}",
                  f"{f}:1: a: x@away.example: no route leads there: it will be deferred"]),
                (f"@test.example: {user}\n@away.example: {user}\na: nosuch, x@away.example\n", user,
                 [f"{f}:3: a: nosuch: {no_account}"]),
                ("".join(f"a{n}: nosuch\n" for n in range(25)), user,
                 [f"{f}:{n}: a{n - 1}: nosuch: {no_account}" for n in range(1, 21)] + [f"{f}: 5 more warnings"])):
            with self.subTest(text=text):
                if text is None:
                    f.unlink()
                else:
                    f.write_text(text)
                i.write_conf(admin_recipient=admin)
                self.assertEqual(self.check(i), [f"warning: {w}" for w in warnings])
        f.write_text("a: x@away.example\n")
        senders = i.dir / "senders"
        senders.write_text("@x.example [mx.example]\n")
        i.write_conf(admin_recipient=user, sender_dependent_relayhost=senders)
        self.assertEqual(self.check(i), [f"warning: {f}:1: a: x@away.example: no route leads there but the relays of "
                                         "senders"])
        i.write_conf(admin_recipient=user, sender_dependent_relayhost=None)
        if AS_ROOT:
            f.write_text('a: "|/bin/true x"\n')
            i.write_conf(default_privs="nosuch")
            self.assertEqual(self.check(i), ["warning: default_privs: there is no user nosuch: "
                                             f"programs of {f} are not run, and its mailboxes get no mail"])

    def newaliases(self, i, name="newaliases", *words, **more):
        return subprocess.run([i.face(name), *words], capture_output=True, text=True, env=i.environment(),
                              check=False, **more)

    # mutation: queue-inject/newaliases.c, judge_file() prints no complaint.
    def test_F10_newaliases_shows_each_wrong_line(self):
        i = self.instance(aliases="root: alice\nx\na: b c\nroot: c\n")
        f = i.alias_file
        for name, words in (("newaliases", ()), ("sendmail", ("-bi",))):
            done = self.newaliases(i, name, *words)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertEqual(done.stderr, "".join(f"{name}: {line}\n" for line in (
                f"{f}:2: no colon behind the name",
                f"{f}:3: a blank within an address: members stand between commas, names with blanks in quotes",
                f"{f}:4: alias `root' is in line 1; this second line is ignored",
                "warning: mail for the name of a wrong line is deferred, unless another line has the name",
                f"qscheduler does not run: it reads {f} when it starts")))
        f.unlink()
        f.mkdir()
        done = self.newaliases(i)
        self.assertEqual(done.returncode, 75)
        self.assertRegex(done.stderr, rf"^newaliases: 4\.3\.5 {f}: .*; the aliases that are in force stay\n$")

    # mutation: queue-inject/newaliases.c, ask_reload() asks for nothing.
    def test_newaliases_puts_a_new_alias_in_force(self):
        i = self.running(aliases="old: alice\n")
        for n in range(3):
            i.alias_file.write_text(f"new{n}: alice\n")
            done = self.newaliases(i)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (0, f"newaliases: {i.alias_file} is in force\n", ""))
            self.assertEqual((i.base / "aliases").read_text(), f"new{n}: alice\n")
            i.inject(b"Subject: 1\n\n1\n", f"new{n}@test.example")
            i.wait_delivered("alice", n + 1)
        i.stop()
        done = self.newaliases(i)
        self.assertEqual((done.returncode, done.stderr),
                         (0, f"newaliases: qscheduler does not run: it reads {i.alias_file} when it starts\n"))

    # mutation: queue-inject/newaliases.c, reload() takes -EBADMSG for success.
    def test_F10_newaliases_says_why_a_reload_is_refused(self):
        i = self.running(aliases="old: alice\n")
        rules = i.routing_file.read_text()
        i.routing_file.write_text(rules + "far.example nosuch\n")
        i.alias_file.write_text("new: alice\n")
        for name, words in (("newaliases", ()), ("sendmail", ("-bi",))):
            done = self.newaliases(i, name, *words)
            self.assertEqual((done.returncode, done.stdout), (75, ""))
            self.assertRegex(done.stderr, rf"^{name}: 4\.3\.5 {i.alias_file} is NOT in force: old configuration in "
                             rf"force: {i.routing_file}:\d+: .*nosuch.*; `qscheduler --check` shows all mistakes\n$")
        self.assertEqual((i.base / "aliases").read_text(), "old: alice\n")
        i.routing_file.write_text(rules)
        done = self.newaliases(i)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((i.base / "aliases").read_text(), "new: alice\n")
        i.stop()

    # mutation: queue-inject/newaliases.c, ask_reload() does not look at the process of the page.
    def test_newaliases_of_a_killed_supervisor_does_not_wait(self):
        i = self.running(aliases="old: alice\n")
        i.kill()
        done = self.newaliases(i, timeout=20)
        self.assertEqual((done.returncode, done.stderr),
                         (0, f"newaliases: qscheduler does not run: it reads {i.alias_file} when it starts\n"))

    # mutation: queue-inject/newaliases.c, reload() answers 0 to -EPERM.
    @needs_root
    def test_newaliases_of_a_user_says_what_to_run(self):
        i = self.running(aliases="old: alice\n")
        os.chmod(i.alias_file, 0o644)
        done = self.newaliases(i, user="nobody", group="nogroup", extra_groups=())
        self.assertEqual((done.returncode, done.stdout), (77, ""))
        self.assertEqual(done.stderr, f"newaliases: 4.7.0 {i.alias_file} is valid but NOT in force yet: run newaliases "
                         "as root, or `systemctl reload qscheduler` (runit: `sv hup qscheduler`)\n")
        i.stop()

    # The forms that people bring along, one alias each, and two wrong lines. A
    # wrong line holds up its own name, and lists that have the name as a member.
    #
    # mutation: deliver-local/members.c, judge_alias() is always 0; common/route/alias.c, complain() is -EINVAL.
    def test_F10_each_form_of_other_mtas_is_taken_or_waits_alone(self):
        i = self.instance(routing="far.example discard\n* local\n")
        out = i.dir / "out"
        out.mkdir()
        os.chmod(out, 0o777)
        i.alias_file.write_text(
            f"list: |/bin/cp /dev/stdin {out}/copy\n"
            "root: admin # the boss\n"
            "team: ann@far.example,\nbob@far.example\n"
            "boss: admin\nBOSS: wrong@far.example\n"
            f"nobody: /dev/null\nlog: {out}/mail.txt\n"
            f"dir: {out}/dir/\n"
            "old: :error: 5.1.1 gone\n"
            "older: :fail: gone away\n"
            'x: John Doe <john@far.example>, "Q" <q@far.example>\n'
            "bad: two words\n"
            "worse a@far.example\n")
        i.write_conf(admin_recipient=None, mydestination="test.example")
        f = i.alias_file
        i.start()
        wrong = {f"{f}:6": "alias `boss' is in line 5; this second line is ignored",
                 f"{f}:13": "a blank within an address: members stand between commas, names with blanks in quotes",
                 f"{f}:14": "no colon behind the name"}
        said = "\n".join(self.check(i))
        for place, why in wrong.items():
            self.assertIn(f"warning: {place}: {why}\n", said + "\n")
            self.assertTrue(i.log_has(f"{place}: {why}"), why)
        for name in ("list", "root", "team", "boss", "nobody", "log", "log", "dir", "old", "older", "x", "bad", "worse"):
            i.inject(b"Subject: 1\n\nFrom me\n", f"{name}@test.example", sender="s@far.example", face="queue-inject")
        i.wait_delivered("admin", 2)
        for to in ("ann", "bob", "john", "q"):
            wait(lambda t=to: i.log_has(rf"to=<{t}@far\.example>, .*status=sent"), what=to)
        wait(lambda: (out / "copy").exists() and (out / "copy").read_text().endswith("me\n"), what="the program")
        wait(lambda: i.log_has(r"to=<nobody@test\.example>, .*status=sent \(alias nobody: no recipients"), what="nothing")
        to_mbox = rf"to=<{out}/mail\.txt>, relay=alias, .*status=sent \(delivered to mailbox"
        wait(lambda: len(re.findall(to_mbox, i.log())) == 2, what="the mbox")
        text = (out / "mail.txt").read_text()
        self.assertEqual(text.count("From s@far.example "), 2)
        self.assertEqual(text.count("\n\n>From me\n\n"), 2)
        wait(lambda: len(list((out / "dir").glob("new/*"))) == 1, what="the maildir")
        wait(lambda: i.log_has(r"to=<old@test\.example>, .*dsn=5\.1\.1, status=bounced \(gone\)"), what="the refusal")
        wait(lambda: i.log_has(r"to=<older@test\.example>, .*dsn=5\.0\.0, status=bounced \(gone away\)"), what="the other")
        wait(lambda: i.log_has(r"to=<bad@test\.example>, .*dsn=4\.2\.4, status=deferred \(alias bad: bad: line 13 of the "
                               r"alias file: a blank within an address"), what="the wrong one")
        wait(lambda: i.log_has(r"to=<worse@test\.example>, .*status=deferred \(alias worse: .*no colon"), what="the other wrong one")
        f.write_text("bad: admin\nworse: admin\n")
        self.assertEqual(self.newaliases(i).returncode, 0)
        i.flush()
        i.wait_delivered("admin", 4)
        i.stop()

    # mutation: qscheduler/supervisor/warn_aliases.c, goes_away() is always false.
    def test_F10_check_warns_of_roots_mail_that_goes_away(self):
        i = self.accounts()
        i.alias_file.write_text(f"root: {pwd.getpwuid(1).pw_name}\npostmaster: root\n")
        away = f"warning: {i.routing_file}:{{}}: * sends mail for root@test.example and postmaster@test.example " \
            "to another host, too: a rule for test.example, or relayhost in place of this rule, keeps it here"
        for rules, line in (("* smtp:hub.example\n", 1), ("far.example discard\n\n* smtp:[192.0.2.1]:25\n", 3),
                            ("* smtp:hub.example\ntest.example local\n", 0), ("* local\n", 0),
                            ("* smtp:hub.example\ntest.example smtp:mail.example\n", 0), ("", 0)):
            with self.subTest(rules):
                i.routing_file.write_text(rules)
                said = [line for line in self.check(i) if " sends mail for root@" in line]
                self.assertEqual(said, [away.format(line)] if line and AS_ROOT else [])

    # mutation: qscheduler/supervisor/inforce.c, with_copies() without aliases.
    def test_F10_a_file_that_cannot_be_read_keeps_the_old_one_in_force(self):
        i = self.running(aliases="root: alice\n")
        copy, f = i.base / "aliases", i.alias_file
        self.assertEqual(copy.read_text(), "root: alice\n")
        f.unlink()
        f.mkdir()
        i.reload()
        wait(lambda: i.log_has(rf"reload: {i.conf_file}:\d+: alias_file: {f}: .*: the old configuration stays in force"))
        self.assertEqual(copy.read_text(), "root: alice\n")
        i.stop()
        i.start()
        self.assertTrue(i.log_has(rf"ALERT: {i.conf_file}:\d+: alias_file: {f}: "))
        self.assertEqual(copy.read_text(), "root: alice\n")
        f.rmdir()
        f.write_text("root: bob\nx y\n")
        i.reload()
        wait(lambda: copy.read_text() == "root: bob\nx y\n")
        wait(lambda: i.log_has(rf"warning: {f}:2: no colon behind the name"), what="the warning of the reload")
        i.stop()

    # mutation: common/daemon/routes.c, daemon_reroute() keeps the old table.
    def test_the_aliases_in_force_decide(self):
        i = self.running(aliases="root: alice\n", conf={"log_level": "debug"})
        i.inject(b"Subject: 1\n\n1\n", "root@test.example")
        i.wait_delivered("alice", 1)
        i.alias_file.write_text("root: bob\n")
        i.inject(b"Subject: 2\n\n2\n", "root")
        i.wait_delivered("alice", 2)
        i.reload()
        wait(lambda: all(i.log_has(f"deliver-local/{n}: configuration reloaded") for n in i.numbers), what="the reload")
        i.inject(b"Subject: 3\n\n3\n", "root+cron@test.example")
        i.wait_delivered("bob", 1)
        i.stop()
        self.assertEqual(len(i.maildir("alice")), 2)
        self.assertEqual(i.maildir("root"), [])

    # mutation: deliver-local/alias.c, alias_of_domain() is always NULL, or looks
    # at members too.
    def test_F10_a_domain_catches_what_no_account_has(self):
        i = self.accounts(aliases="@test.example: x@far.example\n@away.example: y@far.example\n"
                                  "team@test.example: nosuch\n")
        i.write_conf(mydestination="test.example")
        i.start()
        if not AS_ROOT:
            user = pwd.getpwuid(os.geteuid()).pw_name
        else:
            user = "games"  # whose home has no maildir: deferred or failed, never caught
        for name in ("nosuch", "nosuch+x", user):
            i.inject(b"Subject: 1\n\n1\n", f"{name}@test.example")
        i.inject(b"Subject: 1\n\n1\n", "any@away.example")
        i.inject(b"Subject: 1\n\n1\n", "team@test.example")
        for name in ("nosuch", r"nosuch\+x"):
            wait(lambda n=name: i.log_has(rf"to=<{n}@test\.example>, relay=local, .*status=sent "
                                          r"\(alias @test\.example: 1 recipient"), what=name)
        wait(lambda: i.log_has(rf"to=<{user}@test\.example>, relay=local"), what="the account")
        self.assertFalse(i.log_has(rf"to=<{user}@test\.example>, .*alias @test"))
        wait(lambda: i.log_has(r"to=<any@away\.example>, relay=alias, .*status=sent"), what="the foreign domain")
        wait(lambda: i.log_has(r"to=<y@far\.example>, relay=discard, .*status=sent"), what="its member")
        # A member is no more caught than a recipient of an expansion is.
        wait(lambda: i.log_has(r"to=<nosuch@test\.example>, relay=local, .*5\.1\.1"), what="the member without account")
        i.stop()

    # mutation: qscheduler/supervisor/start.c, open_all() without
    # warn_administrators().
    def test_the_start_warns_of_mail_that_has_no_reader(self):
        i = self.accounts()
        i.write_conf(admin_recipient=None)
        i.start()
        self.assertTrue(i.log_has("mail for root and postmaster goes to the maildir"))
        i.stop()
        i = self.accounts(aliases="root: x@far.example\npostmaster: root\n")
        i.write_conf(admin_recipient=None)
        i.start()
        i.stop()
        self.assertFalse(i.log_has("goes to the maildir"))

    # mutation: qscheduler/supervisor/files.c, files_have_aliases() without
    # private.
    def test_a_private_instance_does_not_follow_the_host(self):
        i = self.instance(aliases="")
        i.write_conf(alias_file=None)
        i.start()
        in_force = (i.base / "conf").read_text()
        i.stop()
        line = next(s for s in in_force.splitlines() if s.startswith("alias_file = "))
        if AS_ROOT:
            self.assertNotIn("alias_file =   #", line)
        else:
            self.assertRegex(line, r"^alias_file = +#")
