#!/usr/bin/python3
"""dns_site.py [ADDRESS LOG]: a name server on port 53 of 127.0.0.1, or of ADDRESS, that answers by
the first label.

servfail, refused, nxdomain, nodata: just that; silent: nothing; lazy, tardy: nothing to the first
question of each type; loop: a CNAME of itself; rubbish: bytes that are no answer; many: more
addresses than are tried; mxservfail, mxsilent: that for MX records alone; half: servfail for A
alone; alias: the same, and for AAAA a CNAME without an address behind it; mixed, sick, gone,
partly, slow, late, backup: MX hosts (below); cut: an MX record that ends within its name; one, two,
closed: 192.0.2.1, .2 and .101; else 127.0.0.1, and no MX record.
ADDRESS with a hyphen in front: no question is answered. A line of LOG is "PORT TYPE LABEL"."""
import pathlib
import socket
import struct
import sys

A, CNAME, MX, AAAA = 1, 5, 15, 28
CODES = {b"servfail": 2, b"nxdomain": 3, b"refused": 5}


def name_end(query):
    at = 12
    while query[at]:
        at += query[at] + 1
    return at + 1


def record(kind, data):
    return struct.pack(">HHHIH", 0xC00C, kind, 1, 60, len(data)) + data


def mx(preference, label):
    """A host beside the one that was asked for, whose name has one label in front."""
    return record(MX, struct.pack(">HB", preference, len(label)) + label +
                  b"\x07example\x00")


HOSTS = {b"mixed": [mx(10, b"servfail"), mx(20, b"good")], b"sick": [mx(10, b"servfail")],
         b"gone": [mx(10, b"nxdomain"), mx(20, b"nodata")], b"partly": [mx(10, b"servfail"), mx(20, b"nxdomain")],
         b"slow": [mx(10, b"one"), mx(20, b"silent")], b"late": [mx(10, b"closed"), mx(20, b"lazy")],
         b"backup": [mx(10, b"closed"), mx(20, b"tardy")],
         b"cut": [record(MX, b"\x00\x0a\x3fcut")]}
ADDRESSES = {b"one": 1, b"two": 2, b"lazy": 2, b"closed": 101}  # of 192.0.2.0/24


def answers(label, kind):
    if label == b"loop":
        return [record(CNAME, b"\xc0\x0c")]
    if label == b"alias" and kind == AAAA:
        return [record(CNAME, b"\x06nodata\x07example\x00")]
    if kind == MX:
        return HOSTS.get(label, [])
    if kind != A or label in CODES or label == b"nodata":
        return []
    if label == b"many":
        return [record(A, bytes([127, 0, 0, n + 1])) for n in range(28)]
    if label in ADDRESSES:
        return [record(A, bytes([192, 0, 2, ADDRESSES[label]]))]
    return [record(A, bytes([127, 0, 0, 1]))]


def parse(query):
    end = name_end(query)
    return query[13:13 + query[12]].lower(), struct.unpack(">H", query[end:end + 2])[0]


def reply(query):
    label, kind = parse(query)
    found = answers(label, kind)
    if kind == MX and label.startswith(b"mx"):
        label = label[2:]
    code = 2 if label in (b"half", b"alias") and kind == A else CODES.get(label, 0)
    head = query[:2] + struct.pack(">HHHHH", 0x8580 | code, 1, len(found), 0, 0)
    if label == b"silent":
        return None
    if label == b"rubbish":
        return query[:2] + b"\xff" * 30
    return head + query[12:name_end(query) + 4] + b"".join(found)


def main():
    address, log = sys.argv[1:3] if len(sys.argv) > 1 else ("127.0.0.1", None)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address.lstrip("-"), 53))
    print("ready", flush=True)
    seen = set()
    while True:
        query, peer = sock.recvfrom(4096)
        label, kind = parse(query)
        if log is not None:
            with pathlib.Path(log).open("a", encoding="ascii") as out:
                print(peer[1], kind, label.decode("ascii"), file=out)
        lazy = label in (b"lazy", b"tardy") and kind not in seen
        seen.add(kind if lazy else None)
        answer = None if lazy or address.startswith("-") else reply(query)
        if answer is not None:
            sock.sendto(answer, peer)


main()
