"""Why a message waits: each situation is made, and the sentence of
`qctl explain` compared (docs/QCTL.md); and the destinations of `qctl sites`."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

from case import SystemTest, cost, needs_root
from instance import AS_ROOT, BIN, HANG, USERS, wait
from smtp_site import Site

HELLO = b"Subject: hello\n\nhello\n"
HOUR = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h", "stop_time_limit": "1s"}
DATE = r"\w{3}, \d+ \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"
AGO = DATE + r" \(\d+[smh] ago\)"
IN = DATE + r" \(in \d+[smh]\)"


class Explain(SystemTest):
    def explain(self, i, *words, status=0, **options):
        done = subprocess.run([BIN / "qctl", "explain", *words], capture_output=True, text=True,
                              check=False, env=i.environment(), **options)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def expect(self, i, words, *sentences, limit=HANG):
        """Each sentence, as a pattern, is a whole line of the answer."""
        said = ""

        def all_said():
            nonlocal said
            said = self.explain(i, *words)
            return all(re.search(rf"^ *{sentence}$", said, re.M) for sentence in sentences)
        try:
            wait(all_said, limit, "the sentences")
        except AssertionError:
            self.fail(f"{sentences}\n not in\n{said}")
        return said

    def site(self, **options):
        made = Site(**options)
        self.addCleanup(made.stop)
        return made

    def closed_port(self):
        s = socket.socket()
        s.bind(("127.0.0.1", 0))
        self.addCleanup(s.close)
        return s.getsockname()[1]

    def later(self, queues=1, **conf):
        """A message that was tried once and waits for a host that refuses."""
        port = self.closed_port()
        i = self.running(queues=queues, conf=HOUR | conf,
                         routing=f'later.example smtp:127.0.0.1:{port}\nbad.example error:"5.1.1 no"\n* local\n')
        i.inject(HELLO, "a@later.example", "b@later.example", "c@test.example", sender="s@test.example")
        wait(lambda: len(i.files("deferred")) == 1, what="deferred")
        return i, port

    def slow(self, conf=None, **options):
        """A program that ends when there is a file."""
        i = self.instance(queues=1, routing="slow.example pipe:slow\n* local\n", conf=HOUR | (conf or {}), **options)
        go = i.dir / "go"
        i.programs_file.write_text(f"slow {USERS['maildir_user'] if AS_ROOT else '-'} /bin/sh -c "
                                   f'"until test -e {go}; do sleep 0.1; done"\n')
        i.start()
        return i, go


class Deferred(Explain):
    def test_due_after_attempts_with_the_last_reply(self):
        i, port = self.later()
        refused = rf"4\.4\.1 connect to 127\.0\.0\.1\[127\.0\.0\.1\]:{port}: Connection refused"
        head = r"[0-9A-F]+: deferred; 2 recipients to be delivered, 1 delivered"
        due = rf"Next: the message is due {IN}; then all remaining recipients are tried\."
        self.expect(i, ["ALL"], head, rf"Tried: 1 time; 2 recipients at later\.example, last on {AGO}: {refused}", due)
        for count in (2, 3):
            subprocess.run([BIN / "qctl", "retry", "ALL", "--yes"], check=True, capture_output=True, env=i.environment())
            self.expect(i, ["ALL"], head,
                        rf"Tried: {count} times; 2 recipients at later\.example, last on {AGO}: {refused}", due)

    def test_dead_since_until_why(self):
        i, port = self.later(smtp_initial_destination_concurrency=1)
        self.expect(i, ["ALL"],
                    rf"Dead: smtp/127\.0\.0\.1:{port} since {AGO}, until {IN}: "
                    rf"4\.4\.1 connect to 127\.0\.0\.1\[127\.0\.0\.1\]:{port}: Connection refused\.",
                    rf"Next: the message is due {IN}; .*")

    # mutation: take_address_fact() of explain.c counts no dead destination; add_later() takes some for all.
    def test_due_while_the_destination_is_dead(self):
        i = self.running(queues=1, conf=HOUR | {"mydestination": "test.example", "relayhost": "",
                                                "smtp_initial_destination_concurrency": 1},
                         routing=f"later.example smtp:127.0.0.1:{self.closed_port()}\n")
        for _ in range(2):
            i.inject(HELLO, "x@later.example", sender="all@test.example")
            i.inject(HELLO, "x@later.example", "x@nowhere.example", sender="some@test.example")
        wait(lambda: len(i.files("deferred")) == 4, what="deferred")
        # One is tried at once, and the destination is dead for an hour again; the others are due before that.
        subprocess.run([BIN / "qctl", "retry", "ALL", "--rate=6/h"], check=True, capture_output=True, env=i.environment())
        dead = rf"Dead: smtp/127\.0\.0\.1:\d+ since {AGO}, until {IN}: .*"
        self.expect(i, ["sender=all@*"], dead,
                    rf"Next: the message is due {IN}; if its destination is still dead then, the message "
                    r"is deferred again without an attempt\. qctl retry opens the destination and tries the message now\.")
        self.expect(i, ["sender=some@*"], dead,
                    rf"Next: the message is due {IN}; recipients whose destination is still dead then are "
                    r"deferred again without an attempt, all others are tried\.")
        i.routing_file.write_text("* local\n")
        i.reload()
        self.expect(i, ["ALL"], rf"Next: the message is due {IN}; then all remaining recipients are tried\.")

    def test_no_route_and_a_route_that_came(self):
        i = self.running(queues=1, conf=HOUR | {"mydestination": "test.example", "relayhost": ""},
                         routing="here.example local\n")
        i.inject(HELLO, "a@nowhere.example")
        wait(lambda: len(i.files("deferred")) == 1, what="deferred")
        no = "no rule of the routing fits, the domain is not in mydestination, and relayhost is empty"
        self.expect(i, ["ALL"], rf"Tried: 1 time; 1 recipient at nowhere\.example, last on {AGO}: 4\.3\.5 no route: {no}",
                    rf"No route: as in the last attempt\. Next: the route is looked up again in the next attempt\.")
        i.routing_file.write_text("* local\n")
        i.reload()
        self.expect(i, ["ALL"], r"Open: local/a takes mail, 0 of \d+ deliveries\.")

    def test_failed_and_reported(self):
        i, _ = self.later()
        i.inject(HELLO, "x@bad.example", "y@later.example", sender="t@test.example")
        i.wait_delivered("t", 1)
        self.expect(i, ["sender=t@*"], r"[0-9A-F]+: deferred; 1 recipient to be delivered, 1 failed",
                    r"Failed: 1 recipient at bad\.example: 5\.1\.1 no; reported to the sender\.")

    # mutation: qctl/read/recipient.c: take_told() takes each line for one of all.
    def test_C15_reported_is_said_of_each_recipient(self):
        i, _ = self.later(report_rate_limit=1)
        i.inject(HELLO, *(f"r{n}@bad.example" for n in range(23)), sender="list-@test.example-@[]")
        self.expect(i, ["sender=list-@*"], r"[0-9A-F]+: deferred; 0 recipients to be delivered, 23 failed",
                    r"Failed: 20 recipients at bad\.example: 5\.1\.1 no; reported to the sender\.",
                    r"Failed: 3 recipients at bad\.example: 5\.1\.1 no; not reported yet\.")
        i.inject(HELLO, "x@bad.example", "y@later.example", sender="t@test.example", args=["-N", "never"])
        self.expect(i, ["sender=t@*"],
                    r"Failed: 1 recipient at bad\.example: 5\.1\.1 no; the sender asked for no report\.")

    def test_parked(self):
        site = self.site(mute=True)
        i = self.running(queues=1, routing=f"* smtp:127.0.0.1:{site.port}\n",
                         conf=HOUR | {"qmgr_message_active_limit": 10, "destination_active_share": "10%"})
        for n in range(3):
            i.inject(HELLO, f"x{n}@away.example", sender=f"s{n}@test.example")
            wait(lambda n=n: len(i.files("active")) == 1 and len(i.files("deferred")) == n, what="parked")
        self.expect(i, ["sender=s2@*"],
                    rf"Parked: smtp/127\.0\.0\.1:{site.port} has its share of the active queue, 1 of 1 messages; "
                    r"parked before this one: 1\. Next: the message enters the active queue when the messages before it have left\.")

    @cost(15)
    def test_suspect_and_poison(self):
        i, _ = self.slow()
        i.inject(HELLO, "a@slow.example")

        def kill_agent():
            wait(lambda: i.page(1)["local_used"] == 1, what="in delivery")
            self.expect(i, ["ALL"], r"Being delivered for .*")
            for pid in i.pids("deliver-local"):
                with contextlib.suppress(ProcessLookupError):  # children end with the agent
                    os.kill(pid, signal.SIGKILL)
            wait(lambda: not i.files("active"), what="back")

        kill_agent()
        self.expect(i, ["ALL"], rf"Tried: 1 time; 1 recipient at slow\.example, last on {AGO}: "
                    r"4\.3\.0 the delivery agent died")
        subprocess.run([BIN / "qctl", "retry", "ALL", "--yes"], check=True, capture_output=True, env=i.environment())
        kill_agent()
        self.expect(i, ["ALL"], r"Suspect: 2 delivery agents died while they had the message\. "
                    r"Next: it is delivered while no other suspect is\.")
        subprocess.run([BIN / "qctl", "retry", "ALL", "--yes"], check=True, capture_output=True, env=i.environment())
        kill_agent()
        wait(lambda: i.files("hold"), what="put aside")
        self.expect(i, ["ALL"], rf"On hold: since {AGO}, since delivery agents died while they had it\. "
                    r"Next: nothing, until it is released \(qctl release\) or deleted\.")


class Active(Explain):
    def held_site(self, count, rcpts=1, **conf):
        """So many messages for a host that keeps the first one waiting."""
        site = self.site(hold=True)
        i = self.running(queues=1, routing=f"away.example smtp:127.0.0.1:{site.port}\n* local\n", conf=HOUR | conf)
        for n in range(count):
            i.inject(HELLO, *[f"x{n}-{r}@away.example" for r in range(rcpts)], sender=f"s{n}@test.example")
            wait(lambda n=n: i.page(1)["active"] == n + 1, what="in the active queue")
        wait(lambda: site.held, what="in delivery")
        return i, site

    def test_delivering_and_the_window_full(self):
        i, site = self.held_site(3, smtp_destination_concurrency_limit=1, smtp_initial_destination_concurrency=1)
        [pid] = i.pids("deliver-smtp")
        self.expect(i, ["sender=s0@*"], r"[0-9A-F]+: active; 1 recipient to be delivered",
                    rf"Being delivered for \d+s: 1 recipient to smtp/127\.0\.0\.1:{site.port}, "
                    rf"by deliver-smtp \(pid {pid}\)\. "
                    r"Next: the server or program answers, or a time limit ends the attempt\.")
        for n, before in ((1, 0), (2, 1)):
            self.expect(i, [f"sender=s{n}@*"],
                        rf"Waiting: 1 recipient for smtp/127\.0\.0\.1:{site.port}: its window is full, "
                        rf"1 of 1 deliveries; messages before this one: {before}\. "
                        r"Next: a delivery starts when one has ended\.")

    def test_no_agent_is_free(self):
        i, site = self.held_site(2, smtp_process_limit=1, smtp_delivery_slot_cost=0)
        self.expect(i, ["sender=s1@*"],
                    rf"Waiting: 1 recipient for smtp/127\.0\.0\.1:{site.port}: no agent of the transport is free, "
                    r"1 of 1 are busy; messages before this one: \d\. Next: a delivery starts when one has ended\.")

    def test_behind_larger_mail(self):
        site = self.site(hold=True)
        i = self.running(queues=1, routing=f"away.example smtp:127.0.0.1:{site.port}\n", conf=HOUR | {
            "smtp_process_limit": 1, "smtp_destination_recipient_limit": 2, "smtp_delivery_slot_loan": 0,
            "smtp_delivery_slot_discount": "0%"})
        big = i.inject(HELLO, *[f"x{r}@away.example" for r in range(40)], sender="big@test.example",
                       face="queue-inject").stdout.decode().split()[-1]
        wait(lambda: site.held, what="in delivery")
        i.inject(HELLO, "a@away.example", sender="small@test.example")
        i.inject(HELLO, *[f"y{r}@away.example" for r in range(20)], sender="other@test.example")
        wait(lambda: i.page(1)["active"] == 3, what="in the active queue")
        behind = (rf" for smtp/127\.0\.0\.1:{site.port}: behind the larger message {big}, of which 1 of 20 deliveries "
                  r"have begun\. Next: this one ")
        self.expect(i, ["sender=small@*"], "Waiting: 1 recipient" + behind +
                    r"overtakes when deliveries of the other have earned it 1\.00 slots; 0\.20 are there\.")
        self.expect(i, ["sender=other@*"], "Waiting: 20 recipients" + behind +
                    r"is too large to overtake, and comes when the other has no delivery to start\.")

    def test_the_agent_is_not_there(self):
        i, site = self.held_site(1)
        os.kill(i.process.pid, signal.SIGSTOP)  # nobody starts it again
        self.addCleanup(os.kill, i.process.pid, signal.SIGCONT)
        for pid in i.pids("deliver-smtp"):
            os.kill(pid, signal.SIGKILL)
        i.inject(HELLO, "y@away.example", sender="t@test.example")
        self.expect(i, ["sender=t@*"],
                    rf"Waiting: 1 recipient for smtp/127\.0\.0\.1:{site.port}: deliver-smtp does not run, "
                    r"or takes no more deliveries\. Next: the supervisor starts it\.")
        os.kill(i.process.pid, signal.SIGCONT)

    def test_many_sites_are_bounded(self):
        site = self.site(hold=True)
        i = self.running(queues=1, routing=f"* smtp:127.0.0.1:{site.port}\n", conf=HOUR | {
            "smtp_destination_recipient_limit": 1, "smtp_process_limit": 1})
        i.inject(HELLO, *[f"x{n}@away.example" for n in range(100)])
        wait(lambda: site.held, what="in delivery")
        said = self.expect(i, ["ALL"], r"And 68 recipients more\.")
        self.assertEqual(said.count("Waiting: "), 31)

    def test_held_while_it_is_delivered(self):
        i, go = self.slow()
        i.inject(HELLO, "a@slow.example", "b@slow.example")
        wait(lambda: i.page(1)["local_used"] >= 1, what="in delivery")
        acting = subprocess.Popen([BIN / "qctl", "hold", "ALL", "--yes"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=i.environment())
        self.expect(i, ["ALL"], r"Decided: the message is to be held\. "
                    r"Next: that is done when its deliveries have ended; [12] running\.")
        go.touch()
        acting.wait(HANG)


class Queue(Explain):
    def test_active_queue_full_and_offered(self):
        i, go = self.slow({"qmgr_message_active_limit": 1, "destination_active_share": "100%"})
        for n in range(3):
            i.inject(HELLO, "a@slow.example", sender=f"s{n}@test.example")
            wait(lambda: i.page(1)["active"] == 1, what="the first")
        for n in (1, 2):
            self.expect(i, [f"sender=s{n}@*"], r"Queue: its active queue is full, 1 of 1 messages\.")
        self.expect(i, ["ALL"], r"Waiting: for room in the active queue, which has 1 of 1 messages; "
                    r"before this one: 0\. Next: the message is moved to active\.")
        go.touch()

    def test_disabled(self):
        i, _ = self.later(queues=2)
        for n in (1, 2):
            subprocess.run([BIN / "setqload", "-c", i.conf_file, "--disable", "-q", str(n)], check=True,
                           capture_output=True, env=i.environment())
        self.expect(i, ["ALL"], r"Queue: it is disabled, and gets no new mail\. What it has is delivered\.",
                    r"Next: the message is due .*")

    def test_closing(self):
        site = self.site(hold=True)
        i = self.instance(queues=1, routing=f"away.example smtp:127.0.0.1:{site.port}\n* local\n", conf=HOUR | {
            "queue_count": 1, "queue_max": 3, "queue_drain_time": "0s", "smtp_data_done_timeout": "600s"})
        i.start()

        def count(n):
            subprocess.run([BIN / "setqload", "-c", i.conf_file, "--count", str(n)], check=True,
                           capture_output=True, env=i.environment())
        count(2)
        i.wait_open(1, 2)
        for _ in range(20):
            i.inject(HELLO, "a@away.example")
        wait(lambda: any("queue2" in str(p) for p in i.files("active")), what="in delivery there")
        count(1)
        self.expect(i, ["queue=2"], r"Queue: it is closing, and its mail goes to other queues\. "
                    r"Next: the message goes to one of them, and is delivered there\.")
        site.release(hold=False)

    @needs_root
    def test_read_only(self):
        i = self.instance(queues=1, routing=f"later.example smtp:127.0.0.1:{self.closed_port()}\n* local\n",
                          conf=HOUR | {"error_interval": "60s"})
        i.base.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", i.base], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", i.base], check=False)
        i.start()
        i.inject(HELLO, "a@later.example")
        wait(lambda: len(i.files("deferred")) == 1, what="deferred")
        wait(lambda: subprocess.run(["mount", "-o", "remount,ro", i.base], check=False,
                                    capture_output=True).returncode == 0, what="a remount")
        i.flush()
        self.expect(i, ["ALL"], r"Queue: its disk cannot be written \(Read-only file system\), so nothing is delivered "
                    rf"or moved\. Next: the disk is tried again {IN}\.")
        subprocess.run(["mount", "-o", "remount,rw", i.base], check=True)

    def test_the_queue_does_not_run(self):
        i, port = self.later()
        i.stop()
        self.expect(i, ["ALL"], rf"Tried: 1 time; 2 recipients at later\.example, last on {AGO}: .*:{port}: .*refused",
                    r"Queue: it does not run: this is what lies on disk\. Next: nothing, until its queue-send is started\.",
                    rf"Due: {IN}\.")


class Places(Explain):
    def test_hold_deleted_corrupt_and_nothing(self):
        i, _ = self.later()

        def act(verb):
            subprocess.run([BIN / "qctl", verb, "ALL", "--yes"], check=True, capture_output=True, env=i.environment())
        act("hold")
        said = self.expect(i, ["ALL"], rf"On hold: since {AGO}, by an operator \(\S+\)\. "
                           r"Next: nothing, until it is released \(qctl release\) or deleted\.")
        name = said.split(":")[0]
        act("delete")
        self.expect(i, [name], rf"Deleted: by an operator; qctl undelete puts it on hold\. "
                    rf"Next: it is removed at {DATE} \(in \d+h\)\.")
        [path] = i.files("deleted")
        self.explain(i, name[:-1] + ("E" if name.endswith("F") else "F"), status=65)
        i.stop()
        with open(path, "r+b") as f:
            f.seek(-20, os.SEEK_END)
            f.write(b"\033]0;x\007")
        path.rename(i.queue(1) / "corrupt" / path.name)
        said = self.explain(i, "state=corrupt")
        self.assertRegex(said, r"corrupt; no whole message\n    Damaged: .*\. It is not delivered\. `qctl show "
                         r"--content \w+` prints it; `qctl delete \w+` removes it\.\n")

    def test_incoming_and_maildrop(self):
        i = self.running(queues=1, conf=HOUR | {"scan_interval": "1h"})
        for pid in i.pids("todo-proc"):
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(os.kill, pid, signal.SIGCONT)
        i.inject(HELLO, "a@test.example")
        self.expect(i, ["ALL"], r"Waiting: in incoming, to be checked by todo-proc\. "
                    r"Next: it is offered for the active queue\.")
        if not AS_ROOT:
            return
        i.inject(HELLO, "a@test.example", uid=65534)
        self.expect(i, ["state=maildrop"], r"Waiting: in gate/maildrop, for todo-proc\. Next: it is moved to incoming\.")

    def test_A7_escapes_are_harmless(self):
        i, _ = self.later()
        for path in i.files("defer"):
            path.write_bytes(path.read_bytes().replace(b"connect", b"\033[2J\x9b1m\xc2\x9b"))
        done = subprocess.run([BIN / "qctl", "explain", "ALL"], capture_output=True, check=True, env=i.environment())
        self.assertFalse(re.search(rb"[\x00-\x09\x0b-\x1f\x7f\x9b]", done.stdout), done.stdout)
        self.assertIn(b"?[2J", done.stdout)

    @needs_root
    def test_readers_ask_whether_they_may_act_or_not(self):
        i, _ = self.later(operator_group="operator")
        qctl = i.dir / "qctl"
        qctl.write_bytes(pathlib.Path(BIN / "qctl").read_bytes())
        qctl.chmod(0o755)
        for groups in ([USERS["qmail_group"]], [USERS["qmail_group"], "operator"]):
            done = subprocess.run([qctl, "explain", "ALL"], capture_output=True, text=True, check=False,
                                  env=i.environment(), user="nobody", group="nogroup", extra_groups=groups)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Tried: 1 time", done.stdout)
            self.assertNotIn("could not be asked", done.stdout)
            self.assertIn("Next: the message is due", done.stdout)


class Destinations(Explain):
    def sites(self, i, *words, status=0):
        done = subprocess.run([BIN / "qctl", "sites", *words], capture_output=True, text=True, check=False,
                              env=i.environment())
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def objects(self, i, *words):
        return [json.loads(line) for line in self.sites(i, "--json", *words).splitlines()]

    def test_windows_and_deaths(self):
        site, port = self.site(hold=True), self.closed_port()
        i = self.running(queues=2, conf=HOUR | {"smtp_destination_concurrency_limit": 1,
                                                "smtp_initial_destination_concurrency": 1},
                         routing=f"dead.example smtp:127.0.0.1:{port}\n* smtp:127.0.0.1:{site.port}\n")
        i.inject(HELLO, "a@dead.example")
        for _ in range(10):  # to one of the queues, or to both
            i.inject(HELLO, "a@away.example")
        dead, full = f"smtp/127.0.0.1:{port}", f"smtp/127.0.0.1:{site.port}"
        wait(lambda: [(o["state"], o["busy"], o["waiting_queues"] > 0) for o in self.objects(i, full)] ==
             [("full", 1, True)] and [o["state"] for o in self.objects(i, dead)] == ["dead"], what="full and dead")
        [row] = self.objects(i, dead)
        self.assertEqual((row["transport"], row["destination"]), ("smtp", f"127.0.0.1:{port}"))
        self.assertEqual(row["reason"], f"4.4.1 connect to 127.0.0.1[127.0.0.1]:{port}: Connection refused")
        self.assertLess(row["dead_since"], row["dead_until"])
        text = self.sites(i, "smtp/*")
        self.assertEqual(text.splitlines()[0], "STATE  WINDOW  BUSY  WAITING  DESTINATION")
        self.assertRegex(text, rf"(?m)^full +1 +1 +[12]  {full}$")
        self.assertRegex(text, rf"(?m)^dead +1 +0 +0  {dead}: since {AGO}, until {IN}: 4\.4\.1 connect to .*refused$")
        self.assertEqual([o["state"] for o in self.objects(i, "--top", "1")], ["dead"])
        self.assertEqual([o["state"] for o in self.objects(i, "--top", "2")], ["dead", "full"])
        self.assertEqual(self.sites(i, "local/*"), "No destination fits\n")
        self.sites(i, "--top", "0", status=64)
        i.stop()
        self.sites(i, status=69)
