#!/usr/bin/python3
"""mx_site.py LOG WORDS...: SMTP servers on port 25 of addresses that this network has.

ADDRESS: takes all mail; -ADDRESS: never answers, its queue of connections being full.
A line of LOG is "ADDRESS CLIENT HELO" for each greeting."""
import asyncio
import pathlib
import socket
import sys

IPV6_FREEBIND = 78  # the module socket has no name for it


def serve(log):
    async def talk(reader, writer):
        here, there = (writer.get_extra_info(name)[0] for name in ("sockname", "peername"))
        content = False
        writer.write(b"220 site\r\n")
        while line := await reader.readline():
            word = line[:4].upper()
            if content:
                content = line != b".\r\n"
                writer.write(b"" if content else b"250 2.0.0 taken\r\n")
            elif word in (b"EHLO", b"HELO"):
                with log.open("a", encoding="ascii") as out:
                    print(here, there, line[5:].decode("ascii").strip(), file=out)
                writer.write(b"250 site\r\n")
            elif word == b"DATA":
                content = True
                writer.write(b"354 go\r\n")
            elif word == b"QUIT":
                break
            else:
                writer.write(b"250 2.1.0 ok\r\n")
        writer.close()
    return talk


def silent(address, kept):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family)
    kept.append(server)
    if family == socket.AF_INET6:  # a local route is not enough there
        server.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    server.bind((address, 25))
    server.listen(0)
    for _ in range(4):
        client = socket.socket(family)
        client.setblocking(False)
        client.connect_ex((address, 25))
        kept.append(client)


async def main():
    log, kept = pathlib.Path(sys.argv[1]), []
    for word in sys.argv[2:]:
        if word.startswith("-"):
            silent(word[1:], kept)
        else:
            kept.append(await asyncio.start_server(serve(log), word, 25))
    log.write_text("")  # ready
    await asyncio.Event().wait()


asyncio.run(main())
