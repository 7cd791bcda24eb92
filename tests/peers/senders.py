"""Systems that send mail for *.example by MX records, each in the place of the other:
they take messages by SMTP, try each once, and wait six seconds for a reply to MAIL."""
import re
import smtplib

from cell import Cell, free_port, listens
from instance import Instance
from network import RESOLV
from postfix import Postfix

EXIM = """
primary_hostname = peer.test
daemon_smtp_ports = {port}
local_interfaces = 127.0.0.1
log_file_path = /var/log/exim4/%slog
acl_smtp_rcpt = accept
never_users =
message_size_limit = 30M
smtp_accept_queue_per_connection = 0
keep_environment =
tls_advertise_hosts =
begin routers
away:
  driver = dnslookup
  transport = away
begin transports
away:
  driver = smtp
  command_timeout = 6s
begin retry
* * F,2h,1h
"""


def submit(port, sender, rcpts, message):
    with smtplib.SMTP("127.0.0.1", port) as client:
        client.sendmail(sender, rcpts, message)


class PostfixSender(Postfix):
    title = "Postfix"
    result = r"to=<{rcpt}>, .*status=(\w+)"

    def __init__(self):
        super().__init__({"smtp_mail_timeout": "6s", "minimal_backoff_time": "1h", "maximal_backoff_time": "2h",
                          "queue_run_delay": "1h"})
        self.write("etc/resolv.conf", RESOLV)

    def send(self, sender, rcpts, message):
        submit(self.port, sender, rcpts, message)

    def status(self, rcpt):
        found = re.search(self.result.format(rcpt=re.escape(rcpt)), self.log())
        return found and found[1]


class EximSender(Cell):
    title = "Exim"
    words = {"=>": "sent", "->": "sent", "==": "deferred", "**": "bounced"}

    def __init__(self):
        super().__init__("exim")
        self.port = free_port()
        for folder in ("var/spool/exim4", "var/log/exim4", "run/exim4"):
            self.make(folder, "Debian-exim", mode=0o750)
        self.write("etc/resolv.conf", RESOLV)
        self.write("etc/exim4/exim4.conf", EXIM.format(port=self.port))

    def run(self):
        self.start("/usr/sbin/exim4", "-bdf")
        self.wait_for(lambda: listens(self.port), "Exim")
        return self

    def send(self, sender, rcpts, message):
        submit(self.port, sender, rcpts, message)

    def status(self, rcpt):
        found = re.search(rf" (=>|->|==|\*\*) {re.escape(rcpt)} ", self.log())
        return found and self.words[found[1]]


class OurSender(Instance):
    title = "ours"

    def __init__(self):
        super().__init__(queues=1, routing="test.example local\n* smtp\n", conf={
            "smtp_mail_timeout": "6s", "minimal_backoff_time": "1h", "maximal_backoff_time": "2h"})

    def run(self):
        resolv = self.dir / "resolv.conf"
        resolv.write_text(RESOLV)
        return self.start(prefix=["unshare", "-m", "sh", "-c", 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"',
                                  "sh", resolv])

    def send(self, sender, rcpts, message):
        self.inject(message, *rcpts, sender=sender, face="queue-inject")

    def status(self, rcpt):
        found = self.log_has(PostfixSender.result.format(rcpt=re.escape(rcpt)))
        return found and found[1]
