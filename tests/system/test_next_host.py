"""A server that takes no mail for now, is lost, has enough of a message's recipients, or takes only
so many of them at a time (docs/DELIVERY.md, "The conversation")."""
import itertools
import re

from case import SystemTest, needs_root
from instance import wait
from smtp_site import Site
from test_trace import Tracing

HELLO = b"Subject: hello\n\nhello\n"
OFTEN = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}  # a second attempt never comes


@needs_root
class NextHost(Tracing):
    def site(self, **options):
        made = Site(**options)
        self.addCleanup(made.stop)
        return made

    def two(self, first):
        """A host of two addresses: the server at the first one does as `first` says."""
        for _ in range(20):
            second = self.site()
            try:
                return self.site(says=first, address="127.0.0.2", port=second.port), second
            except OSError:  # another process has this port there
                continue
        raise AssertionError("no port for both")

    def started(self, site, host="two.example", **conf):
        i = self.instance(queues=1, routing=f"test.example local\n* smtp:[{host}]:{site.port}\n",
                          conf=OFTEN | {"smtp_connection_cache_time_limit": "0", "smtp_host_lookup": "native",
                                        "smtp_randomize_addresses": "no"} | conf)
        hosts = i.dir / "hosts"
        hosts.write_text("127.0.0.2 two.example\n127.0.0.1 two.example\n")
        i.start(prefix=["unshare", "-m", "sh", "-c", 'mount --bind "$1" /etc/hosts && shift && exec "$@"', "sh", hosts])
        return i

    # mutation: deliver-smtp/session/next.c, go_on() without reach_next().
    def test_N28_the_next_host_in_the_same_delivery(self):
        for verb, reply in ((b"MAIL", b"451 4.3.0 later"), (b"RCPT", b"450 4.7.1 grey"), (b"RCPT", b""),
                            (b"DATA", b"")):
            first, second = self.two(lambda _, v, line, verb=verb, reply=reply: reply if v == verb else None)
            i = self.started(first)
            i.inject(HELLO, "x@away.example", "y@away.example")
            i.wait_empty()
            i.stop()
            self.assertEqual([sorted(rcpts) for _, rcpts in second.deliveries],
                             [["x@away.example", "y@away.example"]], (verb, reply))
            self.assertEqual((first.connections, second.connections), (1, 1))
            self.assertNotIn("status=deferred", i.log())
            self.assertEqual(len(re.findall(rf"relay=two\.example\[127\.0\.0\.2\]:{first.port}, nrcpt=2, dsn=4\.\S+ \(",
                                            i.log())), 1, i.log())

    def left(self, i):
        return re.findall(r"^deliver-smtp/1: \w+: (relay=\S+, nrcpt=.*)", i.log(), re.M)

    # mutation: deliver-smtp/session/session.c, on_goes_on() does nothing.
    def test_N1_each_address_that_cannot_be_connected_to_is_in_the_log(self):
        site = self.site()
        i = self.started(site)
        _, path = self.traced(i, "two.example")
        i.inject(HELLO, "x@away.example", "y@away.example")
        i.wait_empty()
        wait(lambda: "(the message)" in path.read_text(), what="the dialogue")
        i.stop()
        relay = f"two.example[127.0.0.2]:{site.port}"
        self.assertEqual(self.left(i), [
            f"relay={relay}, nrcpt=2, dsn=4.4.1 (connect to {relay}: Connection refused; the next host is tried)"])
        self.assertIn(f"{relay} * connect to {relay}: Connection refused\n", path.read_text())

    # mutation: deliver-smtp/session/next.c, session_fall_back() without log_next_host().
    def test_N39_each_next_hop_before_the_fallback_is_in_the_log(self):
        site = self.site()
        i = self.started(site, "127.0.0.3", smtp_fallback_relay=f"[none.invalid] [127.0.0.1]:{site.port}")
        i.inject(HELLO, "x@away.example")
        i.wait_empty()
        i.stop()
        relay = f"127.0.0.3[127.0.0.3]:{site.port}"
        left = self.left(i)
        self.assertEqual(
            left[0], f"relay={relay}, nrcpt=1, dsn=4.4.1 (connect to {relay}: Connection refused; the next host is tried)")
        self.assertRegex(left[1], r"^relay=none, nrcpt=1, dsn=4\.4\.\d \(name of host none\.invalid: ")
        self.assertEqual(len(left), 2)

    def test_N28_not_where_the_message_may_have_been_taken(self):
        first, second = self.two(lambda *_: None)
        first.hold = True
        i = self.started(first)
        i.inject(HELLO, "x@away.example")
        wait(lambda: first.held, what="the message")
        first.drop_held()
        found = wait(lambda: i.log_has(r"to=<x@away\.example>, relay=(\S+),.*status=deferred \(.*more than once"),
                     what="the result")
        self.assertTrue(found.group(1).startswith("two.example[127.0.0.2]"))
        self.assertEqual((second.connections, len(first.contents)), (0, 1))
        i.stop()

    def test_N28_each_result_is_that_of_the_last_host(self):
        first, second = self.two(lambda _, v, line: b"450 4.7.1 first" if v == b"RCPT" else None)
        second.says = lambda _, v, line: b"451 4.7.2 second" if b"<x@" in line and v == b"RCPT" else None
        i = self.started(first)
        i.inject(HELLO, "x@away.example", "y@away.example")
        wait(lambda: i.log_has(r"to=<x@away\.example>, relay=two\.example\[127\.0\.0\.1\].*dsn=4\.7\.2, status=deferred "),
             what="the one that waits")
        wait(lambda: i.log_has(r"to=<y@away\.example>, relay=two\.example\[127\.0\.0\.1\].*status=sent"), what="the other")
        i.stop()

    def test_N28_so_many_sessions(self):
        first, second = self.two(lambda _, v, line: b"450 4.7.1 grey" if v == b"RCPT" else None)
        i = self.started(first, smtp_mx_session_limit=1)
        i.inject(HELLO, "x@away.example")
        wait(lambda: i.log_has(r"to=<x@away\.example>, relay=two\.example\[127\.0\.0\.2\].*status=deferred"), what="the result")
        i.stop()
        self.assertEqual(second.connections, 0)


