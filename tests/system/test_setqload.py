"""Settings by hand, and who may make them."""
import contextlib
import ctypes
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess

from case import AS_ROOT, SystemTest, cost, needs_root
from instance import BIN, HANG, wait

HELLO = b"Subject: hello\n\nhello\n"
NOBODY = 65534
librt = ctypes.CDLL(None, use_errno=True)


def ask(i, *words, uid=None, program="setqload"):
    """The finished command; as another user from where that one can read."""
    path = BIN / program
    who = {}
    if uid is not None:
        path = i.dir / program
        if not path.exists():
            shutil.copy(BIN / program, path)
        who = {"user": uid, "group": uid, "extra_groups": []}
    done = subprocess.run([path, "-i", i.name, *words], capture_output=True, text=True, check=False,
                          timeout=HANG, env=i.environment() | {"TERM": "dumb"}, **who)
    done.stdout = done.stdout.replace("; not yet on disk", "")  # it takes more than a second here
    return done


def listed(i):
    """The output of --list --json: of the instance, and of each queue."""
    lines = [json.loads(line) for line in ask(i, "--list", "--json").stdout.splitlines()]
    return lines[0], {row["queue"]: row for row in lines[1:]}


def bad_requests(i):
    with open(f"/dev/shm/{i.name}.qscheduler", "rb") as f:
        return int.from_bytes(os.pread(f.fileno(), 8, 72), "little")


