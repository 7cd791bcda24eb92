"""A line of 50 ms there and back, and how often the client waits for it: counted in
flights at a proxy in the middle, and not in seconds, which are only printed."""
import asyncio
import contextlib
import socket
import struct
import threading
import time
import unittest

from instance import HANG, Instance
from smtp_site import Site

DELAY = 0.025  # seconds, each way
HELLO = b"Subject: hello\n\nhello\n"


async def carry(reader, seen, give):
    """What comes is given DELAY later, as seen() makes it; b"" is the end."""
    clock = asyncio.get_running_loop().time
    queue = asyncio.Queue()

    async def give_all():
        data = True
        while data:
            due, data = await queue.get()
            await asyncio.sleep(due - clock())
            give(data)
    giver = asyncio.create_task(give_all())
    data = True
    while data:
        data = b""
        with contextlib.suppress(OSError):
            data = await reader.read(1 << 16)
        queue.put_nowait((clock() + DELAY, seen(data)))
    await giver


class Connection:
    """One connection through the line."""

    def __init__(self, line, client, server):
        self.line, self.client, self.server = line, client, server
        self.is_answered = self.is_cut = False

    def from_client(self, data):
        """A flight is what comes before the next reply."""
        if data and self.is_answered:
            self.line.flights += 1
            self.is_answered = False
        if self.line.resets > 0 and data.startswith(b"MAIL"):
            self.line.resets -= 1
            self.is_cut = True
            return data.partition(b"\n")[0] + b"\n"
        return b"" if self.is_cut else data

    def to_server(self, data):
        if data:
            self.server.write(data)
        elif not self.is_cut:
            self.server.close()

    def to_client(self, data):
        if self.client.is_closing():
            return
        self.is_answered = True
        if data:
            self.client.write(data)
        if self.is_cut:  # the reply to MAIL was the last
            self.reset()
        elif not data:
            self.client.close()

    def reset(self):
        """With a linger time of 0 the kernel sends RST."""
        self.client.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.client.transport.abort()
        self.server.close()


class Line:
    """A proxy before `target`. The first `resets` connections are reset between MAIL
    and DATA."""

    def __init__(self, target, resets=0):
        self.target, self.resets = target, resets
        self.connections = self.flights = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self.take, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(HANG)

    async def take(self, reader, writer):
        self.connections += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        connection = Connection(self, writer, far_writer)
        with contextlib.suppress(asyncio.CancelledError), contextlib.closing(writer), contextlib.closing(far_writer):
            await asyncio.gather(carry(reader, connection.from_client, connection.to_server),
                                 carry(far_reader, lambda data: data, connection.to_client))

    async def _end(self):
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def stop(self):
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SlowLine(unittest.TestCase):
    def send(self, messages, rcpts, resets=0):
        """The line, when all of these messages have gone through; and the seconds."""
        site = Site()
        self.addCleanup(site.stop)
        line = Line(site.port, resets)
        self.addCleanup(line.stop)
        i = Instance(queues=1, routing=f"* smtp:127.0.0.1:{line.port}\n", conf={
            "smtp_destination_concurrency_limit": 1, "smtp_connection_cache_time_limit": "10m"})
        self.addCleanup(i.destroy)
        i.start()
        began = time.monotonic()
        for m in range(messages):
            i.inject(HELLO, *(f"u{n}-{m}@away.example" for n in range(rcpts)), face="queue-inject")
        i.wait_empty()
        seconds = time.monotonic() - began
        i.stop()
        self.assertEqual(sorted(rcpt for _, taken in site.deliveries for rcpt in taken),
                         sorted(f"u{n}-{m}@away.example" for m in range(messages) for n in range(rcpts)))
        self.assertEqual(line.resets, 0)
        return line, seconds

    def test_a_reset_costs_only_its_own_message(self):
        """The server goes on to get all commands of a message in one flight."""
        whole, whole_seconds = self.send(20, 50)
        broken, broken_seconds = self.send(20, 50, resets=1)
        print(f"peers: 20 messages of 50 recipients, 50 ms: {whole.flights} flights, {whole_seconds:.1f} s; after a reset "
              f"{broken.flights}, {broken_seconds:.1f} s; ratio {broken.flights / whole.flights:.2f}, "
              f"in seconds {broken_seconds / whole_seconds:.2f}", flush=True)
        self.assertEqual((whole.connections, broken.connections), (1, 2))
        self.assertLessEqual(broken.flights, 1.2 * whole.flights)

    def test_two_flights_for_a_message(self):
        """The commands, and the message; connection and greeting are of all."""
        line, seconds = self.send(100, 1)
        print(f"peers: 100 messages of one recipient, 50 ms: {line.flights} flights, {seconds:.1f} s", flush=True)
        self.assertEqual(line.connections, 1)
        self.assertLessEqual(line.flights, 1.15 * 2 * 100)
