"""An authority of our own, and certificates of servers that are right, or wrong
in one way; by the openssl of the packages."""
import os
import pathlib
import subprocess

import packages
from cell import ACCOUNTS

CONF = """
[req]
distinguished_name = name
[name]
[ca]
default_ca = own
[own]
new_certs_dir = {dir}
database = {dir}/index
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
# What is told of the server, its first and its last day, and who says so.
KINDS = {
    "good": ("IP:127.0.0.1,DNS:localhost,DNS:peer.test", "20200101000000Z", "20990101000000Z", "ca"),
    "expired": ("IP:127.0.0.1,DNS:peer.test", "20200101000000Z", "20210101000000Z", "ca"),
    "wrong": ("IP:192.0.2.1,DNS:other.test", "20200101000000Z", "20990101000000Z", "ca"),
    "unknown": ("IP:127.0.0.1,DNS:peer.test", "20200101000000Z", "20990101000000Z", "stranger"),
}


class Certificates:
    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.dir.mkdir()
        (self.dir / "index").touch()
        (self.dir / "conf").write_text(CONF.format(dir=self.dir))
        for authority in ("ca", "stranger"):
            self.openssl("req", "-x509", *KEY, "-days", "3650", "-subj", f"/CN={authority}", "-addext",
                         "basicConstraints=critical,CA:TRUE", "-keyout", f"{authority}.key", "-out", f"{authority}.pem")
        for kind, (names, first, last, authority) in KINDS.items():
            self.openssl("req", "-new", *KEY, "-subj", f"/CN={kind}", "-addext", f"subjectAltName={names}",
                         "-keyout", f"{kind}.key", "-out", f"{kind}.csr")
            self.openssl("ca", "-batch", "-notext", "-startdate", first, "-enddate", last, "-cert", f"{authority}.pem",
                         "-keyfile", f"{authority}.key", "-in", f"{kind}.csr", "-out", f"{kind}.pem")
        self.authority = self.dir / "ca.pem"
        for file in self.dir.iterdir():
            file.chmod(0o640 if file.suffix == ".key" else 0o644)
            os.chown(file, 0, ACCOUNTS["Debian-exim"])  # the others read keys as root

    def openssl(self, verb, *words):
        done = subprocess.run([*packages.command("usr/bin/openssl"), verb, "-config", "conf", *words], cwd=self.dir,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {verb}: {done.stderr[-400:]}")