class Message(SystemTest):
    def site(self, **options):
        made = Site(**options)
        self.addCleanup(made.stop)
        return made

    # mutation: deliver-smtp/dialog/ends.c, judge_site() without blamed.
    def test_N30_refused_recipients_of_one_user_stop_nobody(self):
        def says(client, verb, line):
            if verb != b"RCPT" or b"honest" in line:
                return None
            return b"421 4.7.0 too many errors" if client.refused == 20 else b"550 5.1.1 no such user"
        site = self.site(says=says)
        i = self.instance(queues=1, routing=f"test.example local\n* smtp:127.0.0.1:{site.port}\n", conf=OFTEN).start()
        for m in range(5):
            i.inject(HELLO, *(f"u{n}-{m}@away.example" for n in range(50)))
        wait(lambda: len(re.findall(r"to=<u\d+-\d+@away\.example>.*status=(?:bounced|deferred)", i.log())) == 250,
             what="the results")
        i.inject(HELLO, "honest@away.example")
        wait(lambda: i.log_has(r"to=<honest@away\.example>.*status="), what="a result")
        self.assertTrue(i.log_has(r"to=<honest@away\.example>.*status=sent"), i.log())
        self.assertEqual(len(re.findall(r"to=<u\d+-\d+@away\.example>.*status=bounced", i.log())), 100)
        self.assertFalse(i.log_has(r"state=dead"), i.log())
        i.stop()

    # mutation: deliver-smtp/dialog/transaction.c, judge_too_many() that says no.
    def test_N32_a_server_that_takes_ten_recipients_at_a_time(self):
        most = 10

        def says(client, verb, line):
            return b"452 4.5.3 too many recipients" if verb == b"RCPT" and len(client.rcpts) == most else None
        site = self.site(says=says)
        i = self.instance(queues=1, routing=f"test.example local\n* smtp:127.0.0.1:{site.port}\n",
                          conf=OFTEN | {"smtp_destination_recipient_limit": 90}).start()
        i.inject(HELLO, *(f"a{n}@away.example" for n in range(90)))
        i.wait_empty()
        self.assertEqual(sorted(itertools.chain.from_iterable(rcpts for _, rcpts in site.deliveries)),
                         sorted(f"a{n}@away.example" for n in range(90)))
        self.assertEqual((len(site.deliveries), site.connections), (9, 1))
        # From here on the server is asked for ten at a time.
        before = len([line for line in site.lines if line[:4] == b"RCPT"])
        self.assertEqual(before, 90 + 80)
        i.inject(HELLO, *(f"b{n}@away.example" for n in range(90)))
        i.wait_empty()
        i.stop()
        self.assertEqual(len([line for line in site.lines if line[:4] == b"RCPT"]) - before, 90)
        self.assertEqual(len(site.deliveries), 18)
        self.assertNotIn("status=deferred", i.log())
