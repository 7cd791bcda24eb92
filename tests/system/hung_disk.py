"""A disk that stops answering, reads as well as writes, or takes long for each,
and goes on when told.

The disk is ext4 on a loop device over the one file of a FUSE file system that
this file serves from a process of its own. While that process takes no
requests, whatever needs the device sleeps in the kernel, where no signal
reaches it. When the process ends, the kernel refuses what waits, so that
nothing hangs for longer than the test.

    disk = HungDisk(directory, i.queue(2))  # mounted there
    disk.hang()                             # returns when nothing is answered
    disk.be_slow(0.5)                       # each request takes so many seconds
    disk.go_on()
    disk.close()                            # in any state

Needs root, /dev/fuse and loop devices: missing() says what is not there.
"""
import contextlib
import ctypes
import errno
import os
import pathlib
import select
import socket
import stat
import struct
import subprocess
import sys
import time

PYTHON = "/usr/bin/python3"
ROOT_NODE, DISK_NODE = 1, 2
NAME = "disk"
MAX_WRITE = 1 << 20
REQUEST = struct.Struct("=IIQQIIII")
REPLY = struct.Struct("=IiQ")
ATTR = struct.Struct("=6Q10I")
DIRECT_IO = 1
MS_NOSUID, MS_NODEV = 2, 4
HANG_MAX = 120.0
SLOW = 3.0