class Setqload(SystemTest):
    def granted(self, i, *words):
        done = ask(i, *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        self.assertEqual(done.stdout.count("\n"), 1, words)
        return done.stdout

    def refused(self, i, code, *words, uid=None):
        done = ask(i, *words, uid=uid)
        self.assertEqual((done.returncode, done.stdout), (code, ""), (words, done.stderr))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_loads_hold_until_cleared_or_over(self):
        i = self.running(queues=2)
        self.assertEqual(self.granted(i, "-q", "1", "45/100"), "queue 1: load 45 % for 1m\n")
        self.granted(i, "-q", "2", "2/10", "5/20", "--for", "1s")
        self.granted(i, "-q", "1", "0", "--for", "5m")
        row = listed(i)[1][1]
        self.assertEqual((row["load"], row["load_by_hand"]), (0, True))
        self.assertIn("queue 1: load 0 % by hand for", ask(i, "--list").stdout)
        wait(lambda: not listed(i)[1][2]["load_by_hand"], what="the second is over")
        self.assertTrue(listed(i)[1][1]["load_by_hand"])
        self.granted(i, "-q", "1", "80", "--for", "5m")
        self.assertEqual(listed(i)[0]["mean_load"], 40, "at once")
        self.assertEqual(self.granted(i, "--clear"), "loads by hand cleared: 1\n")
        self.assertFalse(listed(i)[1][1]["load_by_hand"])
        self.assertEqual(listed(i)[0]["mean_load"], 0, "at once")
        i.stop()

    def test_refused_at_once(self):
        """By the command itself: nothing is asked."""
        i = self.running(queues=1)
        for words in (["-q", "-1", "50/100"], ["-q", "99999", "50"], ["-q", "4294967297", "50"],
                      ["-q", "1", "1/0"], ["-q", "1", "50", "--for", "0"],
                      ["-q", "1", "50", "--for", "-1"], ["--disable"], ["--bad"], [],
                      ["--disable", "-q", "1", "--reason", "\033[2J"],
                      ["--disable", "-q", "1", "--reason", "x" * 96],
                      ["--disable", "-q", "1,1"], ["--disable", "-q", "2", "-q", "2"], ["-q", "3-1", "50"],
                      ["--enable", "-q", "1-4095"], ["--clear", "-q", "1,"],
                      ["--count", "0"], ["--count", "-1"], ["--count", "257"]):
            self.refused(i, 64, *words)
        self.assertEqual(bad_requests(i), 0)
        i.stop()

    def test_refused_by_the_supervisor(self):
        i = self.running(queues=2, conf={"queue_max": 4})
        for words in (["-q", "9", "45"], ["--clear", "-q", "9"], ["--disable", "-q", "9"],
                      ["--enable", "-q", "9"], ["--count", "1"], ["--count", "5"]):
            self.refused(i, 65, *words)
        wait(lambda: bad_requests(i) == 6, what="six are counted")
        i.stop()
        self.refused(i, 69, "-q", "1", "45")
        self.refused(i, 69, "--list")

    @needs_root
    def test_A4_another_user(self):
        i = self.running(queues=2)
        self.granted(i, "--disable", "-q", "2", "--reason", "new disk")
        for words in (["-q", "1", "45"], ["--clear"], ["--disable", "-q", "1"],
                      ["--enable", "-q", "2"], ["--count", "2"]):
            self.assertIn("no permission", self.refused(i, 77, *words, uid=NOBODY))
        done = ask(i, "--list", uid=NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("queue 2: disabled, by hand for ever: new disk", done.stdout)
        self.assertEqual(bad_requests(i), 0)
        i.stop()

    def test_disable_a_queue_that_no_program_can_set(self):
        """No new mail chooses it; what it has goes on."""
        i = self.running(queues=2)
        self.granted(i, "--disable", "-q", "2")
        blocked = i.mail / "alice"
        blocked.write_text("not a directory")
        i.inject(HELLO, "alice@test.example")
        wait(lambda: i.page(1)["deferred"] == 1, what="it waits in queue 1")
        self.granted(i, "--enable", "-q", "2")
        self.granted(i, "--disable", "-q", "1", "--reason", "new disk")
        # And for those who look at the five leading numbers only.
        self.assertEqual([i.page(n)["disabled"] for n in (1, 2)], [1, 0])
        for _ in range(10):
            i.inject(HELLO, "bob@test.example")
        i.wait_delivered("bob", 10)
        wait(lambda: i.page(2)["accepted"] == 10, what="all in queue 2")
        self.assertEqual(i.page(1)["accepted"], 1)
        blocked.unlink()
        i.wait_delivered("alice", 1)
        self.assertEqual(i.page(1)["disabled"], 1, "not over by a publication of its own")
        top = ask(i, "-b", "-n", "1", program="qtop").stdout
        self.assertRegex(top, r"\n +1 disabled .* by hand for ever: new disk\n")
        i.stop()

    def test_I13_all_disabled_is_try_again(self):
        i = self.running(queues=2)
        self.assertNotIn("NO QUEUE", self.granted(i, "--disable", "-q", "1"))
        self.assertIn("NO QUEUE IS OPEN", self.granted(i, "--disable", "-q", "2", "--for", "1h"))
        self.assertEqual(listed(i)[0]["open"], 0)
        done = i.inject(HELLO, "alice@test.example", check=False)
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn(b"disabled", done.stderr)
        done = i.inject(HELLO, "alice@test.example", check=False, face="queue-inject")
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertEqual(i.files("gate/maildrop", "incoming", "active", "deferred"), [])
        self.granted(i, "--enable", "-q", "2")
        self.assertEqual([i.page(n)["disabled"] for n in (1, 2)], [1, 0])
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_several_queues(self):
        """One request each, when each can be."""
        i = self.running(queues=4)
        done = ask(i, "--disable", "-q", "1", "-q", "3-4", "--reason", "new disk")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "queue 1: disabled for ever\nqueue 3: disabled for ever\n"
                                      "queue 4: disabled for ever\n")
        self.assertEqual([r["state"] for r in listed(i)[1].values()],
                         ["disabled", "open", "disabled", "disabled"])
        self.assertEqual(ask(i, "--enable", "-q", "1,3").returncode, 0)
        self.assertEqual(ask(i, "-q", "2,4", "45").stdout, "queue 2: load 45 % for 1m\nqueue 4: load 45 % for 1m\n")
        self.assertEqual(ask(i, "--clear", "-q", "4,2").stdout,
                         "queue 4: load by hand cleared\nqueue 2: load by hand cleared\n")
        self.assertEqual([r["state"] for r in listed(i)[1].values()], ["open", "open", "open", "disabled"])
        i.stop()

    def test_several_queues_all_or_none(self):
        i = self.running(queues=2)
        for words in (["--disable"], ["--enable"], ["--clear"], ["45"]):
            done = ask(i, "-q", "1,7,2,9", *words)
            self.assertEqual((done.returncode, done.stdout), (65, ""), words)
            self.assertEqual(done.stderr, "setqload: queue 7: there is no such queue\n"
                                          "setqload: queue 9: there is no such queue\n"
                                          "setqload: nothing is done\n")
        self.assertEqual([(r["state"], r["load_by_hand"]) for r in listed(i)[1].values()], [("open", False)] * 2)
        self.assertFalse((i.base / "by-hand").exists())
        self.assertFalse(i.log_has("asked by"))
        i.stop()

    def test_the_log_names_the_user(self):
        """By the word of the kernel: the process is gone by then."""
        i = self.running(queues=2)
        name = pwd.getpwuid(os.geteuid()).pw_name
        self.granted(i, "--disable", "-q", "2", "--reason", "new disk")
        self.assertTrue(i.log_has(rf"queue 2: disabled for ever \(asked by {name}, uid {os.geteuid()}, "
                                  r"pid \d+: new disk\)"), i.log())
        os.unlink(f"/dev/shm/{i.name}.qscheduler.ask")
        wait(lambda: i.log_has(r"socket .*qscheduler.ask: made again"), what="the socket, again")
        before = i.log().count(f"uid {os.geteuid()}, ")
        self.granted(i, "-q", "1", "50")
        self.assertGreater(i.log().count(f"uid {os.geteuid()}, "), before)
        i.stop()

    def test_all_over_a_restart(self):
        """With the rest of its time."""
        i = self.running(queues=3, conf={"queue_max": 6})
        self.granted(i, "--disable", "-q", "1", "--for", "1h", "--reason", "new disk")
        self.granted(i, "--disable", "-q", "2", "--for", "1s")
        self.granted(i, "-q", "3", "50", "--for", "1h")
        self.granted(i, "--count", "3", "--for", "2h")
        i.stop()
        i.start()
        instance, rows = listed(i)
        self.assertEqual((rows[1]["state"], rows[1]["reason"]), ("disabled", "new disk"))
        self.assertEqual(i.page(1)["disabled"], 1)
        self.assertTrue(3500 < rows[1]["left"] <= 3601, rows[1])
        self.assertEqual((rows[3]["load_by_hand"], rows[3]["load"]), (True, 50))
        self.assertTrue(3500 < rows[3]["load_left"] <= 3601, rows[3])
        self.assertEqual(instance["count_by_hand"], 3)
        self.assertTrue(7100 < instance["count_left"] <= 7201, instance)
        wait(lambda: listed(i)[1][2]["state"] == "open", what="its second is over")
        self.granted(i, "--enable", "-q", "1")
        self.granted(i, "--clear")
        self.granted(i, "--count", "3")
        wait(lambda: not (i.base / "by-hand").exists(), what="nothing to be kept")
        i.stop()

    def reboot(self, i, passed):
        """The file as a machine finds it whose clock has gone on so far meanwhile."""
        path = i.base / "by-hand"
        words = path.read_text().split("\n")
        at = [n for n, line in enumerate(words) if line.startswith("written ")][0]
        wall = int(words[at].split()[1]) - passed * 10 ** 6
        words[at] = f"written {wall} 5000000 00000000-1111-2222-3333-444455556666"
        path.write_text("\n".join(words))

    def test_all_over_a_reboot(self):
        """The wall clock says what has passed; one that is behind takes nothing away."""
        i = self.running(queues=2, conf={"queue_max": 6})
        self.granted(i, "--disable", "-q", "1", "--for", "1h")
        self.granted(i, "-q", "2", "50", "--for", "1h")
        self.granted(i, "--count", "2", "--for", "1h")
        for passed, least, most in ((600, 2900, 3001), (-86400, 2900, 3001)):
            i.stop()
            self.reboot(i, passed)
            i.start()
            instance, rows = listed(i)
            for left in (rows[1]["left"], rows[2]["load_left"], instance["count_left"]):
                self.assertTrue(least < left <= most, (passed, left))
            wait(lambda: "00000000-1111" not in (i.base / "by-hand").read_text(), what="times of this boot")
        i.stop()
        self.reboot(i, 7200)
        i.start()
        instance, rows = listed(i)
        self.assertEqual((rows[1]["state"], rows[2]["load_by_hand"], instance["count_by_hand"]), ("open", False, 0))
        wait(lambda: not (i.base / "by-hand").exists(), what="what is over goes")
        i.stop()

    @cost(8)
    def test_a_count_that_was_reached_over_a_restart(self):
        """No load changes the number of queues; what is set for the third waits for it."""
        i = self.running(queues=1, conf={"queue_max": 4})
        i.numbers = [1, 2, 3, 4]
        self.granted(i, "--count", "3")
        wait(lambda: listed(i)[0]["open"] == 3, what="three queues")
        self.granted(i, "-q", "3", "50", "--for", "1h")
        i.stop()
        i.start()
        wait(lambda: listed(i)[0]["open"] == 3, what="three queues again")
        self.assertEqual(listed(i)[1][3]["load"], 50)
        self.granted(i, "--count", "1")
        wait(lambda: len(listed(i)[1]) == 1, what="one queue")
        wait(lambda: not (i.base / "by-hand").exists(), what="as without a count")
        i.stop()
        i.start()
        self.assertEqual(len(listed(i)[1]), 1)
        i.stop()

    @cost(8)
    def test_set_over_kills(self):
        """What was answered is in force after a kill at any moment, what was not is so or not."""
        i = self.running(queues=2)
        for turn in range(6):
            self.granted(i, "--disable", "-q", "2", "--reason", f"turn {turn}")
            self.granted(i, "-q", "1", str(turn), "--for", "1h")
            asker = subprocess.Popen([BIN / "setqload", "-i", i.name, "-q", "1", "99", "--for", "1h"],
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=i.environment())
            if turn % 2:
                asker.stdout.read(1)
            i.kill()
            answered = asker.communicate()[0].startswith(b"queue" if turn % 2 == 0 else b"ueue")
            wait(lambda: not i.pids(), what="the children's end")
            i.start()
            rows = listed(i)[1]
            self.assertEqual((rows[2]["state"], rows[2]["reason"]), ("disabled", f"turn {turn}"))
            self.assertIn(rows[1]["load"], [99] if answered else [turn, 99])
        self.assertEqual([p.name for p in i.base.glob("by-hand.aside*")], [])
        i.stop()

    def test_a_damaged_file_is_told(self):
        """Nothing is set by hand then; the file is kept, and what is set later survives."""
        i = self.running(queues=2)
        self.granted(i, "--disable", "-q", "1")
        path = i.base / "by-hand"
        for number in (1, 2):
            i.stop()
            damaged = path.read_bytes()[:-4]
            path.write_bytes(damaged)
            i.start()
            self.assertTrue(i.log_has(rf"error: ALERT: .*/by-hand:\d+: cut off: nothing is set by hand; "
                                      rf"the file is kept as by-hand\.aside-{number}"), i.log())
            self.assertEqual((i.base / f"by-hand.aside-{number}").read_bytes(), damaged)
            self.assertEqual(listed(i)[1][1]["state"], "open")
            self.granted(i, "--disable", "-q", "1")
        i.stop()
        i.start()
        self.assertEqual(listed(i)[1][1]["state"], "disabled")
        i.stop()

    def test_quarantined_is_tried_at_once(self):
        """The reason is shown, and --enable does not wait."""
        i = self.instance(queues=2, conf={"restart_delay_max": "1s", "program_dir": None})
        programs = i.dir / "programs.d"
        programs.mkdir()
        for program in BIN.iterdir():
            (programs / program.name).symlink_to(program)
        stop = i.dir / "fail"
        sender = programs / "todo-proc"
        sender.unlink()
        sender.write_text(f'#!/bin/sh\nif [ -e {stop} ]; then exit 3; fi\n'
                          f'exec {BIN}/todo-proc "$@"\n')
        sender.chmod(0o755)
        i.write_conf(program_dir=programs)
        i.start()
        stop.write_text("")
        pid = [p for p in i.pids("todo-proc")
               if b"2" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes().split(b"\0")][0]
        os.kill(pid, 9)
        wait(lambda: listed(i)[1][2]["state"] == "quarantined" and listed(i)[1][2]["left"] is not None,
             what="quarantine")
        self.assertRegex(ask(i, "--list").stdout, r"queue 2: quarantined, tried again in \d+\w: todo-proc")
        stop.unlink()
        self.assertIn("tried again ", self.granted(i, "--enable", "-q", "2"))
        wait(lambda: listed(i)[1][2]["state"] == "open", what="an open queue")
        i.stop()

    @cost(10)
    def test_I8_what_was_called_failed_does_not_happen_later(self):
        """mutation: unwrap() of common/ipc/ask.c does not look at the time."""
        i = self.running()
        i.process.send_signal(signal.SIGSTOP)
        done = subprocess.run([BIN / "setqload", "-c", i.conf_file, "--disable", "-q", "2"], capture_output=True,
                              text=True, check=False, timeout=HANG, env=i.environment())
        i.process.send_signal(signal.SIGCONT)
        self.assertEqual(done.returncode, 75, done.stderr)
        wait(lambda: i.log_has("a request of setqload came too late: dropped"), what="the end of the request")
        self.assertFalse(i.log_has("queue 2: disabled"))
        self.assertFalse((i.base / "by-hand").exists())
        i.stop()

    def test_I8_objects_that_were_taken_away_are_there_soon(self):
        """mutation: on_tick() without publish_tick() and requests_tick()."""
        i = self.running()
        os.unlink(f"/dev/shm/{i.name}.qscheduler")
        ctypes.CDLL(None).mq_unlink(f"/{i.name}.qscheduler".encode())

        def heard():
            return subprocess.run([BIN / "setqload", "-c", i.conf_file, "-q", "1", "50"], capture_output=True,
                                  check=False, timeout=HANG, env=i.environment()).returncode == 0
        wait(heard, 15, "an answer")  # one look a second; a minute before
        i.stop()

    @cost(8)
    def test_count_up_and_down(self):
        i = self.running(queues=1, conf={"queue_max": 3, "queue_change_interval": "1s"})
        i.numbers = [1, 2, 3]
        self.granted(i, "--count", "3", "--for", "1h")
        wait(lambda: listed(i)[0]["open"] == 3, what="three queues")
        self.assertEqual(listed(i)[0]["count_by_hand"], 3)
        self.assertIn("3 queues wanted by hand for", ask(i, "--list").stdout)
        self.assertIn("last change", ask(i, "--list").stdout)
        self.granted(i, "--count", "1")
        wait(lambda: len(listed(i)[1]) == 1, what="one queue")
        i.stop()

    def test_garbage_on_the_message_queue(self):
        """Of every length, while requests come: counted, and nothing else."""
        i = self.running(queues=2)
        mq = librt.mq_open(f"/{i.name}.qscheduler".encode(), os.O_WRONLY)
        self.assertGreaterEqual(mq, 0)
        before = len(i.log())
        for length in range(65):
            data = os.urandom(length)
            self.assertEqual(librt.mq_send(mq, data, length, 0), 0)
        os.close(mq)
        self.granted(i, "-q", "1", "45")
        wait(lambda: bad_requests(i) == 65, what="all are counted")
        self.assertLess(len(i.log()) - before, 1000, "a flood")
        self.assertEqual([r["state"] for r in listed(i)[1].values()], ["open"] * 2)
        i.stop()
