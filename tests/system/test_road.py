"""The road of a message: in by each face, out by each transport."""
import pathlib
import subprocess

from case import SystemTest, needs_root
from instance import AS_ROOT, BIN, but_file_systems, wait
from peer import Peer

HELLO = b"Subject: hello\n\nhello\n"


def body(delivered):
    return pathlib.Path(delivered).read_bytes().split(b"\n\n", 1)[1]


class Road(SystemTest):
    def test_sendmail_to_maildir(self):
        i = self.running()
        i.inject(HELLO, "alice@test.example")
        [mail] = i.wait_delivered("alice", 1)
        self.assertEqual(body(mail), b"hello\n")
        i.wait_empty()
        i.stop()
        self.assertEqual(i.files(), [])

    def test_smtp_in_entries_of_at_most_50(self):
        i = self.instance()
        peer = Peer(i.dir / "peer")
        self.addCleanup(peer.stop)
        i.routing_file.write_text(f"* smtp:127.0.0.1:{peer.port}\n")
        i.start()
        rcpts = [f"r{n}@away.example" for n in range(120)]
        i.inject(HELLO, *rcpts)
        i.wait_empty()
        got = [r for e in peer.envelopes() for r in e["to"]]
        self.assertEqual(sorted(got), sorted(rcpts))
        self.assertLessEqual(max(len(e["to"]) for e in peer.envelopes()), 50)
        i.stop()

    def test_failed_recipient_is_reported_with_its_reason(self):
        i = self.running(routing="bad.example error:\"no such place\"\n* local\n")
        i.inject(HELLO, "x@bad.example")
        [report] = i.wait_delivered("sender", 1)
        self.assertIn("no such place", report.read_text())
        self.assertTrue(i.log_has(r"to=<x@bad\.example>.*status=bounced \(.*no such place"))
        i.wait_empty()
        i.stop()
        self.assertEqual(i.files(), [])

    @needs_root
    def test_X11_largest_message_passes_through_the_door(self):
        i = self.running(conf={"message_size_limit": "20k"})
        largest = HELLO.ljust(20 << 10, b"x")
        i.inject(largest, "alice@test.example", uid=65534)
        i.wait_delivered("alice", 1)
        self.assertEqual(i.files("corrupt"), [])
        self.assertNotEqual(
            i.inject(largest + b"x", "alice@test.example", uid=65534, check=False).returncode, 0)
        i.stop()


