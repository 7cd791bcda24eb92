#!/usr/bin/python3
"""rollup_site.py DIR: in a network of its own, a name server on 127.0.0.1 and, on port 25 of all
addresses, a server that counts who is connected.

DIR/zone, read for each question: JSON, "ttl" and the MX hosts of domains; of any other domain they
are m1.example and m2.example; none: SERVFAIL. Host mN.example has the address 192.0.2.N.
DIR/hold: replies to messages wait while it is there. DIR/state: JSON, what was counted."""
import json
import pathlib
import re
import socket
import struct
import sys
import threading
import time

from counting_site import CountingSite

A, MX = 1, 15
SERVFAIL = 2
SHARED = ["m1.example", "m2.example"]


def wire_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def record(kind, ttl, data):
    return struct.pack(">HHHIH", 0xC00C, kind, 1, ttl, len(data)) + data


def reply(query, zone):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += query[at] + 1
    name, kind = ".".join(labels).lower(), struct.unpack(">H", query[at + 1:at + 3])[0]
    host = re.fullmatch(r"m(\d+)\.example", name)
    found, code = [], 0
    if kind == A and host:
        found = [record(A, zone["ttl"], bytes([192, 0, 2, int(host[1])]))]
    elif kind == MX and not host:
        hosts = zone.get(name, SHARED)
        found = [record(MX, zone["ttl"], struct.pack(">H", 10) + wire_name(to)) for to in hosts]
        code = 0 if hosts else SERVFAIL
    return (query[:2] + struct.pack(">HHHHH", 0x8580 | code, 1, len(found), 0, 0) +
            query[12:at + 5] + b"".join(found))


def name_server(where):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 53))
    while True:
        query, peer = sock.recvfrom(4096)
        sock.sendto(reply(query, json.loads((where / "zone").read_text())), peer)


def main():
    where = pathlib.Path(sys.argv[1])
    threading.Thread(target=name_server, args=[where], daemon=True).start()
    site = CountingSite(address="0.0.0.0", port=25)
    while True:
        site.hold = (where / "hold").exists()
        state = {"hold": site.hold, "peak": site.peak, "connections": site.connections, "held": site.held,
                 "rcpts": len(site.rcpts)}
        (where / "state.new").write_text(json.dumps(state))
        (where / "state.new").rename(where / "state")
        time.sleep(0.01)


main()
