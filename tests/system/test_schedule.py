"""The two schedulers at work: real processes, and destinations that are slow,
choosy or dead (docs/SCHEDULING.md)."""
import concurrent.futures
import re
import subprocess

from case import SystemTest, cost
from instance import BIN, wait
from smtp_site import Site

HELLO = b"Subject: hello\n\nhello\n"
DEBUG = {"destination_concurrency_feedback_debug": "yes"}
FIELD = re.compile(r"(\w+)=([^,\s]+)")


def entries(line):
    return dict(FIELD.findall(line))


class Job:
    def __init__(self, name, total):
        self.name, self.total = name, total
        self.selected = self.slots = 0
        self.begun = False  # somebody preempted it and is not done


def rule5(jobs, cost=5, discount=50, loan=3, minimum=3, first=0):
    """The order of selections by rule 5, for one destination and one agent:
    jobs are (name, total) in order of arrival, all of one age. Before the other
    jobs come, `first` entries of the first one were selected."""
    lane = [Job(*job) for job in jobs]
    order = []
    while lane:
        now = lane[0]
        others = lane[1:] if len(order) >= first else []
        if cost > 1 and now.slots > 0 and now.total >= minimum * cost:
            payable = (now.total - now.selected + now.slots) // cost
            able = [j for j in others if not j.begun and j.total - j.selected <= payable]
            best = min(able, key=lambda j: j.total, default=None)
            if best is not None:
                needed = best.total - best.selected
                if now.slots // cost + loan >= needed * (100 - discount) / 100:
                    now.slots -= needed * cost
                    now.begun = True
                    best.preempted = now
                    lane.remove(best)
                    lane.insert(0, best)
                    now = best
        now.selected += 1
        now.slots += 1
        order.append(now.name)
        if now.selected == now.total:
            lane.remove(now)
            if hasattr(now, "preempted"):
                now.preempted.begun = any(getattr(j, "preempted", None) is now.preempted for j in lane)
    return order


class Scheduling(SystemTest):
    def site(self, **options):
        made = Site(**options)
        self.addCleanup(made.stop)
        return made

    def routed(self, site, other=None, **conf):
        """away.example goes to the site, near.example to the other one,
        test.example to maildirs, on one queue."""
        near = f"near.example smtp:127.0.0.1:{other.port}\n" if other else ""
        return self.running(
            queues=1, routing=f"away.example smtp:127.0.0.1:{site.port}\n{near}* local\n",
            conf={"minimal_backoff_time": "1h", "maximal_backoff_time": "2h"} | DEBUG | conf)

    def selections(self, i):
        return [entries(line) | {"id": line.split(": ")[1]} for line in i.log().splitlines() if " selected=" in line]

    def active(self, i, count):
        wait(lambda: i.page(1)["active"] == count, what=f"{count} in the active queue")

    def backlog(self, i, count):
        """So many messages of one recipient, several submitters at once."""
        i.face("sendmail")  # made before they all want it
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: i.inject(HELLO, f"x{n}@away.example"), range(count)))


