"""OpenSMTPD of the packages, in a cell: takes mail for opensmtpd.test into
maildirs."""
from cell import Cell, free_port, listens

CONF = """
smtp max-message-size 30M
table boxes {{ "@opensmtpd.test" = "vmail" }}
table domains {{ "opensmtpd.test" }}
{pki}
filter later phase rcpt-to match rcpt-to regex {{ "^slow" }} reject "451 4.7.1 later"
filter nobody phase rcpt-to match !rcpt-to regex {{ "^(u[0-9]+|slow[0-9]*)@" }} reject "550 5.1.1 no such user"
filter both chain {{ later, nobody }}
listen on 127.0.0.1 port {port} hostname peer.test filter both
{listen}
action "box" maildir "/mail/%{{dest.user}}" virtual <boxes>
match from any for domain <domains> action "box"
"""


class Receiver(Cell):
    def __init__(self, certificates=()):
        super().__init__("opensmtpd")
        self.port = free_port()
        self.ports = {"without": self.port} | {kind: free_port() for kind in certificates}
        self.make("var/spool/smtpd", mode=0o711)
        self.make("var/empty")
        self.make("var/lib/opensmtpd/empty")
        self.write("etc/mailname", "peer.test\n")
        self.write("etc/smtpd.conf", CONF.format(
            port=self.port, pki="\n".join(f'pki {k} cert "/etc/tls/{k}.pem"\npki {k} key "/etc/tls/{k}.key"'
                                          for k in certificates),
            listen="\n".join(f"listen on 127.0.0.1 port {self.ports[k]} hostname peer.test tls pki {k} filter both"
                             for k in certificates)))

    def run(self):
        for file in (self.root / "etc/tls").glob("ca.pem"):
            # OpenSMTPD since 7 ends without the authorities of the system.
            self.write("etc/ssl/certs/ca-certificates.crt", file.read_text())
        self.start("/usr/sbin/smtpd", "-d", "-f", "/etc/smtpd.conf")
        self.wait_for(lambda: listens(self.port), "OpenSMTPD")
        return self
