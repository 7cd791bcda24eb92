"""A smarthost that speaks TLS, and its certificates, made for one test.

    TlsSite(directory)                  STARTTLS with a certificate of `localhost`
    TlsSite(directory, "bad")           ... that is no TLS behind the word
    TlsSite(directory, "asks")          ... that wants a certificate of the client
    TlsSite(directory, users={"u": "p"})  takes no mail without AUTH PLAIN
    TlsSite(..., mechanisms=("SCRAM-SHA-256", "PLAIN"))  offers these
"""
import base64
import contextlib
import hashlib
import hmac
import pathlib
import socket
import ssl
import subprocess
import threading


def certificate(directory, name="localhost"):
    """Paths of an authority, and of a key and certificate of its for the name."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "openssl.cnf"
    config.write_text(f"[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:TRUE\n"
                      f"[host]\nsubjectAltName=DNS:{name}\n")

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=directory)
    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
           "-config", config, "-days", "2")
    openssl(*new, "-subj", "/CN=authority", "-extensions", "ca", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(*new, "-subj", "/CN=host", "-extensions", "host", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-keyout", "host.key", "-out", "host.pem")
    (directory / "ca.pem").chmod(0o644)
    directory.chmod(0o755)
    return directory / "ca.pem", directory / "host.key", directory / "host.pem"


class TlsSite:
    def __init__(self, directory, how="good", users=None, name="localhost", mechanisms=("LOGIN", "PLAIN")):
        self.mechanisms, self.tried = mechanisms, []
        self.broken = ()  # mechanisms that are offered, and are not there
        self.honest = True  # it knows the password, as SCRAM asks it to prove
        self.authority, key, chain = certificate(directory, name)
        self.how, self.users = how, users or {}
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(chain, key)
        if how == "asks":
            self.context.load_verify_locations(self.authority)
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.messages = []  # (protocol or None, user or None, content)
        self.refusal = b"535 5.7.8 no"
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _run(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with contextlib.suppress(OSError, ValueError):
            Conversation(self, sock).run()
        with contextlib.suppress(OSError):
            sock.close()


class Conversation:
    def __init__(self, site, sock):
        self.site, self.user, self.secure = site, None, None
        self._take(sock)

    def _take(self, sock):
        self.sock, self.lines = sock, sock.makefile("rb")

    def say(self, line):
        self.sock.sendall(line + b"\r\n")

    def offer(self):
        words = [b"site", b"SIZE 10000000"]
        if self.secure is None:
            words.append(b"STARTTLS")
        elif self.site.users:
            words.append(b"AUTH " + " ".join(self.site.mechanisms).encode())
        for word in words[:-1]:
            self.say(b"250-" + word)
        self.say(b"250 " + words[-1])

    def starttls(self):
        self.say(b"220 go")
        if self.site.how == "bad":
            self.sock.recv(1)  # the client has begun: what comes now is no injection
            self.say(b"this is no TLS, as long as it may be")
            raise ValueError
        self._take(self.site.context.wrap_socket(self.sock, server_side=True))
        self.secure = self.sock.version()

    def auth(self, line):
        mechanism = line.split()[1].decode()
        self.site.tried.append(mechanism)
        if mechanism in self.site.broken:
            self.say(b"504 5.5.4 not this one")
        elif mechanism == "LOGIN":
            self.say(self.site.refusal)
        elif mechanism == "SCRAM-SHA-256":
            self.scram(base64.b64decode(line.split()[2]).decode())
        else:
            self.plain(line)

    def challenge(self, text):
        self.say(b"334 " + base64.b64encode(text.encode()))
        return base64.b64decode(self.lines.readline()).decode()

    def scram(self, first):
        """RFC 5802 section 3, the server's side."""
        bare = first.removeprefix("n,,")
        user, nonce = (word[2:] for word in bare.split(",")[:2])
        secret = self.site.users.get(user)
        if secret is None:
            self.say(self.site.refusal)
            return
        salt, rounds, nonce = b"a salt of octets", 4096, nonce + "server"
        asked = f"r={nonce},s={base64.b64encode(salt).decode()},i={rounds}"
        final = self.challenge(asked)
        without, proof = final.rsplit(",p=", 1)
        key = hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, rounds)
        said = f"{bare},{asked},{without}".encode()

        def mac(key, text):
            return hmac.digest(key, text, "sha256")
        client = mac(key, b"Client Key")
        signature = mac(hashlib.sha256(client).digest(), said)
        if base64.b64decode(proof) != bytes(a ^ b for a, b in zip(client, signature, strict=True)):
            self.say(self.site.refusal)
            return
        server = mac(mac(key, b"Server Key"), said if self.site.honest else b"something else")
        self.challenge("v=" + base64.b64encode(server).decode())
        self.user = user
        self.say(b"235 2.7.0 ok")

    def plain(self, line):
        _, user, secret = base64.b64decode(line.split()[2]).decode().split("\0")
        if self.site.users.get(user) == secret:
            self.user = user
            self.say(b"235 2.7.0 ok")
        else:
            self.say(self.site.refusal)

    def data(self):
        self.say(b"354 go on")
        content = b""
        while (line := self.lines.readline()) not in (b".\r\n", b""):
            content += line
        self.site.messages.append((self.secure, self.user, content))
        self.say(b"250 2.0.0 taken")

    def command(self, line):
        verb = line[:4].upper()
        if verb == b"EHLO":
            self.offer()
        elif verb == b"STAR":
            self.starttls()
        elif verb == b"AUTH":
            self.auth(line)
        elif verb == b"DATA":
            self.data()
        elif verb == b"MAIL" and self.site.users and self.user is None:
            self.say(b"530 5.7.0 who are you")
        else:
            self.say(b"250 2.0.0 ok")

    def run(self):
        self.say(b"220 site ESMTP")
        while line := self.lines.readline():
            if line[:4].upper() == b"QUIT":
                self.say(b"221 2.0.0 bye")
                return
            self.command(line)
