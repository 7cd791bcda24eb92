"""Next hops that the domain of a recipient makes: a host name on the transport's
own port, and nothing that a submitter could aim elsewhere."""
import re
import socket
import subprocess

from case import SystemTest
from instance import AS_ROOT, BIN, USERS, but_file_systems, wait

PROGRAM_USER = USERS["maildir_user"] if AS_ROOT else "-"
HELLO = b"Subject: hello\n\nhello\n"


class Nexthop(SystemTest):
    def listener(self):
        sock = socket.socket()
        self.addCleanup(sock.close)
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        sock.setblocking(False)
        return sock, sock.getsockname()[1]

    def unix_listener(self, i):
        sock = socket.socket(socket.AF_UNIX)
        self.addCleanup(sock.close)
        sock.bind(str(i.dir / "sock"))
        (i.dir / "sock").chmod(0o777)
        sock.listen()
        sock.setblocking(False)
        return sock

    def untouched(self, sock):
        """No connection waits to be accepted."""
        with self.assertRaises(BlockingIOError):
            sock.accept()

    def refused(self, kind):
        i = self.instance(queues=1, routing=f"* {kind}\n", programs=f"archive {PROGRAM_USER} /bin/false\n")
        inet, port = self.listener()
        unix = self.unix_listener(i)
        i.start()
        hostile = [f"x@127.0.0.1:{port}", f"x@[127.0.0.1]:{port}", f"x@[::1]:{port}", "x@[::1]:9",
                   f"x@unix:{i.dir}/sock", "x@127.0.0.1", "x@[127.0.0.1]", "x@2130706433",
                   f"x@localhost:{port}"]
        for recipient in hostile:
            i.inject(HELLO, recipient, face="queue-inject")
        # Their reports may be refused as well, where DNS knows no test.example.
        wait(lambda: len(re.findall(r"to=<x@.*dsn=5\.1\.2, status=bounced", i.log())) == len(hostile),
             what="all refused for good")
        lines = re.findall(r"to=<x@.*", i.log())  # their reports go elsewhere
        self.assertFalse([line for line in lines if re.search(r"status=(sent|deferred)", line)])
        self.assertEqual(sum("relay=none" in line for line in lines), len(hostile), "no agent saw them")
        i.stop()
        self.untouched(inet)
        self.untouched(unix)

    # mutation: common/route/target.c, nexthop_of_recipient() gives the domain for ROUTE_TO_HOST.
    def test_N18_attack_12_smtp(self):
        self.refused("smtp")

    def test_N18_attack_12_lmtp(self):
        self.refused("lmtp")

    # mutation: common/route/target.c, nexthop_of_recipient() gives the domain for ROUTE_TO_PROGRAM.
    def test_N18_attack_12_pipe(self):
        i = self.instance(queues=1, routing="* pipe\n")
        ran = i.dir / "ran"
        ran.mkdir()
        ran.chmod(0o777)
        i.programs_file.write_text(f"archive {PROGRAM_USER} /usr/bin/touch {ran}/yes\n")
        i.start()
        recipients = ["x@archive", "x@ARCHIVE", "x@other"]
        for recipient in recipients:
            i.inject(HELLO, recipient, face="queue-inject")
        # Their reports are refused as well.
        wait(lambda: len(re.findall(r"to=<x@.*dsn=5\.1\.2, status=bounced", i.log())) == len(recipients),
             what="all refused for good")
        i.stop()
        self.assertFalse(list(ran.iterdir()), "no program was run")

    # mutation: common/route/route.c, check_nexthop() returns NULL always.
    def test_N18_check_refuses_what_cannot_work(self):
        i = self.instance(queues=1, programs=f"archive {PROGRAM_USER} /bin/false\n")
        for rule, want in (("* smtp:h:99999", "not a next hop"), ("* lmtp:unix:relative", "not a next hop"),
                           ("* smtp:unix:/x", "not a next hop"), ("* lmtp:unix:/x", None),
                           ("* pipe:nosuch", 'has no program "nosuch"'), ("* pipe", "no program is named"),
                           ("* pipe:archive", None), ("* smtp:h:25", None), ("* smtp", None)):
            i.routing_file.write_text(f"# a comment\n{rule}\ntest.example local\n")
            done = subprocess.run([BIN / "qscheduler", "--check", i.conf_file], capture_output=True,
                                  text=True, check=False, env=i.environment())
            if want is None:
                self.assertEqual((done.returncode, but_file_systems(done.stderr)), (0, []), rule)
            else:
                self.assertEqual(done.returncode, 100, rule)
                self.assertIn(f"{i.routing_file}:2: ", done.stderr)
                self.assertIn(want, done.stderr)

    def test_a_literal_where_the_transport_allows_it(self):
        """Refused by the kernel or by whoever listens on port 24: it was an attempt."""
        i = self.running(queues=1, routing="* lmtp\n", conf={"lmtp_domain_literals": "yes"})
        i.inject(HELLO, "x@[127.0.0.1]", "x@[127.0.0.1]:24", face="queue-inject")
        wait(lambda: i.log_has(r"to=<x@\[127\.0\.0\.1\]>, .*127\.0\.0\.1\]"), what="an attempt")
        wait(lambda: i.log_has(r"to=<x@\[127\.0\.0\.1\]:24>.*dsn=5\.1\.2, status=bounced"),
             what="a port stays refused")
        i.stop()