class Unruled(SystemTest):
    """What no rule of the routing fits: mydestination, relayhost, or it waits."""
    ALERT = r"queue-send/1: error: ALERT: mail for domain gmail\.com is deferred: no route: "

    def deferred(self, i):
        wait(lambda: i.files("deferred"), what="deferred mail")
        wait(lambda: i.log_has(r"to=<alice@gmail\.com>.*dsn=4\.3\.5, status=deferred \(no route: "), what="its line")
        wait(lambda: i.log_has(self.ALERT), what="the alert")
        self.assertFalse(i.maildir("alice"))

    # mutation: common/route/route.c, find_default() gives the local route always.
    def test_without_a_routing_file_foreign_mail_waits_for_a_relayhost(self):
        i = self.instance(queues=1)
        peer = Peer(i.dir / "peer")
        self.addCleanup(peer.stop)
        i.routing_file.unlink()
        i.start()
        i.inject(HELLO, "alice@gmail.com", "bob@test.example", "Bob@LOCALHOST", "bob@localhost.test.example")
        i.wait_delivered("bob", 3)
        self.deferred(i)
        i.write_conf(relayhost=f"127.0.0.1:{peer.port}")
        i.reload()
        i.wait_empty()
        self.assertEqual([r for e in peer.envelopes() for r in e["to"]], ["alice@gmail.com"])
        i.inject(HELLO, "carol@test.example")
        i.wait_delivered("carol", 1)
        self.assertEqual(len([line for line in i.log().splitlines() if "ALERT: mail for" in line]), 1)
        i.stop()

    def test_without_a_routing_file_foreign_mail_waits_for_a_rule(self):
        i = self.instance(queues=1)
        i.routing_file.unlink()
        i.start()
        i.inject(HELLO, "alice@gmail.com")
        self.deferred(i)
        i.routing_file.write_text("gmail.com local\n")
        i.reload()
        i.wait_delivered("alice", 1)
        i.stop()

    def test_a_routing_file_that_loses_its_rules_makes_foreign_mail_not_local(self):
        i = self.running(queues=1, routing="gmail.com discard\n", conf={"log_level": "debug"})
        i.inject(HELLO, "alice@gmail.com")
        i.wait_empty()
        i.routing_file.write_text("")
        i.reload()
        wait(lambda: i.log().count("configuration reloaded") == 1 + 4, what="the reload")
        i.inject(HELLO, "alice@gmail.com", "bob@test.example")
        i.wait_delivered("bob", 1)
        self.deferred(i)
        i.stop()

    def test_mydestination_changes_on_reload(self):
        i = self.instance(queues=1, conf={"mydestination": "*", "log_level": "debug"})
        i.routing_file.unlink()
        i.start()
        i.inject(HELLO, "alice@gmail.com")
        [mail] = i.wait_delivered("alice", 1)
        pathlib.Path(mail).unlink()
        i.write_conf(mydestination="other.example")
        i.reload()
        wait(lambda: i.log().count("configuration reloaded") == 1 + 4, what="the reload")
        i.inject(HELLO, "alice@gmail.com", "bob@other.example")
        i.wait_delivered("bob", 1)
        self.deferred(i)
        i.stop()

    def warned(self, i, status=0):
        done = subprocess.run([BIN / "qscheduler", "--check", i.conf_file], capture_output=True,
                              text=True, check=False, env=i.environment())
        self.assertEqual(done.returncode, status, done.stderr)
        return but_file_systems(done.stderr)

    def test_check_warns_of_passwords_for_servers_that_are_not_verified(self):
        i = self.instance()
        file, table, ca = i.dir / "passwords", i.dir / "tls", i.dir / "authorities"
        file.write_text("# none\n[mx.example]:587 me secret\nunix:/run/x me secret\n")
        file.chmod(0o600)
        ca.write_text("-----BEGIN CERTIFICATE-----\n")
        i.write_conf(smtp_password_file=file, smtp_tls_policy_file=table, smtp_tls_CAfile=ca)
        for level, rows, want in (
                ("may", "", "encrypt"), ("none", "", "none"), ("verify", "", None),
                ("may", "[mx.example]:587 verify\n", None), ("may", "[mx.example] verify\n", None),
                ("verify", "[mx.example] encrypt\n", "encrypt")):
            table.write_text(rows)
            i.write_conf(default_tls_security_level=level)
            self.assertEqual(self.warned(i), [] if want is None else [
                f"qscheduler: warning: smtp_password_file: {file}:2: level {want} does not verify the server, and "
                "whoever answers in its place gets the password: add \"[mx.example]:587 verify\" to "
                "smtp_tls_policy_file"], (level, rows))

    # mutation: qscheduler/supervisor/warn_tls.c, warn_tables() without warn_fallbacks().
    def test_check_warns_of_a_fallback_of_a_lower_level(self):
        i = self.instance()
        table, ca = i.dir / "tls", i.dir / "authorities"
        ca.write_text("-----BEGIN CERTIFICATE-----\n")
        i.write_conf(smtp_tls_policy_file=table, smtp_tls_CAfile=ca,
                     smtp_fallback_relay="[one.example]:587, two.example")
        for rows, want in (
                ("", []), ("a.example none\nb.example may\n", []),
                ("a.example encrypt\n", [("[one.example]:587", "may", "encrypt"), ("two.example", "may", "encrypt")]),
                ("a.example verify\n[one.example] verify\ntwo.example encrypt\n",
                 [("two.example", "encrypt", "verify")]),
                ("a.example encrypt\n[one.example] verify\ntwo.example verify\n", [])):
            table.write_text(rows)
            self.assertEqual(self.warned(i), [
                f"qscheduler: warning: smtp_fallback_relay: {hop}: mail for next hops of level {most} may go here "
                f"with level {level}: add \"{hop} {most}\" to smtp_tls_policy_file" for hop, level, most in want], rows)

    # mutation: qscheduler/supervisor/command.c, run_check() without print_warnings().
    def test_check_warns(self):
        i = self.instance(routing="a.example local\n")
        file = i.routing_file
        self.assertEqual(self.warned(i), [])
        own = "mail for test.example localhost.test.example localhost is local, all other mail "
        waits = own + "is deferred until there is a rule or a relayhost"
        relayed = own + "goes to relayhost relay.example"
        senders = i.dir / "senders"
        senders.write_text("@x.example [mx.example]\n")
        for routing, conf, warnings in (
                (None, {}, [f"{file}: is not there: {waits}"]),
                ("# none\n", {}, [f"{file}: has no rule: {waits}"]),
                (None, {"relayhost": "relay.example"}, [f"{file}: is not there: {relayed}"]),
                ("# none\n", {"sender_dependent_relayhost": senders},
                 [f"{file}: has no rule: " + waits.replace("mail is", "mail of senders without a relay is")]),
                ("# none\n", {"sender_dependent_relayhost": senders, "relayhost": "relay.example"},
                 [f"{file}: has no rule: " + relayed.replace("goes to", "goes to relays of senders and")]),
                (None, {"mydestination": "*"}, [f"{file}: is not there: all mail is local, by mydestination"]),
                ("* smtp:r\n", {"relayhost": "relay.example", "mydestination": "a"},
                 [f"mydestination: does nothing: {file}:1 routes everything",
                  f"relayhost: does nothing: {file}:1 routes everything",
                  *[f"{file}:1: * sends mail for root@test.example and postmaster@test.example to another host, too: "
                    "a rule for test.example, or relayhost in place of this rule, keeps it here"] * AS_ROOT]),
                ("a local\n", {"relayhost": "relay.example", "mydestination": "*"},
                 ["relayhost: does nothing: mydestination has every domain"]),
                ("a local\n", {"relayhost": "relay.example", "transports": "out:smtp local pipe"},
                 ["relayhost: cannot be reached: no transport is named smtp"]),
                ("a smtp:b\n", {"transports": "smtp box:local pipe"},
                 ["mydestination: mail for it is deferred: no transport is named local"]),
                ("a local:b\n[192.0.2.1] smtp\nx@host:25 smtp\nc discard:d\n.sub smtp\ne smtp\n", {},
                 [f"{file}:2: [192.0.2.1]: mail to an address literal is not sent",
                  f"{file}:1: a: the transport does nothing with a next hop",
                  f"{file}:4: c: the transport does nothing with a next hop",
                  f"{file}:3: x@host:25: the domain of the address is no host name"])):
            with self.subTest(routing=routing, conf=conf):
                if routing is None:
                    file.unlink(missing_ok=True)
                else:
                    file.write_text(routing)
                i.write_conf(**{"relayhost": None, "mydestination": None, "transports": None,
                                "sender_dependent_relayhost": None} | conf)
                self.assertEqual(self.warned(i), [f"qscheduler: warning: {w}" for w in warnings])
        file.write_text("a local\n")
        i.write_conf(relayhost="relay.example:0", mydestination=None, transports=None)
        [said] = self.warned(i, 100)
        self.assertRegex(said, rf"{i.conf_file}:\d+: relayhost: .* is not a next hop")
        i.write_conf(relayhost=None, transports="local discard", delay_warning_time="5d")
        said = self.warned(i)
        for name in ("delay_warning_time", "programs_file"):
            self.assertRegex("\n".join(said), rf"warning: {i.conf_file}:\d+: {name}: does nothing: ")
