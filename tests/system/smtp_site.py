"""A destination that does as it is told: an SMTP server in the test's process.

    Site(limit=5)        a connection beyond five at once is answered with 421
    Site(service=0.05)   the reply to a message takes that long, 5 % either way
    Site(hold=True)      ... waits for release()
    Site(mute=True)      connections are taken, and never greeted
    Site(keywords=[b"X"])  what EHLO is answered with, beside the name
    Site(says=f)         f(client, verb, line) has the reply to a command, or None; behind
                         421 the connection is closed, b"" closes it without a word
    site.answer = b"451 4.3.2 later"   the reply to each message from now on

`serving` counts from the greeting, for a further message over the connection from
MAIL, to the reply to the message, so a client that comes back at once never meets
its own last connection.
"""
import asyncio
import random
import threading

from instance import HANG


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, site):
        self.site = site
        self.counted = False
        self.sender = None
        self.rcpts = []
        self.refused = 0  # replies of Site(says=f) that refuse
        self.buffer = b""
        self.content = False
        self.chunk = 0  # octets of BDAT that are still to come

    def say(self, line):
        self.transport.write(line + b"\r\n")

    def connection_made(self, transport):
        site = self.site
        self.transport = transport
        site.clients.add(self)
        site.connections += 1
        if site.mute:
            return
        if site.limit is not None and site.serving >= site.limit:
            site.refused += 1
            self.say(b"421 4.7.0 too many connections")
            transport.close()
            return
        self.begun()
        self.say(b"220 site ESMTP")

    def connection_lost(self, error):
        self.site.clients.discard(self)
        self.over()

    def begun(self):
        site = self.site
        if not self.counted:
            self.counted = True
            site.serving += 1
            site.peak = max(site.peak, site.serving)

    def over(self):
        if self.counted:
            self.counted = False
            self.site.serving -= 1

    def data_received(self, data):
        self.buffer += data
        while True:
            if self.content and self.buffer.startswith(b".\r\n"):  # the end of nothing
                self.content, self.buffer = False, self.buffer[3:]
                self.say(b"554 5.5.1 no message")
            if self.chunk > 0:
                if len(self.buffer) < self.chunk:
                    return
                self.site.contents.append(self.buffer[:self.chunk])
                self.buffer, self.chunk = self.buffer[self.chunk:], 0
                self.site.take(self)
            end = b"\r\n.\r\n" if self.content else b"\r\n"
            part, found, rest = self.buffer.partition(end)
            if not found:
                return
            self.buffer = rest
            if self.content:
                self.content = False
                self.site.contents.append(part + b"\r\n")
                self.site.take(self)
            else:
                self.command(part)

    def command(self, line):
        verb = line[:4].upper()
        self.site.lines.append(line)
        own = self.site.says(self, verb, line)
        if own is not None:
            self.refused += own[:1] in (b"4", b"5")
            if own:
                self.say(own)
            if own[:3] in (b"", b"421"):
                self.transport.close()
        elif verb in (b"EHLO", b"LHLO"):
            self.say(b"250" + b"\r\n250".join(
                (b" " if i == len(self.site.keywords) else b"-") + word
                for i, word in enumerate([b"site"] + self.site.keywords)))
        elif verb == b"MAIL":
            self.begun()
            self.rcpts = []
            self.sender = line.partition(b"<")[2].partition(b">")[0].decode()
            self.say(b"250 2.1.0 ok")
        elif verb == b"RCPT":
            self.rcpts.append(line.partition(b"<")[2].partition(b">")[0].decode())
            self.say(b"250 2.1.5 ok")
        elif verb == b"DATA" and not self.rcpts:
            self.say(b"554 5.5.1 no valid recipients")
        elif verb == b"DATA":
            self.content = True
            self.say(b"354 go on")
        elif verb == b"RSET":
            self.say(b"250 2.0.0 ok")
        elif verb == b"BDAT":  # one chunk, the last
            self.chunk = int(line.split()[1])
        elif verb == b"QUIT":
            self.say(b"221 2.0.0 bye")
            self.transport.close()
        else:
            self.say(b"502 5.5.1 no such command")

    def reply(self):
        self.site.deliveries.append((self.sender, self.rcpts))
        self.rcpts = []
        self.over()
        self.say(self.site.answer)


class Site:
    def __init__(self, limit=None, service=0.0, hold=False, mute=False, seed=1, keywords=(b"PIPELINING",),
                 says=lambda *_: None, address="127.0.0.1", port=0):
        self.says, self.address = says, address
        self.keywords = list(keywords)
        self.lines, self.contents = [], []  # commands; messages as they came over the wire
        self.limit, self.service, self.hold, self.mute = limit, service, hold, mute
        self.answer = b"250 2.0.0 ok"
        self.serving = self.peak = self.connections = self.refused = 0
        self.deliveries = []  # (sender, recipients), in the order of the replies
        self.held = []
        self.clients = set()
        self._dice = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(self._listen(port))
        self.port = self._server.sockets[0].getsockname()[1]

    def client(self):
        return Client(self)

    async def _listen(self, port):
        return await self._loop.create_server(self.client, self.address, port, backlog=1000)

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(HANG)

    def take(self, client):
        """A whole message came."""
        if self.hold:
            self.held.append(client)
        elif self.service > 0:
            self._loop.call_later(self.service * self._dice.uniform(0.95, 1.05), client.reply)
        else:
            client.reply()

    async def _release(self, count, hold):
        self.hold = hold
        for client in self.held[:count]:
            client.reply()
        del self.held[:count]

    def release(self, count=None, hold=True):
        """Answer the first that are held (all); those that come are held or not."""
        self._call(self._release(count, hold))

    async def _drop(self, clients):
        for client in list(clients):
            client.transport.abort()

    def drop(self):
        """All connections are lost."""
        self._call(self._drop(self.clients))

    def drop_held(self):
        """The connection whose message was held first is lost."""
        self._call(self._drop([self.held.pop(0)]))

    async def _end(self):
        self._server.close()
        await self._drop(self.clients)

    def stop(self):
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
