#!/usr/bin/python3
"""Servers of every behaviour, in a process of their own.

    sites.py SEED

Prints NAME PORT for each, then a line for each recipient that was taken:
D SUBMISSION INDEX TIME fine|wrong|bare NAME replied|silent. Reads commands:
"heal" (all behave from now on), "down NAME" (nothing listens), "up NAME".
Ends with its standard input."""
import asyncio
import random
import socket
import sys
import time

from ledger import IDENTITY, judge

BEHAVIOURS = ("ok", "slow", "temp", "mute", "hang", "drop", "perm")
STAGES = ("greeting", "EHLO", "MAIL", "RCPT", "DATA", "dot")


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, site):
        self.site = site
        self.kind = site.kind
        self.buffer = bytearray()
        self.searched = 0  # of the buffer
        self.content = False
        self.silent = False
        self.mail = False  # MAIL FROM was taken
        self.rcpts = []
        # The stage at which this one misbehaves, if its server does.
        self.stage = site.dice.choice(STAGES + (None,) * len(STAGES))

    def connection_made(self, transport):
        self.transport = transport
        self.site.clients.add(self)
        if self.kind == "mute":
            self.silent = True
        self.at("greeting", b"220 site ESMTP")

    def connection_lost(self, error):
        self.site.clients.discard(self)

    def say(self, line):
        if not self.silent and not self.transport.is_closing():
            self.transport.write(line + b"\r\n")

    def at(self, stage, good):
        """The reply at a stage, by this server's behaviour."""
        if stage != self.stage:
            self.say(good)
        elif self.kind == "temp":
            self.say(b"421 4.3.2 not now" if stage == "greeting" else b"451 4.3.0 not now")
            self.stage = None if stage == "RCPT" else self.stage
        elif self.kind == "hang":
            self.silent = True
        elif self.kind == "drop":
            self.transport.abort()
        else:
            self.say(good)

    def data_received(self, data):
        self.buffer += data
        while not self.transport.is_closing():
            end = b"\r\n.\r\n" if self.content else b"\r\n"
            at = self.buffer.find(end, max(0, self.searched - len(end)))
            if self.content and self.buffer.startswith(b".\r\n"):  # nothing but the dot
                at, end = 0, b".\r\n"
            if at < 0:
                self.searched = len(self.buffer)
                return
            part = bytes(self.buffer[:at])
            del self.buffer[:at + len(end)]
            self.searched = 0
            if self.content:
                self.content = False
                self.take(part + b"\r\n")
            else:
                self.command(part)

    def command(self, line):
        verb = line[:4].upper()
        if verb in (b"EHLO", b"HELO"):
            self.at("EHLO", b"250-site\r\n250-PIPELINING\r\n250 8BITMIME")
        elif verb == b"MAIL":
            self.rcpts = []
            self.mail = self.stage != "MAIL" or self.kind not in ("temp", "hang", "drop")
            self.at("MAIL", b"250 2.1.0 ok")
        elif verb == b"RCPT":
            if self.kind == "perm" or not self.mail or b"<unknown" in line:
                self.say(b"550 5.1.1 no such user" if self.mail else b"503 5.5.1 no sender")
                return
            before = self.stage
            self.at("RCPT", b"250 2.1.5 ok")
            if before == self.stage or self.kind not in ("temp", "hang", "drop"):
                self.rcpts.append(line.partition(b"<")[2].partition(b">")[0])
        elif verb == b"DATA":
            if self.stage == "DATA" and self.kind == "temp":
                self.say(b"451 4.3.0 not now")
            elif not self.rcpts:
                self.say(b"503 5.5.1 no recipient")
            else:
                self.content = not (self.stage == "DATA" and self.kind in ("hang", "drop"))
                self.at("DATA", b"354 go on")
        elif verb == b"RSET":
            self.rcpts = []
            self.say(b"250 2.0.0 ok")
        elif verb == b"QUIT":
            self.say(b"221 2.0.0 bye")
            self.transport.close()
        else:
            self.say(b"502 5.5.1 no such command")

    def take(self, content):
        """A whole message came. A server that drops here has it or has not."""
        wrong = self.stage == "dot" and self.kind in ("temp", "hang", "drop")
        if wrong and (self.kind == "temp" or self.site.dice.randrange(2)):
            self.at("dot", b"")
            return
        content = b"\n".join(line[1:] if line.startswith(b".") else line
                             for line in content.replace(b"\r\n", b"\n").split(b"\n"))
        number, fine = judge(content)
        word = "wrong" if not fine else "bare" if number is None else "fine"
        self.site.loop.call_later(self.site.service(), self.keep, self.rcpts, word, wrong)
        self.rcpts = []

    def keep(self, rcpts, word, wrong):
        """Counted are messages that the server answers for, or dies on."""
        gone = wrong or self.transport.is_closing()
        if gone and not wrong:
            return  # its client has not heard of it, and it kept nothing
        if not self.site.discards():
            self.site.tell(rcpts, word, not gone)
        self.at("dot", b"250 2.0.0 taken")


class Site:
    def __init__(self, kind, loop, seed, discard):
        self.kind, self.loop, self.discard = kind, loop, discard and kind == "ok"
        self.dice = random.Random(f"{seed} {kind}")
        self.clients = set()
        self.taken = 0
        self.port = 0
        self.server = None

    async def up(self):
        if self.server is None:
            self.server = await self.loop.create_server(
                lambda: Client(self), "127.0.0.1", self.port, backlog=1000, reuse_address=True)
            self.port = self.server.sockets[0].getsockname()[1]

    async def down(self):
        if self.server is not None:
            self.server.close()
            self.server = None
            for client in list(self.clients):
                client.transport.abort()

    def service(self):
        return self.dice.uniform(0.2, 1.0) if self.kind == "slow" else 0

    def discards(self):
        """The fault that a storm must find: a server that forgets what it took,
        the first and each tenth message after it."""
        self.taken += 1
        return self.discard and self.taken % 10 == 1

    def tell(self, rcpts, word, replied):
        for rcpt in rcpts:
            found = IDENTITY.search(rcpt)
            if found:
                print("D", found[1].decode(), found[2].decode(), f"{time.time():.3f}",
                      word, self.kind, "replied" if replied else "silent")

    def heal(self):
        if self.kind != "perm":
            self.kind = "ok"
            for client in list(self.clients):
                if client.kind != "ok":
                    client.transport.abort()


async def main():
    loop = asyncio.get_running_loop()
    sites = {kind: Site(kind, loop, sys.argv[1], "discard" in sys.argv) for kind in BEHAVIOURS}
    for kind, site in sites.items():
        await site.up()
        print(kind, site.port)
    nobody = socket.socket()  # bound, and nobody listens
    nobody.bind(("127.0.0.1", 0))
    print("dead", nobody.getsockname()[1], flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := (await reader.readline()).decode().split():
        if line[0] == "heal":
            for site in sites.values():
                site.heal()
                await site.up()
        elif line[0] == "down":
            await sites[line[1]].down()
        elif line[0] == "up":
            await sites[line[1]].up()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    asyncio.run(main())
