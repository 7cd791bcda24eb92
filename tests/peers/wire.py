"""What a message looks like to one who gets it over SMTP, line ends being LF:
docs/DELIVERY.md, "Content", written down a second time."""
LINE_MAX = 998


def promise(octet):
    """The length of the UTF-8 character that begins so."""
    return 1 if octet < 0xC0 else 2 if octet < 0xE0 else 3 if octet < 0xF0 else 4 if octet < 0xF8 else 1


def folded(line):
    out, column = bytearray(), 0
    for octet in line:
        if column + promise(octet) > LINE_MAX:
            out += b"\n "
            column = 1
        out.append(octet)
        column += 1
    return bytes(out)


def as_received(content):
    text = content.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    if text and not text.endswith(b"\n"):
        text += b"\n"
    return b"\n".join(folded(line) for line in text.split(b"\n"))
