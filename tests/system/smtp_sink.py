#!/usr/bin/python3
"""The other side of SMTP and LMTP: aiosmtpd, of Debian's python3-aiosmtpd.

    smtp_sink.py DIR [--lmtp] [--port N] [--strict]

Listens on a free port of the loopback, or on the one given, prints it, and
keeps each message as it came over the wire in DIR/N.eml, with its envelope in
DIR/N.env, until its standard input ends. A recipient whose name begins with a
reply code and a dash, as in 451-x@example, is answered with that code. With
--strict a message is refused where an address of its header has no domain.
"""
import argparse
import asyncio
import email
import email.utils
import json
import pathlib
import re
import sys

from aiosmtpd.lmtp import LMTP
from aiosmtpd.smtp import SMTP


FIELDS = ("From", "Sender", "Reply-To", "To", "Cc")


def without_domain(content):
    """The first field that has an address without a domain."""
    header = email.message_from_bytes(content)
    for field in FIELDS:
        for _, address in email.utils.getaddresses(map(str, header.get_all(field, []))):
            if address and not re.search(r"@[^@]+$", address):
                return field
    return None


class Keep:
    """The handler: what the server does with a message is a matter of tests."""

    def __init__(self, directory, strict):
        self.directory, self.strict = pathlib.Path(directory), strict
        self.count = sum(1 for _ in self.directory.glob("*.eml"))

    async def handle_RCPT(self, server, session, envelope, address, options):
        code = re.match(r"([45])\d\d(?=-)", address)
        if code:
            return f"{code.group(0)} {code.group(1)}.7.1 {address} is not wanted"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 wanted"

    async def handle_DATA(self, server, session, envelope):
        field = without_domain(envelope.original_content) if self.strict else None
        if field is not None:
            return f"554 5.6.0 an address of {field} has no domain"
        self.count += 1
        name = f"{self.count:06d}"
        (self.directory / f"{name}.env").write_text(json.dumps(
            {"from": envelope.mail_from, "to": envelope.rcpt_tos, "options": envelope.mail_options}))
        temp = self.directory / f"{name}.tmp"
        temp.write_bytes(envelope.original_content)
        temp.rename(self.directory / f"{name}.eml")
        return f"250 2.0.0 kept as {name}"


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--lmtp", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    protocol = LMTP if options.lmtp else SMTP
    keep = Keep(options.directory, options.strict)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: protocol(keep, enable_SMTPUTF8=True, data_size_limit=100 << 20),
        "127.0.0.1", options.port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.buffer.read)
    server.close()


asyncio.run(main())
