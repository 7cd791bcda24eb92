"""A destination that counts who is connected to it, exactly.

Whatever is pending is accepted before anything is said to anybody, so nobody
who waited to be accepted has gone by then, but those that were killed. A
connection counts from then on until its client has closed it, whether or not
that was read of: the state of the socket in the kernel says so. What is counted
was there at one moment, that of the last accept().

    CountingSite(service=0.02)  the reply to a message takes that long
    site.hold = True            ... waits until it is False again
    site.left = 30              ... to so many messages more, then the replies wait
    site.refuse = True          a greeting that says 421: the site is dead
    site.hang_up = True         closes behind each message
"""
import heapq
import itertools
import selectors
import socket
import threading
import time

TCP_ESTABLISHED = 1


def is_connected(sock):
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_ESTABLISHED


class Client:
    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""
        self.content = False
        self.rcpts = []


class CountingSite:
    def __init__(self, service=0.0, address="127.0.0.1", port=0):
        self.service = service
        self.hold = self.refuse = self.hang_up = False
        self.left = None
        self.peak = self.connections = 0
        self.rcpts = []  # of all messages, in the order of the replies
        self._clients = {}
        self._held = []
        self._due = []
        self._order = itertools.count()
        self._end = False
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server((address, port), backlog=4096)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._end = True
        self._thread.join()
        for client in list(self._clients.values()):
            self._drop(client)
        self._listener.close()
        self._selector.close()

    @property
    def held(self):
        return len(self._held)

    def _accept_all(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = Client(sock)
            self._clients[sock] = client
            self._selector.register(sock, selectors.EVENT_READ)
            self.connections += 1
            self.peak = max(self.peak, sum(map(is_connected, self._clients)))
            self._say(client, b"421 4.3.2 not now" if self.refuse else b"220 site ESMTP")

    def _run(self):
        while not self._end:
            wait = self._due[0][0] - time.monotonic() if self._due and self.left != 0 else 0.05
            events = self._selector.select(max(0.0, min(wait, 0.05)))
            self._accept_all()
            for key, _ in events:
                client = self._clients.get(key.fileobj)
                if client is not None:
                    self._read(client)
            self._reply_due()

    def _drop(self, client):
        if self._clients.pop(client.sock, None) is not None:
            self._selector.unregister(client.sock)
            client.sock.close()

    def _say(self, client, line):
        try:
            client.sock.send(line + b"\r\n")
        except OSError:
            self._drop(client)

    def _read(self, client):
        try:
            data = client.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(client)
            return
        client.buffer += data
        while client.sock in self._clients:
            part, found, rest = client.buffer.partition(b"\r\n.\r\n" if client.content else b"\r\n")
            if not found:
                return
            client.buffer = rest
            if client.content:
                client.content = False
                self._take(client)
            else:
                self._command(client, part)

    def _command(self, client, line):
        verb = line[:4].upper()
        if verb == b"RCPT":
            client.rcpts.append(line.partition(b"<")[2].partition(b">")[0].decode())
        if verb == b"DATA":
            client.content = True
        # The client closes after QUIT, not we.
        self._say(client, {b"EHLO": b"250-site\r\n250 PIPELINING", b"DATA": b"354 go on",
                           b"QUIT": b"221 2.0.0 bye"}.get(verb, b"250 2.0.0 ok"))

    def _take(self, client):
        if self.hold:
            self._held.append(client)
        else:
            heapq.heappush(self._due, (time.monotonic() + self.service, next(self._order), client))

    def _reply_due(self):
        if not self.hold:
            for client in self._held:
                self._take(client)
            self._held = []
        while self._due and self._due[0][0] <= time.monotonic() and self.left != 0:
            _, _, client = heapq.heappop(self._due)
            if client.sock in self._clients and is_connected(client.sock):
                if self.left is not None:
                    self.left -= 1
                self.rcpts += client.rcpts
                client.rcpts = []
                self._say(client, b"250 2.0.0 taken")
                if self.hang_up:
                    self._drop(client)