def missing():
    """The reason why no hung disk can be made here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for path in ("/dev/fuse", "/dev/loop-control"):
        try:
            os.close(os.open(path, os.O_RDWR))
        except OSError as error:
            return f"needs {path}: {error.strerror}"
    return None


# ---- the process that serves ----

class Server:
    """Requests of the kernel, one after the other, in the order they come."""

    def __init__(self, fuse, backing):
        self.fuse = fuse
        self.backing = backing
        self.size = os.fstat(backing).st_size
        self.replies = {
            1: self.lookup, 3: self.getattr, 4: self.getattr, 14: self.open, 15: self.read, 16: self.write,
            17: self.statfs, 26: self.init, 27: self.open,
        }
        self.silent = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET
        self.empty = {18, 20, 25, 28, 29, 30, 34, 38}  # RELEASE, FSYNC, FLUSH, READDIR …

    def attr(self, node):
        mode = stat.S_IFDIR | 0o700 if node == ROOT_NODE else stat.S_IFREG | 0o600
        size = 0 if node == ROOT_NODE else self.size
        return ATTR.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def init(self, _node, _body):
        return struct.pack("=IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 12, MAX_WRITE, 1, 0, 0, 0, *[0] * 7)

    def lookup(self, _node, body):
        if body.rstrip(b"\0") != NAME.encode():
            return errno.ENOENT
        return struct.pack("=QQQQII", DISK_NODE, 1, 3600, 3600, 0, 0) + self.attr(DISK_NODE)

    def getattr(self, node, _body):
        return struct.pack("=QII", 3600, 0, 0) + self.attr(node)

    def open(self, _node, _body):
        return struct.pack("=QII", 0, DIRECT_IO, 0)

    def read(self, _node, body):
        _, offset, size = struct.unpack_from("=QQI", body)
        return os.pread(self.backing, size, offset)

    def write(self, _node, body):
        _, offset, size = struct.unpack_from("=QQI", body)
        return struct.pack("=II", os.pwrite(self.backing, body[40:40 + size], offset), 0)

    def statfs(self, _node, _body):
        return struct.pack("=5Q4I6I", *[1 << 20] * 5, 4096, 255, 4096, 0, *[0] * 6)

    def answer(self, request):
        _, opcode, unique, node, *_ = REQUEST.unpack_from(request)
        if opcode in self.silent:
            return
        result = b"" if opcode in self.empty else errno.ENOSYS
        if opcode in self.replies:
            result = self.replies[opcode](node, request[REQUEST.size:])
        code, data = (-result, b"") if isinstance(result, int) else (0, result)
        with contextlib.suppress(FileNotFoundError):  # the asker was interrupted
            os.write(self.fuse, REPLY.pack(REPLY.size + len(data), code, unique) + data)

    def serve(self, control):
        """Each line of control is obeyed, and said back when it holds."""
        hangs, slow = False, 0.0
        while True:
            ready, _, _ = select.select([control] if hangs else [control, self.fuse], [], [], HANG_MAX)
            if hangs and not ready:
                return  # its test hangs as well: with the end of this, all of it goes on
            if control in ready:
                word = control.recv(16)
                if not word:
                    return
                hangs = word == b"hang"
                slow = float(word.removeprefix(b"slow ")) if word.startswith(b"slow ") else 0.0
                control.send(word)
            elif not hangs and not (slow and select.select([control], [], [], slow)[0]):
                with contextlib.suppress(InterruptedError, FileNotFoundError):
                    self.answer(os.read(self.fuse, MAX_WRITE + 4096))


def serve(mountpoint, backing, control):
    libc = ctypes.CDLL(None, use_errno=True)
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0"
    if libc.mount(b"hung_disk", os.fsencode(mountpoint), b"fuse", MS_NOSUID | MS_NODEV, options.encode()) < 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    with socket.socket(fileno=control) as said:
        said.send(b"mounted")
        with contextlib.suppress(OSError):  # ENODEV: unmounted
            Server(fuse, os.open(backing, os.O_RDWR)).serve(said)


# ---- what a test holds ----

def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{command}: {done.stderr.strip()}")
    return done.stdout.strip()


class HungDisk:
    def __init__(self, directory, mountpoint, megabytes=64, owner=None, options="nodiscard"):
        """Mount an empty ext4 at mountpoint, which is made where it is not
        there; directory holds what is behind it. owner is a path whose owner
        and mode the root of the new file system gets; options are those of mount."""
        reason = missing()
        if reason:
            raise OSError(reason)
        self.directory = pathlib.Path(directory)
        self.mountpoint = pathlib.Path(mountpoint)
        self.fuse = self.directory / "fuse"
        self.backing = self.directory / "backing"
        self.loop = self.server = self.control = None
        self.frozen = False
        self.options = options
        self.fuse.mkdir(parents=True)
        self.mountpoint.mkdir(parents=True, exist_ok=True)
        with open(self.backing, "wb") as f:
            f.truncate(megabytes << 20)
        run("mkfs.ext4", "-q", "-F", "-m0", "-E", "nodiscard", self.backing)
        try:
            self.start()
            self.mount()
            if owner is not None:
                info = os.stat(owner)
                os.chown(self.mountpoint, info.st_uid, info.st_gid)
                os.chmod(self.mountpoint, stat.S_IMODE(info.st_mode))
        except BaseException:
            self.close()
            raise

    def start(self):
        self.control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server = subprocess.Popen(
            [PYTHON, "-B", __file__, self.fuse, self.backing, str(other.fileno())],
            pass_fds=[other.fileno()], start_new_session=True)
        other.close()
        self.control.settimeout(HANG_MAX)
        if self.control.recv(16) != b"mounted":
            raise OSError("the FUSE file system was not mounted")
        self.loop = run("losetup", "--find", "--show", self.fuse / NAME)

    def mount(self):
        run("mount", "-t", "ext4", "-o", self.options, self.loop, self.mountpoint)

    def unmount(self):
        run("umount", self.mountpoint)

    def remount(self):
        """Nothing of it is in memory then but what the mount has read."""
        self.unmount()
        self.mount()

    def say(self, word):
        self.control.send(word)
        if self.control.recv(16) != word:
            raise OSError("the process that serves the disk has ended")

    def hang(self, forget=True):
        """No request is answered from now on. What was read before would be
        answered from memory: it is forgotten first, if wanted."""
        if forget:
            self.forget()
        self.say(b"hang")

    def be_slow(self, seconds=SLOW, forget=True):
        """The same, but each request is answered after so long, one after the other."""
        if forget:
            self.forget()
        self.say(b"slow %.3f" % seconds)

    def go_on(self):
        self.say(b"go")

    def freeze(self):
        """Writes wait, reads do not."""
        run("fsfreeze", "--freeze", self.mountpoint)
        self.frozen = True

    def thaw(self):
        run("fsfreeze", "--unfreeze", self.mountpoint)
        self.frozen = False

    def forget(self):
        """Written, then dropped from memory, while the disk still answers: of
        this device alone, since what drops the memory of all waits for others
        that hang."""
        self.freeze()  # nothing is left in the journal then
        self.thaw()
        run("blockdev", "--flushbufs", self.loop)

    def close(self):
        """In whatever state; processes that use it get errors."""
        if self.server is not None:
            with contextlib.suppress(OSError):
                self.go_on()
            with contextlib.suppress(OSError):
                if self.frozen:
                    self.thaw()
            end = time.monotonic() + 10
            while os.path.ismount(self.mountpoint):
                force = ["-l"] if time.monotonic() > end else []
                if subprocess.run(["umount", *force, self.mountpoint], capture_output=True,
                                  check=False).returncode:
                    time.sleep(0.1)  # somebody is about to leave it
            if self.loop:
                subprocess.run(["losetup", "-d", self.loop], capture_output=True, check=False)
            subprocess.run(["umount", "-l", self.fuse], capture_output=True, check=False)
            self.control.close()
            try:
                self.server.wait(10)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
            self.server = None
        with contextlib.suppress(FileNotFoundError):
            self.backing.unlink()
        with contextlib.suppress(OSError):
            self.fuse.rmdir()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
