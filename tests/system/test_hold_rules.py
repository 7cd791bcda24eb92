"""Rules that put mail on hold before its first attempt (qctl hold --rule)."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

from case import SystemTest, needs_root
from instance import BIN, HANG, USERS, wait

HELLO = b"Subject: hello\n\nhello\n"
LATER = "later.example smtp:127.0.0.1:1\n* local\n"  # 1: refused
PATIENT = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}


class Rules(SystemTest):
    def call(self, i, *words, status=0, **options):
        done = subprocess.run([BIN / "qctl", *words], text=True, capture_output=True, check=False,
                              env=i.environment(), **options)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done

    def rule(self, i, *words, status=0):
        """The number of a new rule, and how many messages it has put on hold."""
        done = self.call(i, "hold", "--rule", *words, status=status)
        return (int(re.search(r"^rule (\d+)$", done.stdout, re.M).group(1)),
                int(re.search(r"Held: (\d+) message", done.stderr).group(1)))

    def rules(self, i):
        return [json.loads(line) for line in self.call(i, "rules", "--json").stdout.splitlines()]

    def held(self, i, *words):
        listed = self.call(i, "list", "--json", "state=hold", *words).stdout
        return sorted(json.loads(line)["sender"].partition("@")[0] for line in listed.splitlines())

    def patient(self, queues=2, **conf):
        i = self.instance(queues=queues, routing=LATER, conf={**PATIENT, **conf})
        i.start()
        return i

    def inject(self, i, number, *rcpts):
        i.inject(HELLO, *(rcpts or [f"r{number}@here.example"]), sender=f"s{number}@test.example")

    def only(self, i, *numbers):
        """New mail goes to these of two queues."""
        for number in sorted((1, 2), key=lambda n: n not in numbers):  # one is open at each moment
            subprocess.run([BIN / "setqload", "-c", i.conf_file, "--enable" if number in numbers else "--disable",
                            "-q", str(number)], check=True, capture_output=True, env=i.environment())

    def test_mail_to_come_is_held_and_released(self):
        i = self.patient()
        self.assertEqual(self.rules(i), [])
        self.assertEqual(self.call(i, "rules").stdout, "No rules\n")
        self.assertEqual(self.rule(i, "sender=s1@*", "--reason=a \033[2Jtest"), (1, 0))
        self.assertEqual(self.rule(i, "domain=second.example"), (2, 0))
        self.assertEqual(self.rule(i, "destination=smtp/127.0.0.1:*", "recipient=r3@*"), (3, 0))
        for n in range(1, 20, 2):
            self.only(i, 1 if n < 10 else 2)
            self.inject(i, 1, f"r{n}@here.example")
        self.only(i, 1, 2)
        self.inject(i, 2, "r0@here.example", "r2@SECOND.example")
        self.inject(i, 3, "r3@later.example")
        self.inject(i, 4, "r3@here.example")  # another destination
        i.wait_delivered("r3", 1)
        wait(lambda: len(self.held(i)) == 12, what="all on hold")
        self.assertEqual(self.held(i, "rule=1"), ["s1"] * 10)
        self.assertEqual(self.held(i, "rule=2"), ["s2"], "the whole message")
        self.assertEqual(self.held(i, "rule=3"), ["s3"])
        self.assertEqual({path.parent.parent.name for path in i.files("hold")}, {"queue1", "queue2"})
        self.assertRegex(self.call(i, "show", "sender=s1@*").stdout,
                         r"Held by: \S+\nHeld by rule: 1\nHeld since: .*\nHeld because: a \?\[2Jtest\n")
        self.assertRegex(self.call(i, "explain", "rule=1").stdout,
                         r"by an operator \(\S+, rule 1: a \?\[2Jtest\)\. Next: nothing, until it is released")
        wait(lambda: i.log_has(r"held by rule 1 of uid=\d+: a \?\[2Jtest"), what="who held it")
        wait(lambda: i.log_has(r"operator uid=\d+: rule 2 holds mail: domain=second\.example"), what="the rule")
        self.assertIn("Released: 10 messages", self.call(i, "release", "--rule", "1").stderr)
        for n in range(1, 20, 2):
            i.wait_delivered(f"r{n}", 2 if n == 3 else 1)
        self.assertEqual([row["rule"] for row in self.rules(i)], [2, 3])
        wait(lambda: i.log_has(r"operator uid=\d+: rule 1 holds no mail any more"), what="its end")
        self.assertIn("rule 1: no such rule", self.call(i, "release", "--rule", "1").stderr)
        wait(lambda: i.log_has(r"operator uid=\d+: there is no rule 1 of hold"), what="the log of it")

    def test_what_waits_is_held_and_what_is_released_goes(self):
        i = self.patient()
        for n in range(4):
            self.inject(i, n, "r@later.example")
        wait(lambda: len(i.files("deferred")) == 4, what="deferred")
        self.assertEqual(self.call(i, "hold", "--rule", "sender=s0@*", "--dry-run").stdout, "would hold 1 message\n")
        self.assertEqual(self.rules(i), [])
        self.assertEqual(self.rule(i, "destination=127.0.0.1:1", "sender=s[01]@*"), (1, 0), "only * is a pattern")
        self.assertEqual(self.rule(i, "destination=127.0.0.1:1"), (2, 4))
        i.stop()
        i.routing_file.write_text("later.example local\n* local\n")
        i.start()
        self.call(i, "release", "sender=s0@*")  # its destination is another one now
        i.wait_delivered("r", 1)
        number, count = self.rule(i, "sender=s1@*")
        self.assertEqual((number, count), (3, 0), "on hold already")
        self.call(i, "release", "sender=s1@*")  # one message, by hand
        i.wait_delivered("r", 2)
        self.inject(i, 1, "r5@here.example")
        wait(lambda: self.held(i, "rule=3") == ["s1"], what="held, though another was released")

    def test_rules_and_their_ends_survive_a_restart(self):
        i = self.patient()
        self.assertEqual(self.rule(i, "sender=s1@*", "--for=1h")[0], 1)
        self.assertEqual(self.rule(i, "sender=s2@*", "--for=1s")[0], 2)
        i.stop()
        done = self.call(i, "hold", "--rule", "sender=s3@*", "--for=1h", "--reason=stopped")
        self.assertEqual(done.stdout, "rule 3\n", "the lock of nobody is needed")
        i.start()
        for n in (1, 2, 3):
            self.inject(i, n)
        wait(lambda: self.held(i) == ["s1", "s3"], what="two on hold")
        i.wait_delivered("r2", 1)
        self.assertLessEqual({1, 3}, {row["rule"] for row in self.rules(i)})
        i.stop()
        self.assertIn("Released: 1 message", self.call(i, "release", "--rule", "3").stderr)
        i.start()
        i.wait_delivered("r3", 1)
        self.assertEqual(self.held(i), ["s1"])

    def test_an_end_releases_what_the_rule_holds(self):
        i = self.patient()
        self.rule(i, "sender=s1@*", "--for=3s")
        self.inject(i, 1)
        i.wait_delivered("r1", 1)
        self.inject(i, 1)
        i.wait_delivered("r1", 2)
        self.assertEqual(i.files("hold"), [])

    def test_F11_a_damaged_file_stops_no_mail(self):
        i = self.patient(queues=1)
        self.rule(i, "sender=s1@*")
        file = i.base / "rules/hold"
        whole = file.read_bytes()
        for damaged in (whole[:-3], whole.replace(b"s1@", b"s2@"), b"", b"\0" * 100, whole + b"x\n"):
            file.write_bytes(damaged)
            self.assertIn("the file of rules is damaged", self.call(i, "rules", status=65).stderr)
            self.assertIn("damaged", self.call(i, "release", "--rule", "7", status=65).stderr)
        wait(lambda: i.log_has(r"ALERT: .*/rules/hold: damaged, or not ours: 1 rules of hold that were read before"),
             what="the alert")
        self.inject(i, 1)
        wait(lambda: self.held(i) == ["s1"], what="held by the rule in memory")
        i.stop()
        i.start()
        self.inject(i, 1)
        i.wait_delivered("r1", 1)
        self.assertEqual(self.rule(i, "sender=s2@*")[0], 1000001, "no number is used again")
        self.assertEqual((i.base / "rules/hold.aside-1").read_bytes(), whole + b"x\n")
        wait(lambda: i.log_has("the file was damaged, and was put aside with its rules"), what="words of it")
        self.inject(i, 2)
        wait(lambda: self.held(i) == ["s1", "s2"], what="the new rule")

    def test_A1_rules_that_are_none(self):
        i = self.patient(queues=1)
        for words in (["sender="], [], ["ALL"], ["queue=1"], ["sender=a", "sender=b"], ["sender!=a"], ["older=1h"],
                      ["sender=a", "--failed"], ["sender=a", "--for=x"], ["sender=a\nb"], ["sender=" + "a" * 600]):
            done = self.call(i, "hold", "--rule", *words, status=64)
            self.assertLess(len(done.stderr), 400, words)
        self.assertEqual(self.rules(i), [], "sender= is a variable of a shell that is empty, not the null sender")
        self.call(i, "hold", "--rule", "sender=<>")
        self.assertEqual([row["sender"] for row in self.rules(i)], ["<>"])
        for words in (["release", "--rule"], ["release", "--rule", "x"], ["release", "--rule", "0"],
                      ["release", "--rule", "1", "2"], ["release", "1", "--rule"], ["rules", "ALL"],
                      ["delete", "--rule", "ALL"], ["list", "rule=x"]):
            self.call(i, *words, status=64)
        self.assertEqual(len(self.rules(i)), 1)

    def test_P1_no_rule_is_forgotten_by_a_killed_queue_send(self):
        """What is on hold after a kill, or is not delivered, is decided by the
        rules, whatever the moment."""
        i = self.patient(queues=1)
        self.rule(i, "sender=s1@*")
        for n in range(8):
            for _ in range(5):
                self.inject(i, 1)
                self.inject(i, 2)
            for pid in i.pids("queue-send"):
                with contextlib.suppress(ProcessLookupError):  # of the last turn
                    os.kill(pid, signal.SIGKILL)
            wait(lambda n=n: len(self.held(i)) == 5 * (n + 1), what="all of them on hold")
        i.wait_delivered("r2", 40)
        self.assertEqual(set(self.held(i, "rule=1")), {"s1"})
        self.assertEqual(i.maildir("r1"), [])
        self.assertEqual([row["rule"] for row in self.rules(i)], [1])

    def test_P1_a_rule_that_was_answered_is_there_and_no_number_comes_twice(self):
        """queue-send dies while it writes; mutation: read_text() believes any file."""
        i = self.patient(queues=1)
        numbers = []
        for n in range(12):
            made = subprocess.Popen([BIN / "qctl", "hold", "--rule", f"sender=s{n}@*"], text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=i.environment())
            time.sleep(n / 400)  # another moment each time
            for pid in i.pids("queue-send"):
                with contextlib.suppress(ProcessLookupError):  # of the last turn
                    os.kill(pid, signal.SIGKILL)
            said = made.communicate(timeout=HANG)[0]
            numbers += [int(number) for number in re.findall(r"^rule (\d+)$", said, re.M)]
            there = [row["rule"] for row in self.rules(i)]
            self.assertLessEqual(set(numbers), set(there))
            self.assertEqual(len(set(there)), len(there))
        self.assertEqual(len(set(numbers)), len(numbers))

    def test_A3_many_that_write_at_the_same_time(self):
        i = self.patient()
        made = [subprocess.Popen([BIN / "qctl", "hold", "--rule", f"sender=s{n}@*"], text=True,
                                 stdout=subprocess.PIPE, env=i.environment()) for n in range(8)]
        said = [process.communicate(timeout=HANG)[0] for process in made]
        self.assertEqual(sorted(said), [f"rule {n}\n" for n in range(1, 9)])
        self.assertEqual([row["rule"] for row in self.rules(i)], list(range(1, 9)))

    def test_what_was_released_is_not_held_in_another_form(self):
        """mutation: kept_flags() keeps FINAL alone."""
        i = self.instance(queues=2, routing=LATER, conf=PATIENT,
                          aliases="list: one, two@here.example, deep\ndeep: three\n").start()
        self.assertEqual(self.rule(i, "sender=s1@*"), (1, 0))
        self.assertEqual(self.rule(i, "recipient=list@*"), (2, 0))
        self.inject(i, 1, "list@here.example")
        wait(lambda: self.held(i) == ["s1"], what="on hold")
        self.call(i, "release", "sender=s1@*")
        for name in ("one", "two", "three"):
            i.wait_delivered(name, 1)
        i.wait_empty()
        self.assertEqual([row["rule"] for row in self.rules(i)], [1, 2])
        self.assertEqual(self.rule(i, "recipient=one@*", "sender=s2@*"), (3, 0))
        self.inject(i, 2, "deep@here.example")
        i.wait_delivered("three", 2)
        i.stop()
        self.rule(i, "recipient=one", "sender=s3@*")
        i.start()
        self.inject(i, 3, "list@here.example")
        wait(lambda: self.held(i, "rule=2") == ["s3"], what="the list, on hold")
        i.stop()
        self.assertIn("Released: 1 message", self.call(i, "release", "rule=2").stderr)
        i.start()
        i.wait_delivered("one", 2)  # released while the instance was stopped

    def test_reports_are_held_by_those_who_say_so(self):
        i = self.instance(queues=1, routing=LATER, conf=PATIENT).start()
        self.assertEqual(self.rule(i, "sender=<>"), (1, 0))
        self.assertEqual(self.rule(i, "sender=*", "--for=1h"), (2, 0))
        self.call(i, "release", "--rule", "2")
        i.inject(HELLO, "x@here.example", sender="")
        wait(lambda: len(self.held(i, "rule=1")) == 1, what="mail of others without a sender")
        self.fail_one(i, "reader@here.example")
        i.wait_delivered("reader", 1)
        self.assertEqual(self.rule(i, "sender=<>", "recipient=second@*")[0], 3)
        self.fail_one(i, "second@here.example")
        wait(lambda: len(self.held(i, "rule=3")) == 1, what="a report that was named")
        self.assertEqual(self.rule(i, "sender=*"), (4, 0), "nor one that waits")
        self.assertEqual(i.maildir("second"), [])

    def fail_one(self, i, sender):
        """Mail of this sender that fails for good."""
        i.inject(HELLO, "x@later.example", sender=sender)
        wait(lambda: any(f for f in i.files("deferred")), what="deferred")
        self.call(i, "expire", f"sender={sender}")

    @needs_root
    def test_A4_operators_make_rules_and_readers_do_not(self):
        i = self.patient(queues=2, operator_group="operator")
        qctl = shutil.copy(BIN / "qctl", i.dir / "qctl")
        group = USERS["qmail_group"]

        def run(words, groups):
            return subprocess.run([qctl, *words], capture_output=True, text=True, check=False,
                                  env=i.environment(), user="nobody", group="nogroup", extra_groups=groups)
        make, drop = ["hold", "--rule", "sender=s1@*"], ["release", "--rule", "1"]
        self.assertEqual(run(make, [group]).returncode, 77)
        self.assertEqual(self.rules(i), [])
        done = run(make, [group, "operator"])
        self.assertEqual((done.returncode, done.stdout), (0, "rule 1\n"), done.stderr)
        self.assertIn("sender=s1@*", run(["rules"], [group]).stdout)
        done = run(["rules"], [])
        self.assertEqual(done.returncode, 77)
        self.assertIn("no permission to read rules", done.stderr)
        self.assertEqual(run(drop, [group]).returncode, 77)
        self.inject(i, 1)
        wait(lambda: self.held(i) == ["s1"], what="held by an operator's rule")
        for attempt in ("touch hold.new", "rm -f hold", "mv hold x", "sh -c 'echo > hold'"):
            subprocess.run(attempt, shell=True, check=False, cwd=i.base / "rules", user="nobody", group="nogroup",
                           extra_groups=[group, "operator"], stderr=subprocess.DEVNULL)
        self.assertEqual([path.name for path in (i.base / "rules").iterdir()], ["hold"])
        # Nor does a member of the group keep the lock from those who write.
        locked = subprocess.run(["flock", "--nonblock", i.base / "rules", "true"], capture_output=True, check=False,
                                user="nobody", group="nogroup", extra_groups=[group])
        self.assertNotEqual(locked.returncode, 0)
        i.stop()
        self.assertEqual(run(make, [group, "operator"]).returncode, 77, "a stopped instance is root's")
        self.assertEqual(run(drop, [group, "operator"]).returncode, 77)
        self.assertEqual(len(self.rules(i)), 1)
