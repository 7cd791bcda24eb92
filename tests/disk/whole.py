#!/usr/bin/python3
"""A whole instance on a disk whose power goes, on ext4, xfs and btrfs.

whole.py DISK_PROGRAM [KIND...]; CUTS in the environment: how many on each (2).
On ext4-nojournal, which is tried only if it is named, mail is lost, whatever a
program does: `qscheduler --check` warns of it.

Mail comes in by every door, is delivered to maildirs, deferred, held, and
handed over while queues come and go; then the power goes at any block write
(tests/disk/block.h), at some cuts twice more while the instance starts again.
After that it runs to the end, and each message that was acknowledged is looked
for by its identity: delivered to each recipient, or reported to its sender, whole;
delivered twice only where docs/SPOOL.md, "Power cuts", says so.
"""
import collections
import contextlib
import ctypes
import hashlib
import mmap
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/system"))
from instance import BIN, HANG, Instance, wait  # noqa: E402

CUTS = int(os.environ.get("CUTS", "2"))
INTERVAL = 1.0  # mark_sync_interval
# A sync, and what a busy machine takes to see that a maildir file is there.
SLACK = 2.0
LEAST = 100  # messages accepted before a cut: a busy machine takes longer
KINDS = ["ext4", "xfs", "btrfs"]
SIZES = {"ext4": 128, "xfs": 304, "btrfs": 256, "ext4-nojournal": 128}
MKFS = {"ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard"], "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
        "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
        "ext4-nojournal": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard", "-O", "^has_journal"]}
OPTIONS = {"xfs": ["-o", "nouuid"]}
CLONE_NEWNS = 0x00020000
FORGET_DEV = 0x50009405
NOBODY = 65534


class Wrong(Exception):
    """A power cut has done what it must not do."""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def fs_type(kind):
    return kind.partition("-")[0]


class Disk:
    """An image, its server, the loop device on it, the file system on that."""

    def __init__(self, program, top, kind):
        self.program, self.kind = program, kind
        self.image, self.where, self.control = top / "image", top / "block", top / "control"
        self.mounted = top / "mnt"
        self.mounted.mkdir()
        self.loop = self.server = None
        with open(self.image, "wb") as f:
            f.truncate(SIZES[kind] << 20)
        # mkfs.btrfs looks into every loop device, also one that hangs.
        run("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh", *MKFS[kind], self.image)

    def start(self):
        self.server = subprocess.Popen([self.program, "serve", self.image, self.where, self.control],
                                       stdout=subprocess.PIPE, text=True)
        if self.server.stdout.readline() != "ready\n":
            raise OSError("no disk: FUSE is not there")
        with open(self.control, "r+b") as f:
            self.page = mmap.mmap(f.fileno(), 4096)
        self.loop = run("losetup", "-f", "--show", self.where / "disk")
        if self.kind == "ext4-nojournal":  # as a host does that starts again; 1: mended
            subprocess.run(["e2fsck", "-fy", self.loop], capture_output=True, check=False)
        run("mount", "-t", fs_type(self.kind), *OPTIONS.get(self.kind, []), self.loop, self.mounted)

    def word(self, n):
        return struct.unpack_from("=Q", self.page, 8 * n)[0]

    def is_cut(self):
        return self.word(2) != 0

    def arm(self, writes, seed):
        struct.pack_into("=Q", self.page, 24, seed)
        struct.pack_into("=Q", self.page, 8, self.word(0) + writes)

    def wait_cut(self, limit):
        """False: nothing was written for so long; then it is cut as it is."""
        end = time.monotonic() + limit
        while not self.is_cut() and time.monotonic() < end:
            time.sleep(0.002)
        by_itself = self.is_cut()
        if not by_itself:
            self.arm(0, random.getrandbits(32))
            with open(self.where / "disk", "rb") as f, contextlib.suppress(OSError):
                os.fsync(f.fileno())
        return by_itself

    def stop(self):
        def unmounted(where):
            done = subprocess.run(["umount", where], capture_output=True, check=False)
            return done.returncode == 0 or b"not mounted" in done.stderr
        # xfs answers nothing any more, not even whether it is mounted.
        wait(lambda: unmounted(self.mounted), what="the end of the file system")
        if self.loop:
            run("losetup", "-d", self.loop)
            if self.kind == "btrfs":  # the kernel has seen a newer one
                with open("/dev/btrfs-control", "rb") as f, contextlib.suppress(OSError):
                    ioctl(f.fileno(), FORGET_DEV, self.loop)
            self.loop = None
        if self.server:
            # The loop device lets go of it when it likes.
            run("umount", "-l", self.where)
            self.server.wait(HANG)
            self.server.stdout.close()
            self.server = None


