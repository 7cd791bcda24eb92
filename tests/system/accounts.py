"""Accounts with homes of their own, in a mount namespace that the instance runs in.

    made = Accounts(instance, "alice", "mallory", hang="mallory")
    instance.start(prefix=made.prefix)

hang: the maildir of that one lies on a file system that takes requests and never
answers them. Run by itself this file is the process that holds the namespace.
"""
import ctypes
import os
import pathlib
import select
import struct
import subprocess
import sys
import threading

HANG = 240
FIRST_UID = 100000 + os.getpid() % 100000 * 10  # stopped by signals to all of a user: no two tests share one
IN_HEADER = struct.Struct("=IIQQIIIHH")
OUT_HEADER = struct.Struct("=IiQ")
INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
FUSE_INIT = 26
MS_BIND, MS_NOSUID, MS_NODEV = 4096, 2, 4


class Accounts:
    def __init__(self, instance, *names, hang=None):
        self.uids = {name: FIRST_UID + n for n, name in enumerate(names)}
        self.home = instance.dir / "home"
        self.home.mkdir()
        self.home.chmod(0o755)
        passwd = instance.dir / "passwd"
        lines = [pathlib.Path("/etc/passwd").read_text()]
        for name, uid in self.uids.items():
            (self.home / name).mkdir()
            os.chown(self.home / name, uid, uid)
            lines.append(f"{name}:x:{uid}:{uid}::{self.home / name}:/bin/sh\n")
        passwd.write_text("".join(lines))
        passwd.chmod(0o644)
        words = [str(passwd)]
        if hang is not None:
            self.mount = self.home / hang / "Maildir"
            self.mount.mkdir()
            words += [str(self.mount), str(self.uids[hang])]
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--", "/usr/bin/python3", "-B", __file__, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        said = self.holder.stdout.readline()
        if said != "ready\n":
            self.end()
            raise OSError(said or "no mount namespace")
        self.prefix = ("nsenter", "--target", str(self.holder.pid), "--mount", "--")

    def end(self):
        """Requests that wait are answered with an error: nothing hangs any more."""
        if not self.holder.stdin.closed:
            self.holder.stdin.close()
            self.holder.wait(HANG)
            self.holder.stdout.close()

    def maildir(self, name):
        """Delivered mail, seen from outside of the namespace."""
        new = self.home / name / "Maildir" / "new"
        return sorted(new.iterdir()) if new.is_dir() else []


def mount(what, where, kind, flags, data=None):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(what.encode(), where.encode(), kind and kind.encode(), flags, data and data.encode()) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), where)


def hang(fd):
    """Say that there is a file system, and nothing else, ever."""
    while True:
        try:
            request = os.read(fd, 1 << 18)
        except OSError:
            return
        length, opcode, unique, *_ = IN_HEADER.unpack_from(request)
        if opcode == FUSE_INIT:
            body = INIT_OUT.pack(7, 31, 0, 0, 12, 9, 4096, 1, 0, 0, 0)
            os.write(fd, OUT_HEADER.pack(OUT_HEADER.size + len(body), 0, unique) + body)


def main():
    mount(sys.argv[1], "/etc/passwd", None, MS_BIND)
    if len(sys.argv) > 2:
        fd = os.open("/dev/fuse", os.O_RDWR)
        uid = sys.argv[3]
        mount("hang", sys.argv[2], "fuse", MS_NOSUID | MS_NODEV,
              f"fd={fd},rootmode=40700,user_id={uid},group_id={uid},allow_other")
        threading.Thread(target=hang, args=(fd,), daemon=True).start()
    print("ready", flush=True)
    select.select([0], [], [])
    sys.stdin.read()
    os._exit(0)  # the descriptor of the file system goes, and with it all that waits


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        print(error, flush=True)
        sys.exit(1)
