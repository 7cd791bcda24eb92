"""Names of next hops whose name servers or hosts are slow, dead or unsure, in a network of the
instance's own: a domain waits for no host and no server that it does not need."""
import os
import pathlib
import re

from case import SystemTest, cost, needs_root
from instance import PYTHON, wait

HERE = pathlib.Path(__file__).resolve().parent
HELLO = b"Subject: hello\n\nhello\n"
INSIDE = """
mount --bind "$1" /etc/resolv.conf && mount --bind "$1.hosts" /etc/hosts && ip link set lo up || exit 1
ip route add local 192.0.2.0/24 dev lo src 127.0.0.1 || exit 1
for server in 127.0.0.1 -127.0.0.3; do
    setpriv --pdeathsig KILL "$2" "$3" $server "$4$server" >"$5" &
    read ready <"$5" || exit 1
done
setpriv --pdeathsig KILL "$2" "$6" "$7" $8 &
shift 8
exec "$@"
"""


@needs_root
class Names(SystemTest):
    def world(self, resolv, routing, servers="192.0.2.1 192.0.2.2", **conf):
        i = self.instance(queues=1, routing=routing + "test.example local\n* smtp\n", conf=conf)
        (i.dir / "resolv.conf").write_text(resolv)
        (i.dir / "resolv.conf.hosts").write_text("192.0.2.2 nodata.example one.example\n")
        ready, self.log, self.greetings = i.dir / "ready", i.dir / "asked", i.dir / "greetings"
        os.mkfifo(ready)
        i.start(prefix=["unshare", "-mn", "sh", "-c", INSIDE, "sh", i.dir / "resolv.conf", PYTHON,
                        HERE / "dns_site.py", self.log, ready, HERE / "mx_site.py", self.greetings, servers])
        wait(self.greetings.exists, what="the SMTP servers")
        return i

    def asked(self, server):
        """(port, type, label) of each question to the name server."""
        log = pathlib.Path(f"{self.log}{server}")
        return [(int(port), int(kind), label) for port, kind, label in
                (line.split() for line in log.read_text().splitlines())] if log.exists() else []

    def result(self, i, address):
        """(status, dsn, relay, text) of the first attempt."""
        found = wait(lambda: i.log_has(rf"to=<{address}>, relay=([^,]+),.*dsn=(\S+), status=(\w+) \((.*)\)"),
                     what=f"an attempt for {address}")
        return found.group(3), found.group(2), found.group(1), found.group(4)

    # mutation: deliver-smtp/reach/lookup.c, domain_alone() asks as hosts are asked for.
    def test_N35_dns_alone_says_where_the_mail_of_a_domain_goes(self):
        i = self.world("nameserver 127.0.0.1\nsearch wild.example\n",
                       "to-native native:nodata.example\nto-hosts native:[nodata.example]\n"
                       "to-both both:[nodata.example]\nto-dns smtp:[nodata.example]\nto-mx smtp:slow.example\n"
                       "to-native-mx native:slow.example\n",
                       transports="smtp native:smtp both:smtp local", native_host_lookup="native",
                       both_host_lookup="dns, native", smtp_host_lookup="dns")
        want = {"nodata.example": ("bounced", "5.4.4", "none"), "nodata": ("bounced", "5.4.4", "none"),
                "one": ("sent", "2.0.0", "one[192.0.2.1]:25"), "to-native": ("deferred", "4.4.4", "none"),
                "to-hosts": ("sent", "2.0.0", "nodata.example[192.0.2.2]:25"),
                "to-both": ("sent", "2.0.0", "nodata.example[192.0.2.2]:25"),
                "to-dns": ("deferred", "4.4.4", "none"), "to-mx": ("sent", "2.0.0", "one.example[192.0.2.1]:25"),
                "to-native-mx": ("sent", "2.0.0", "one.example[192.0.2.2]:25")}
        for domain in want:
            i.inject(HELLO, f"x@{domain}")
        for domain, result in want.items():
            self.assertEqual(self.result(i, f"x@{domain}")[:3], result, domain)
        i.stop()

    # mutation: deliver-smtp/reach/mx.c, mx_judge() is never unsure.
    def test_N36_only_what_dns_says_for_sure_returns_mail(self):
        i = self.world("nameserver 127.0.0.1\n", "")
        want = {"gone": ("bounced", "5.4.4", ": no address to connect to"),
                "nodata": ("bounced", "5.4.4", ": no address to connect to"),
                "partly": ("deferred", "4.4.3", "SERVFAIL"), "half": ("deferred", "4.4.3", "SERVFAIL"),
                # A CNAME with nothing behind it is an answer for one family alone.
                "alias": ("deferred", "4.4.3", "SERVFAIL"),
                "servfail": ("deferred", "4.4.3", "SERVFAIL"), "refused": ("deferred", "4.4.3", "REFUSED")}
        for label in want:
            i.inject(HELLO, f"x@{label}.example")
        for label, (status, dsn, text) in want.items():
            got = self.result(i, f"x@{label}.example")
            self.assertEqual(got[:2], (status, dsn), label)
            self.assertIn(text, got[3])
        i.stop()

    # mutation: deliver-smtp/reach/name_servers.c, name_servers_answered() notes no failure.
    @cost(5)
    def test_N37_a_dead_name_server_is_asked_last(self):
        i = self.world("nameserver 127.0.0.3\nnameserver 127.0.0.1\noptions timeout:1 attempts:2\n", "")
        i.inject(HELLO, "x@nodata.first.example")
        self.result(i, "x@nodata.first.example")
        before = len(self.asked("-127.0.0.3"))
        self.assertGreater(before, 0)
        for n in range(10):
            i.inject(HELLO, f"x@nodata.d{n}.example")
            self.result(i, f"x@nodata.d{n}.example")
        self.assertEqual(len(self.asked("-127.0.0.3")), before)
        self.assertGreaterEqual(len(self.asked("127.0.0.1")), 33)
        i.stop()

    # mutation: deliver-smtp/reach/name_servers.c, name_servers_order() does not rotate.
    def test_N37_rotate_asks_each_name_server(self):
        i = self.world("nameserver 127.0.0.1\nnameserver 127.0.0.3\noptions rotate timeout:1 attempts:1\n", "")
        i.inject(HELLO, *[f"x@nodata.d{n}.example" for n in range(4)])
        for n in range(4):
            self.result(i, f"x@nodata.d{n}.example")
        self.assertTrue(self.asked("127.0.0.1") and self.asked("-127.0.0.3"))
        i.stop()

    # mutation: deliver-smtp/reach/question.c, one channel for all.
    def test_N37_each_question_has_a_port_of_its_own(self):
        i = self.world("nameserver 127.0.0.1\n", "")
        i.inject(HELLO, *[f"x@nodata.d{n}.example" for n in range(100)])
        for n in range(100):
            self.result(i, f"x@nodata.d{n}.example")
        asked = self.asked("127.0.0.1")
        self.assertGreaterEqual(len(asked), 300)
        # By chance a port may come twice.
        self.assertGreater(len({port for port, _, _ in asked}), len(asked) * 9 // 10)
        i.stop()

    # mutation: deliver-smtp/reach/lookup.c, best_offer() offers nothing.
    @cost(5)
    def test_N37_the_best_host_waits_for_no_other(self):
        i = self.world("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n", "to-slow smtp:slow.example\n")
        i.inject(HELLO, "x@to-slow")
        self.assertEqual(self.result(i, "x@to-slow")[:3], ("sent", "2.0.0", "one.example[192.0.2.1]:25"))
        self.assertIn((1, "silent"), {(kind, label) for _, kind, label in self.asked("127.0.0.1")})
        self.assertLess(int(re.search(r"to=<x@to-slow>.*, delay=(\d+)", i.log()).group(1)), 10)
        i.stop()

    # mutation: deliver-smtp/reach/reach.c, on_looked_up() does not look for this host in the rest.
    @cost(5)
    def test_N39_no_fallback_where_this_host_is_found_late(self):
        i = self.world("nameserver 127.0.0.1\noptions timeout:1 attempts:3\n", "",
                       smtp_fallback_relay="[192.0.2.1]")
        i.inject(HELLO, "x@backup.example")
        status, dsn, _, text = self.result(i, "x@backup.example")
        self.assertEqual((status, dsn), ("deferred", "4.4.1"), text)
        i.stop()

    # mutation: deliver-smtp/session/session.c, on_late() without reach_stop().
    @cost(5)
    def test_N38_N39_the_fallback_where_dns_is_silent(self):
        i = self.world("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n", "to-silent smtp:[silent.example]\n",
                       smtp_before_mail_timeout="1s", smtp_fallback_relay="[192.0.2.1]")
        i.inject(HELLO, "x@to-silent")
        self.assertEqual(self.result(i, "x@to-silent")[:3], ("sent", "2.0.0", "192.0.2.1[192.0.2.1]:25"))
        self.assertTrue(i.log_has(r": relay=none, nrcpt=1, dsn=4\.4\.2 \(.*within smtp_before_mail_timeout"))
        i.stop()

    # mutation: deliver-smtp/reach/lookup.c, may_be_left() counts nothing.
    @cost(5)
    def test_N37_lookups_that_nobody_waits_for_are_few(self):
        i = self.world("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n", "")
        addresses = [f"x@slow.d{n}.example" for n in range(100)]
        i.inject(HELLO, *addresses)
        for address in addresses:
            self.assertEqual(self.result(i, address)[0], "sent")
        sockets = [fd for fd in pathlib.Path(f"/proc/{i.pids('deliver-smtp')[0]}/fd").iterdir()
                   if os.readlink(fd).startswith("socket:")]
        self.assertLess(len(sockets), 100)
        i.stop()

    # mutation: deliver-smtp/reach/reach.c, wait_or_fail() does not wait.
    @cost(5)
    def test_N37_a_host_that_is_found_late_is_tried(self):
        i = self.world("nameserver 127.0.0.1\noptions timeout:1 attempts:3\n", "to-late smtp:late.example\n",
                       smtp_destination_mx_rollup="no")  # a second delivery would meet another answer
        i.inject(HELLO, "x@to-late")
        self.assertEqual(self.result(i, "x@to-late")[:3], ("sent", "2.0.0", "lazy.example[192.0.2.2]:25"))
        self.assertTrue(i.log_has(r": relay=\S+, nrcpt=1, dsn=4\.4\.1 \(connect to \S+: Connection refused; the next host is tried\)"))
        i.stop()
