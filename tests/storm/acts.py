"""The acts of a storm. Each says in a word what it met; an act whose
name ends in -over puts right what the act of that name did."""
import contextlib
import ctypes
import errno
import fcntl
import os
import random
import signal
import stat
import struct
import subprocess
import threading
import time

from instance import AS_ROOT
from namespace import FIFREEZE, FITHAW, GROUP_ID, SYSTEM_USERS
from world import LOCAL_SLOTS, SMTP_SLOTS

RCPTS = 50  # of one delivery over SMTP
# One death can repeat the deliveries that were in flight in it.
IN_FLIGHT = {"queue-send": LOCAL_SLOTS + SMTP_SLOTS * RCPTS, "deliver-local": LOCAL_SLOTS,
             "deliver-smtp": SMTP_SLOTS * RCPTS, "delivery": 1, "todo-proc": 0, "submitter": 0}
IN_ALL = 6 * IN_FLIGHT["queue-send"]  # of all queues together

EVERYWHERE = ("local", "prog", "smtp")
REPEATS = {"queue-send": EVERYWHERE, "deliver-local": ("local", "prog"), "delivery": ("local", "prog"),
           "deliver-smtp": ("smtp",), "todo-proc": (), "submitter": ()}

_librt = ctypes.CDLL(None, use_errno=True)


def pick(items, chance):
    return items[int(chance * len(items))] if items else None


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])



def replace(path, content):
    """As an editor writes a file: whole or not at all. On a full disk an empty
    routing file would be left, which is a configuration, too. False: it is as
    it was."""
    new = path.with_name(path.name + ".new")
    try:
        new.write_bytes(content)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        return False
    return True

