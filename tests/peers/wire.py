"""What a message looks like to one who gets it over SMTP, line ends being LF:
docs/DELIVERY.md, "Content", written down a second time."""
import re

LINE_MAX = 998
FIELD = re.compile(rb"[!-9;-~]+[ \t]*:")


def promise(octet):
    """The length of the UTF-8 character that begins so."""
    return 1 if octet < 0xC0 else 2 if octet < 0xE0 else 3 if octet < 0xF0 else 4 if octet < 0xF8 else 1


def overflow(line):
    """The place of the first octet that is too much for a line, or None."""
    for at in range(LINE_MAX - 3, min(len(line), LINE_MAX + 1)):
        if at + promise(line[at]) > LINE_MAX:
            return at
    return None


def folded(line):
    """A line of the body."""
    out = []
    while (cut := overflow(line)) is not None:
        out.append(line[:cut])
        line = b" " + line[cut:]
    return b"\n".join(out + [line])


def folded_field(line):
    """A line of the header: at the last blank that a word follows, and that is
    neither the beginning of the line nor before the colon."""
    out = []
    while (cut := overflow(line)) is not None:
        if not line[:cut].strip(b" \t"):
            line = line[1:]
            continue
        first = FIELD.match(line).end() if line[:1] not in b" \t" else len(line) - len(line.lstrip(b" \t")) + 1
        blanks = [at for at in range(first, cut + 1) if line[at] in b" \t" and line[at - 1:at] != b"\\"]
        words = [at for at in blanks if at < cut and line[at + 1] not in b" \t"]
        if words or blanks:
            cut = (words or blanks)[-1]
            out.append(line[:cut])
            line = line[cut:]
        else:
            out.append(line[:cut])
            line = b" " + line[cut:]
    if not out or line.strip(b" \t"):
        out.append(line)
    return b"\n".join(out)


def as_received(content):
    text = content.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    if text and not text.endswith(b"\n"):
        text += b"\n"
    out, in_header = [], True
    for number, line in enumerate(text.split(b"\n")):
        in_header = in_header and bool(FIELD.match(line[:LINE_MAX]) or (number > 0 and line[:1] in (b" ", b"\t")))
        out.append(folded_field(line) if in_header else folded(line))
    return b"\n".join(out)
