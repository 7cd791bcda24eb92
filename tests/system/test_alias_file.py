"""The file of aliases: what --check says of it, and what a wrong one does."""
import os
import pwd
import subprocess

from case import SystemTest
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

    # mutation: qscheduler/supervisor/files.c, files_check() without aliases.
    def test_F10_check_names_file_and_line(self):
        i = self.instance(aliases="root: alice\n\n# list\nx: b\n c d\n")
        [said] = self.check(i, 100)
        self.assertTrue(said.startswith(f"{i.alias_file}:5: a blank within an address"), said)
        i.alias_file.write_text("x: /var/mail/x\n")
        self.assertEqual(self.check(i, 100), [f"{i.alias_file}:1: mail is not appended to files: /dev/null is the only path"])
        if AS_ROOT:
            i.alias_file.write_text("x: y\n")
            os.chmod(i.alias_file, 0o666)
            self.assertEqual(self.check(i, 100), [f"{i.alias_file}: not trusted: others than root may write"])
            os.chmod(i.alias_file, 0o600)
            [said] = self.check(i, 100)
            self.assertRegex(said, r"cannot be read by user \w+: Permission denied")

    # mutation: qscheduler/supervisor/warn_aliases.c, each check by itself.
    def test_F10_check_warns_of_what_cannot_be_meant(self):
        me = pwd.getpwuid(os.geteuid()).pw_name
        user = "games" if AS_ROOT else me
        i = self.accounts()
        f, include = i.alias_file, i.dir / "list"
        os.umask(0o022)
        include.write_text("x@far.example\n")
        left = f"mail for {{}} goes to the maildir {i.base}/mailbox: there is no alias, and admin_recipient is empty"
        no_account = "there is no such account, and no such alias"
        for text, admin, warnings in (
                (None, user, [f"{f}: is not there: there is no alias"]),
                ("", None, [left.format("root and postmaster")]),
                ("", "nosuch", [f"admin_recipient: nosuch: {no_account}"]),
                ("", f"{user}+root", []),
                (f"root: {user}\n", None, [left.format("postmaster")]),
                (f"root: {user}, x@far.example\npostmaster: root\n", None, []),
                ("root: /dev/null\n", user, [f"{f}:1: root: leads nowhere: no member of it can take mail"]),
                ("root: a\na: b, /dev/null\nb: a\n", user,
                 [f"{f}:1: root: leads nowhere: no member of it can take mail"]),
                ("root: a\na: b, x@far.example\nb: a\n", user, []),
                ("a: nosuch, nosuch@test.example, x@away.example\n", user,
                 [f"{f}:1: a: nosuch: {no_account}", f"{f}:1: a: nosuch@test.example: {no_account}",
                  f"{f}:1: a: x@away.example: no route leads there: it will be deferred"]),
                (f"@test.example: {user}\n@away.example: {user}\na: nosuch, x@away.example\n", user,
                 [f"{f}:3: a: nosuch: {no_account}"]),
                (f"owner-a: {user}\nowner-b: {user}\nb: {user}\n", user,
                 [f"{f}:1: owner-a: owns no list: there is no alias behind owner-"]),
                (f"a: :include:{include}\n", user, []),
                (f"a: :include:{i.dir}/none\n", user, [f"{f}:1: a: {i.dir}/none: is not there"]),
                (f"a: :include:{i.dir}\n", user, [f"{f}:1: a: {i.dir}: is not a regular file: mail for it is deferred"]),
                ("".join(f"a{n}: nosuch\n" for n in range(25)), user,
                 [f"{f}:{n}: a{n - 1}: nosuch: {no_account}" for n in range(1, 21)] + [f"{f}: 5 more warnings"])):
            with self.subTest(text=text):
                if text is None:
                    f.unlink()
                else:
                    f.write_text(text)
                i.write_conf(admin_recipient=admin)
                self.assertEqual(self.check(i), [f"warning: {w}" for w in warnings])
        f.write_text(f"a: :include:{include}\n")
        os.chmod(include, 0o664)
        self.assertEqual(self.check(i), [f"warning: {f}:1: a: {include}: others than its owner may write it: "
                                         "mail for it is deferred"])
        if AS_ROOT:
            f.write_text('a: "|/bin/true x"\n')
            i.write_conf(default_privs="nosuch")
            self.assertEqual(self.check(i), ["warning: default_privs: there is no user nosuch: "
                                             f"programs of {f} are not run"])

    def test_F10_newaliases_shows_each_wrong_line(self):
        i = self.instance(aliases="root: alice\nx\na: /b\nroot: c\n")
        for name, words in (("newaliases", ()), ("sendmail", ("-bi",))):
            done = subprocess.run([i.face(name), *words], capture_output=True, text=True,
                                  env=i.environment(), check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertEqual(done.stderr, "".join(f"{name}: {line}\n" for line in (
                f"{i.alias_file}:2: no colon behind the name",
                f"{i.alias_file}:3: mail is not appended to files: /dev/null is the only path",
                f"{i.alias_file}:4: `root': already in line 1",
                "not right: qscheduler keeps the aliases that are in force")))
        i.alias_file.write_text("root: alice\n")
        done = subprocess.run([i.face("newaliases")], capture_output=True, text=True,
                              env=i.environment(), check=False)
        self.assertEqual(done.stderr, "newaliases: nothing to do: aliases are read when qscheduler starts or reloads\n")

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
    def test_F10_a_wrong_file_keeps_the_old_one_in_force(self):
        i = self.running(aliases="root: alice\n")
        copy = i.base / "aliases"
        self.assertEqual(copy.read_text(), "root: alice\n")
        i.alias_file.write_text("root: bob\nx\n")
        i.reload()
        wait(lambda: i.log_has(rf"reload: {i.alias_file}:2: no colon behind the name: "
                               "the old configuration stays in force"))
        self.assertEqual(copy.read_text(), "root: alice\n")
        i.stop()
        i.start()
        self.assertTrue(i.log_has(rf"ALERT: {i.alias_file}:2: no colon behind the name: "))
        self.assertEqual(copy.read_text(), "root: alice\n")
        i.alias_file.write_text("root: bob\n")
        i.reload()
        wait(lambda: copy.read_text() == "root: bob\n")
        i.stop()

    # mutation: common/daemon/routes.c, daemon_reroute() keeps the old table.
    def test_the_aliases_in_force_decide(self):
        i = self.running(aliases="root: alice\n", conf={"log_level": "debug"})
        i.inject(b"Subject: 1\n\n1\n", "root@test.example")
        i.wait_delivered("alice", 1)
        i.alias_file.write_text("root: bob\nx\n")
        i.reload()
        wait(lambda: i.log_has("no colon behind the name"))
        i.inject(b"Subject: 2\n\n2\n", "root")
        i.wait_delivered("alice", 2)
        i.alias_file.write_text("root: bob\n")
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