class Preemption(Scheduling):
    def test_the_rule_by_hand(self):
        """The example of the document: the rule here is not the
        program's."""
        for jobs, options, want in (
                (((1, 10), (2, 2), (3, 2)), {"cost": 2, "discount": 0, "loan": 0}, "11112211113311"),
                (((1, 10), (2, 2), (3, 2)), {"cost": 2, "loan": 0}, "11221111331111"),
                (((1, 10), (2, 2), (3, 2)), {"cost": 2}, "12211113311111"),
                (((1, 14), (2, 1)), {}, "1" * 14 + "2"),
                (((1, 15), (2, 1), (3, 1), (4, 1)), {}, "1211111311111" + "41111"),
                (((1, 40), (2, 6)), {}, "1" + "2" * 6 + "1" * 39),
                (((1, 40), (2, 7)), {}, "11111" + "2" * 7 + "1" * 35)):
            self.assertEqual("".join(map(str, rule5(jobs, **options))), want, (jobs, options))

    def passed(self, singles, **conf):
        """The order in which the site got the entries of a mail of 2000 and of
        single mails that came when its first entry was under way."""
        site = self.site(hold=True)
        i = self.routed(site, smtp_process_limit=1, smtp_destination_recipient_limit=10, **conf)
        i.inject(HELLO, *[f"b{n}@away.example" for n in range(2000)], sender="bulk@test.example")
        wait(lambda: len(site.held) == 1, what="the first entry")
        for n in range(singles):
            i.inject(HELLO, "x@away.example", sender=f"s{n}@test.example")
        self.active(i, 1 + singles)
        site.release(hold=False)
        i.wait_empty()
        i.stop()
        return i, [sender.partition("@")[0] for sender, _ in site.deliveries]

    def expected(self, singles, **rule):
        return rule5([("bulk", 200)] + [(f"s{n}", 1) for n in range(singles)], first=1, **rule)

    def test_single_mails_pass_a_mail_of_2000_as_the_rule_says(self):
        i, order = self.passed(30)
        self.assertEqual(order, self.expected(30))
        self.assertEqual(order[:14], ["bulk", "s0", *["bulk"] * 5, "s1", *["bulk"] * 5, "s2"])
        # The same in the log, with what it was decided by.
        selected = self.selections(i)
        self.assertEqual(len(selected), 230)
        [bulk] = {s["id"] for s in selected if s["total"] == "200"}
        self.assertEqual(["bulk" if s["id"] == bulk else "s" for s in selected],
                         ["bulk" if name == "bulk" else "s" for name in order])
        passes = [s for s in selected if s["preemption"] == "done"]
        self.assertEqual(len(passes), 30)
        self.assertTrue(all(s["other"] == bulk and int(s["other_slots"]) > 0 and s["total"] == "1"
                            for s in passes), passes)
        self.replay(i, 30, selected)

    def test_without_discount_and_loan_after_exactly_the_cost(self):
        _, order = self.passed(10, smtp_delivery_slot_cost=4, smtp_delivery_slot_discount=0,
                               smtp_delivery_slot_loan=0)
        self.assertEqual(order, self.expected(10, cost=4, discount=0, loan=0))
        self.assertEqual(order[:10], [*["bulk"] * 4, "s0", *["bulk"] * 4, "s1"])

    def test_without_preemption_first_in_first_out(self):
        i, order = self.passed(3, smtp_delivery_slot_cost=0)
        self.assertEqual(order, ["bulk"] * 200 + ["s0", "s1", "s2"])
        self.assertEqual({s["preemption"] for s in self.selections(i)}, {"off"})

    def replay(self, i, singles, selected):
        """The same scenario through the simulator."""
        if not (BIN / "qsim").exists():
            return
        scenario = i.dir / "passed.scn"
        scenario.write_text(
            "set default_destination_recipient_limit 10\nagents smtp 1\n"
            "at 0 msg a*2000\n" + "".join(f"at 0.5 msg a\n" for _ in range(singles)))
        done = subprocess.run([BIN / "qsim", "replay", scenario], capture_output=True, text=True, check=True)
        numbers = [int(line.split()[1]) for line in done.stdout.splitlines()]
        ids = {}
        for s in selected:
            ids.setdefault(s["id"], len(ids) + 1)
        self.assertEqual(numbers, [ids[s["id"]] for s in selected])


