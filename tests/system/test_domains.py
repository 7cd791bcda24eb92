"""Names of domains: U-labels and A-labels, in either case, with and without the dot of the root,
are one domain; and relays by the sender of the mail."""
import pathlib
import subprocess

from case import SystemTest, needs_root
from instance import BIN, PYTHON, wait
from smtp_site import Site
from test_mx import INSIDE

HERE = pathlib.Path(__file__).resolve().parent
HELLO = b"From: me <me@test.example>\nSubject: hello\n\nhello\n"  # a From that is made has the sender
BOOKS = "xn--bcher-kva.example"  # bücher.example
SPELLINGS = ["a@bücher.example", "b@BÜCHER.Example", f"c@{BOOKS}", f"d@{BOOKS.upper()}.", "e@bücher.example."]
ZONE = f"""
no-resolv
no-hosts
keep-in-foreground
user=root
group=root
pid-file
bind-interfaces
listen-address=127.0.0.1
log-queries
local=/example/
host-record=a.mx.example,192.0.2.1
mx-host={BOOKS},a.mx.example,10
mx-host=plain.example,a.mx.example,10
"""


class Domains(SystemTest):
    def site(self, **options):
        site = Site(**options)
        self.addCleanup(site.stop)
        return site

    def qctl(self, i, *words):
        done = subprocess.run([BIN / "qctl", *words], env=i.environment(), capture_output=True, text=True, check=False)
        return done.stdout

    def recipients(self, site, count):
        wait(lambda: sum(len(rcpts) for _, rcpts in site.deliveries) >= count, what=f"{count} recipients")
        return sorted(rcpt for _, rcpts in site.deliveries for rcpt in rcpts)

    # mutation: common/base/domain.c, domain_normalize() leaves U-labels as they are.
    def test_F15_rules_aliases_and_local_mail(self):
        site = self.site()
        i = self.running(queues=1, routing=f"bücher.example smtp:[127.0.0.1]:{site.port}\n",
                         conf={"mydestination": "ü.example", "myhostname": "hüst.example"},
                         aliases="@größe.example: alice@ü.example\nlist: x@BÜCHER.example, x@bücher.example\n")
        i.inject(HELLO, *SPELLINGS)
        self.assertEqual(self.recipients(site, 5), sorted(
            [f"a@{BOOKS}", f"b@{BOOKS}", f"c@{BOOKS}", f"d@{BOOKS.upper()}", f"e@{BOOKS}"]))
        self.assertEqual(len(site.deliveries), 1, "one destination")
        self.assertIn(b"EHLO xn--hst-hoa.example", site.lines)
        i.inject(HELLO, "list@ü.example")
        wait(lambda: len(site.deliveries) == 2, what="the list")
        self.assertEqual(site.deliveries[1][1], [f"x@{BOOKS}"], "one member")
        i.inject(HELLO, "bob@Ü.example", "bob@xn--tda.example.")  # one recipient
        i.inject(HELLO, "bob@xn--tda.example.")
        i.inject(HELLO, "carol@GRÖSSE.example", "carol@größe.example")
        i.wait_delivered("bob", 2)
        i.wait_delivered("alice", 1)
        i.inject(b"Delivered-To: eve@XN--TDA.example\n" + HELLO, "eve@ü.example.")
        wait(lambda: i.log_has(r"to=<eve@ü\.example\.>.*status=bounced"), what="the end of a loop")
        self.assertTrue(i.log_has(r"to=<b@BÜCHER\.Example>.*status=sent"), "shown as written")
        i.stop()

    # mutation: deliver-smtp/dialog/command.c, add_path() without A-labels; deliver-smtp/dialog/screen.c,
    # screen_address() without the conversion.
    def test_N48_a_server_without_SMTPUTF8(self):
        plain, utf8 = self.site(), self.site(keywords=[b"8BITMIME", b"SMTPUTF8"])
        i = self.running(queues=1, routing=f".utf8.example smtp:[127.0.0.1]:{utf8.port}\n"
                         f".test local\n* smtp:[127.0.0.1]:{plain.port}\n")
        i.inject(HELLO, "a@bücher.example", "jürg@bücher.example", b"c@b\xffcher.example", "d@plain.example",
                 sender="a.b@ö.test")
        self.assertEqual(self.recipients(plain, 2), [f"a@{BOOKS}", "d@plain.example"])
        self.assertEqual(plain.deliveries[0][0], "a.b@xn--nda.test")
        wait(lambda: i.log_has(r"to=<jürg@bücher\.example>.*dsn=5\.6\.7, status=bounced"), what="the local part")
        wait(lambda: i.log_has(r"to=<c@b.*cher\.example>.*dsn=5\.1\.3, status=bounced.*not valid UTF-8"),
             what="the domain that is none")
        i.inject(HELLO, "ä@bücher.utf8.example", sender="s@ö.test")
        self.assertEqual(self.recipients(utf8, 1), ["ä@bücher.utf8.example"])
        self.assertEqual(utf8.deliveries[0][0], "s@ö.test")
        self.assertTrue([line for line in utf8.lines if line.endswith(b" SMTPUTF8")])
        i.stop()

    # mutation: common/base/domain.c, address_matches() and domain_matches() without folding.
    def test_F15_filters_rules_of_hold_and_destinations(self):
        i = self.running(queues=1, routing=f"{BOOKS} smtp:[127.0.0.1]:1\n.example smtp\n",
                         conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"})
        i.inject(HELLO, "a@BÜCHER.example")
        wait(lambda: i.log_has("status=deferred"), what="the first attempt")
        wait(lambda: self.qctl(i, "list", "--json"), what="a listing")
        for words in (["domain=bücher.example"], [f"domain={BOOKS}"], ["domain=*.Example."],
                      [f"recipient=a@{BOOKS}"], ["recipient=a@bücher.example."]):
            self.assertTrue(self.qctl(i, "list", "--json", *words), words)
        self.assertFalse(self.qctl(i, "list", "--json", "domain=bucher.example"))
        self.assertIn(BOOKS, self.qctl(i, "shape"))
        self.qctl(i, "hold", "--rule", "domain=bücher.example", "--yes")
        i.inject(HELLO, f"b@{BOOKS}", f"b@{BOOKS}.")
        wait(lambda: len(i.files("hold")) == 2, what="the hold of the message that waits, and of the next one")
        i.stop()

    # mutation: common/route/route.c, fold_key() without domain_normalize().
    def test_F17_a_domain_without_A_labels_is_told_by_line(self):
        i = self.instance(queues=1, conf={"sender_dependent_relayhost": "FILE"})
        senders = i.dir / "senders"
        senders.write_text("@one.example a\n@-ü.example b\nc d\n")
        i.write_conf(sender_dependent_relayhost=senders)
        i.routing_file.write_bytes(b"b\xc3\xbccher.example local\nb\xffcher.example local\n")
        done = subprocess.run([BIN / "qscheduler", "--check", "-c", i.conf_file], capture_output=True, check=False)
        said = done.stderr.decode() + done.stdout.decode()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"{i.routing_file}:2: the domain is not valid UTF-8", said)
        self.assertIn(f'{senders}:2: "@-ü.example": a label of the domain begins or ends with a hyphen', said)
        self.assertIn(f'{senders}:3: "c" is not user@domain or @domain; add the domain', said)

    # mutation: common/route/sender_relay.c, sender_relays_find() without verp_base_len().
    def test_F16_relays_of_senders_of_VERP(self):
        default, relay = self.site(), self.site()
        i = self.instance(queues=1, routing="test.example local\n", conf={"relayhost": f"[127.0.0.1]:{default.port}"})
        senders = i.dir / "senders"
        senders.write_text(f"@one.example [127.0.0.1]:{relay.port}\n")
        i.write_conf(sender_dependent_relayhost=senders)
        i.start()
        i.inject(HELLO, "x@far.example", sender="list-@one.example-@[]")
        i.inject(HELLO, "x@far.example", sender="list@one.example", args=["-XV"])
        wait(lambda: len(relay.deliveries + default.deliveries) == 2, what="both")
        self.assertEqual(sorted(relay.deliveries), [("list+x=far.example@one.example", ["x@far.example"]),
                                                    ("list-x=far.example@one.example", ["x@far.example"])])
        i.stop()

    # mutation: common/route/default.c, route_by_default() without sender_relays_find(); todo-proc/examine_task.c,
    # count_one() without the sender.
    def test_F16_relays_of_senders(self):
        default, one, two = self.site(), self.site(), self.site()
        i = self.instance(queues=1, routing=f"rule.example smtp:[127.0.0.1]:{default.port}\n",
                          conf={"relayhost": f"[127.0.0.1]:{default.port}", "mydestination": "test.example"})
        senders = i.dir / "senders"
        senders.write_text(f"ann@one.example [127.0.0.1]:{one.port}\n@one.example [127.0.0.1]:{two.port}\n")
        i.write_conf(sender_dependent_relayhost=senders)
        i.start()
        for sender in ("Ann@ONE.example", "bob@one.example", "eve@two.example", "<>"):
            i.inject(HELLO, "x@far.example", sender=sender.strip("<>"))
        i.inject(HELLO, "x@rule.example", "y@test.example", sender="ann@one.example")
        wait(lambda: len(default.deliveries) == 3 and one.deliveries and two.deliveries, what="all relays")
        self.assertEqual(one.deliveries, [("Ann@ONE.example", ["x@far.example"])])
        self.assertEqual(two.deliveries, [("bob@one.example", ["x@far.example"])])
        self.assertEqual(sorted(sender for sender, _ in default.deliveries), ["", "ann@one.example", "eve@two.example"])
        i.wait_delivered("y", 1)
        shown = self.qctl(i, "route", "--sender", "ann@one.example", "x@far.example")
        self.assertEqual(shown, f"x@far.example: smtp:[127.0.0.1]:{one.port} ({senders}:1)\n")
        self.assertIn("(relayhost)", self.qctl(i, "route", "x@far.example"))
        self.assertIn("(relayhost)", self.qctl(i, "route", "--sender", "<>", "x@far.example"))
        # A file that is replaced is read by a reload; a wrong one leaves the old rows in force.
        senders.write_text(f"@one.example [127.0.0.1]:{one.port}\n")
        i.reload()
        wait(lambda: i.log_has("reloaded"), what="the reload")
        i.inject(HELLO, "z@far.example", sender="bob@one.example")
        wait(lambda: len(one.deliveries) == 2, what="the new row")
        senders.write_text("@one.example\n")
        i.reload()
        wait(lambda: i.log_has(r"senders:1: not `user@domain nexthop`"), what="the complaint")
        i.inject(HELLO, "z@far.example", sender="bob@one.example")
        wait(lambda: len(one.deliveries) == 3, what="the old row")
        i.stop()


