"""Postfix of the packages, in a cell: configuration, queue and port of its own."""
import os
import signal

import dovecot
from cell import VMAIL, Cell, free_port

OWNED = ("active", "bounce", "corrupt", "defer", "deferred", "flush", "hold", "incoming", "private", "saved", "trace")
BASE = {
    "compatibility_level": "3.6", "queue_directory": "/var/spool/postfix", "data_directory": "/var/lib/postfix",
    "mail_owner": "postfix", "setgid_group": "postdrop", "myhostname": "peer.test", "mydestination": "",
    "inet_interfaces": "127.0.0.1", "inet_protocols": "ipv4", "mynetworks": "127.0.0.0/8", "alias_maps": "",
    "alias_database": "", "maillog_file": "/var/log/maillog", "smtpd_tls_security_level": "none",
    # A client of this host is not one whose mail is to be completed.
    "local_header_rewrite_clients": "",
}
SERVICES = {
    "cleanup": "unix n - n - 0 cleanup", "qmgr": "unix n - n 300 1 qmgr", "rewrite": "unix - - n - - trivial-rewrite",
    "bounce": "unix - - n - 0 bounce", "defer": "unix - - n - 0 bounce", "trace": "unix - - n - 0 bounce",
    "verify": "unix - - n - 1 verify", "flush": "unix n - n 1000? 0 flush", "proxymap": "unix - - n - - proxymap",
    "smtp": "unix - - n - - smtp", "relay": "unix - - n - - smtp", "error": "unix - - n - - error",
    "retry": "unix - - n - - error", "virtual": "unix - n n - - virtual", "anvil": "unix - - n - 1 anvil",
    "scache": "unix - - n - 1 scache", "tlsmgr": "unix - - n 1000? 1 tlsmgr",
    "postlog": "unix-dgram n - n - 1 postlogd",
}


class Postfix(Cell):
    program = ("/usr/lib/postfix/sbin/master", "-d", "-c", "/etc/postfix")

    def __init__(self, settings=None, directory=None):
        super().__init__("postfix", directory)
        self.port = free_port()
        self.settings = BASE | (settings or {})
        self.without, self.listeners, self.ports = set(), {}, {}
        self.make_queue()
        self.configure()

    def make_queue(self):
        self.make("var/spool/postfix")
        for name in OWNED:
            self.make(f"var/spool/postfix/{name}", "postfix", "root", 0o700)
        self.make("var/spool/postfix/maildrop", "postfix", "postdrop", 0o1730)
        self.make("var/spool/postfix/public", "postfix", "postdrop", 0o2710)
        self.make("var/spool/postfix/pid")
        self.make("var/lib/postfix", "postfix")

    def configure(self, **changes):
        self.settings |= changes
        self.write("etc/postfix/main.cf", "".join(f"{k} = {v}\n" for k, v in self.settings.items()))
        lines = [f"127.0.0.1:{self.port} inet n - n - - smtpd"]
        lines += [f"127.0.0.1:{port} inet n - n - - smtpd {options}" for port, options in self.listeners.items()]
        lines += [f"{name} {rest}" for name, rest in SERVICES.items() if name not in self.without]
        self.write("etc/postfix/master.cf", "\n".join(lines) + "\n")

    def run(self):
        """It listens before it takes signals; it says when it does."""
        log = self.root / "var/log/maillog"
        before = log.stat().st_size if log.exists() else 0
        self.start(*self.program)

        def is_ready():
            if not log.exists() or log.stat().st_size == before:
                return False
            with open(log, "rb") as f:
                f.seek(before)
                return b"daemon started" in f.read()
        self.wait_for(is_ready, "Postfix")
        return self

    def reload(self):
        """master reads its configuration again."""
        os.kill(self.pids()[1], signal.SIGHUP)

    def messages(self):
        """Names of the queue files that are somewhere in the queue."""
        spool = self.root / "var/spool/postfix"
        return [f.name for d in ("maildrop", "incoming", "active", "deferred", "hold", "corrupt")
                for f in (spool / d).rglob("*") if f.is_file()]