class Feedback(Scheduling):
    def share(self, feedback):
        """Percent of the recipients that a site refused that serves five; each delivery
        asks it by a connection of its own, and takes much longer than that."""
        site = self.site(limit=5, service=0.2)
        i = self.routed(
            site, default_destination_concurrency_failed_cohort_limit=0,
            default_destination_concurrency_positive_feedback=feedback,
            default_destination_concurrency_negative_feedback=feedback,
            smtp_connection_cache_time_limit=0, smtp_destination_recipient_limit=2)
        i.inject(HELLO, *[f"b{n}@away.example" for n in range(1200)])
        wait(lambda: i.page(1)["delivered"] + i.page(1)["deferred_total"] == 1200, what="one attempt for each")
        self.assertEqual(site.peak, 5)
        self.assertEqual(site.refused * 2, i.page(1)["deferred_total"])
        refused = [s for s in map(entries, i.log().splitlines()) if s.get("report") == "failed"]
        self.assertEqual(len(refused), site.refused)
        i.stop()
        return i, 100 * site.refused / (site.refused + len(site.deliveries))

    @cost(25)
    def test_a_limiter_refuses_a_sixth_with_1_per_concurrency(self):
        i, share = self.share("1/concurrency")
        self.assertAlmostEqual(share, 16.5, delta=6)
        windows = {int(s["window"]) for s in map(entries, i.log().splitlines()) if "report" in s}
        self.assertLessEqual(windows, {4, 5, 6, 7})

    @cost(20)
    def test_a_limiter_refuses_a_half_with_1(self):
        _, share = self.share("1")
        self.assertAlmostEqual(share, 49.7, delta=6)


class Dead(Scheduling):
    @cost(8)
    def test_its_backlog_is_deferred_at_once_and_delays_nobody(self):
        count = 1000
        site, near = self.site(mute=True), self.site()
        i = self.routed(site, near, smtp_process_limit=6,  # one more than the initial window
                        smtp_greeting_timeout="1h", smtp_ungreeted_share=100)
        self.backlog(i, count)
        self.active(i, count)
        i.inject(HELLO, "alice@test.example")
        i.inject(HELLO, "near@near.example")
        i.wait_delivered("alice", 1)
        wait(lambda: len(near.deliveries) == 1, what="the other site")
        self.assertEqual(site.connections, 5, "the initial window hangs, and nothing else")
        site.drop()
        wait(lambda: i.page(1)["deferred"] == count, what="all of it is deferred")
        self.assertEqual(site.connections, 5, "without an attempt")
        reason = r"lost connection with \S+ while receiving the greeting"
        why = rf"status=deferred \(delivery temporarily suspended: {reason}\)"
        lines = [line for line in i.log().splitlines() if "status=deferred" in line]
        self.assertEqual(len(lines), count)
        suspended = [line for line in lines if "suspended" in line]
        self.assertEqual(len(suspended), count - 5)
        for line in suspended:
            self.assertRegex(line, rf"relay=none, .*dsn=4\.4\.2, {why}")
        name = rf"destination=smtp/127\.0\.0\.1:{site.port}"
        self.assertEqual(len(re.findall(
            rf"warning: {name}, state=dead, window=\d+, busy=\d+, deaths=1, opens_in=[\d.]+ \(4\.4\.2 {reason}\)",
            i.log())), 1)
        # The destination stays dead for new mail; others do not notice.
        i.inject(HELLO, "late@away.example", "alice@test.example", "near@near.example")
        i.wait_delivered("alice", 2)
        wait(lambda: len(near.deliveries) == 2, what="the other site again")
        wait(lambda: i.log_has(rf"to=<late@away\.example>, relay=none,.*{why}"), what="the late one")
        wait(lambda: i.page(1)["deferred"] == count + 1, what="the late one is deferred")
        self.assertEqual(site.connections, 5)
        # A flush opens it, and it serves.
        site.mute = False
        i.flush()
        i.wait_empty()
        self.assertTrue(i.log_has(rf"flush: {count + 1} deferred messages are due now, 1 dead"))
        i.stop()
        self.assertEqual(len(site.deliveries), count + 1)

    @cost(5)
    def test_one_that_hangs_does_not_keep_the_active_queue(self):
        count = 40
        site = self.site(mute=True)
        i = self.routed(site, qmgr_message_active_limit=20, smtp_greeting_timeout="1s")
        self.backlog(i, count)
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        wait(lambda: i.page(1)["deferred"] == count, what="all of it is deferred")
        # Five at once, or fewer when the first has failed before the fifth begins.
        self.assertIn(site.connections, range(1, 6))
        self.assertEqual(i.page(1)["active"], 0)
        i.stop()

    @cost(4)
    def test_its_time_ends(self):
        site = self.site(mute=True)
        i = self.routed(site, initial_destination_concurrency=1, minimal_backoff_time="1s",
                        maximal_backoff_time="1s", destination_concurrency_feedback_debug="no")
        i.inject(HELLO, "x@away.example")
        wait(lambda: site.connections == 1, what="a connection")
        site.mute = False
        site.drop()
        i.wait_empty()
        self.assertEqual(len(site.deliveries), 1)
        self.assertTrue(i.log_has(rf"destination=smtp/127\.0\.0\.1:{site.port}, state=open \(its time is over\)"))
        self.assertFalse(i.log_has(r"selected=|report="), "that is for the debug parameter")
        i.stop()

    def test_a_retry_by_hand_opens_it(self):
        """The log does not take it for a success of another queue."""
        site = self.site(mute=True)
        i = self.routed(site, initial_destination_concurrency=1)
        i.inject(HELLO, "x@away.example")
        wait(lambda: site.connections == 1, what="a connection")
        site.mute = False
        site.drop()
        wait(lambda: i.page(1)["deferred"] == 1, what="it is deferred")
        subprocess.run([BIN / "qctl", "retry", "domain=away.example"], check=True,
                       capture_output=True, env=i.environment())
        i.wait_empty()
        wait(lambda: i.log_has(r"state=open \(a flush or retry opened it\)"), what="the line of its return")
        i.stop()

    def test_a_late_success_opens_it(self):
        """Of three deliveries two are lost and kill it, the other ends well. The first loss alone is
        a doubt, since the message may be the cause."""
        site = self.site(hold=True)
        i = self.routed(site, initial_destination_concurrency=3,
                        default_destination_concurrency_failed_cohort_limit="0.3")
        for rcpt in "vwx":
            i.inject(HELLO, f"{rcpt}@away.example")
        wait(lambda: len(site.held) == 3, what="all of them")
        site.drop_held()
        site.drop_held()
        wait(lambda: i.log_has("state=dead"), what="its death")
        site.release(hold=False)
        wait(lambda: i.log_has(r"state=open \(a delivery that had begun before succeeded\)"), what="its return")
        i.inject(HELLO, "z@away.example")
        wait(lambda: len(site.deliveries) == 2, what="a delivery more")
        i.stop()


