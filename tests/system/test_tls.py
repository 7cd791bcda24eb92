"""TLS and AUTH towards a smarthost (docs/DELIVERY.md)."""
import os
import pathlib
import re
import subprocess

import readme
from case import SystemTest, needs_root
from instance import AS_ROOT, BIN, USERS, wait
from tls_site import TlsSite

HELLO = b"Subject: hello\n\nhello\n"
SECRET = "Gr4ss-green"
SECRET_B64 = "AG1lQHByb3ZpZGVyLmV4YW1wbGUAR3I0c3MtZ3JlZW4="


class Tls(SystemTest):
    def site(self, i, *how, **options):
        made = TlsSite(i.dir / "site", *how, **options)
        self.addCleanup(made.stop)
        return made

    def prepared(self, **conf):
        return self.instance(queues=1, routing="# none\n", conf={
            "mydestination": "here.example", "smtp_host_lookup": "native", **conf})

    def result(self, i, pattern):
        wait(lambda: i.log_has(pattern), what=pattern)

    def reloaded(self, i, pattern):
        """A HUP, and what the log says of it."""
        before = len(re.findall(pattern, i.log()))
        i.reload()
        wait(lambda: len(re.findall(pattern, i.log())) > before, what=pattern)

    def smarthost(self, i, site):
        readme.smarthost(i, site.port, **{"pass word": SECRET})
        with open(i.conf_file, "a") as f:
            f.write(f"smtp_tls_CAfile = {site.authority}\n")

    def test_N8_N24_a_smarthost_by_the_lines_of_README(self):
        i = self.prepared(log_level="debug", smtp_connection_cache_time_limit=0)
        site = self.site(i, users={"me@provider.example": SECRET})
        self.smarthost(i, site)
        i.start()
        i.inject(HELLO, "x@away.example")
        i.wait_empty()
        self.assertEqual([(m[0], m[1]) for m in site.messages], [("TLSv1.3", "me@provider.example")])
        self.assertTrue(i.log_has(r"tls=TLSv1\.3, cipher=\S+, bits=\d+, verified=yes, resumed=no"), i.log())
        self.assertTrue(i.log_has(r"to=<x@away\.example>.*status=sent"))
        # A password that is refused, by a server that repeats it.
        site.users = {"me@provider.example": "another"}
        site.refusal = f"535 5.7.8 {SECRET} or {SECRET_B64} is wrong".encode()
        i.inject(HELLO, "y@away.example")
        self.result(i, r"to=<y@away\.example>.*dsn=4\.7\.8, status=deferred \(host localhost\[127\.0\.0\.1\] said: 535 \(left out")
        site.users = {"me@provider.example": SECRET}
        i.flush()
        i.wait_empty()
        i.stop()
        self.nobody_was_told(i)

    def test_N40_N41_SCRAM_and_the_next_mechanism(self):
        i = self.prepared(log_level="debug", smtp_connection_cache_time_limit=0)
        site = self.site(i, users={"me@provider.example": SECRET}, mechanisms=("LOGIN", "PLAIN", "SCRAM-SHA-256"))
        self.smarthost(i, site)
        i.start()
        i.inject(HELLO, "x@away.example")
        i.wait_empty()
        self.assertEqual((site.tried, site.messages[0][1]), (["SCRAM-SHA-256"], "me@provider.example"))
        # A server that takes any proof, and does not know the password.
        site.honest = False
        i.inject(HELLO, "y@away.example")
        self.result(i, r"to=<y@away\.example>.*dsn=4\.7\.5, status=deferred \(host localhost\S+ has not proved that it "
                       r"knows the password \(AUTH SCRAM-SHA-256\)")
        self.assertEqual(len(site.messages), 1)
        # It has no SCRAM, though it offers it.
        site.honest, site.broken, site.tried = True, ("SCRAM-SHA-256",), []
        i.flush()
        i.wait_empty()
        self.assertEqual((site.tried, site.messages[1][1]), (["SCRAM-SHA-256", "PLAIN"], "me@provider.example"))
        with open(i.conf_file, "a") as f:
            f.write("smtp_sasl_mechanism_filter = !scram-sha-256\n")
        self.reloaded(i, r"reload")
        site.broken, site.tried = (), []
        i.inject(HELLO, "z@away.example")
        i.wait_empty()
        self.assertEqual((site.tried, site.messages[2][1]), (["PLAIN"], "me@provider.example"))
        i.stop()
        self.nobody_was_told(i)

    def nobody_was_told(self, i):
        for secret in (SECRET, SECRET_B64):
            self.assertNotIn(secret, i.log())
        for path in i.base.rglob("*"):
            if path.is_file() and SECRET.encode() in path.read_bytes():
                self.assertEqual(path.name, "passwords")
                self.assertEqual(path.stat().st_mode & 0o777, 0o640 if AS_ROOT else 0o600)

    @needs_root
    def test_X18_only_the_agents_may_read_the_copy(self):
        import grp
        import pwd
        i = self.prepared()
        site = self.site(i, users={"me@provider.example": SECRET})
        self.smarthost(i, site)
        i.start()
        copy = (i.base / "passwords").stat()
        self.assertEqual((copy.st_uid, copy.st_gid), (0, pwd.getpwnam(USERS["qmailr_user"]).pw_gid))
        self.assertNotEqual(copy.st_gid, grp.getgrnam(USERS["qmail_group"]).gr_gid)
        i.stop()

    def test_N8_in_the_clear_only_where_it_may(self):
        i = self.prepared(smtp_tls_security_level="may")
        site = self.site(i, "bad")
        i.write_conf(relayhost=f"[localhost]:{site.port}")
        i.start()
        i.inject(HELLO, "x@away.example")
        i.wait_empty()
        self.assertTrue(i.log_has(r"TLS with host localhost\S+ failed: .*: once more, in the clear"), i.log())
        self.assertEqual([m[0] for m in site.messages], [None])
        # From here on the table says otherwise, for this next hop.
        table = i.dir / "tls"
        table.write_text(f"[localhost]:{site.port} encrypt\n")
        i.write_conf(smtp_tls_policy_file=table)
        self.reloaded(i, r"reload")
        i.inject(HELLO, "y@away.example")
        self.result(i, r"to=<y@away\.example>.*dsn=4\.7\.5, status=deferred")
        # A wrong table changes nothing.
        table.write_text(f"[localhost]:{site.port} none\nlocalhost sure\n")
        self.reloaded(i, re.escape(f'{table}:2: "sure": the level must be one of'))
        i.flush()
        wait(lambda: len(re.findall(r"to=<y@away\.example>.*dsn=4\.7\.5", i.log())) > 1, what="one more attempt")
        self.assertEqual(len(site.messages), 1)
        site.how = "good"
        i.flush()
        i.wait_empty()
        self.assertEqual([m[0] for m in site.messages], [None, "TLSv1.3"])
        i.stop()

    # mutation: deliver-smtp/dialog/ends.c, lose() without end.in_clear.
    def test_N33_a_server_that_wants_our_certificate(self):
        i = self.prepared(smtp_tls_security_level="may")
        site = self.site(i, "asks")
        i.write_conf(relayhost=f"[localhost]:{site.port}")
        i.start()
        i.inject(HELLO, "x@away.example")
        i.wait_empty()
        self.assertTrue(i.log_has(r"lost connection with localhost\S+ while performing the handshake: "
                                  r"TLS: .*certificate required.*: once more, in the clear"), i.log())
        self.assertEqual([m[0] for m in site.messages], [None])
        i.write_conf(smtp_tls_security_level="encrypt")
        self.reloaded(i, r"reload")
        i.inject(HELLO, "y@away.example")
        self.result(i, r"to=<y@away\.example>.*dsn=4\.4\.2, status=deferred \(lost connection .*certificate required")
        i.stop()
        self.assertEqual(len(site.messages), 1)

    def test_N8_a_certificate_of_another_name(self):
        i = self.prepared(smtp_tls_security_level="verify")
        site = self.site(i, name="other.example")
        i.write_conf(relayhost=f"[localhost]:{site.port}", smtp_tls_CAfile=site.authority)
        i.start()
        i.inject(HELLO, "x@away.example")
        self.result(i, r"dsn=4\.7\.5, status=deferred \(TLS with host localhost\S+ failed: the certificate is not for localhost")
        self.assertEqual(site.messages, [])
        table = i.dir / "tls"
        table.write_text("localhost verify match=other.example\n")
        i.write_conf(smtp_tls_policy_file=table)
        self.reloaded(i, r"reload")
        i.flush()
        i.wait_empty()
        self.assertEqual(len(site.messages), 1)
        i.stop()

    def check(self, i):
        done = subprocess.run([BIN / "qscheduler", "--check", "-c", i.conf_file], capture_output=True, text=True,
                              check=False, env=i.environment())
        return done.returncode, done.stderr + done.stdout

    def test_X18_check_refuses_what_others_may_read(self):
        i = self.prepared()
        secrets = i.dir / "passwords"
        secrets.write_text(f"[mx.example] me {SECRET}\n")
        i.write_conf(smtp_password_file=secrets)
        for mode, right in ((0o644, False), (0o660, False), (0o600, True)):
            secrets.chmod(mode)
            status, said = self.check(i)
            self.assertEqual(status == 0, right, said)
            self.assertEqual("others than its owner may not read it" in said, not right, said)
        secrets.write_text(f"[mx.example] {SECRET}\n")
        status, said = self.check(i)
        self.assertNotEqual(status, 0)
        self.assertIn(f"{secrets}:1: next hop, user and secret are needed", said)
        self.assertNotIn(SECRET, said)
        i.write_conf(smtp_password_file=None, smtp_tls_policy_file=pathlib.Path(os.devnull).parent / "no-such-file")
        status, said = self.check(i)
        self.assertNotEqual(status, 0)
        self.assertIn("no-such-file", said)
