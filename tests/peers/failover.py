"""A domain of two MX hosts, of which the first fails in one way and the second takes
all: which recipients each host gets from us, from Postfix and from Exim. Each sends
one message of three recipients to each domain, in the same network, at the same time.

Ours must be those of Postfix, but where the message may have been taken: then we wait
(docs/DELIVERY.md, "The conversation"). Where systems differ, the table says so.
"""
import re
import unittest

import cell
import packages
from failing_site import BODY, DOT, RESET, SILENCE, FailingSite, Failure, Place
from instance import wait
from network import Network
from senders import EximSender, OurSender, PostfixSender

FAILURES = {
    "451 to MAIL": Failure(b"MAIL", b"451 4.3.0 later"),
    "450 to RCPT": Failure(b"RCPT", b"450 4.7.1 later"),
    "450 to one RCPT of three": Failure(b"RCPT", b"450 4.7.1 later", only=b"<b@"),
    "452 at the final dot": Failure(DOT, b"452 4.3.1 full"),
    "reset at MAIL": Failure(b"MAIL", RESET),
    "reset at DATA": Failure(b"DATA", RESET),
    "reset in the body": Failure(BODY, RESET),
    "reset in a short body": Failure(BODY, RESET),
    "reset behind the final dot": Failure(DOT, RESET),
    "silence at MAIL": Failure(b"MAIL", SILENCE),
}
# What we do otherwise than Postfix. The kernel takes a short message whole, so that for
# the client it ends behind its final dot.
OURS = {"reset behind the final dot": {"deferred": "abc"}, "reset in a short body": {"deferred": "abc"}}
# With PIPELINING a server sees further commands behind the one that it fails at.
KEYWORDS = {"": (), ", pipelined": (b"PIPELINING",)}
CASES = {f"{name}{how}": (name, keywords) for name in FAILURES for how, keywords in KEYWORDS.items()}
NAMES = ("a", "b", "c")
SHORT = b"Subject: three\r\n\r\nhello\r\n"
# Longer than what the kernel takes at once, so that the message has a middle.
LONG = SHORT + b"%s\r\n" % (b"x" * 70) * 10000


def domain(case):
    return re.sub(r"\W+", "-", case.lower()) + ".example"


def sender_of(system):
    return f"{system.title.lower()}@client.example"


def world():
    """The Place of each address, and the names for dnsmasq."""
    places, names = {}, []
    for n, (case, (name, keywords)) in enumerate(CASES.items()):
        for m, (host, deed) in enumerate((("first", FAILURES[name]), ("second", None))):
            address = f"192.0.2.{2 * n + m + 1}"
            places[address] = Place(f"{host}.{domain(case)}", deed, keywords)
            names += [f"host-record={host}.{domain(case)},{address}",
                      f"mx-host={domain(case)},{host}.{domain(case)},{10 * (m + 1)}"]
    return places, "\n".join(names) + "\n"


class Failover(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cell.can_run()
            places, names = world()
            network = Network(names)
            cls.addClassCleanup(network.leave)
            network.enter()
        except packages.Unavailable as why:
            raise unittest.SkipTest(str(why)) from None
        site = FailingSite(places)
        cls.addClassCleanup(site.stop)
        cls.systems = []
        for kind in OurSender, PostfixSender, EximSender:
            system = kind()
            cls.addClassCleanup(system.destroy)
            cls.systems.append(system)
            system.run()
        for case in CASES:
            message = LONG if case.startswith("reset in the body") else SHORT
            for system in cls.systems:
                system.send(sender_of(system), [f"{name}@{domain(case)}" for name in NAMES], message)
        cls.ends = {case: [cls.end(system, case, site) for system in cls.systems] for case in CASES}
        cls.show()

    @staticmethod
    def end(system, case, site):
        """{host, or the status where none took it: its recipients, in one word}."""
        found = {}
        for name in NAMES:
            rcpt = f"{name}@{domain(case)}"
            status = wait(lambda r=rcpt: system.status(r), what=f"a result of {rcpt} by {system.title}")
            hosts = sorted(where.split(".")[0] for who, whom, where in site.taken
                           if (who, whom) == (sender_of(system), rcpt))
            key = " and ".join(hosts) if hosts and status == "sent" else " and ".join([*hosts, status])
            found[key] = found.get(key, "") + name
        return found

    @classmethod
    def show(cls):
        rows = [("first host", *(system.title for system in cls.systems), "")]
        for case, ends in cls.ends.items():
            words = ["; ".join(f"{where}: {who}" for where, who in sorted(end.items())) for end in ends]
            ours, postfix, exim = ends
            differ = ("" if ours == postfix else "ours differs") + ("" if postfix == exim else " Postfix and Exim differ")
            rows.append((case, *words, differ.strip()))
        widths = [max(map(len, column)) for column in zip(*rows)]
        for row in rows:
            print("peers:", "  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip(), flush=True)

    def check(self, case):
        ours, postfix, exim = self.ends[case]
        want = OURS.get(CASES[case][0], postfix)
        self.assertEqual(ours, want, f"Postfix: {postfix}, Exim: {exim}\n{self.systems[0].log()}")


def add_test(case):
    def test(self):
        self.check(case)
    name = "test_" + re.sub(r"\W+", "_", case)
    setattr(Failover, name, test)


for each in CASES:
    add_test(each)
