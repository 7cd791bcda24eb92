"""Names of next hops that do not resolve, in a network of the instance's own: all are tried
again later, none holds up another, and none ends a process."""
import os
import pathlib

from case import SystemTest, cost, needs_root
from instance import PYTHON, wait

HERE = pathlib.Path(__file__).resolve().parent
HELLO = b"Subject: hello\n\nhello\n"
LABELS = ("servfail", "refused", "nxdomain", "nodata", "silent", "loop", "rubbish", "mxservfail", "mxsilent",
          "mixed", "sick", "cut")
LONG = ".".join(["l" * 63] * 3)
INSIDE = """
mount --bind "$1" /etc/resolv.conf && ip link set lo up || exit 1
setpriv --pdeathsig KILL "$2" "$3" >"$4" & read ready <"$4" || exit 1
shift 4
exec "$@"
"""


@needs_root
class Dns(SystemTest):
    @cost(15)
    def test_N2_names_that_do_not_resolve(self):
        hosts = [f"{label}.example" for label in LABELS] + ["many.example", LONG]
        routing = "".join(f"to-{n} smtp:{host}:2525\n" for n, host in enumerate(hosts))
        i = self.instance(queues=1, routing=routing + "* local\n")
        resolv = i.dir / "resolv.conf"
        resolv.write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:1\n")
        answers = i.dir / "answers"  # said there, before anybody asks
        os.mkfifo(answers)
        i.start(prefix=["unshare", "-mn", "sh", "-c", INSIDE, "sh", resolv, PYTHON, HERE / "dns_site.py", answers])
        before = i.all_daemons()
        for n in range(len(hosts)):
            i.inject(HELLO, f"x@to-{n}")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)

        def said(n):
            return i.log_has(rf"to=<x@to-{n}>.*dsn=(\S+), status=(\w+)")
        for n, host in enumerate(hosts):
            found = wait(lambda n=n: said(n), what=f"an attempt for {host}")
            self.assertEqual(found.group(2), "deferred", host)
            want = ("4.4.4" if host.startswith(("nxdomain", "nodata", "loop")) else
                    "4.4.1" if host.startswith(("many", "mixed")) else "4.4.3")
            if host != LONG:
                self.assertEqual(found.group(1), want, host)
        # The second MX host, and no address of a domain whose MX records are not known.
        self.assertTrue(i.log_has(r"to=<x@to-9>.*connect to good\.example\[127\.0\.0\.1\]:2525"))
        self.assertFalse(i.log_has(r"to=<x@to-[78]>.*connect to"))
        self.assertEqual(i.daemons(), before)
        i.stop()