def ioctl(fd, request, path):
    import fcntl
    fcntl.ioctl(fd, request, bytearray(struct.pack("=q4088s", 0, path.encode())))


Sent = collections.namedtuple("Sent", "rcpts digest")


class Cut:
    def __init__(self, disk, top, dice, lying):
        self.disk, self.dice, self.lying = disk, dice, lying
        self.sent, self.lock, self.number = {}, threading.Lock(), 0
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        self.closed = closed  # nobody listens there, and nobody else can
        mail = disk.mounted / "mail"
        mail.mkdir(mode=0o755)
        self.i = Instance(queues=1, conf={
            "queue_base": disk.mounted / "queue", "queue_count": 1, "queue_max": 3, "queue_drain_time": "0s",
            "minimal_backoff_time": "1s", "maximal_backoff_time": "1s", "error_interval": "1s",
            "mark_sync_interval": f"{INTERVAL:.0f}s" if not lying else "5s",
            "maildir_path": f"{mail}/%u/", "process_memory_limit": "0"} | (
                {"program_dir": self.liar(top)} if lying else {}), routing=self.routing(closed.getsockname()[1]), aliases=self.aliases())
        shutil.rmtree(self.i.mail)
        self.i.mail, self.i.base = mail, disk.mounted / "queue"
        shutil.chown(mail, self.i.settings["maildir_user"])

    @staticmethod
    def routing(port):
        return f"later.example smtp:127.0.0.1:{port}\nnever.example error\n* local\n"

    @staticmethod
    def aliases():
        """uN of the list is two users, by way of another list with an owner."""
        return "".join(f"u{n}@list.example: both{n}, u{n}\nboth{n}: u{n}, v{n}\n" for n in range(3)) + "owner-both1: u9\n"

    @staticmethod
    def members(user, domain):
        return [user, user.replace("u", "v")] if domain == "list.example" else [user]

    def liar(self, top):
        """The programs, with a queue-send whose syncs do nothing."""
        lying = self.disk.program.parent / "lying.so"
        if not lying.exists():  # the loader would only warn
            raise FileNotFoundError(lying)
        place = top / "lying"
        place.mkdir(exist_ok=True)
        for name in os.listdir(BIN):
            (place / name).unlink(missing_ok=True)
            (place / name).symlink_to(BIN / name)
        (place / "queue-send").unlink()
        (place / "queue-send").write_text(
            f'#!/bin/sh\nLD_PRELOAD={lying} exec {BIN}/queue-send "$@"\n')
        (place / "queue-send").chmod(0o755)
        return place

    # ---- until the power goes ----

    def submit(self, uid):
        with self.lock:
            self.number += 1
            name = f"{self.number}"
            domains = self.dice.choice([["x"], ["x", "x"], ["x", "later"], ["x", "x", "never"], ["never"], ["later"],
                                        ["x", "later", "never"], ["list"], ["x", "list"], ["list", "later", "list"]])
            body = self.dice.randbytes(self.dice.choice([10, 3000, 20000])).hex()
        rcpts = [f"u{n}@{d}.example" for n, d in enumerate(domains)]
        text = f"Subject: cut\nX-Cut-Id: {name}.\n\n{body}\n".encode()
        try:
            done = self.i.inject(text, *rcpts, face="queue-inject", check=False, uid=uid)
        except OSError:
            return False
        if done.returncode == 0 and not self.disk.is_cut():
            with self.lock:
                self.sent[name] = Sent(rcpts, hashlib.sha256(body.encode()).digest())
        return done.returncode == 0

    def load(self, uid):
        while not self.disk.is_cut():
            if not self.submit(uid):
                time.sleep(0.01)

    def come_and_go(self):
        """Queues: so that mail is handed over."""
        count = 2
        while not self.disk.is_cut():
            subprocess.run([BIN / "setqload", "-c", self.i.conf_file, "--count", str(count)], capture_output=True,
                           env=self.i.environment(), check=False)
            count = 3 - count
            end = time.monotonic() + 0.7
            while time.monotonic() < end and not self.disk.is_cut():
                time.sleep(0.05)

    def kill(self):
        for pid in self.i.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        if self.i.process is not None:
            self.i.process.kill()
            self.i.process.wait()
            self.i.process = None
        wait(lambda: not self.i.pids(), what="the end of all processes")
        for name in os.listdir("/dev/shm"):
            if name.startswith(self.i.name + "."):
                os.unlink(f"/dev/shm/{name}")

    def until_cut(self):
        self.i.start(mode="-s")
        threads = [threading.Thread(target=self.load, args=(uid,)) for uid in (None, None, NOBODY)]
        threads.append(threading.Thread(target=self.come_and_go))
        for t in threads:
            t.start()
        end = time.monotonic() + self.dice.uniform(2.5, 4.5)
        while time.monotonic() < end or len(self.sent) < LEAST:
            time.sleep(0.05)
            if time.monotonic() > end + HANG:
                raise TimeoutError(f"{len(self.sent)} messages accepted in {HANG} s")
        self.disk.arm(self.dice.randrange(300), self.dice.getrandbits(32))
        self.disk.wait_cut(5)
        self.cut_at = time.time()
        for t in threads:
            t.join()
        self.kill()
        self.disk.stop()

    def cut_again(self):
        """While it recovers."""
        self.disk.start()
        self.disk.arm(self.dice.randrange(400), self.dice.getrandbits(32))
        with contextlib.suppress(Exception):
            self.i.start(mode="-s", ready=False)
        self.disk.wait_cut(2)
        self.kill()
        self.disk.stop()

    # ---- after it ----

    def delivered(self):
        """{(identity, user): [times]} of maildirs; each is whole."""
        found = collections.defaultdict(list)
        for path in self.i.mail.glob("*/new/*"):
            data = path.read_bytes()
            head, _, body = data.partition(b"\n\n")
            if b"multipart/report" in head:
                continue
            name = re.search(rb"X-Cut-Id: (\d+)\.", head)
            if name is None:
                raise Wrong(f"{path} is torn")
            name = name.group(1).decode()
            digest = hashlib.sha256(body.rstrip(b"\n")).digest()
            if name in self.sent and self.sent[name].digest != digest:
                raise Wrong(f"{path} is not what was sent")
            found[name, path.parts[-3]].append(path.stat().st_mtime)
        return found

    def queued(self, *states):
        """{identity: [(marks by user, path)]} of queue files."""
        found = collections.defaultdict(list)
        for path in self.i.files(*states):
            data = path.read_bytes()
            name = re.search(rb"X-Cut-Id: (\d+)\.", data)
            if name is not None:
                marks = re.findall(rb"R([.DF])..(u\d+)@(\w+)\.example", data, re.S)
                found[name.group(1).decode()].append(({u.decode(): (m.decode(), d.decode()) for m, u, d in marks}, path))
        return found

    def reported(self):
        """{(identity, user): reports} of failures that the sender was told of."""
        found = collections.Counter()
        for path in self.i.mail.glob("sender/new/*"):
            data = path.read_bytes()
            name = re.search(rb"X-Cut-Id: (\d+)\.", data)
            ends = re.search(rb'boundary="([^"]+)"', data)
            if name is None or not data.endswith(b"--" + ends[1] + b"--\n"):
                raise Wrong(f"{path}: a report that is torn")
            message_id = re.search(rb"^Message-ID: (.*)$", data, re.M)[1]
            for user in re.findall(rb"^Final-Recipient: rfc822; (u\d+)@", data, re.M):
                found[name[1].decode(), user.decode(), message_id] += 1
        return collections.Counter((name, user) for name, user, _ in found)

    def judge_moved(self):
        """Messages that have moved have their marks: not delivered and pending at once."""
        have = self.delivered()
        for name, files in self.queued("deferred", "hold").items():
            for marks, path in files:
                for user, (mark, _) in marks.items():
                    if mark == "." and (name, user) in have:
                        raise Wrong(f"{path}: moved before the mark of {user}, who has it, was on disk")

    def judge_end(self):
        have, held, reported = self.delivered(), self.queued("hold", "corrupt"), self.reported()
        repeats, oldest = 0, 0.0
        for name, sent in self.sent.items():
            for user, domain in (r.split("@") for r in sent.rcpts):
                if domain == "never.example":
                    if reported[name, user] != 1:
                        raise Wrong(f"{name}: {user} has failed, and {reported[name, user]} reports tell of it")
                    continue
                for member in self.members(user, domain):
                    times = sorted(have.get((name, member), []))
                    if not times:
                        raise Wrong(f"{name}: accepted, and lost for {member} ({user}@{domain})")
                    if len(times) > 1:
                        repeats += 1
                        oldest = max(oldest, self.cut_at - times[0])
        if oldest > INTERVAL + SLACK:
            raise Wrong(f"delivered again {oldest:.1f} s after it was delivered")
        for name, files in held.items():
            for marks, path in files:
                if "/hold/" in str(path) and not self.reasons(marks, path):
                    raise Wrong(f"{path}: failed without a reason")
                if "/corrupt/" in str(path) and name in self.sent:
                    raise Wrong(f"{path}: accepted, and told as damaged")
        if self.i.log_has("more than one link"):
            raise Wrong("a name too many was not cleared")
        return repeats, oldest

    @staticmethod
    def reasons(marks, path):
        failed = sum(m == "F" for m, _ in marks.values())
        queue = path.parents[1]
        for why in (queue / "bounce").glob(f"*/{path.name}"):
            return len({line.split("\t")[0] for line in why.read_text().splitlines()}) >= failed
        return failed == 0

    def finish(self):
        self.disk.start()
        self.judge_moved()
        self.i.routing_file.write_text("never.example error\n* local\n")
        self.i.start(mode="-s")
        self.i.flush()
        self.i.wait_empty(60)
        self.i.stop()  # nothing is handed over while it is judged
        return self.judge_end()

    def end(self):
        with contextlib.suppress(Exception):
            self.kill()
        with contextlib.suppress(Exception):
            self.disk.stop()
        self.closed.close()
        self.i.destroy()


