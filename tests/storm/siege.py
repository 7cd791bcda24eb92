"""Eight hostile users beside two honest ones: what becomes of the honest
ones' mail, and what the hostile ones achieve."""
import random
import shutil
import subprocess
import threading
import time

import account
from acts import Acts
from hanging import Hanging
from hostile import ALL, Hostile
from hostile_user import SILENT_NAMES
from instance import Failed, wait
from namespace import HONEST, HOSTILE, homes_made, mount, users_known
from submit import Honest
from weather import Log, Storm
from world import Collector, Servers, World

WANTED = 5.0  # seconds, for the 99th percentile
HANGING = ("mallory7", "mallory8")  # their maildirs never answer
AT_ONCE = 2  # behaviours of one user
# Shares of eight users that fit on the disk together.
SHARES = {"user_size_limit": "64m", "user_inode_limit": "5000"}
SETTINGS = {
    "maildir_path": "%h/Maildir/", "minimal_backoff_time": "10s", "maximal_backoff_time": "60s",
    "local_process_limit": None, "smtp_process_limit": None, "heartbeat_time_limit": None,
    "queue_minfree_bytes": None, "queue_minfree_inodes": None, "command_time_limit": None,
    "queue_max": 4, "stop_time_limit": "10s", "restart_delay_max": None, "quarantine_delay_max": None,
    "scan_interval": None, "in_flow_delay": None, "message_size_limit": None,
}


class Pair(Honest):
    """alice writes to bob, and bob to alice; each second message goes to a server."""
    places = ("local", "ok")

    def __init__(self, world, ledger, seed, name):
        super().__init__(world, ledger, seed, name, [HONEST[name]])
        self.recipients = [n for n in HONEST if n != name]
        self.pause = 0.5


class Siege(Storm):
    def build(self):
        home = self.scratch / "home"
        users_known(self.scratch, home)
        home.mkdir()
        mount("tmpfs", home, "-o", "mode=755,size=512m")
        homes_made(home)
        for name in HONEST:  # who does not lose its space to others
            uid = HONEST[name]
            mount("tmpfs", home / name, "-o", f"mode=700,size=128m,uid={uid},gid={uid}")
        self.hanging = []
        for name in HANGING:
            (home / name / "Maildir").mkdir()
            self.hanging.append(Hanging(home / name / "Maildir", HOSTILE[name]))
        self.servers = Servers(self.ledger, self.seed, [])
        disk = self.disk()
        base, crowd, box = disk / "queue", self.scratch / "crowd", disk / "box"
        base.mkdir()
        box.mkdir()
        shutil.chown(box, "nobody")
        crowd.write_text("".join(f"x{n}@dead.example\n" for n in range(50)))
        shares = SHARES if (self.scratch / "build/queue-drop").exists() else {}
        silent = "".join(f"silent{n}.example smtp:127.0.0.1:{self.servers.ports['mute']}\n" for n in range(SILENT_NAMES))
        self.world = World(self.ledger, self.scratch, self.servers, base, SETTINGS | shares, f"{silent}* smtp\n",
                           aliases=f"crowd: :include:{crowd}\nroot: {box}/root\n")
        self.log = Log(self.out / "log", self.ledger)
        self.world.log_to = self.log.writer
        self.submitters = [Pair(self.world, self.ledger, self.seed, name) for name in HONEST]
        self.honest = self.submitters.pop()
        self.names = [n for n in self.given.behaviours.split(",") if n] or ALL
        self.hostile = Hostile(self.world, home, self.seed, HANGING, self.names)
        self.acts = Acts(self.world, self.ledger, self.submitters, self.hostile)
        self.collector = Collector(self.world, self.ledger, [f"{home}/{n}/Maildir" for n in HONEST])

    def disk(self):
        """The queues and root's mailbox lie on one file system, as on a small host."""
        image, where = self.scratch / "disk", self.scratch / "var"
        with open(image, "wb") as f:
            f.truncate(1 << 30)
        subprocess.run(["mkfs.ext4", "-q", "-N", "100000", image], check=True)
        where.mkdir()
        subprocess.run(["mount", "-o", "loop", image, where], check=True)
        return where

    def blow(self):
        """Each user has two behaviours at a time, and in the end had each."""
        end = time.monotonic() + self.seconds
        turn = max(4.0, self.seconds / (2 * len(self.names))) if len(self.names) > 1 else 2 * self.seconds
        threads = [threading.Thread(target=self.user, args=(n, end, turn)) for n in range(len(HOSTILE) * AT_ONCE)]
        for thread in threads:
            thread.start()
        if "memory" in self.names:
            threads.append(threading.Timer(self.seconds / 2, self.restart))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def restart(self):
        """A start makes its objects in /dev/shm anew, so one comes in the middle of the attack."""
        status = self.world.end(60)
        self.world.resume()
        if status != 0:
            self.problems.append(f"the stop beside a full /dev/shm: exit {status}")

    def user(self, number, end, turn):
        dice = random.Random(f"{self.seed} siege {number}")
        order = list(range(len(self.names)))
        dice.shuffle(order)
        at = 0
        while time.monotonic() < end:
            what = order[at % len(order)]
            at += 1
            handle, name = self.hostile.start(number % len(HOSTILE), (what + 0.5) / len(self.names))
            time.sleep(max(0.0, min(turn * dice.uniform(0.7, 1.3), end - time.monotonic())))
            self.hostile.end(handle)
            self.count[name] += 1

    def drain(self):
        self.notes.append(f"{sum(h.waiting for h in self.hanging)} requests to maildirs that never answer")
        for hanging in self.hanging:
            hanging.close()
        for uid in HOSTILE.values():
            Hostile.kill_all(uid)
        for submitter in [*self.submitters, self.honest]:
            submitter.stop()
        for submitter in [*self.submitters, self.honest]:
            if not submitter.join(60):
                self.problems.append("an honest submitter did not end within 60 s")
                submitter.kill()
        try:
            wait(lambda: not self.ledger.pending(), 60, "the honest ones' mail")
        except Failed as error:
            self.problems.append(str(error))

    def quiet(self):
        status = self.world.end(60)
        if status != 0:
            self.problems.append(f"the last stop: {'not within 60 s' if status is None else f'exit {status}'}")
        self.world.give_up()

    def report(self):
        failed = super().report()
        whole = []
        for number in self.ledger.honest:
            s = self.ledger.submissions[number]
            good = s.state == account.ACCEPTED and s.counts[0]
            whole.append(s.took + max(0.0, s.first[0] - s.ended) if good else float("inf"))
        figures = account.percentiles(whole)
        unserved = whole.count(float("inf"))
        if unserved:
            failed = 1
            print(f"{self.place}: FAILED honest mail that was refused or not delivered: {unserved} of {len(whole)}")
        print(f"{self.place}: honest mail, from submission to maildir ({len(whole)}): "
              + ", ".join(f"{w} {v:.2f} s" for w, v in figures.items()))
        if not self.given.relaxed and figures.get("p99", float("inf")) > WANTED:
            failed = 1
            print(f"{self.place}: FAILED the 99th percentile is above {WANTED:.0f} s")
        return failed