class Acts:
    def __init__(self, world, ledger, submitters, hostile=None):
        self.world, self.ledger = world, ledger
        self.submitters, self.hostile = submitters, hostile
        self.causes = []  # (time, what, how many deliveries it can repeat)
        self.kept = {}  # of acts that have an end: (name, when it began) -> what it has to know
        self.inodes = threading.Lock()  # held by who makes or removes them
        self.frozen = 0
        self.killed = set()  # processes, by the storm
        self.failed = []
        self.right = {}  # the configuration that is right at the moment

    def cause(self, what, bound=IN_ALL, where=EVERYWHERE):
        """Something that can have a delivery repeated, in these places."""
        self.causes.append((self.ledger.now(), what, bound, where))

    def act(self, name, args):
        method = getattr(self, f"do_{name.replace('-', '_')}")
        try:
            return method(**args)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return f"{type(error).__name__}: {error}"

    # ---- processes ----

    def victims(self, program):
        world = self.world
        if program == "delivery":
            agents = set(world.pids("deliver-local"))
            found = []
            for pid in agents:
                try:
                    if parent_of(pid) in agents:
                        found.append(pid)
                except (OSError, ValueError):
                    continue
            return sorted(found)
        found = world.pids(program)
        if program == "deliver-local":
            return [p for p in found if p not in self.victims("delivery")]
        return sorted(found)

    def do_kill(self, program, chance):
        if program == "submitter":
            pick(self.submitters, chance).kill(after=chance * 997 % 1 / 50)
            return "the next one"
        if program == "qscheduler":
            return self.kill_supervisor()
        pid = pick(self.victims(program), chance)
        if pid is None:
            return "none there"
        self.cause(f"kill of {program}", IN_FLIGHT[program], REPEATS[program])
        self.killed.add(pid)
        os.kill(pid, signal.SIGKILL)
        return pid

    def kill_supervisor(self):
        pid = self.world.process.pid
        self.world.killed.add(pid)
        self.killed.add(pid)
        self.cause("kill of qscheduler")
        self.world.signal(signal.SIGKILL)
        return pid

    def do_kill_pair(self, chance, stopped, **others):
        """Two deaths at once; an old agent may be stopped meanwhile."""
        program = others["with"]
        pids = self.victims(program)
        if stopped:
            agent = pick(self.victims("deliver-smtp"), chance)
            if agent is not None:
                os.kill(agent, signal.SIGSTOP)
        pid = pick(pids, chance)
        self.kill_supervisor()
        if pid is not None:
            self.cause(f"kill of {program}", IN_FLIGHT[program], REPEATS[program])
            self.killed.add(pid)
            os.kill(pid, signal.SIGKILL)
        return pid

    def do_stop(self, program, chance, id):
        if program == "qscheduler":
            pid = self.world.process.pid
        else:
            pid = pick(self.victims(program), chance)
        if pid is None:
            return "none there"
        self.kept["stop", id] = pid
        self.stop_of(program)
        os.kill(pid, signal.SIGSTOP)
        return pid

    def do_stop_over(self, program, id, **_):
        pid = self.kept.pop(("stop", id), None)
        if pid is not None:
            self.stop_of(program)
            os.kill(pid, signal.SIGCONT)
        return pid

    def stop_of(self, program):
        """An agent that comes back finds its time limits over, whatever the
        server has said meanwhile."""
        if program == "deliver-smtp":
            self.cause(f"stop of {program}", IN_FLIGHT[program], REPEATS[program])

    # ---- configuration, requests ----

    def do_reload(self, slots, backoff):
        self.world.write_conf(local_process_limit=slots, minimal_backoff_time=f"{backoff}s")
        self.world.signal(signal.SIGHUP)

    def do_wrong(self, how, **_):
        world = self.world
        if how in ("routing", "programs"):
            path = world.routing_file if how == "routing" else world.programs_file
            self.right[path] = path.read_bytes()
            replace(path, b"* nowhere:at:all\n" if how == "routing" else b"name\n")
        elif how == "gone":
            world.conf_file.unlink()
        elif how == "directory":
            world.conf_file.unlink()
            world.conf_file.mkdir()
        elif how == "empty":
            replace(world.conf_file, b"queue_base =\n")
        else:
            text = world.conf_file.read_bytes()
            replace(world.conf_file, text + (b"no_such_parameter = 1\n" if how == "unknown key"
                                             else b"scan_interval = quickly\n"))
        world.signal(signal.SIGHUP)

    def do_wrong_over(self, **_):
        if self.world.conf_file.is_dir():
            self.world.conf_file.rmdir()
        for path in [path for path, text in self.right.items() if replace(path, text)]:
            del self.right[path]
        self.world.write_conf()
        self.world.signal(signal.SIGHUP)

    def do_flush(self):
        self.world.signal(signal.SIGALRM)

    def do_setqload(self, args):
        return self.world.setqload(*args)

    def do_count(self, count):
        return self.world.setqload("--count", str(count))

    # ---- damage ----

    def do_shm(self, how, chance, seed):
        names = sorted(n for n in os.listdir("/dev/shm") if n.startswith(f"{self.world.name}."))
        name = pick(names, chance)
        if name is None:
            return "none there"
        path = f"/dev/shm/{name}"
        size = os.stat(path).st_size
        if how == "gone" or stat.S_ISSOCK(os.stat(path).st_mode):
            os.unlink(path)
        elif how in ("empty", "short"):
            os.truncate(path, 0 if how == "empty" else size // 2)
        else:
            dice = random.Random(seed)
            with open(path, "r+b") as f:
                f.seek(dice.randrange(max(1, size)))
                f.write(bytes(4096) if how == "zeros" else dice.randbytes(4096))
            os.truncate(path, size)
        return name

    def do_mq(self, how, chance):
        name = pick([n for n in self.world.ipc_names() if not n.endswith(".sites")], chance)
        if how == "gone":
            return _librt.mq_unlink(name.encode())
        fd = _librt.mq_open(name.encode(), os.O_RDWR | os.O_NONBLOCK)
        if fd < 0:
            return errno.errorcode[ctypes.get_errno()]
        try:
            count = 0
            room = ctypes.create_string_buffer(8192)
            while count < 1000:
                if how == "full":
                    record = struct.pack("=iIQ", os.getpid(), count, 99)
                    done = _librt.mq_send(fd, record, len(record), 0)
                else:
                    done = _librt.mq_receive(fd, room, 8192, None)
                if done < 0:
                    break
                count += 1
            return f"{name}: {count}"
        finally:
            os.close(fd)

    def foreign_place(self, state, chance):
        queue = pick(sorted(self.world.base.glob("queue*[0-9]")), chance)
        directory = queue / state
        if state == "maildrop" and not directory.exists():
            directory = queue / "gate/maildrop"
        splits = sorted(p for p in directory.iterdir() if p.is_dir() and p.name.isdigit()
                        and len(p.name) < 4) if state in ("incoming", "active", "deferred") else []
        return pick(splits, chance * 997 % 1) or directory

    def do_foreign(self, state, how, chance, count):
        if self.frozen:
            return "frozen"
        directory = self.foreign_place(state, chance)
        for n in range(count):
            path = directory / str(int(chance * 1e9) + 7919 * n)
            if how == "fifo":
                os.mkfifo(path)
            elif how == "link":
                os.symlink("/etc/passwd", path)
            elif how == "directory":
                path.mkdir()
                if AS_ROOT:  # of the queue's user, who can move it out of a queue that ends
                    os.chown(path, SYSTEM_USERS["qmails"], GROUP_ID)
            elif how == "long":
                path = directory / ("x" * 250 + f"{n:05d}")
                path.write_bytes(b"foreign")
            else:
                path.write_bytes(b"" if how == "sparse" else b"foreign" * 100)
                if how == "sparse":
                    os.truncate(path, 1 << 33)
                named = directory / str(path.stat().st_ino)  # as a message would be
                path = path.rename(named) if not named.exists() else path
                if AS_ROOT and chance < 0.5:
                    os.chown(path, SYSTEM_USERS["qmails"], GROUP_ID)
                    path.chmod(0o660)
        return str(directory)

    # ---- disks ----

    def do_fill(self, chance, **_):
        """A file system has no block left."""
        name = pick(sorted(n for n in self.world.mounted if n != "mail"), chance)
        if name is None or self.frozen:
            return "none there"
        where = self.world.mounted[name]
        self.kept["fill"] = where
        full(where / "ballast")
        return name

    def do_fill_over(self, **_):
        where = self.kept.pop("fill", None)
        if where is not None:
            (where / "ballast").unlink(missing_ok=True)

    def do_inodes(self, chance, **_):
        where = pick([w for n, w in sorted(self.world.mounted.items()) if n != "mail"], chance)
        if where is None or self.frozen:
            return "none there"
        self.kept["inodes"] = where
        directory = where / "ballast-inodes"
        count = 0
        with self.inodes:
            directory.mkdir()
            try:
                while "inodes" in self.kept:
                    os.close(os.open(directory / str(count), os.O_CREAT | os.O_WRONLY))
                    count += 1
            except OSError as error:
                return f"{count}, {errno.errorcode[error.errno]}"
        return count

    def do_inodes_over(self, **_):
        where = self.kept.pop("inodes", None)
        if where is None:
            return
        with self.inodes:
            subprocess.run(["rm", "-rf", where / "ballast-inodes"], check=False)

    def do_mailfull(self, **_):
        where = self.world.mounted.get("mail")
        if where is None:
            return "none there"
        self.cause("full mailboxes", where=("local",))
        return full(where / "ballast")

    def do_mailfull_over(self, **_):
        where = self.world.mounted.get("mail")
        if where is not None:
            (where / "ballast").unlink(missing_ok=True)
            self.cause("full mailboxes", where=("local",))

    def do_freeze(self, **_):
        where = self.world.mounted.get("disk")
        if where is None or self.frozen or "fill" in self.kept or "inodes" in self.kept:
            return "not now"
        fd = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
        self.kept["freeze"] = fd
        self.frozen += 1
        fcntl.ioctl(fd, FIFREEZE, 0)
        return None

    def do_freeze_over(self, **_):
        fd = self.kept.pop("freeze", None)
        if fd is None:
            return
        try:
            fcntl.ioctl(fd, FITHAW, 0)
        finally:
            os.close(fd)
            self.frozen -= 1

    def do_hang(self, **_):
        """The disk answers nothing, no read and no write."""
        if self.world.disk is None or self.frozen or "fill" in self.kept or "inodes" in self.kept:
            return "not now"
        self.kept["hang"] = True
        self.frozen += 1
        return self.world.disk.hang(forget=False)

    def do_hang_over(self, **_):
        if self.kept.pop("hang", None):
            self.world.disk.go_on()
            self.frozen -= 1

    # ---- the whole, the others ----

    def do_halt(self, **_):
        """Stopped in order; submitters go on."""
        if self.frozen:
            return "frozen"
        self.cause("stop in order")
        began = time.monotonic()
        pid = self.world.process.pid
        self.world.killed.add(pid)
        status = self.world.end(60)
        if status is None:
            self.failed.append("the stop in order took more than 60 s")
            self.world.signal(signal.SIGKILL)
        elif status != 0 and pid not in self.killed:  # by another act meanwhile
            self.failed.append(f"the stop in order ended with {status}")
        return f"{status} after {time.monotonic() - began:.1f} s"

    def do_halt_over(self, **_):
        self.cause("stop in order")
        self.world.resume()

    def do_site(self, site, **_):
        self.cause("server gone", where=("smtp",))
        self.world.servers.tell("down", site)

    def do_site_over(self, site, **_):
        self.world.servers.tell("up", site)

    def do_hurry(self, **_):
        for submitter in self.submitters:
            submitter.pause /= 10

    def do_hurry_over(self, **_):
        for submitter in self.submitters:
            submitter.pause *= 10

    def do_hostile(self, user, chance, id):
        self.kept["hostile", id], name = self.hostile.start(user, chance)
        return name

    def do_hostile_over(self, id, **_):
        process = self.kept.pop(("hostile", id), None)
        return None if process is None else self.hostile.end(process)

    # ---- the end of it ----

    def calm(self):
        """Everything that can be put right is."""
        for name in ("freeze", "hang", "fill", "inodes", "mailfull", "wrong"):
            self.act(f"{name}-over", {})  # does nothing where nothing is to be done
        for key in [k for k in self.kept if isinstance(k, tuple)]:
            self.act(f"{key[0]}-over", {"program": "any", "id": key[1]})
        self.world.servers.tell("heal")
        self.world.resume()


def full(path):
    written = 0
    with open(path, "wb", buffering=0) as f:
        try:
            while written < 1 << 30:
                written += f.write(bytes(1 << 16))
            while True:
                written += f.write(bytes(512))
        except OSError:
            return written