def one_cut(program, kind, seed, lying):
    """Acknowledged, repeated, age of the oldest repeat in seconds."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="qsched-cut-") as top:
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "cut", top)
        try:
            disk = Disk(program, pathlib.Path(top), kind)
            disk.start()
            os.chmod(disk.mounted, 0o755)
            cut = Cut(disk, pathlib.Path(top), dice, lying)
            try:
                cut.until_cut()
                for _ in range(2 if seed % 3 == 1 and not lying else 0):
                    cut.cut_again()
                return len(cut.sent), *cut.finish()
            except Exception:
                if not lying:
                    shutil.copy(cut.i.log_file, ROOT / "build/cut.log")
                raise
            finally:
                cut.end()
        finally:
            subprocess.run(["umount", "-l", top], check=False)


def right(program, kind):
    accepted = repeated = 0
    oldest = 0.0
    bad = []
    for seed in range(CUTS):
        try:
            a, r, o = one_cut(program, kind, seed, False)
        except Exception as e:
            bad.append(f"cut {seed}: {type(e).__name__}: {e}")
            continue
        accepted, repeated, oldest = accepted + a, repeated + r, max(oldest, o)
    if bad:
        return f"{len(bad)} of {CUTS} cuts: " + "; ".join(bad)
    print(f"disk: {kind}: D12, D24, D32 whole instance: {CUTS} cuts, {accepted} messages accepted, 0 lost, "
          f"{repeated} deliveries repeated, the oldest {oldest:.1f} s before the cut", flush=True)
    return None


def wrong(program, kind):
    for seed in range(10):
        try:
            one_cut(program, kind, seed, True)
        except Wrong as e:
            print(f"disk: {kind}: D32 without syncs: caught: {e}", flush=True)
            return None
    return "a queue-send whose syncs do nothing was not caught: this test proves nothing"


def missing():
    if os.geteuid() != 0:
        return "needs root to mount"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) < 0:
        return "may not have mounts of its own"
    try:
        run("mount", "--make-rprivate", "/")
    except OSError as e:
        return str(e)
    return None


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # instances go
    program = pathlib.Path(sys.argv[1]).resolve()
    kinds = sys.argv[2:] or KINDS
    why, known = missing(), pathlib.Path("/proc/filesystems").read_text().split()
    passed = failed = skipped = 0
    for test in (right, wrong):
        for kind in kinds:
            name = f"{kind}: whole instance, {test.__name__} order"
            lack = why or (None if fs_type(kind) in known else f"no {kind} here") or (
                None if shutil.which(MKFS[kind][0], path="/usr/sbin:/sbin:/usr/bin:/bin") else f"no {MKFS[kind][0]}")
            if lack:
                print(f"SKIP {name}: {lack}")
                skipped += 1
                continue
            bad = test(program, kind)
            print(f"FAILED {name}: {bad}" if bad else f"disk: {name}: ok", flush=True)
            if bad:
                again = shlex.join([sys.executable, "-B", "tests/disk/whole.py", sys.argv[1], kind])
                print(f"FAILED\t{name}\t{again}\t{' '.join(bad.split())}", flush=True)
            failed += bad is not None
            passed += bad is None
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
