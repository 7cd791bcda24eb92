"""/dev/shm is full: any user can do that, by bytes or by inodes (docs/WHEN-MAIL-WAITS.md).

The instance runs in a mount namespace of its own, with a small /dev/shm.
"""
import concurrent.futures
import os
import signal
import subprocess

from case import SystemTest, cost, needs_root
from counting_site import CountingSite
from instance import BIN, PYTHON, wait

HELLO = b"Subject: hello\n\nhello\n"
LIMIT = 3
ROOM = r"not enough room in /dev/shm: \d+ of \d+ KB and \d+ of 200 inodes are free"
ATTACKER = 65534

MOUNT = "mount -t tmpfs -o mode=1777,size=64m,nr_inodes=200 tmpfs /dev/shm && echo ready && exec cat"
FILL = """
import itertools, os, sys
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
fd = os.open("/dev/shm/bytes", os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
try:
    if sys.argv[1] == "bytes":
        while True:
            os.write(fd, bytes(1 << 20))
            os.write(fd, bytes(4096))
    for n in itertools.count():
        os.close(os.open(f"/dev/shm/inode{n}", os.O_CREAT | os.O_WRONLY, 0o600))
except OSError as error:
    sys.exit(0 if error.errno == 28 else str(error))
"""


class Space:
    """A mount namespace with a /dev/shm of 64 MB and 200 inodes."""

    def __init__(self):
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", MOUNT],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        said = self.holder.stdout.readline()
        self.prefix = ("nsenter", "--target", str(self.holder.pid), "--mount", "--")
        self.shm = f"/proc/{self.holder.pid}/root/dev/shm"
        if said != "ready\n":
            self.end()
            raise OSError("no mount namespace")

    def end(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()

    def fill(self, what):
        """As an ordinary user, to the last one."""
        subprocess.run([*self.prefix, PYTHON, "-c", FILL, what, str(ATTACKER)], check=True)

    def free(self):
        for name in os.listdir(self.shm):
            path = f"{self.shm}/{name}"
            if os.lstat(path).st_uid == ATTACKER:
                os.unlink(path)


@needs_root
class Full(SystemTest):
    def setUp(self):
        super().setUp()
        self.space = Space()
        self.addCleanup(self.space.end)
        self.site = CountingSite()
        self.addCleanup(self.site.stop)
        self.wanted = []

    def ready(self):
        i = self.instance(
            queues=2, routing=f"away.example smtp:127.0.0.1:{self.site.port}\n* local\n",
            conf={"smtp_destination_concurrency_limit": LIMIT,
                  "smtp_initial_destination_concurrency": LIMIT,
                  "smtp_destination_recipient_limit": 2})
        i.prefix, i.shm = self.space.prefix, self.space.shm
        return i

    def tool(self, i, name, *args):
        return subprocess.run([*i.prefix, BIN / name, "-c", i.conf_file, *args], capture_output=True, text=True,
                              check=False, env=i.environment())

    def submit(self, i, messages=8, rcpts=10):
        new = [[f"m{len(self.wanted)}-{m}-{r}@away.example" for r in range(rcpts)] for m in range(messages)]
        i.face("sendmail")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda to: i.inject(HELLO, *to), new))
        self.wanted += sum(new, [])

    def used_queues(self, i):
        return {path.relative_to(i.base).parts[0] for path in i.files("active")}

    def held(self, i):
        """Both queues have mail for the site, and use the whole window."""
        self.site.hold = True
        while len(self.used_queues(i)) < 2:
            self.submit(i, messages=2)
            wait(lambda: not i.files("incoming"), what="messages that are taken")
        wait(lambda: self.site.held == LIMIT, what="a window that is used")

    def kill_and_start(self, i):
        """The supervisor, while its children still deliver."""
        i.kill()
        i.start()

    def delivered(self, i):
        self.site.hold = False
        i.wait_empty()
        self.assertEqual(set(self.site.rcpts), set(self.wanted))
        self.assertEqual(self.site.peak, LIMIT, "one window for both queues, never two")

    def is_there(self, i, name):
        return os.path.exists(f"{i.shm}/{i.name}.{name}")

    def before_the_start(self, what):
        self.space.fill(what)
        i = self.ready()
        i.start()
        self.assertFalse(self.is_there(i, "qscheduler.sites"))
        self.held(i)
        for name in ("qscheduler", "queue1", "queue2", "qscheduler.sites"):
            self.assertTrue(i.log_has(rf"shared memory /{i.name}\.{name}: {ROOM}: "), name)
        self.says_where(i, what)
        self.kill_and_start(i)
        self.submit(i)
        self.delivered(i)
        return i

    def says_where(self, i, what):
        """Which file system is full, and what to do."""
        room = ROOM.replace(r"\d+ of \d+ KB", r"0 of 65536 KB" if what == "bytes" else r"\d+ of 65536 KB")
        check = self.tool(i, "qscheduler", "--check")
        self.assertEqual(check.returncode, 0)
        self.assertRegex(check.stderr, rf"warning: {room}: mail is delivered, but qtop, ")
        for command in (("setqload", "--list"), ("qtop", "-b", "-n", "1"), ("qctl", "sites")):
            done = self.tool(i, *command)
            self.assertRegex(done.stdout + done.stderr, f"{room}; a minute after files are removed there it does",
                             command)
            self.assertEqual(done.returncode, 69, command)
        self.requests_work(i)

    def requests_work(self, i):
        """Requests and their answers do not need /dev/shm."""
        for args, answer in ((("--disable", "-q", "1", "--reason", "full"), "queue 1: disabled"),
                             (("--enable", "-q", "1"), "queue 1: enabled\n"),
                             (("--reload",), "configuration reloaded")):
            done = self.tool(i, "setqload", *args)
            self.assertEqual((done.returncode, done.stderr), (0, ""), args)
            self.assertIn(answer, done.stdout)
        self.assertTrue(i.log_has(r"queue 1: disabled for ever \(asked by root, uid 0, pid \d+: full\)"))
        done = self.tool(i, "newaliases")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("is in force", done.stdout)

    def recovers(self, i):
        """Within a minute, or at HUP: nothing is restarted."""
        pids = i.daemons()
        self.space.free()
        i.reload()
        wait(lambda: self.is_there(i, "qscheduler.sites"), what="the table of destinations")
        wait(lambda: self.is_there(i, "qscheduler.ask"), what="the socket of requests")
        i.wait_open(*i.numbers)
        done = self.tool(i, "qctl", "sites")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.held(i)
        self.delivered(i)
        self.assertEqual(i.daemons(), pids)
        i.stop()

    @cost(10)
    def test_I19_I20_I21_I22_no_bytes_before_the_start(self):
        """mutation: first() without a table that has no name"""
        self.recovers(self.before_the_start("bytes"))

    @cost(10)
    def test_I19_I20_I21_I22_no_inodes_before_the_start(self):
        self.recovers(self.before_the_start("inodes"))

    @cost(10)
    def test_I19_I21_full_while_it_runs_and_killed(self):
        for what in ("bytes", "inodes"):
            with self.subTest(full_of=what):
                i = self.ready()
                i.start_open()
                self.held(i)
                self.space.fill(what)
                for pid in i.pids("queue-send"):
                    os.kill(pid, signal.SIGKILL)
                self.kill_and_start(i)
                self.submit(i)
                self.delivered(i)
                i.stop()
                self.space.fill(what)  # what the stop has freed
                i.start()
                self.held(i)
                self.delivered(i)
                self.recovers(i)