class Reload(Scheduling):
    def test_P22_limits_and_slots_change_while_deliveries_run(self):
        site = self.site(hold=True)
        i = self.routed(site, log_level="debug", smtp_destination_concurrency_limit=4,
                        smtp_destination_recipient_limit=5)
        i.inject(HELLO, *[f"b{n}@away.example" for n in range(2000)], sender="bulk@test.example")

        def held(count):
            wait(lambda: len(site.held) == count, what=f"{count} deliveries at once")

        def reload(**changes):
            told = "queue-send/1: configuration reloaded"
            before = i.log().count(told)
            i.write_conf(**changes)
            i.reload()
            wait(lambda: i.log().count(told) > before, what="the reload")
        held(4)
        reload(smtp_destination_concurrency_limit=1, smtp_delivery_slot_cost=0)
        site.release(3)
        held(1)
        for _ in range(3):  # one at a time from now on
            site.release(1)
            held(1)
        self.assertEqual(site.serving, 1)
        self.assertEqual(self.selections(i)[-1]["preemption"], "off")
        site.peak = 0
        reload(smtp_destination_concurrency_limit=8, smtp_delivery_slot_cost=5)
        while len(site.held) < 8:
            before = len(site.deliveries)
            site.release(1)
            wait(lambda: len(site.held) > 0 and len(site.deliveries) > before, what="it grows")
        self.assertEqual(site.peak, 8)
        i.inject(HELLO, "x@away.example")
        self.active(i, 2)
        site.release(hold=False)
        i.wait_empty()
        self.assertEqual(site.peak, 8)
        self.assertEqual([s["total"] for s in self.selections(i) if s["preemption"] == "done"], ["1"])
        i.stop()