@needs_root
class DomainsInDns(SystemTest):
    # mutation: common/route/nexthop.c, nexthop_of_domain() without domain_normalize().
    def test_F15_the_mx_of_all_spellings(self):
        i = self.instance(queues=1, routing="test.example local\n* smtp\n", conf={"myhostname": "me.example"})
        (i.dir / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        (i.dir / "zone").write_text(ZONE)
        queries, greetings = i.dir / "queries", i.dir / "greetings"
        i.start(prefix=["unshare", "-mn", "sh", "-c", INSIDE, "sh", i.dir / "resolv.conf", i.dir / "zone", queries,
                        PYTHON, HERE / "mx_site.py", greetings, "192.0.2.1 203.0.113.1"])
        wait(lambda: greetings.exists() and queries.exists() and "started" in queries.read_text(), what="the servers")
        i.inject(HELLO, *SPELLINGS, "x@plain.example.", "y@💩.example", b"z@b\xffcher.example")
        wait(lambda: i.log().count("status=sent") >= 6, what="all spellings")
        self.assertEqual(i.log().count("relay=a.mx.example[192.0.2.1]:25"), 6)
        wait(lambda: i.log_has(r"to=<y@.*dsn=5\.1\.2, status=bounced \(.*IDNA 2008"), what="a domain that is none")
        wait(lambda: i.log_has(r"to=<z@.*dsn=5\.1\.2, status=bounced \(.*not valid UTF-8"), what="no UTF-8")
        asked = {line.split()[-3] for line in queries.read_text().splitlines() if "query[MX]" in line}
        self.assertEqual(asked, {BOOKS, "plain.example"})
        self.assertLessEqual(len(greetings.read_text().splitlines()), 2, "one destination for all spellings")
        i.stop()
