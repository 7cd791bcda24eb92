"""Exim of the packages, in a cell: takes mail for exim.test into maildirs, and
as a smarthost only from users who prove themselves."""
from cell import Cell, free_port, listens

CONF = """
primary_hostname = peer.test
domainlist local_domains = exim.test
daemon_smtp_ports = {ports}
local_interfaces = 127.0.0.1
log_file_path = /var/log/exim4/%slog
log_selector = +smtp_connection +smtp_no_mail
acl_smtp_rcpt = acl_rcpt
never_users =
message_size_limit = 30M
tls_advertise_hosts = ${{lookup{{$received_port}}lsearch{{/etc/exim4/tls}}{{*}}{{}}}}
tls_certificate = /etc/tls/${{lookup{{$received_port}}lsearch{{/etc/exim4/tls}}}}.pem
tls_privatekey = /etc/tls/${{lookup{{$received_port}}lsearch{{/etc/exim4/tls}}}}.key
recipients_max = 0
smtp_accept_max = 100
smtp_accept_max_per_connection = 1000
smtp_accept_queue_per_connection = 0
smtp_enforce_sync = true
dsn_advertise_hosts = *
chunking_advertise_hosts = *
accept_8bitmime = true
keep_environment =
begin acl
acl_rcpt:
{only}
  defer local_parts = ^slow
        message = 4.7.1 later
  deny  ! local_parts = lsearch;/etc/exim4/boxes
        message = 5.1.1 no such user
  accept domains = +local_domains
  deny
begin routers
box:
  driver = accept
  domains = +local_domains
  local_parts = lsearch;/etc/exim4/boxes
  transport = box
begin transports
box:
  driver = appendfile
  directory = /mail/$local_part_data
  maildir_format
  create_directory
  user = vmail
  group = vmail
  mode = 0644
"""
# PLAIN and LOGIN over TLS; on the port `login` LOGIN alone; on the port without
# TLS in the clear.
AUTHENTICATORS = """
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${{if eq{{$auth3}}{{${{lookup{{$auth2}}lsearch{{/etc/exim4/users}}{{$value}}fail}}}}}}
  server_set_id = $auth2
  server_advertise_condition = ${{if or{{{{def:tls_in_cipher}}{{eq{{$received_port}}{{{without}}}}}}}{{${{if eq{{$received_port}}{{{login}}}{{no}}{{yes}}}}}}}}
login:
  driver = plaintext
  public_name = LOGIN
  server_prompts = <| Username: | Password:
  server_condition = ${{if eq{{$auth2}}{{${{lookup{{$auth1}}lsearch{{/etc/exim4/users}}{{$value}}fail}}}}}}
  server_set_id = $auth1
  server_advertise_condition = ${{if or{{{{def:tls_in_cipher}}{{eq{{$received_port}}{{{without}}}}}}}}}
"""


class Receiver(Cell):
    def __init__(self, users, certificates=()):
        super().__init__("exim")
        self.port = free_port()
        self.ports = {"without": self.port} | {kind: free_port() for kind in certificates}
        for folder in ("var/spool/exim4", "var/log/exim4", "run/exim4"):
            self.make(folder, "Debian-exim", mode=0o750)
        self.write("etc/exim4/boxes", "".join(f"u{n}: u{n}\n" for n in range(users)))
        self.configure(only="", rest="")
        self.write("etc/exim4/tls", "".join(f"{self.ports[kind]}: {kind}\n" for kind in certificates))

    def configure(self, only, rest):
        conf = CONF.format(ports=":".join(map(str, self.ports.values())), only=only)
        self.write("etc/exim4/exim4.conf", conf + rest.format(**self.ports))

    def run(self):
        self.start("/usr/sbin/exim4", "-bdf", "-q1m")
        self.wait_for(lambda: listens(self.port), "Exim")
        return self


class Smarthost(Receiver):
    def __init__(self, boxes, users):
        super().__init__(boxes, ("good", "login"))
        self.write("etc/exim4/tls", "".join(f"{self.ports[kind]}: good\n" for kind in ("good", "login")))
        self.write("etc/exim4/users", "".join(f"{user}: {password}\n" for user, password in users.items()))
        self.configure("  deny ! authenticated = *\n        message = 5.7.0 who are you", AUTHENTICATORS)
