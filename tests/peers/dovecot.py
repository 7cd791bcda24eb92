"""Dovecot of the packages, in a cell: LMTP, into maildirs. Recipients that it
knows are u0, u1, … (wanted), full (no room: refused after the message, as is
usual of LMTP) and broken (a maildir that cannot be written: later)."""
import packages
from cell import VMAIL, Cell, free_port, listens

CONF = """
base_dir = /run/dovecot
state_dir = /var/lib/dovecot
log_path = /var/log/dovecot
protocols = lmtp
listen = 127.0.0.1
ssl = {ssl}
default_internal_user = dovecot
default_internal_group = dovecot
default_login_user = dovenull
first_valid_uid = 1
hostname = peer.test
mail_location = maildir:~/
mail_plugins = $mail_plugins quota
auth_username_format = %n
passdb {{
  driver = static
  args = nopassword=y
}}
userdb {{
  driver = passwd-file
  args = /etc/dovecot/users
}}
plugin {{
  quota = maildir
  quota_rule = *:storage=100M
}}
service lmtp {{
  inet_listener lmtp {{
    port = {port}
  }}
  unix_listener /run/lmtp {{
    mode = 0666
  }}
}}
service stats {{
  unix_listener stats-writer {{
    mode = 0666
  }}
}}
"""


def can_be_configured():
    """packages.Unavailable where the configurations here are not Dovecot's."""
    version = packages.version("dovecot-core")
    if not version.startswith("2.3."):
        raise packages.Unavailable(f"Dovecot {version}: the configuration of these tests is that of 2.3 (Debian 12)")


class Receiver(Cell):
    def __init__(self, users, certificate=None):
        can_be_configured()
        super().__init__("dovecot")
        self.port = free_port()
        self.make("var/lib/dovecot")
        rows = [f"u{n}:{{PLAIN}}secret:{VMAIL}:{VMAIL}::/mail/u{n}::" for n in range(users)]
        rows += [f"full:{{PLAIN}}secret:{VMAIL}:{VMAIL}::/mail/full::userdb_quota_rule=*:bytes=10",
                 f"broken:{{PLAIN}}secret:{VMAIL}:{VMAIL}::/mail/broken::"]
        self.write("etc/dovecot/users", "\n".join(rows) + "\n")
        self.write("mail/broken", "not a directory\n")
        ssl = "no"
        if certificate is not None:
            ssl = f"yes\nssl_cert = </etc/tls/{certificate}.pem\nssl_key = </etc/tls/{certificate}.key"
        self.write("etc/dovecot/dovecot.conf", CONF.format(port=self.port, ssl=ssl))
        self.ports = {certificate: self.port}
        self.socket = self.root / "run/lmtp"

    def run(self):
        self.start("/usr/sbin/dovecot", "-F", "-c", "/etc/dovecot/dovecot.conf")
        self.wait_for(lambda: listens(self.port), "Dovecot")
        return self
