"""A network of the test's own, with a name server, in which the caller and all
that it starts are from enter() to leave(): processes, cells, instances.

Every address of 192.0.2.0/24 leads to whatever listens there, and is no address
of an interface, so that no client takes a host of an MX record for its own.
"""
import ctypes
import os
import subprocess
import tempfile

from cell import listens
from instance import Failed, wait
from packages import Unavailable

RESOLV = "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n"
CLONE_NEWNET = 0x40000000
# With packets of an Ethernet the kernel takes no more of a message at once than there.
LINKS = ("ip link set lo up mtu 1500", "ip route add local 192.0.2.0/24 dev lo src 127.0.0.1")
NAMES = """
no-resolv
no-hosts
keep-in-foreground
user=root
group=root
pid-file
bind-interfaces
listen-address=127.0.0.1
local=/example/
"""
_libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class Network:
    """`names` are lines for dnsmasq, which is the name server. Of a process only the
    thread that enters is in the network, and threads that it starts in there."""

    def __init__(self, names):
        self.names, self.outside, self.server = names, None, None

    def enter(self):
        outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            checked(_libc.unshare(CLONE_NEWNET))
        except OSError as why:
            os.close(outside)
            raise Unavailable(f"no network of its own: {why}") from None
        self.outside = outside
        for words in LINKS:
            subprocess.run(words.split(), check=True)
        # dnsmasq reads its configuration from a pipe: no file has to be put away.
        with tempfile.TemporaryFile() as said:
            self.server = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "dnsmasq", "--conf-file=/dev/stdin", "--log-facility=-"],
                stdin=subprocess.PIPE, stdout=said, stderr=said)
            self.server.stdin.write((NAMES + self.names).encode())
            self.server.stdin.close()

            def is_ready():
                if self.server.poll() is not None:
                    said.seek(0)
                    raise Failed(f"dnsmasq ended with {self.server.returncode}: {said.read().decode()}")
                return listens(53)
            wait(is_ready, what="dnsmasq")

    def leave(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
            self.server = None
        if self.outside is not None:
            checked(_libc.setns(self.outside, CLONE_NEWNET))
            os.close(self.outside)
            self.outside = None
