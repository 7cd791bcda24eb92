"""What an unprivileged local user must not be able to do: the local attacks
1, 2, 3 and 7 of the fault catalogue, by uid 65534 against an instance of root."""
import os
import pathlib
import stat
import subprocess

from case import SystemTest, needs_root
from instance import USERS, wait

HELLO = b"Subject: hello\n\nhello\n"
ATTACKER = 65534


def attack(code, *words):
    """Python run by the attacker; what it prints."""
    done = subprocess.run(
        ["setpriv", "--reuid", str(ATTACKER), "--regid", str(ATTACKER), "--clear-groups",
         "/usr/bin/python3", "-c", "import ctypes, errno, os, sys\n" + code, *map(str, words)],
        capture_output=True, text=True, check=False, timeout=60)
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
""", *i.ipc_names())
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
os.close(os.open("/dev/shm" + sys.argv[1] + ".sites", os.O_CREAT | os.O_RDWR, 0o666))
""", *i.ipc_names())
        i.start()
        self.delivers(i)
        for name in [*i.ipc_names(), f"{i.ipc_names()[0]}.sites"]:
            self.assertNotEqual(os.stat(f"/dev/shm{name}").st_uid, ATTACKER)
        i.stop()

    def test_attack_7_links_and_fifos_in_maildrop(self):
        i = self.running(queues=1)
        drop = i.queue(1) / "maildrop"
        secret = i.dir / "secret"
        secret.write_bytes(b"secret\n")
        os.chmod(secret, 0o600)
        open_to_all = i.dir / "readable"
        open_to_all.write_bytes(b"root's\n")
        before = [secret.stat(), open_to_all.stat()]
        said = attack(TRY + """
drop, secret, readable = sys.argv[1:]
attempt(os.listdir, drop)
attempt(os.symlink, secret, drop + "/12345")
attempt(os.symlink, "/etc/shadow", drop + "/shadow")
attempt(os.link, readable, drop + "/23456")
attempt(os.mkfifo, drop + "/34567")
attempt(os.mkdir, drop + "/45678")
open(drop + "/56789", "wb").write(b"garbage")
fd = os.open(drop + "/67890", os.O_CREAT | os.O_WRONLY, 0o666)
os.truncate(fd, 1 << 40)
""", drop, secret, open_to_all)
        self.assertEqual(said[0], "EACCES", "it may not be listed")
        self.delivers(i)
        # The attacker's own mail still passes, in the name of its uid.
        i.inject(HELLO, "bob@test.example", uid=ATTACKER)
        [mail] = i.wait_delivered("bob", 1)
        self.assertIn(str(ATTACKER).encode(), mail.read_bytes().split(b"\n\n")[0])
        wait(lambda: not (drop / "56789").exists(), what="garbage out of the way")
        for was, now in zip(before, [secret.stat(), open_to_all.stat()]):
            self.assertEqual((was.st_mode, was.st_uid, was.st_gid, was.st_size),
                             (now.st_mode, now.st_uid, now.st_gid, now.st_size))
        self.assertEqual(secret.read_bytes(), b"secret\n")
        for path in i.files("corrupt"):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 30:
                continue
            self.assertNotIn(b"secret", path.read_bytes())
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
                                 "bounce", "lock", "maildrop")])
        self.assertEqual(set(said), {"EACCES"})
        i.stop()

    def test_agents_run_as_their_own_user(self):
        i = self.running(queues=1)
        import pwd
        want = {"queue-send": "qmails_user", "todo-proc": "qmailq_user", "deliver-smtp": "qmailr_user"}
        for program, user in want.items():
            [pid] = i.pids(program)
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            uids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
            self.assertEqual(set(uids), {str(pwd.getpwnam(USERS[user]).pw_uid)}, program)
        i.stop()
