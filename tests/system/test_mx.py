"""Next hops that are domains, as a name server of Debian (dnsmasq) tells of them, in a network
of the instance's own: 192.0.2.0/24 and 2001:db8::/32 lead back to it, 203.0.113.1 is its address."""
import pathlib
import re
import subprocess

from case import SystemTest, cost, needs_root
from instance import PYTHON, wait

HERE = pathlib.Path(__file__).resolve().parent
HELLO = b"Subject: hello\n\nhello\n"
# By the source of its route an address is not taken for one of this host. The servers end with the
# supervisor, which the shell becomes.
INSIDE = """
mount --bind "$1" /etc/resolv.conf && ip link set lo up && ip addr add 203.0.113.1/32 dev lo || exit 1
ip route add local 192.0.2.0/24 dev lo src 127.0.0.1 || exit 1
ip -6 route add local 2001:db8::/32 dev lo src ::1 || exit 1
setpriv --pdeathsig KILL dnsmasq --conf-file="$2" --log-facility="$3" &
setpriv --pdeathsig KILL "$4" "$5" "$6" $7 &
shift 7
exec "$@"
"""
SERVERS = "192.0.2.1 192.0.2.2 192.0.2.6 127.0.0.1 203.0.113.1 -2001:db8::6"
ZONE = """
no-resolv
no-hosts
keep-in-foreground
user=root
group=root
pid-file
bind-interfaces
listen-address=127.0.0.1
log-queries
local-ttl=60
local=/example/
local=/mailhub/
address=/wild.example/192.0.2.1
host-record=a.mx.example,192.0.2.1
host-record=b.mx.example,192.0.2.2
host-record=closed.mx.example,192.0.2.101
host-record=six.mx.example,192.0.2.6,2001:db8::6
host-record=own.mx.example,203.0.113.1
host-record=local.mx.example,127.0.0.1
host-record=link.mx.example,169.254.1.1
host-record=alone.example,192.0.2.1
host-record=both.example,192.0.2.2
mx-host=both.example,a.mx.example,10
host-record=self.example,203.0.113.1
mx-host=plain.example,a.mx.example,10
mx-host=second.example,closed.mx.example,10
mx-host=second.example,b.mx.example,20
mx-host=ours.example,a.mx.example,10
mx-host=ours.example,own.mx.example,20
mx-host=ours.example,b.mx.example,30
mx-host=loop.example,own.mx.example,10
mx-host=loop.example,a.mx.example,20
mx-host=named.example,me.example,10
mx-host=inside.example,local.mx.example,10
mx-host=link.example,link.mx.example,10
mx-host=gone.example,gone.mx.example,10
mx-host=literal.example,192.0.2.1,10
mx-host=six.example,six.mx.example,10
mx-host=cnamed.example,name.mx.example,10
cname=name.mx.example,a.mx.example
dns-rr=null.example,15,000000
txt-record=nomail.example,nothing
""" + "".join(f"mx-host=many.example,h{n}.mx.example,10\nhost-record=h{n}.mx.example,192.0.2.1\n"
              for n in range(500))
SENT = {  # the domain, its relay
    "plain.example": "a.mx.example[192.0.2.1]:25",
    "second.example": "b.mx.example[192.0.2.2]:25",
    "ours.example": "a.mx.example[192.0.2.1]:25",
    "alone.example": "alone.example[192.0.2.1]:25",
    "both.example": "a.mx.example[192.0.2.1]:25",
    "six.example": "six.mx.example[192.0.2.6]:25",
    "cnamed.example": "name.mx.example[192.0.2.1]:25",
}
NOT_SENT = {  # the domain, the code for its own mail, and where a rule names it
    "loop.example": ("5.4.6", "4.4.6"), "named.example": ("5.4.6", "4.4.6"),
    "inside.example": ("5.4.6", "4.4.6"), "self.example": ("5.4.6", "4.4.6"),
    "null.example": ("5.1.10", "4.4.4"), "nothere.example": ("5.1.2", "4.4.4"),
    "nomail.example": ("5.4.4", "4.4.4"), "link.example": ("5.4.4", "4.4.4"),
    "gone.example": ("5.4.4", "4.4.4"), "literal.example": ("5.4.4", "4.4.4"),
}
LOOPS = {  # the domain, the host that is this one
    "loop.example": "the best MX host own.mx.example[203.0.113.1]", "named.example": "the best MX host me.example",
    "inside.example": "the best MX host local.mx.example[127.0.0.1]", "self.example": "self.example[203.0.113.1]",
}


