"""A directory and namespaces in which one server runs as if it were installed.

The programs are those of packages.py, read-only; /etc, /var, /run, /mail and
/tmp are the cell's own, below its directory. Processes are in a namespace of
processes, which goes with the first of them, a shell that becomes nobody else,
and with this one; the network is the loopback of the host.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

import packages
from instance import Failed, wait

# Accounts as the packages make them, with numbers that a host has not.
ACCOUNTS = {"postfix": 61001, "postdrop": 61002, "Debian-exim": 61003, "opensmtpd": 61004, "opensmtpq": 61005,
            "dovecot": 61006, "dovenull": 61007, "vmail": 61010, "nobody": 65534}
VMAIL = ACCOUNTS["vmail"]
ENTER = """
set -e
mount --make-rprivate /
cd "$1"
shift
mount --bind . .
cd .
for d in usr bin lib lib64; do
    [ ! -d "$PACKAGES/$d" ] || mount --bind "$PACKAGES/$d" "$PWD/$d"
done
mount -t proc proc "$PWD/proc"
mount -t tmpfs -o mode=755 tmpfs "$PWD/dev"
for d in null zero full random urandom; do
    cp -a "/dev/$d" "$PWD/dev/"
done
setsid chroot "$PWD" "$@" &
server=$!
trap 'kill $server' TERM
wait $server || wait $server
n=0
while [ $n -lt 300 ] && kill -0 -- -1 2>/dev/null; do
    sleep 0.01
    n=$((n + 1))
done
"""


def can_run():
    """Unavailable says why no cell can be made here."""
    if os.geteuid() != 0:
        raise packages.Unavailable("needs root")
    packages.run("unshare", "--mount", "--pid", "--fork", "true")
    packages.unpacked()


def free_port():
    """A port that nobody has; a server that finds it taken says so and fails."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Cell:
    def __init__(self, name, directory=None):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"qsched-peer-{name}-", dir=directory))
        self.dir.chmod(0o755)
        self.root = self.dir / "root"
        self.process = None
        for folder in ("usr", "bin", "lib", "lib64", "proc", "dev", "run", "tmp", "etc", "var/log", "var/lib", "var/spool",
                       "mail"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "tmp").chmod(0o1777)
        self.make("mail", "vmail")
        (self.root / "var/run").symlink_to("../run")
        self.write_system()

    def write_system(self):
        names = ["root:x:0:0::/:/bin/sh"]
        names += [f"{name}:x:{number}:{number}::/mail:/bin/sh" for name, number in ACCOUNTS.items()]
        self.write("etc/passwd", "\n".join(names) + "\n")
        self.write("etc/group", "root:x:0:\n" + "".join(f"{name}:x:{n}:\n" for name, n in ACCOUNTS.items()))
        self.write("etc/hosts", "127.0.0.1 localhost\n")
        self.write("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\n")
        self.write("etc/services", "smtp 25/tcp\n")
        self.write("etc/resolv.conf", "")

    def write(self, path, text, mode=0o644):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def make(self, path, owner="root", group=None, mode=0o755):
        """A directory of the cell, of an account of the cell."""
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        os.chown(folder, ACCOUNTS.get(owner, 0), ACCOUNTS.get(group or owner, 0))
        folder.chmod(mode)

    def command(self, *words):
        return ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "cell", self.root,
                *map(str, words)]

    def start(self, *words):
        """The first process of the cell; what it says goes to var/log/said."""
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PACKAGES": str(packages.unpacked())}
        with open(self.root / "var/log/said", "ab") as said:
            self.process = subprocess.Popen(self.command(*words), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                            env=env, start_new_session=True)

    def wait_for(self, condition, what):
        def seen():
            if self.process.poll() is not None:
                raise Failed(f"{what}: the server ended with {self.process.returncode}:\n{self.log()[-3000:]}")
            return condition()
        return wait(seen, what=what)

    def log(self):
        files = sorted((self.root / "var/log").rglob("*"))
        return "".join(f.read_text(errors="replace") for f in files if f.is_file())

    def pids(self):
        """Processes of the cell: the first one, the server, then its children."""
        found, level = [], [self.process.pid]
        while level:
            below = []
            for pid in level:
                with contextlib.suppress(OSError):
                    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                        below += map(int, (task / "children").read_text().split())
            found += below
            level = below
        return found

    def stop(self):
        """The server is asked to end; all others go with it. What they used in
        all, by wait4(): the shell waits for those that the server leaves."""
        if self.process is None or self.process.returncode is not None:
            return None
        self.signal(signal.SIGTERM)
        ended = []

        def is_over():
            pid, _, usage = os.wait4(self.process.pid, os.WNOHANG)
            ended.append(usage)
            return pid != 0
        try:
            wait(is_over, what="the end of a server")
        except Failed:
            self.signal(signal.SIGKILL)
            ended.append(os.wait4(self.process.pid, 0)[2])
        self.process.returncode = 0
        self.process = None
        return ended[-1]

    def signal(self, number):
        """To the shell that is the first process."""
        for pid in self.pids()[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def destroy(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)
