"""Settings by hand, and who may make them."""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess

from case import SystemTest, cost, needs_root
from instance import BIN, wait

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
    return subprocess.run([path, "-i", i.name, *words], capture_output=True, text=True, check=False,
                          timeout=20, env=i.environment() | {"TERM": "dumb"}, **who)


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
        wait(lambda: not listed(i)[1][2]["load_by_hand"], 5, "the second is over")
        self.assertTrue(listed(i)[1][1]["load_by_hand"])
        self.assertEqual(self.granted(i, "--clear"), "loads by hand cleared: 1\n")
        self.assertFalse(listed(i)[1][1]["load_by_hand"])
        i.stop()

    def test_refused_at_once(self):
        """By the command itself: nothing is asked."""
        i = self.running(queues=1)
        for words in (["-q", "-1", "50/100"], ["-q", "99999", "50"], ["-q", "4294967297", "50"],
                      ["-q", "1", "1/0"], ["-q", "1", "50", "--for", "0"],
                      ["-q", "1", "50", "--for", "-1"], ["--disable"], ["--bad"], [],
                      ["--disable", "-q", "1", "--reason", "\033[2J"],
                      ["--disable", "-q", "1", "--reason", "x" * 96],
                      ["--count", "0"], ["--count", "-1"], ["--count", "257"]):
            self.refused(i, 64, *words)
        self.assertEqual(bad_requests(i), 0)
        i.stop()

    def test_refused_by_the_supervisor(self):
        i = self.running(queues=2, conf={"queue_max": 4})
        for words in (["-q", "9", "45"], ["--clear", "-q", "9"], ["--disable", "-q", "9"],
                      ["--enable", "-q", "9"], ["--count", "1"], ["--count", "5"]):
            self.refused(i, 65, *words)
        wait(lambda: bad_requests(i) == 6, 5, "six are counted")
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

    def test_disabled_over_a_restart(self):
        """With the rest of its time; a load does not survive."""
        i = self.running(queues=3)
        self.granted(i, "--disable", "-q", "1", "--for", "1h", "--reason", "new disk")
        self.granted(i, "--disable", "-q", "2", "--for", "1s")
        self.granted(i, "-q", "3", "50", "--for", "1h")
        i.stop()
        i.start()
        rows = listed(i)[1]
        self.assertEqual((rows[1]["state"], rows[1]["reason"]), ("disabled", "new disk"))
        self.assertEqual(i.page(1)["disabled"], 1)
        self.assertTrue(3500 < rows[1]["left"] <= 3601, rows[1])
        self.assertFalse(rows[3]["load_by_hand"])
        wait(lambda: listed(i)[1][2]["state"] == "open", 5, "its second is over")
        self.granted(i, "--enable", "-q", "1")
        self.assertFalse((i.base / "by-hand").exists())
        i.stop()

    def test_disabled_over_a_kill(self):
        i = self.running(queues=2)
        self.granted(i, "--disable", "-q", "2")
        i.kill()
        wait(lambda: not i.pids(), 20, "the children's end")
        i.start()
        self.assertEqual(listed(i)[1][2]["state"], "disabled")
        i.stop()

    def test_a_damaged_file_is_told(self):
        i = self.running(queues=1)
        self.granted(i, "--disable", "-q", "1")
        i.stop()
        path = i.base / "by-hand"
        path.write_text(path.read_text().replace("end\n", ""))
        i.start()
        self.assertTrue(i.log_has(r"warning: .*/by-hand:2: cut off: ignored"), i.log())
        self.assertEqual(listed(i)[1][1]["state"], "open")
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
             20, "quarantine")
        self.assertRegex(ask(i, "--list").stdout, r"queue 2: quarantined, tried again in \d+\w: todo-proc")
        stop.unlink()
        self.assertIn("tried again ", self.granted(i, "--enable", "-q", "2"))
        wait(lambda: listed(i)[1][2]["state"] == "open", 10, "an open queue")
        i.stop()

    @cost(10)
    def test_I8_what_was_called_failed_does_not_happen_later(self):
        """mutation: unwrap() of common/ipc/ask.c does not look at the time."""
        i = self.running()
        i.process.send_signal(signal.SIGSTOP)
        done = subprocess.run([BIN / "setqload", "-c", i.conf_file, "--disable", "-q", "2"], capture_output=True,
                              text=True, check=False, timeout=30, env=i.environment())
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
                                  check=False, timeout=30, env=i.environment()).returncode == 0
        wait(heard, 15, "an answer")  # one look a second; a minute before
        i.stop()

    @cost(8)
    def test_count_up_and_down(self):
        i = self.running(queues=1, conf={"queue_max": 3, "queue_change_interval": "1s"})
        i.numbers = [1, 2, 3]
        self.granted(i, "--count", "3", "--for", "1h")
        wait(lambda: listed(i)[0]["open"] == 3, 20, "three queues")
        self.assertEqual(listed(i)[0]["count_by_hand"], 3)
        self.assertIn("3 queues wanted by hand for", ask(i, "--list").stdout)
        self.assertIn("last change", ask(i, "--list").stdout)
        self.granted(i, "--count", "1")
        wait(lambda: len(listed(i)[1]) == 1, 20, "one queue")
        i.stop()

    def test_garbage_on_the_message_queue(self):
        """Of every length, while requests come: counted, and nothing else."""
        i = self.running(queues=2)
        mq = librt.mq_open(f"/{i.name}.qscheduler".encode(), os.O_WRONLY)
        self.assertGreaterEqual(mq, 0)
        before = len(i.log())
        for length in range(257):
            data = os.urandom(length)
            self.assertEqual(librt.mq_send(mq, data, length, 0), 0)
        os.close(mq)
        self.granted(i, "-q", "1", "45")
        wait(lambda: bad_requests(i) == 257, 5, "all are counted")
        self.assertLess(len(i.log()) - before, 1000, "a flood")
        self.assertEqual([r["state"] for r in listed(i)[1].values()], ["open"] * 2)
        i.stop()
