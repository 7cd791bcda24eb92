"""Waiting mail of full queues goes to queues with room (qctl spread)."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

from case import cost
from instance import BIN, HANG, wait
from test_qctl import HELLO, LATER, Queues
from test_setqload import ask, listed


class Spread(Queues):
    def setload(self, i, *words):
        done = ask(i, *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def in_queue_1(self, count, **conf):
        """An instance of two queues; so many messages that wait, all in queue 1."""
        i = self.instance(queues=2, routing=LATER, conf={
            "minimal_backoff_time": "1h", "maximal_backoff_time": "1h"} | conf)
        i.start()
        self.setload(i, "--disable", "-q", "2")
        for n in range(count):
            i.inject(HELLO, f"r{n}@later.example", sender=f"s{n}@test.example")
        wait(lambda: i.page(1)["deferred"] == count and not i.files("incoming", "active"), what="all deferred")
        self.setload(i, "--enable", "-q", "2")
        self.setload(i, "-q", "1", "100/100", "--for", "1h")
        return i

    @staticmethod
    def lies_in(i, number):
        return {p.name for p in i.files("incoming", "active", "deferred") if p.is_relative_to(i.queue(number))}

    def plan(self, i, *words):
        done = self.call(i, "spread", *words, "--dry-run")
        return int(re.match(r"would spread (\d+) messages?\n", done.stdout).group(1)), done.stderr

    def deliver_all(self, i, count):
        i.routing_file.write_text("* local\n")
        i.reload()
        wait(lambda: i.log_has("reloaded"), what="the reload")
        i.flush()
        i.wait_empty()
        for n in range(count):
            self.assertEqual(len(i.maildir(f"r{n}")), 1, f"r{n}: once")

    def test_half_of_it_goes_with_its_ids_reasons_and_due_times(self):
        i = self.in_queue_1(11)
        wait(lambda: self.plan(i, "ALL")[0] == 5, what="queue 1 is known to be full")
        self.assertIn("queue 1 to queue 2: 5\n", self.plan(i, "ALL")[1])
        self.assertEqual(self.lies_in(i, 2), set(), "nothing was done")
        before = {row["queue_id"]: row for row in self.rows(i)}
        due = {p.name: p.stat().st_mtime_ns for p in i.files("defer")}
        said = self.call(i, "spread", "ALL").stderr
        self.assertIn("qctl: Spread: 5 messages\n", said)
        self.assertIn("6 messages stay: no open queue has room and less mail", said)
        self.assertEqual((len(self.lies_in(i, 1)), len(self.lies_in(i, 2))), (6, 5))
        after = {row["queue_id"]: row for row in self.rows(i)}
        self.assertEqual(sorted(before), sorted(after))
        self.assertEqual(sorted(row["queue"] for row in after.values()), [1] * 6 + [2] * 5)
        for id, row in after.items():
            self.assertEqual(row | {"queue": 1}, before[id] | {"queue": 1})
        self.assertEqual({p.name: p.stat().st_mtime_ns for p in i.files("defer")}, due)
        wait(lambda: i.page(1)["deferred"] == 6 and i.page(2)["deferred"] == 5, what="both know what they have")
        self.assertIn("Spread: 0 messages", self.call(i, "spread", "ALL").stderr, "level: nothing more to do")
        self.assertRegex(i.log(), r"queue-send/1: .*operator uid=\d+: spread 5 messages \(spread ALL\)")
        self.deliver_all(i, 11)
        i.stop()

    def test_what_is_not_full_stays_and_what_has_no_room_takes_nothing(self):
        i = self.in_queue_1(4)
        wait(lambda: self.plan(i, "ALL")[0] == 2, what="queue 1 is known to be full")
        self.setload(i, "-q", "2", "100/100", "--for", "1h")
        wait(lambda: self.plan(i, "ALL")[0] == 0, what="queue 2 is full, too")
        self.setload(i, "-q", "2", "--clear")
        wait(lambda: self.plan(i, "ALL")[0] == 2, what="queue 2 has room")
        self.setload(i, "--disable", "-q", "2")
        wait(lambda: self.plan(i, "ALL")[0] == 0, what="queue 2 is not open")
        self.setload(i, "--enable", "-q", "2")
        self.setload(i, "-q", "1", "--clear")
        wait(lambda: self.plan(i, "ALL") == (0, "qctl: 4 messages stay: the queue is not full\n"), what="no load")
        # Out of use: all of it, where it is named.
        self.setload(i, "--disable", "-q", "1")
        wait(lambda: self.plan(i, "queue=1")[0] == 4, what="queue 1 is out of use")
        self.assertEqual(self.plan(i, "ALL")[0], 0)
        self.assertIn("Spread: 1 message\n", self.call(i, "spread", "queue=1", "sender=s2@*").stderr)
        self.assertEqual([row["sender"] for row in self.rows(i, "queue=2")], ["s2@test.example"])
        i.stop()
        said = self.call(i, "spread", "ALL", status=69).stderr
        self.assertIn("no supervisor of this instance is running", said)
        self.assertEqual(len(self.lies_in(i, 1)), 3)

    def spread_alone(self, i):
        """While the supervisor stands still; its page is believed for some seconds."""
        os.kill(i.process.pid, signal.SIGSTOP)
        try:
            done = subprocess.run([BIN / "qctl", "spread", "ALL"], capture_output=True, text=True, check=False,
                                  env=i.environment())
            if done.returncode == 69:
                return False
            self.assertIn("Spread: 2 messages\n", done.stderr)
            wait(lambda: i.page(2)["deferred"] == 2, what="queue 2 knows what it got")
            return True
        finally:
            os.kill(i.process.pid, signal.SIGCONT)

    def test_the_other_queue_is_told_without_the_supervisor(self):
        """As when the queue-send that moved them dies before it has told anybody."""
        i = self.in_queue_1(4)
        wait(lambda: self.plan(i, "ALL")[0] == 2, what="queue 1 is known to be full")
        wait(lambda: self.spread_alone(i), what="a spread while the page is fresh")
        i.stop()

    def programs(self, i):
        """Programs as ever, but queue-send 1 ends at once while there is a file to say so."""
        programs, stop = i.dir / "programs.d", i.dir / "fail"
        programs.mkdir()
        for program in BIN.iterdir():
            (programs / program.name).symlink_to(program)
        sender = programs / "queue-send"
        sender.unlink()
        sender.write_text(f'#!/bin/sh\nif [ -e {stop} ]; then for a in "$@"; do [ "$a" = 1 ] && exit 3; done; fi\n'
                          f'exec {BIN}/queue-send "$@"\n')
        sender.chmod(0o755)
        i.write_conf(program_dir=programs)
        return stop

    @staticmethod
    def kill(i, queue=None, program="queue-send"):
        for pid in i.pids(program):
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if queue is None or str(queue).encode() in words:
                    os.kill(pid, signal.SIGKILL)

    @cost(15)
    def test_a_queue_that_does_not_run_gives_under_its_lock(self):
        i = self.in_queue_1(6, restart_delay_max="1s")
        i.stop()
        stop = self.programs(i)
        i.start()
        stop.write_text("")
        self.kill(i, 1)
        wait(lambda: listed(i)[1][1]["state"] == "quarantined", what="quarantine")
        wait(lambda: self.plan(i, "queue=1")[0] == 6, what="queue 2 is known to have room")
        self.assertEqual(self.plan(i, "ALL")[0], 0, "it is not named")
        self.assertIn("Spread: 6 messages", self.call(i, "spread", "queue=1").stderr)
        self.assertEqual((len(self.lies_in(i, 1)), len(self.lies_in(i, 2))), (0, 6))
        wait(lambda: i.page(2)["deferred"] == 6, what="queue 2 was told")
        self.deliver_all(i, 6)

    @staticmethod
    def is_whole(i, count):
        names = [p.name for p in i.files("incoming", "active", "deferred")]
        return len(names) == len(set(names)) == count

    @cost(20)
    def test_P1_kills_of_both_sides_lose_and_repeat_nothing(self):
        i = self.in_queue_1(80, restart_delay_max="1s")
        for n in range(8):
            full, other = (1, 2) if n % 2 == 0 else (2, 1)
            self.setload(i, "-q", str(other), "--clear")
            self.setload(i, "-q", str(full), "100/100", "--for", "1h")
            acting = subprocess.Popen([BIN / "qctl", "spread", "ALL"], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, env=i.environment())
            # Somewhere on its way: when something of it has been done, or it is over.
            have = self.lies_in(i, other)
            wait(lambda: acting.poll() is not None or self.lies_in(i, other) - have, what="the first moves")
            if n % 3 == 0:
                acting.kill()
            else:
                self.kill(i, full if n % 3 == 1 else None)
            acting.wait(HANG)
            wait(lambda: len(i.pids("queue-send")) == 2, what="both queues run")
            # Processes of a qctl that was killed may still move some, behind a look or before it.
            wait(lambda: self.is_whole(i, 80), what="each in one queue")
        self.assertTrue(self.lies_in(i, 2))
        wait(lambda: i.page(1)["deferred"] + i.page(2)["deferred"] == 80, what="all of it is known")
        self.deliver_all(i, 80)
        i.stop()
