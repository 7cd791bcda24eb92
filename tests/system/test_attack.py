"""Forbidden to an unprivileged local user: the local attacks
1, 2, 3, 4, 6, 7 and 8 of the fault catalogue, by uid 65534 against an instance of root."""
import os
import pathlib
import stat
import subprocess

from case import SystemTest, needs_root
from instance import HANG, USERS, status_of, wait

HELLO = b"Subject: hello\n\nhello\n"
ATTACKER = 65534


def attack(code, *words):
    """Python run by the attacker; what it prints."""
    done = subprocess.run(
        ["setpriv", "--reuid", str(ATTACKER), "--regid", str(ATTACKER), "--clear-groups",
         "/usr/bin/python3", "-c", "import ctypes, errno, os, sys\n" + code, *map(str, words)],
        capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


TRY = """
def attempt(call, *args):
    try:
        call(*args)
        print("DONE")
    except OSError as e:
        print(errno.errorcode[e.errno])
"""


@needs_root
class Attack(SystemTest):
    def delivers(self, i):
        before = len(i.maildir("alice"))
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", before + 1)

    def queues_of(self, i):
        """The names that are message queues, too."""
        return [n for n in i.ipc_names() if not n.endswith(".sites")]

    def test_attack_1_forge_load_in_shared_memory(self):
        i = self.running()
        said = attack(TRY + """
for path in sys.argv[1:]:
    attempt(os.open, path, os.O_RDWR)
    attempt(os.truncate, path, 0)
    attempt(os.unlink, path)
    attempt(os.chmod, path, 0o666)
""", *[f"/dev/shm{n}" for n in i.ipc_names()])
        self.assertTrue(said)
        self.assertEqual(set(said) - {"EACCES", "EPERM"}, set())
        self.delivers(i)
        i.stop()

    def test_attack_2_send_to_read_from_fill_a_message_queue(self):
        i = self.running()
        said = attack("""
librt = ctypes.CDLL(None, use_errno=True)
for name in sys.argv[1:]:
    for flags in (os.O_WRONLY, os.O_RDONLY, os.O_RDWR):
        fd = librt.mq_open(name.encode(), flags | os.O_NONBLOCK)
        print(errno.errorcode[ctypes.get_errno()] if fd < 0 else "OPEN")
    print("REMOVED" if librt.mq_unlink(name.encode()) == 0 else errno.errorcode[ctypes.get_errno()])
""", *self.queues_of(i))
        self.assertTrue(said)
        self.assertEqual(set(said) - {"EACCES", "EPERM"}, set())
        self.delivers(i)
        i.stop()

    def test_attack_3_squat_on_every_name(self):
        i = self.instance()
        attack("""
librt = ctypes.CDLL(None, use_errno=True)
for name in sys.argv[1:]:
    os.close(os.open("/dev/shm" + name, os.O_CREAT | os.O_RDWR, 0o666))
    librt.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
for more in (".sites", ".ask"):
    os.close(os.open("/dev/shm" + sys.argv[1] + more, os.O_CREAT | os.O_RDWR, 0o666))
""", *i.ipc_names())
        i.start()
        self.delivers(i)
        for name in [*i.ipc_names(), f"{i.ipc_names()[0]}.sites", f"{i.ipc_names()[0]}.ask"]:
            self.assertNotEqual(os.stat(f"/dev/shm{name}").st_uid, ATTACKER)
        i.stop()

    def test_attack_7_X10_no_name_in_maildrop(self):
        """Squatting on coming names, directories, renames, links, fifos: none can be made,
        and the mail of others goes on, also over a restart."""
        i = self.running(queues=1)
        drop = i.queue(1) / "gate/maildrop"
        said = attack(TRY + """
drop = sys.argv[1]
for n in range(2000):
    attempt(os.mkdir, f"{drop}/{n}")
for path in (drop, os.path.dirname(drop)):
    attempt(os.listdir, path)
    attempt(os.open, path, os.O_PATH)
    attempt(os.open, path, os.O_TMPFILE | os.O_WRONLY, 0o600)
    attempt(os.symlink, "/etc/shadow", path + "/shadow")
    attempt(os.mkfifo, path + "/34567")
    attempt(os.open, path + "/56789", os.O_CREAT | os.O_WRONLY, 0o666)
    attempt(os.stat, path + "/56789")
    attempt(os.rename, path, path + "x")
    attempt(os.chmod, path, 0o777)
""", drop)
        # A descriptor that only names a place in the tree can do nothing with it.
        self.assertEqual([w for w in said if w not in ("EACCES", "EPERM")], ["DONE"])
        for n in range(10):
            i.inject(HELLO, "bob@test.example", uid=ATTACKER - 1 - n)
        mails = i.wait_delivered("bob", 10)
        for mail in mails:
            self.assertRegex(mail.read_bytes().split(b"\n\n")[0], rb"from uid 655\d\d\)\n\tid [0-9A-F]+;")
        i.inject(HELLO, "bob@test.example", uid=ATTACKER)
        i.wait_delivered("bob", 11)
        self.delivers(i)
        i.stop()
        i.start()
        i.inject(HELLO, "bob@test.example", uid=ATTACKER)
        i.wait_delivered("bob", 12)
        self.assertEqual(i.files("corrupt"), [])
        i.stop()

    def test_attack_4_directories_and_files_are_closed(self):
        i = self.running(queues=1, routing="later.example smtp:127.0.0.1:1\n* local\n")
        i.inject(HELLO, "x@later.example")
        wait(lambda: i.files("deferred"), what="a deferred message")
        self.assertNotEqual(os.stat(i.queue(1)).st_mode & stat.S_IROTH, stat.S_IROTH)
        said = attack(TRY + """
for path in sys.argv[1:]:
    attempt(os.listdir, path)
""", *[i.queue(1) / d for d in ("incoming", "active", "deferred", "hold", "corrupt", "defer",
                                 "bounce", "lock", "gate", "gate/maildrop")])
        self.assertEqual(set(said), {"EACCES"})
        i.stop()

    def test_attack_1_the_table_of_destinations_is_closed(self):
        i = self.running()
        path = f"/dev/shm/{i.name}.qscheduler.sites"
        if not os.path.exists(path):
            self.skipTest("there is no table of destinations")
        said = attack(TRY + """
path = sys.argv[1]
attempt(os.open, path, os.O_RDONLY)
attempt(os.open, path, os.O_RDWR)
attempt(os.truncate, path, 0)
attempt(os.unlink, path)
""", path)
        self.assertEqual(set(said) - {"EACCES", "EPERM"}, set())
        self.delivers(i)
        i.stop()

    def test_attack_1_a_queue_cannot_be_marked_closed(self):
        i = self.running(queues=1)
        said = attack(TRY + """
queue = sys.argv[1]
for name in ("closed", "queue", "lock/closed"):
    attempt(os.open, f"{queue}/{name}", os.O_CREAT | os.O_WRONLY, 0o666)
    attempt(os.symlink, "/etc/passwd", f"{queue}/{name}")
attempt(os.rename, f"{queue}/gate", f"{queue}/x")
attempt(os.rename, f"{queue}/gate/maildrop", f"{queue}/x")
attempt(os.rename, queue, queue + "x")
attempt(os.mkdir, os.path.dirname(queue) + "/queue7")
attempt(os.open, os.path.dirname(queue) + "/queues", os.O_WRONLY)
""", i.queue(1))
        self.assertEqual(set(said) - {"EACCES", "EPERM", "EEXIST"}, set())
        self.delivers(i)
        i.stop()

    def test_attack_6_X8_signal_or_trace_a_daemon(self):
        i = self.running(queues=1)
        pids = i.all_daemons()
        said = attack(TRY + """
import signal
libc = ctypes.CDLL(None, use_errno=True)
def ptrace(request, pid):
    if libc.ptrace(request, pid, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")
def pidfd_signal(pid, number):
    signal.pidfd_send_signal(os.pidfd_open(pid), number)
def read_memory(pid):
    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
    room = ctypes.create_string_buffer(8)
    here, there = Vector(ctypes.addressof(room), 8), Vector(0x400000, 8)
    if libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_readv")
for pid in map(int, sys.argv[1:]):
    for number in (0, signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP, signal.SIGALRM, signal.SIGCONT):
        attempt(os.kill, pid, number)
        attempt(pidfd_signal, pid, number)
    attempt(ptrace, 16, pid)      # PTRACE_ATTACH
    attempt(ptrace, 0x4206, pid)  # PTRACE_SEIZE
    attempt(read_memory, pid)
    attempt(os.killpg, os.getpgid(pid), signal.SIGKILL)
    for name in ("mem", "environ", "maps", "stack", "auxv", "fd", "io"):
        path = f"/proc/{pid}/{name}"
        attempt(os.listdir if name == "fd" else lambda p: os.read(os.open(p, os.O_RDONLY), 1), path)
""", *pids)
        self.assertTrue(said)
        self.assertEqual(set(said) - {"EACCES", "EPERM"}, set())
        self.assertEqual(i.daemons(), pids, "nobody has ended")
        self.delivers(i)
        i.stop()

    def test_attack_6_nor_may_one_agent_another(self):
        """An agent that is taken over has the user qmailr: its power over others."""
        i = self.running(queues=2)
        import pwd
        user = pwd.getpwnam(USERS["qmailr_user"])
        others = [p for p in i.all_daemons() if p not in i.pids("deliver-smtp")]
        agents = i.pids("deliver-smtp")
        wait(lambda: all(f"\nUid:\t{user.pw_uid}\t" in status_of(p) for p in agents), what="agents of that user")
        code = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for pid in map(int, sys.argv[2:]):
    try:
        os.kill(pid, 0)
        print("SIGNAL", pid)
    except PermissionError:
        pass
for pid in map(int, sys.argv[1].split(",") + sys.argv[2:]):
    if libc.ptrace(0x4206, pid, 0, 0) == 0:
        print("TRACED", pid)
    try:
        open(f"/proc/{pid}/mem", "rb").read(1)
        print("READ", pid)
    except PermissionError:
        pass
"""
        done = subprocess.run(["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid),
                               "--clear-groups", "/usr/bin/python3", "-c", code, ",".join(map(str, agents)),
                               *map(str, others)], capture_output=True, text=True, check=True, timeout=HANG)
        self.assertEqual(done.stdout, "", "they are not dumpable")
        i.stop()

    def test_attack_8_hold_a_lock(self):
        """Each file of ours that a user can open is locked, by both kinds of locks, from
        before the start of the second instance on it to its end."""
        i = self.running(queues=2)
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        paths = [i.base, *sorted(i.base.rglob("*")), *(pathlib.Path(f"/dev/shm{n}") for n in i.ipc_names()),
                 i.dir, i.mail, i.conf_file, i.routing_file, i.programs_file]
        holder = subprocess.Popen(
            ["setpriv", "--reuid", str(ATTACKER), "--regid", str(ATTACKER), "--clear-groups",
             "/usr/bin/python3", "-c", """
import fcntl, os, sys
held = []
for path in sys.stdin.readline().split():
    for flags in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY):
        try:
            fd = os.open(path, flags)
        except OSError:
            continue
        for lock in (fcntl.flock, fcntl.lockf):
            try:
                lock(fd, (fcntl.LOCK_EX if lock is fcntl.flock or flags else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            except OSError:
                pass
        held.append(fd)
        print(path)
        break
print("HELD", flush=True)
sys.stdin.read()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.kill)
        holder.stdin.write(" ".join(map(str, paths)) + "\n")
        holder.stdin.flush()
        opened = []
        for line in holder.stdout:
            if line.strip() == "HELD":
                break
            opened.append(line.strip())
        self.assertFalse([p for p in opened if "/lock" in p], "locks cannot be opened")
        self.assertIn(str(i.base), opened, "directories can")
        self.delivers(i)
        old = i.pids("queue-send")
        os.kill(old[0], 9)  # the next one takes its locks, too
        wait(lambda: len(set(i.pids("queue-send")) - set(old)) == 1 and i.page(1), what="another queue-send")
        self.delivers(i)
        i.reload()
        i.stop()
        i.start()
        self.delivers(i)
        i.stop()
        holder.communicate("")

    def test_agents_run_as_their_own_user(self):
        i = self.running(queues=1)
        import pwd
        want = {"queue-send": "qmails_user", "todo-proc": "qmailq_user", "deliver-smtp": "qmailr_user"}

        for program, user in want.items():  # an agent takes its user some time after it is there
            uid = pwd.getpwnam(USERS[user]).pw_uid
            wait(lambda p=program, u=uid: [s for s in map(status_of, i.daemons(p)) if f"\nUid:\t{u}\t{u}\t{u}\t{u}\n" in s],
                 what=f"{program} as {user}")
        i.stop()

    # mutation: deliver-smtp/smtp.c without .lockdown; deliver-local/local.c without .lockdown.
    def test_X8_agents_keep_no_right_that_they_do_not_need(self):
        i = self.running(queues=1, conf={"log_level": "debug"})

        i.all_daemons()

        def status(program):
            [pid] = i.daemons(program)
            lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
            return dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        wait(lambda: status("deliver-smtp").get("Seccomp") == "2", what="an agent that has given up its rights")
        self.delivers(i)  # by an agent that is ready
        smtp, local = status("deliver-smtp"), status("deliver-local")
        self.assertEqual((smtp["Seccomp"], smtp["NoNewPrivs"], int(smtp["CapPrm"], 16)), ("2", "1", 0))
        kill_setgid_setuid = 1 << 5 | 1 << 6 | 1 << 7
        for name, want in (("CapEff", kill_setgid_setuid), ("CapPrm", kill_setgid_setuid), ("CapInh", 0)):
            self.assertEqual(int(local[name], 16), want, name)
        self.delivers(i)
        i.reload()
        wait(lambda: i.log().count("configuration reloaded") >= 5, what="a reload by all")
        self.delivers(i)
        i.stop()

    # mutation: deliver-local/privileges.c fails where a capability is missing.
    def test_X8_a_container_without_cap_kill(self):
        i = self.instance(queues=1)
        i.start(prefix=("setpriv", "--bounding-set", "-kill", "--inh-caps", "-kill", "--"))
        wait(lambda: i.log_has("deliver-local/1: warning: cannot end deliveries that hang: CAP_KILL is missing"), what="the warning")
        self.delivers(i)
        i.destroy()