@needs_root
class Mx(SystemTest):
    def world(self, routing, **conf):
        i = self.instance(queues=1, routing=routing, conf={"myhostname": "me.example"} | conf)
        (i.dir / "resolv.conf").write_text("nameserver 127.0.0.1\nsearch wild.example\n")
        (i.dir / "zone").write_text(ZONE)
        self.queries, self.greetings = i.dir / "queries", i.dir / "greetings"
        i.start(prefix=["unshare", "-mn", "sh", "-c", INSIDE, "sh", i.dir / "resolv.conf", i.dir / "zone",
                        self.queries, PYTHON, HERE / "mx_site.py", self.greetings, SERVERS])
        wait(lambda: self.greetings.exists() and self.queries.exists() and "started" in
             self.queries.read_text(), what="the servers")
        return i

    def result(self, i, address):
        """(status, dsn, relay) of the first attempt."""
        found = wait(lambda: i.log_has(rf"to=<{address}>, relay=([^,]+),.*dsn=(\S+), status=(\w+)"),
                     what=f"an attempt for {address}")
        return found.group(3), found.group(2), found.group(1)

    # mutation: deliver-smtp/reach/lookup.c, on_mx() takes the domain alone, family_gather() without own.
    @cost(10)
    def test_N2_what_dns_says(self):
        rules = "".join(f"to-{n} smtp:{domain}\n" for n, domain in enumerate(NOT_SENT))
        i = self.world(rules + "to-mx smtp:plain.example\nto-host smtp:[both.example]\n"
                       "to-search search:[mailhub]\nto-host-alone smtp:[mailhub]\nto-domain search:mailhub\n"
                       "test.example local\n* smtp\n",
                       transports="smtp search:smtp local", search_host_lookup="native")
        for domain in [*SENT, *NOT_SENT]:
            i.inject(HELLO, f"x@{domain}")
        for n, _ in enumerate(NOT_SENT):
            i.inject(HELLO, f"x@to-{n}")
        i.inject(HELLO, "x@to-mx", "x@to-host", "x@to-search", "x@many.example", "x@mailhub", "x@to-host-alone",
                 "x@to-domain")
        for domain, relay in SENT.items():
            self.assertEqual(self.result(i, f"x@{domain}"), ("sent", "2.0.0", relay))
        for n, (domain, (own, ruled)) in enumerate(NOT_SENT.items()):
            status = "bounced" if own[0] == "5" else "deferred"
            self.assertEqual(self.result(i, f"x@{domain}"), (status, own, "none"), domain)
            self.assertEqual(self.result(i, f"x@to-{n}"), ("deferred", ruled, "none"), domain)
        for domain, host in LOOPS.items():
            self.assertTrue(i.log_has(rf"to=<x@{domain}>.*\(mail for {domain} loops back to this host: {re.escape(host)} "
                                      r"is this host; "), domain)
        self.assertEqual(self.result(i, "x@to-mx"), ("sent", "2.0.0", "a.mx.example[192.0.2.1]:25"))
        self.assertEqual(self.result(i, "x@to-host"), ("sent", "2.0.0", "both.example[192.0.2.2]:25"))
        self.assertEqual(self.result(i, "x@to-search"), ("sent", "2.0.0", "mailhub[192.0.2.1]:25"))
        # Neither a domain nor, by default, a host is looked for in the search list.
        self.assertEqual(self.result(i, "x@mailhub"), ("bounced", "5.1.2", "none"))
        self.assertEqual(self.result(i, "x@to-host-alone"), ("deferred", "4.4.4", "none"))
        self.assertEqual(self.result(i, "x@to-domain"), ("deferred", "4.4.4", "none"))
        status, _, relay = self.result(i, "x@many.example")
        self.assertEqual(status, "sent")
        self.assertRegex(relay, r"^h\d+\.mx\.example\[192\.0\.2\.1\]:25$")
        # Of the 500 hosts no more than ten were asked for.
        asked = {line.split()[-3] for line in self.queries.read_text().splitlines()
                 if "query[A] h" in line}
        self.assertLessEqual(len(asked), 10)
        self.assertFalse([line for line in self.greetings.read_text().splitlines()
                          if line.startswith(("127.", "203."))], "nothing came back to this host")
        i.stop()

    # mutation: deliver-smtp/session/session.c, session_start() without settings_apply().
    def test_N1_the_address_and_name_of_a_transport(self):
        i = self.world("test.example local\nfrom smtp:[a.mx.example]\nslow slow:[a.mx.example]\n"
                       "none none:[a.mx.example]\nhost host:both.example\n",
                       transports="smtp slow:smtp none:smtp host:smtp local", slow_smtp_bind_address="203.0.113.1",
                       slow_smtp_helo_name="slow.example", none_smtp_bind_address="198.51.100.1",
                       none_destination_concurrency_failed_cohort_limit="1", host_mx_lookup="no")
        for domain in ("from", "slow", "host", "none"):
            i.inject(HELLO, f"x@{domain}")
        for domain in ("from", "slow"):
            self.assertEqual(self.result(i, f"x@{domain}"), ("sent", "2.0.0", "a.mx.example[192.0.2.1]:25"))
        self.assertEqual(self.result(i, "x@host"), ("sent", "2.0.0", "both.example[192.0.2.2]:25"))
        greeted = self.greetings.read_text().splitlines()
        self.assertIn("192.0.2.1 203.0.113.1 slow.example", greeted)
        self.assertIn("192.0.2.1 127.0.0.1 me.example", greeted)
        # An address that this host does not have is no failure of the site.
        self.assertEqual(self.result(i, "x@none")[:2], ("deferred", "4.3.5"))
        self.assertTrue(i.log_has(r"address 198\.51\.100\.1 to connect from: Cannot assign requested address"))
        self.assertFalse(i.log_has(r"none:\[a.mx.example\].*dead"))
        i.stop()

    # mutation: deliver-smtp/reach/lookup.c, end() puts nothing into the memory.
    def test_N2_dns_is_asked_once(self):
        i = self.world("test.example local\n* smtp\n", smtp_connection_cache_time_limit="0")

        def asked():
            return self.queries.read_text().count("query[MX] plain.example")
        i.inject(HELLO, "x0@plain.example")
        self.assertEqual(self.result(i, "x0@plain.example")[0], "sent")
        self.assertEqual(asked(), 1)
        for n in range(1, 20):
            i.inject(HELLO, f"x{n}@plain.example")
        for n in range(1, 20):
            self.assertEqual(self.result(i, f"x{n}@plain.example")[0], "sent")
        self.assertEqual(asked(), 1)
        i.reload()
        wait(lambda: i.log_has("reload"), what="the reload")
        i.stop()
