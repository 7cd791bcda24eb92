"""A queue that ends hands its mail over, and nothing that is missing or closed
refuses anybody's mail."""
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess

from case import SystemTest, cost
from instance import AS_ROOT, BIN, _librt, wait
from smtp_site import Site

HELLO = b"Subject: hello\n\nhello\n"
# The queue ends at once; deferred mail stays deferred.
ENDING = {"queue_count": 1, "queue_max": 3, "queue_drain_time": "0s", "restart_delay_max": "1s",
          "minimal_backoff_time": "1h", "maximal_backoff_time": "2h"}


class Handover(SystemTest):
    def silent_port(self):
        """A port where nothing listens, and nothing else can."""
        s = socket.socket()
        s.bind(("127.0.0.1", 0))
        self.addCleanup(s.close)
        return s.getsockname()[1]

    def two_queues(self, port, **conf):
        """Queue 2 is one by hand; without it everything is queue 1's."""
        i = self.instance(
            queues=1, conf=ENDING | conf,
            routing=f"later.example smtp:127.0.0.1:{port}\n"
                    f"held.example smtp:127.0.0.1:{port}\n* local\n")
        i.numbers = [1, 2]
        i.start()
        self.count(i, 2)
        i.wait_open(1, 2)
        return i

    def count(self, i, number):
        done = subprocess.run([BIN / "setqload", "-c", i.conf_file, "--count", str(number)],
                              capture_output=True, text=True, env=i.environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    @staticmethod
    def process_of(i, queue, program="queue-send"):
        for pid in i.pids(program):
            with contextlib.suppress(OSError):
                if f"\0{queue}\0".encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
        return None

    @staticmethod
    def gone(i, queue):
        return not os.path.exists(f"/dev/shm/{i.name}.queue{queue}")

    @staticmethod
    def of(i, queue, state):
        return {p.name: p for p in i.files(state) if p.is_relative_to(i.queue(queue))}

    def hold(self, i, domain):
        """What an operator does to deferred mail for a domain: hold/, with its reasons, and the scheduler
        told by a restart."""
        i.stop()
        for message in i.files("deferred"):
            if f"@{domain}".encode() not in message.read_bytes():
                continue
            queue, split = message.parents[2], message.parent.name
            message.rename(queue / "hold" / message.name)
            (queue / "defer" / split / message.name).rename(queue / "bounce" / split / message.name)
        i.start()
        wait(lambda: self.process_of(i, 2), what="queue 2 again")

    def fill(self, i, messages, *domains):
        """Mail that stays, in both queues."""
        for n in range(messages):
            for domain in domains:
                i.inject(HELLO, f"u{n}@{domain}")
        wait(lambda: not i.files("incoming", "active"), what="the first attempts")
        self.assertEqual(len(i.files("deferred", "hold")), messages * len(domains))
        self.assertTrue(self.of(i, 2, "deferred"))

    def deliver_all(self, i, messages):
        """Deferred mail goes to maildirs: each message once."""
        i.routing_file.write_text("* local\n")
        i.reload()
        wait(lambda: i.log_has("configuration reloaded"), what="the new routing")
        i.flush()
        i.wait_empty()
        for n in range(messages):
            self.assertEqual(len(i.maildir(f"u{n}")), 1, f"u{n}")

    def test_deferred_and_held_mail_goes_with_its_reasons_and_due_times(self):
        i = self.two_queues(self.silent_port())
        self.fill(i, 10, "later.example", "held.example")
        self.hold(i, "held.example")
        self.assertTrue(self.of(i, 2, "hold"))
        due = {n: p.stat().st_mtime_ns for n, p in self.of(i, 2, "defer").items()}
        why = {n: p.read_text() for n, p in self.of(i, 2, "bounce").items()}
        held = {n: p.read_bytes() for n, p in self.of(i, 2, "hold").items()}
        self.count(i, 1)
        wait(lambda: self.gone(i, 2), what="the end of queue 2")
        here = self.of(i, 1, "defer")
        self.assertEqual({n: here[n].stat().st_mtime_ns for n in due}, due)
        self.assertLessEqual(set(due), set(self.of(i, 1, "deferred")))
        here = self.of(i, 1, "bounce")
        self.assertEqual({n: here[n].read_text() for n in why}, why)
        here = self.of(i, 1, "hold")
        self.assertEqual({n: here[n].read_bytes() for n in held}, held)
        self.assertEqual([p for p in i.files() if p.is_relative_to(i.queue(2))], [])
        wait(lambda: i.page(1)["deferred"] == 10 and i.page(1)["hold"] == 10,
             what="queue 1 knows what it got")
        self.deliver_all(i, 10)
        i.stop()

    @cost(15)
    def test_P1_queue_send_is_killed_while_it_hands_over(self):
        i = self.two_queues(self.silent_port())
        self.fill(i, 60, "later.example")
        dice = random.Random(4)
        self.count(i, 1)
        kills = 0
        while not self.gone(i, 2):
            pid = self.process_of(i, 2)
            if pid is not None and kills < 5 and dice.randrange(3) == 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                kills += 1
        self.assertEqual(len(self.of(i, 1, "deferred")), 60)
        self.deliver_all(i, 60)
        i.stop()
        self.assertEqual(i.files(), [])

    def test_deliveries_that_run_end_first_and_those_that_wait_go_on_elsewhere(self):
        site = Site(hold=True)
        self.addCleanup(site.stop)
        i = self.two_queues(site.port, smtp_process_limit=1)
        for n in range(20):
            i.inject(HELLO, f"u{n}@later.example")
        wait(lambda: i.page(1)["remote_used"] == 1 and i.page(2)["remote_used"] == 1,
             what="a delivery in each queue")
        self.count(i, 1)
        wait(lambda: len(self.of(i, 2, "active")) == 1 and not self.of(i, 2, "incoming"),
             what="all but what is delivered is in queue 1")
        self.assertFalse(self.gone(i, 2))
        site.release(hold=False)
        wait(lambda: self.gone(i, 2), what="the end of queue 2")
        i.wait_empty()
        told = sorted(rcpt for _, rcpts in site.deliveries for rcpt in rcpts)
        self.assertEqual(told, sorted(f"u{n}@later.example" for n in range(20)), "each once")
        i.stop()

    def test_D21_two_queues_hold_the_same_message(self):
        """A restored backup: put in again it has an id of its own, and so it is
        delivered; under the old name, which is not its inode, it is not."""
        i = self.two_queues(self.silent_port(), log_level="debug")
        i.inject(HELLO, "u0@later.example")
        [here] = wait(lambda: i.files("deferred"), what="it is deferred")
        where = 1 if here.is_relative_to(i.queue(1)) else 2
        other = i.queue(3 - where)
        fresh = i.dir / "fresh"
        shutil.copy2(here, fresh)
        fresh.chmod(here.stat().st_mode)
        if AS_ROOT:
            os.chown(fresh, here.stat().st_uid, here.stat().st_gid)
        split = len(os.listdir(other / "incoming"))
        old = other / f"incoming/{int(here.name) % split}/{here.name}"
        subprocess.run(["cp", "-p", fresh, old], check=True)
        inode = fresh.stat().st_ino
        fresh.rename(other / f"incoming/{inode % split}/{inode}")
        i.routing_file.write_text("* local\n")
        i.reload()
        wait(lambda: i.log().count("configuration reloaded") == 1 + 2 * 4, what="all have the new routes")
        i.flush()
        i.wait_delivered("u0", 2)
        i.wait_empty()
        self.assertEqual(len(i.maildir("u0")), 2)
        ids = re.findall(r": ([0-9A-F]+): to=<u0@later.example>.*status=sent", i.log())
        self.assertEqual(len(set(ids)), 2, ids)
        self.assertEqual([p.name for p in i.files("corrupt")], [here.name])
        i.stop()

    def test_one_missing_queue_does_not_make_every_submission_fail(self):
        """The page, the bell, the directory of one queue; its mark; all of it."""
        i = self.running(queues=3)
        wait(lambda: i.page(2)["queue"] == 2, what="its page")
        page = f"/dev/shm/{i.name}.queue2"
        breaks = (
            lambda: os.unlink(page),
            lambda: _librt.mq_unlink(f"/{i.name}.queue2".encode()),
            lambda: (i.queue(2) / "closed").touch(),
            lambda: (i.queue(2) / "queue").rename(i.dir / "marker"),
            lambda: i.queue(2).rename(i.dir / "away"),
        )
        for n, break_it in enumerate(breaks):
            break_it()
            for m in range(6):
                i.inject(HELLO, f"n{n}m{m}@test.example")
            for m in range(6):
                i.wait_delivered(f"n{n}m{m}", 1)
        (i.dir / "away").rename(i.queue(2))
        (i.dir / "marker").rename(i.queue(2) / "queue")
        (i.queue(2) / "closed").unlink(missing_ok=True)  # a look may have been there first
        i.stop()


class Deadly(Site):
    """The agent that brings it mail for `bad` dies of that."""
    kill = None

    def take(self, client):
        if any(r.startswith("bad") for r in client.rcpts):
            self.kill()
        else:
            super().take(client)


class Poison(SystemTest):
    def test_P15_C7_a_message_that_agents_die_of_is_put_aside(self):
        site = Deadly(service=0.1)
        self.addCleanup(site.stop)
        i = self.instance(queues=1, routing=f"* smtp:127.0.0.1:{site.port}\n",
                          conf={"restart_delay_max": "1s"}).start()

        def kill():
            for pid in i.pids("deliver-smtp"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        site.kill = kill
        innocent = [f"u{n}@x.example" for n in range(25)]
        for n, rcpt in enumerate(innocent):
            i.inject(HELLO, rcpt)
            if n == 5:
                i.inject(HELLO, "bad@x.example")
        wait(lambda: i.log_has("quarantined: [0-9] agents died while delivering it"), what="quarantine")
        i.wait_empty()
        told = {rcpt for _, rcpts in site.deliveries for rcpt in rcpts}
        self.assertEqual(told, set(innocent), "all others were delivered")
        [held] = i.files("hold")
        self.assertIn(b"bad@x.example", held.read_bytes())
        [why] = i.files("bounce")
        self.assertEqual(why.name, held.name)
        self.assertIn("agents died while delivering it", why.read_text())
        i.stop()
