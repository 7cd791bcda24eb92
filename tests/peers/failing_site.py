"""Servers of which each fails in one way, or in none: one for each address."""
import socket
import struct
from typing import NamedTuple

from smtp_site import Client, Site

RESET, SILENCE = object(), object()
BODY, DOT = b"a part of the message", b"the end of the message"

WINDOW = 16 << 10  # octets that the kernel takes of a message before the server does


class Failure(NamedTuple):
    """At this command, or part of the message, the server does this: it says a line,
    or RESET, or SILENCE. With `only` the command has to have these octets."""
    at: bytes
    deed: object
    only: bytes = b""


class Place(NamedTuple):
    """What is at an address."""
    name: str
    failure: Failure | None
    keywords: tuple


class FailingClient(Client):
    """One connection."""

    def connection_made(self, transport):
        self.place = self.site.places[transport.get_extra_info("sockname")[0]]
        self.is_deaf = False
        super().connection_made(transport)

    def fails(self, at, line=b""):
        """Whether it fails here; then it has."""
        failure = self.place.failure
        if failure is None or failure.at != at or failure.only not in line:
            return False
        if failure.deed is RESET:
            self.reset()
        elif failure.deed is not SILENCE:
            self.say(failure.deed)
            return True
        self.is_deaf = True
        return True

    def reset(self):
        """With a linger time of 0 the kernel sends RST."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def data_received(self, data):
        if not self.is_deaf and not (self.content and self.fails(BODY)):
            super().data_received(data)

    def command(self, line):
        verb = line[:4].upper()
        if self.is_deaf:
            return
        if verb == b"EHLO":
            self.site.keywords = list(self.place.keywords)
        if verb == b"MAIL":
            self.sender, self.rcpts = None, []
        if self.fails(verb, line):
            return
        if verb == b"RCPT" and self.sender is None:
            self.say(b"503 5.5.1 MAIL first")
        else:
            super().command(line)

    def reply(self):
        if not self.fails(DOT):
            self.site.taken += [(self.sender, rcpt, self.place.name) for rcpt in self.rcpts]
            super().reply()
        self.sender, self.rcpts = None, []


class FailingSite(Site):
    """`places` has the Place of each address; `taken` is (sender, recipient, name of
    the place) of all that was taken."""

    def __init__(self, places):
        self.places, self.taken = places, []
        super().__init__(address="0.0.0.0", port=25)
        self._server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW)

    def client(self):
        return FailingClient(self)
