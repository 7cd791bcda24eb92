#!/usr/bin/python3
"""The other side of SMTP and LMTP: aiosmtpd, of Debian's python3-aiosmtpd.

    smtp_sink.py DIR [--lmtp]

Listens on a free port of the loopback, prints it, and keeps each message as it
came over the wire in DIR/N.eml, with its envelope in DIR/N.env, until its
standard input ends.
"""
import asyncio
import json
import pathlib
import sys

from aiosmtpd.lmtp import LMTP
from aiosmtpd.smtp import SMTP


class Keep:
    """The handler: what the server does with a message is a matter of tests."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.count = 0

    async def handle_DATA(self, server, session, envelope):
        self.count += 1
        name = f"{self.count:06d}"
        (self.directory / f"{name}.env").write_text(
            json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos}))
        temp = self.directory / f"{name}.tmp"
        temp.write_bytes(envelope.original_content)
        temp.rename(self.directory / f"{name}.eml")
        return f"250 2.0.0 kept as {name}"


async def main():
    directory, protocol = sys.argv[1], LMTP if "--lmtp" in sys.argv else SMTP
    keep = Keep(directory)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: protocol(keep, enable_SMTPUTF8=True, data_size_limit=100 << 20), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.buffer.read)
    server.close()


asyncio.run(main())
