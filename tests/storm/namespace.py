"""A place of its own for a storm: processes, message queues, shared memory,
network, mounts and user database that nobody else sees, and that are gone
when the storm ends, however it ends. Needs root."""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import traceback

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x8000000, 0x20000000, 0x40000000
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
MNT_DETACH, MS_REC, MS_PRIVATE = 2, 0x4000, 0x40000
LOOP_CLR_FD = 0x4C01
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)

# The users of an installed system; the hostile and the honest ones have names,
# too, so that they get mail. 60101 and up have none, as in a container.
SYSTEM_USERS = {"qmailq": 60021, "qmails": 60022, "qmailr": 60023, "vmail": 60024}
GROUP, GROUP_ID = "qmail", 60020
DOOR_GROUP, DOOR_GROUP_ID = "qdrop", 60019
MEMBER = ("member", 60030)  # a plain member of the group
HOSTILE = {f"mallory{n}": 60000 + n for n in range(1, 9)}
HONEST = {"alice": 60011, "bob": 60012}


def mount(kind, where, *options):
    subprocess.run(["mount", "-t", kind, *options, kind, str(where)], check=True)


def users_known(scratch, homes):
    """The user database with the storm's users, in this namespace only."""
    passwd, group = scratch / "passwd", scratch / "group"
    lines = pathlib.Path("/etc/passwd").read_text()
    for name, uid in SYSTEM_USERS.items():
        lines += f"{name}:x:{uid}:{GROUP_ID if name in ('qmailq', 'qmails') else uid}::/nonexistent:/bin/false\n"
    for name, uid in (HOSTILE | HONEST | dict([MEMBER])).items():
        lines += f"{name}:x:{uid}:{uid}::{homes}/{name}:/bin/sh\n"
    passwd.write_text(lines)
    groups = f"{GROUP}:x:{GROUP_ID}:{MEMBER[0]}\n{DOOR_GROUP}:x:{DOOR_GROUP_ID}:\n"
    for name in ("qmailr", "vmail"):
        groups += f"{name}:x:{SYSTEM_USERS[name]}:\n"
    group.write_text(pathlib.Path("/etc/group").read_text() + groups)
    for path, over in ((passwd, "/etc/passwd"), (group, "/etc/group")):
        path.chmod(0o644)
        subprocess.run(["mount", "--bind", path, over], check=True)


def homes_made(homes):
    """A home for each, closed to the others."""
    homes.mkdir(exist_ok=True)
    for name, uid in (HOSTILE | HONEST).items():
        (homes / name).mkdir()
        os.chown(homes / name, uid, uid)
        (homes / name).chmod(0o700)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))


def enter(scratch):
    """This process's further children live in namespaces of their own."""
    if _libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    make_private()
    loopback_up()
    (scratch / "mqueue").mkdir()


def make_private():
    """As mount --make-rprivate does, which cannot be run here: the first child is
    process 1 of the new namespace, and its end would be the end of that."""
    if _libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None) != 0:
        raise OSError(ctypes.get_errno(), "mount --make-rprivate /")


def thaw(path):
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, FITHAW, 0)
        finally:
            os.close(fd)


def mounts_below(path):
    with open("/proc/self/mounts", encoding="utf-8") as f:
        found = [line.split()[1] for line in f]
    return sorted((m for m in found if m.startswith(f"{path}/")), key=len, reverse=True)


def clear(scratch):
    """Nothing of it stays; processes have ended with their namespace, and its
    /proc with them, below which is the one that was there before."""
    _libc.umount2(b"/proc", MNT_DETACH)
    for where in mounts_below(scratch):
        thaw(where)
        _libc.umount2(os.fsencode(where), MNT_DETACH)
    free_loops(scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def free_loops(scratch):
    """Devices that were made by hand and not given back."""
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if path.read_text().startswith(f"{scratch}/"):
                fd = os.open(f"/dev/{path.parts[3]}", os.O_RDONLY)
                fcntl.ioctl(fd, LOOP_CLR_FD, 0)
                os.close(fd)


def _first(scratch, work):
    """Process 1 of the namespace: waits for whatever nobody else waits for."""
    mount("proc", "/proc")
    mount("tmpfs", "/dev/shm", "-o", "mode=1777,size=256m")
    mount("mqueue", scratch / "mqueue")
    child = os.fork()
    if child == 0:
        status = 70
        try:
            status = work()
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status) & 255


def run_inside(scratch, work):
    """work() in namespaces of its own; its exit status. For a process that
    forks for nothing else afterwards."""
    enter(scratch)
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            status = _first(scratch, work)
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    try:
        status = os.waitpid(pid, 0)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
        clear(scratch)
    return os.waitstatus_to_exitcode(status) & 255
