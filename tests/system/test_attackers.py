"""Forbidden to an unprivileged local user: the local attacks 5, 9, 11 and 15
of the fault catalogue, by uid 65534 against an instance of root."""
import contextlib
import json
import os
import pathlib
import re
import subprocess

from case import SystemTest, needs_root
from instance import BIN, ROOT, wait
from peer import Peer
from test_attack import ATTACKER, TRY, attack

HELLO = b"Subject: hello\n\nhello\n"
LATER = "later.example smtp:127.0.0.1:1\n* local\n"
HOUR = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}  # what waits stays where it is


class Users(SystemTest):
    def test_X16_users_are_of_the_system(self):
        """logind removes what ordinary users leave in shared memory when they log out."""
        text = (ROOT / "etc/make-users").read_text()
        made = re.findall(r"\b(?:useradd|groupadd) .*", text)
        self.assertGreaterEqual(len(made), 2)
        for command in made:
            self.assertIn(" --system ", command)


@needs_root
class Attackers(SystemTest):
    def delivers(self, i, user="alice"):
        before = len(i.maildir(user))
        i.inject(HELLO, f"{user}@test.example")
        i.wait_delivered(user, before + 1)

    def test_attack_5_delete_hold_or_retry_others_mail(self):
        i = self.running(queues=1, routing=LATER, conf=HOUR)
        i.inject(HELLO, "x@later.example")
        [f] = wait(lambda: i.files("deferred"), what="a deferred message")
        tools = [BIN / "setqload", BIN / "queue-inject"]
        for tool in tools:
            (i.dir / tool.name).write_bytes(tool.read_bytes())
            (i.dir / tool.name).chmod(0o755)
        said = attack(TRY + """
import subprocess
message, base, supervisor = sys.argv[1:4]
queue = os.path.dirname(os.path.dirname(os.path.dirname(message)))
attempt(os.stat, message)
attempt(os.unlink, message)
attempt(os.utime, message)
attempt(os.rename, message, queue + "/hold/x")
attempt(os.kill, int(supervisor), 14)
for name in ("by-hand", "queues", "conf", "lock"):
    attempt(os.open, f"{base}/{name}", os.O_WRONLY | os.O_CREAT, 0o666)
    attempt(os.unlink, f"{base}/{name}")
for words in (["--disable", "-q", "1"], ["-q", "1", "100"], ["--count", "7"], ["--clear"]):
    done = subprocess.run([sys.argv[4], *words, "-c", sys.argv[5]], capture_output=True)
    print("EPERM" if done.returncode != 0 else "DONE")
""", f, i.base, i.process.pid, i.dir / "setqload", i.conf_file)
        self.assertEqual(set(said) - {"EACCES", "EPERM", "ENOENT"}, set())  # there may be no such file
        self.assertTrue(f.exists())
        self.delivers(i)
        i.stop()

    def test_attack_4_attack_5_by_the_command_of_operators(self):
        """No verb shows or changes anything, whether the instance runs or not, and no message leaks an address."""
        i = self.running(queues=1, routing=LATER, conf=HOUR)
        i.inject(HELLO, "secret@later.example", sender="hidden@test.example")
        [f] = wait(lambda: i.files("deferred"), what="a deferred message")
        (i.dir / "qctl").write_bytes((BIN / "qctl").read_bytes())
        (i.dir / "qctl").chmod(0o755)
        made = subprocess.run([BIN / "qctl", "list", "--json"], env=i.environment(), capture_output=True, text=True,
                              check=True)
        one = json.loads(made.stdout)["queue_id"]
        before = f.stat()
        for _ in range(2):
            said = attack("""
import subprocess
qctl, conf, one = sys.argv[1:4]
for name, *words in (["qctl", "list"], ["qctl", "list", "--json"], ["mailq"], ["postqueue", "-p"], ["qctl", "show", one],
        ["qctl", "show", "--content", one], ["qctl", "shape"], ["qctl", "check"], ["qctl", "check", "--repair"],
        ["qctl", "hold", one], ["qctl", "delete", "ALL", "--yes"], ["qctl", "retry", "ALL"], ["postqueue", "-f"],
        ["qctl", "expire", one], ["qctl", "requeue", "--failed", one], ["postsuper", "-d", "ALL"], ["postsuper", "-s"],
        ["postqueue", "-i", one]):
    done = subprocess.run([name, *words], executable=qctl, env={"QSCHED_CONF": conf}, capture_output=True)
    text = done.stdout + done.stderr
    print(done.returncode, "LEAK" if b"@" in text or b"example" in text else "-")
""", i.dir / "qctl", i.conf_file, one)
            self.assertEqual(set(said), {"77", "-"}, said)
            self.assertEqual((f.stat().st_ino, f.stat().st_mtime), (before.st_ino, before.st_mtime))
            if i.process is not None:
                i.stop()

    def test_attack_9_end_a_daemon_with_any_bytes_on_any_socket(self):
        """Nothing of the instance listens on the network, and no channel has a name that one could open; requests
        have a socket, and operators have one in each queue, with the modes of their own."""
        i = self.running()
        inodes = set()
        for pid in i.all_daemons():
            for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    m = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(fd))
                    inodes |= {m.group(1)} if m else set()
        self.assertTrue(inodes)
        ours = f"/dev/shm/{i.name}.qscheduler.ask"
        operators = sorted(str(p) for p in i.base.glob("queue*/lock/operate"))
        self.assertTrue(operators)
        for table in ("tcp", "tcp6", "udp", "udp6"):
            for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                self.assertNotIn(line.split()[9], inodes, line)
        for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
            words = line.split()
            if words[6] in inodes:
                name = " ".join(words[7:])
                self.assertTrue(name in ("", ours) or name.endswith("/operate"), f"{name}: it has a name")
        self.assertEqual(os.stat(ours).st_mode & 0o7777, 0o600)
        for path in operators:
            self.assertEqual(os.stat(path).st_mode & 0o7777, 0o660)
        said = attack(TRY + """
import socket
def send(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(b"x" * 100, path)
attempt(send, sys.argv[1])
attempt(os.unlink, sys.argv[1])
attempt(os.chmod, sys.argv[1], 0o666)
def join(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(path)
        s.send(b"x" * 100)
for path in sys.argv[2:]:
    attempt(join, path)
    attempt(os.unlink, path)
""", ours, *operators)
        self.assertEqual(set(said) - {"EACCES", "EPERM"}, set())
        before = i.daemons()
        attack("""
import random, subprocess
random.seed(9)
for n in range(40):
    subprocess.run([sys.argv[1], sys.argv[2], "1"], input=random.randbytes(random.randrange(4000)),
                   capture_output=True)
""", BIN / "queue-drop", i.base)
        self.assertEqual(i.daemons(), before)
        self.delivers(i)
        i.stop()

    def test_attack_11_S2_line_ends_in_addresses_and_headers(self):
        i = self.instance(queues=1)
        peer = Peer(i.dir / "peer")
        self.addCleanup(peer.stop)
        i.routing_file.write_text(f"away.example smtp:127.0.0.1:{peer.port}\n* local\n")
        i.start()
        for bad in ("a\r\nRCPT TO:<b@away.example>", "a\nb", "a\rb"):
            for face in ("sendmail", "queue-inject"):
                done = i.inject(HELLO, f"{bad}@away.example", face=face, check=False)
                self.assertNotEqual(done.returncode, 0, bad)
                self.assertNotIn(b"\r", done.stderr)
                done = i.inject(HELLO, "x@away.example", sender=f"{bad}@test.example", face=face, check=False)
                self.assertNotEqual(done.returncode, 0, bad)
        i.inject(b"Subject: a\rBcc: b@away.example\r\n\r\nx\n.\nQUIT\n..\r\n", "x@away.example", "alice@test.example")
        i.wait_delivered("alice", 1)
        i.wait_empty()
        i.stop()
        [message] = [m.read_bytes() for m in peer.messages()]
        self.assertNotIn(b"\rBcc", message)
        self.assertNotIn(b"\nBcc", message)
        self.assertEqual(message.replace(b"\r\n", b"").count(b"\r"), 0)
        self.assertIn(b"\r\n.\r\nQUIT\r\n..\r\n", message, "unstuffed, and whole")
        self.assertEqual([e["to"] for e in peer.envelopes()], [["x@away.example"]])
        for line in i.log().splitlines():
            self.assertTrue(line.startswith(("qscheduler", "queue-send", "todo-proc", "deliver-")), line)

    def test_attack_15_make_others_mail_bounce(self):
        """The attacker's mail makes the host hang up, again and again; others' mail to the same
        host waits, or goes through, and never fails."""
        i = self.instance(queues=1)
        peer = Peer(i.dir / "peer")
        self.addCleanup(peer.stop)
        i.routing_file.write_text(f"away.example smtp:127.0.0.1:{peer.port}\n* local\n")
        i.start()
        for n in range(20):
            i.inject(HELLO, f"550-{n}@away.example", f"451-{n}@away.example", uid=ATTACKER)
        i.inject(HELLO, "honest@away.example")
        wait(lambda: i.log_has(r"to=<honest@away\.example>.*status=sent"), what="honest mail")
        self.assertFalse(i.log_has(r"to=<honest@away\.example>.*status=(bounced|expired)"))
        i.stop()
