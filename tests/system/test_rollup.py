"""Domains that the same MX hosts serve are one destination (docs/SITES.md, "Domains of the same MX
hosts"), in a network of the instance's own."""
import json
import pathlib
import re
import subprocess

from case import SystemTest, cost, needs_root
from instance import BIN, PYTHON, wait

HERE = pathlib.Path(__file__).resolve().parent
HELLO = b"Subject: hello\n\nhello\n"
LIMIT = 4
DOMAINS = 50
SHARED = "mx:m1.example+m2.example"
SENT = re.compile(r"queue-send/(\d+)\b.*status=sent")
INSIDE = """
mount --bind "$1" /etc/resolv.conf && ip link set lo up || exit 1
ip route add local 192.0.2.0/24 dev lo src 127.0.0.1 || exit 1
setpriv --pdeathsig KILL "$2" "$3" "$4" &
shift 4
exec "$@"
"""


@needs_root
class Rollup(SystemTest):
    def world(self, queues=1, ttl=60, **conf):
        i = self.instance(queues=queues, routing="test.example local\n* smtp\n",
                          conf={"myhostname": "me.test", "smtp_destination_concurrency_limit": LIMIT,
                                "smtp_initial_destination_concurrency": LIMIT} | conf)
        (i.dir / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        self.at, self.ttl = i.dir, ttl
        self.zone()
        i.start(prefix=["unshare", "-mn", "sh", "-c", INSIDE, "sh", i.dir / "resolv.conf", PYTHON,
                        HERE / "rollup_site.py", i.dir])
        wait((i.dir / "state").exists, what="the servers")
        return i

    def zone(self, **domains):
        """MX hosts of other domains than those of SHARED."""
        new = self.at / "zone.new"
        new.write_text(json.dumps({"ttl": self.ttl} | {f"{name}.example": hosts for name, hosts in domains.items()}))
        new.rename(self.at / "zone")

    def state(self, what):
        return json.loads((self.at / "state").read_text())[what]

    def sites(self, i):
        return subprocess.run([BIN / "qctl", "sites"], check=True, capture_output=True, text=True,
                              env=i.environment()).stdout

    def hold(self, held):
        """Replies wait; or not any more."""
        if held:
            (self.at / "hold").touch()
        else:
            (self.at / "hold").unlink()
        wait(lambda: self.state("hold") is held, what="the server's notice")

    # mutation: deliver-smtp/session/place.c, place_is_right() is always true.
    @cost(5)
    def test_N27_fifty_domains_and_two_queues_have_one_window(self):
        i = self.world(queues=2, destination_concurrency_feedback_debug="yes")
        self.zone(apart=["m3.example"])
        self.hold(True)
        for n in range(DOMAINS):
            i.inject(HELLO, f"x@d{n}.example")
        wait(lambda: self.state("held") == LIMIT, what="a window that is used")
        i.inject(HELLO, "x@apart.example")
        wait(lambda: self.state("held") == LIMIT + 1, what="the domain with another set")
        self.assertIn(f"smtp/{SHARED}", self.sites(i))
        self.hold(False)
        i.wait_empty()
        wait(lambda: self.state("rcpts") == DOMAINS + 1, what="the count of the last one")
        self.assertEqual(self.state("peak"), LIMIT + 1)
        self.assertTrue(i.log_has(r"report=nothing"), "a move says nothing of the destination that it leaves")
        self.assertEqual(set(SENT.findall(i.log())), {str(n) for n in i.numbers}, "both queues took part")
        self.assertLess(self.state("connections"), DOMAINS // 2, "a connection serves domains of one set")
        self.assertTrue(i.log_has(r"selected=smtp/mx:m3\.example,"))
        self.assertFalse(i.log_has("status=deferred"), "an ELSEWHERE is no attempt")
        i.stop()

    def test_N27_without_roll_up_each_domain_has_its_own(self):
        i = self.world(smtp_destination_mx_rollup="no")
        self.hold(True)
        for n in range(3 * LIMIT):
            i.inject(HELLO, f"x@d{n}.example")
        wait(lambda: self.state("held") == 3 * LIMIT, what="a window for each")
        self.assertNotIn("mx:", self.sites(i))
        self.hold(False)
        i.wait_empty()
        i.stop()

    # mutation: queue-send/agents/delivery.c, delivery_destination() that knows no deliveries; queue-send/operators/
    # explain.c, explain_site() without SITUATION_UNPLACED.
    def test_N27_explain_names_the_destination_that_sites_has(self):
        i = self.world(ttl=0, minimal_backoff_time="1h", maximal_backoff_time="1h")
        self.zone(turn=[])
        i.inject(HELLO, "y@turn.example")
        wait(lambda: i.files("deferred"), what="a failed look-up")

        def explained():
            return subprocess.run([BIN / "qctl", "explain", "state=deferred"], check=True, capture_output=True,
                                  text=True, env=i.environment()).stdout
        unknown = ("    Next hop: smtp/turn.example; its destination depends on MX records, and is known when it is "
                   "tried.\n")
        self.assertIn(unknown, explained())
        self.zone(turn=["m3.example"])
        self.hold(True)
        i.inject(HELLO, "x@turn.example")
        wait(lambda: self.state("held") == 1, what="a delivery")
        self.assertRegex(self.sites(i), r"open +4 +1 +0  smtp/mx:m3\.example\n")
        self.assertIn("    Open: smtp/mx:m3.example takes mail, 1 of 4 deliveries.\n", explained())
        self.hold(False)
        wait(lambda: i.log_has("status=sent"), what="the end of the delivery")
        wait(lambda: unknown in explained(), what="no delivery")
        i.stop()

    # mutation: queue-send/schedule/rollup.c, rollup_find() that looks at no time.
    def test_N27_other_mx_records_are_another_destination(self):
        i = self.world(ttl=1, destination_concurrency_feedback_debug="yes", smtp_connection_cache_time_limit="0")
        i.inject(HELLO, "x@turn.example")
        wait(lambda: i.log_has(rf"selected=smtp/{re.escape(SHARED)},"), what="the shared destination")
        self.zone(turn=["m3.example"])
        count = 0

        def turned():
            nonlocal count
            count += 1
            i.inject(HELLO, f"x{count}@turn.example")
            wait(lambda: i.log_has(rf"to=<x{count}@turn\.example>.*status=sent"), what="a delivery")
            return i.log_has(r"selected=smtp/mx:m3\.example,")
        wait(turned, what="the other destination")
        # DNS that fails is the failure of that domain alone.
        self.zone(turn=[])

        def failed():
            i.inject(HELLO, "y@turn.example")
            return i.log_has(r"to=<y@turn\.example>.*dsn=4\.4\.3")
        wait(failed, what="a failed look-up")
        self.assertFalse(i.log_has(r"destination=smtp/mx:.*state=dead"))
        i.stop()
