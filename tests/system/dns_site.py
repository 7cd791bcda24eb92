#!/usr/bin/python3
"""dns_site.py: a name server on 127.0.0.1, port 53, that answers by the first label.

servfail, refused, nxdomain, nodata: just that; silent: nothing; loop: a CNAME of itself;
rubbish: bytes that are no answer; many: more addresses than are tried; mxservfail, mxsilent:
that for MX records alone; mixed, sick: MX hosts of which one, or each, is servfail; cut: an
MX record that ends within its name; else 127.0.0.1, and no MX record."""
import socket
import struct

A, CNAME, MX = 1, 5, 15
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
         b"cut": [record(MX, b"\x00\x0a\x3fcut")]}


def answers(label, kind):
    if label == b"loop":
        return [record(CNAME, b"\xc0\x0c")]
    if kind == MX:
        return HOSTS.get(label, [])
    if kind != A or label in CODES or label == b"nodata":
        return []
    if label == b"many":
        return [record(A, bytes([127, 0, 0, n + 1])) for n in range(28)]
    return [record(A, bytes([127, 0, 0, 1]))]


def reply(query):
    end = name_end(query)
    label = query[13:13 + query[12]].lower()
    kind = struct.unpack(">H", query[end:end + 2])[0]
    found = answers(label, kind)
    if kind == MX and label.startswith(b"mx"):
        label = label[2:]
    flags = 0x8580 | CODES.get(label, 0)
    head = query[:2] + struct.pack(">HHHHH", flags, 1, len(found), 0, 0)
    if label == b"silent":
        return None
    if label == b"rubbish":
        return query[:2] + b"\xff" * 30
    return head + query[12:end + 4] + b"".join(found)


def main():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 53))
    print("ready", flush=True)
    while True:
        query, peer = sock.recvfrom(4096)
        answer = reply(query)
        if answer is not None:
            sock.sendto(answer, peer)


main()