class Receiver(Postfix):
    """Takes mail for postfix.test into maildirs below /mail."""

    def __init__(self, users, settings=None):
        super().__init__({
            "virtual_mailbox_domains": "postfix.test", "virtual_mailbox_base": "/mail",
            "virtual_mailbox_maps": "texthash:/etc/postfix/boxes",
            "virtual_uid_maps": f"static:{VMAIL}", "virtual_gid_maps": f"static:{VMAIL}",
            "smtpd_recipient_restrictions": "check_recipient_access regexp:{{/^slow/ 451 4.7.1 later}}, permit_mynetworks, reject",
            "message_size_limit": "30000000",
        } | (settings or {}))
        self.write("etc/postfix/boxes", "".join(f"u{n}@postfix.test u{n}/\n" for n in range(users)))

    def listen(self, certificates):
        """A port for each certificate, and one without TLS."""
        self.ports["without"] = self.port
        for kind, path in certificates.items():
            self.ports[kind] = free_port()
            self.listeners[self.ports[kind]] = (
                f"-o smtpd_tls_security_level=may -o smtpd_tls_chain_files={path}.key,{path}.pem")
        self.configure()
        return self


# Dovecot beside it says whether a password is right.
DOVECOT = """
base_dir = /run/dovecot
state_dir = /var/lib/dovecot
log_path = /var/log/dovecot
protocols = none
ssl = no
default_internal_user = dovecot
default_internal_group = dovecot
default_login_user = dovenull
auth_mechanisms = plain login scram-sha-256
auth_failure_delay = 0
auth_verbose = yes
passdb {
  driver = passwd-file
  args = /etc/dovecot/users
}
userdb {
  driver = static
  args = uid=vmail gid=vmail home=/mail
}
# No delay for an address whose passwords were wrong.
service anvil {
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service auth {
  unix_listener /var/spool/postfix/private/auth {
    mode = 0660
    user = postfix
    group = postfix
  }
}
"""
BOTH = """
/usr/sbin/dovecot -F -c /etc/dovecot/dovecot.conf &
dovecot=$!
/usr/lib/postfix/sbin/master -d -c /etc/postfix &
master=$!
trap 'kill $dovecot $master' TERM
wait $master || wait $master
"""


class Smarthost(Receiver):
    """Takes mail only from users who prove themselves: over TLS by PLAIN or
    LOGIN, on the port `login` by LOGIN alone, on the port `scram` by
    SCRAM-SHA-256 as well; on the port without TLS in the clear."""
    program = ("/bin/sh", "-c", BOTH)

    def __init__(self, boxes, users):
        dovecot.can_be_configured()
        super().__init__(boxes, {
            "smtpd_sasl_auth_enable": "yes", "smtpd_sasl_type": "dovecot", "smtpd_sasl_path": "private/auth",
            "smtpd_sasl_mechanism_filter": "plain, login", "smtpd_error_sleep_time": "0",
            "smtpd_recipient_restrictions": "permit_sasl_authenticated, reject",
        })
        self.make("var/lib/dovecot")
        self.write("etc/dovecot/dovecot.conf", DOVECOT)
        self.write("etc/dovecot/users", "".join(f"{user}:{{PLAIN}}{password}\n" for user, password in users.items()))
        self.listen({kind: "/etc/tls/good" for kind in ("good", "login", "scram")})
        for port in self.listeners:
            self.listeners[port] += " -o smtpd_tls_auth_only=yes"
        for kind, filtered in (("login", "login"), ("scram", "plain,login,scram-sha-256")):
            self.listeners[self.ports[kind]] += f" -o smtpd_sasl_mechanism_filter={filtered}"
        self.configure()

    def run(self):
        super().run()
        self.wait_for((self.root / "var/spool/postfix/private/auth").exists, "Dovecot")
        return self
