"""What came of a case, in words that can be compared: exit code, what was said,
and each message that was queued, beside the input."""
import collections
import os
import re
import subprocess

LIMIT = 60  # seconds; a sendmail that still runs is said to hang
MESSAGE = collections.namedtuple("Message", "sender rcpts content")


def fields(data):
    """(name, whole field) of each field of a header, and what follows it."""
    found, lines = [], data.split(b"\n")
    if lines[0].startswith((b"From ", b">From ")):
        lines = lines[1:]
    for at, line in enumerate(lines):
        if found and line[:1] in (b" ", b"\t"):
            found[-1][1] += b"\n" + line
        elif re.match(rb"[!-9;-~]+[ \t]*:", line):
            found.append([line.split(b":")[0].strip().decode(), line])
        else:
            return found, b"\n".join(lines[at:])
    return found, b""


def own(text, address, named):
    """A From of the submitter is the same for every submitter, unless the name
    in it is of the case."""
    if named:
        text = text.replace(address, "OWN")
    text = re.sub(rf"^((?:Resent-)?From): .*{re.escape(address)}.*", r"\1: OWN", text)
    return re.sub(r"^((?:Resent-)?(?:Date|Message-I[Dd])): .*", lambda m: m[1].title(), text, flags=re.S)


def shown(data):
    """Bytes as a line; long ones by their length."""
    if len(data) > 200:
        return f"{len(data)} octets"
    return repr(data)[1:]


def of_message(stored, case, login):
    """Lines about one message that was queued."""
    mine = "@".join(login)
    got, text = fields(stored.content)
    if stored.sender == "" and stored.rcpts == [mine]:
        subject = dict(got)["Subject"].decode()
        return [f"a report to the sender, {subject}"]
    # Postfix has two of its own behind -bs: of its server, and of the pick-up.
    for _ in range(2 if "-bs" in case.args else 1):
        if got and got[0][0] == "Received":
            got = got[1:]
    named = any(a.startswith("-F") for a in case.args)
    given = case.input.replace(b"\r\n", b"\n")
    sent, _ = fields(given.partition(b"\nDATA\n")[2] if "-bs" in case.args else given)
    left = [own(f[1].replace(b"\r\n", b"\n").rstrip(b"\r").decode(errors="replace"), mine, named) for f in got]
    gone = [own(f[1].decode(errors="replace"), mine, named) for f in sent]
    adds, drops = list(left), []
    for field in gone:
        if field in adds:
            adds.remove(field)
        else:
            drops.append(field)
    sender = "OWN" if stored.sender == mine else f"<{stored.sender}>"
    lines = [f"from {sender} to " + " ".join(f"<{r}>" for r in sorted(stored.rcpts))]
    lines += [f"  adds {f if f.isprintable() and len(f) <= 60 else shown(f.encode())}" for f in sorted(adds)]
    lines += [f"  drops {f if f.isprintable() and len(f) <= 60 else shown(f.encode())}" for f in sorted(drops)]
    if any(f[1].endswith(b"\r") for f in got):
        lines.append("  header in CRLF")
    return lines + ["  text " + shown(text[1:] if text[:1] == b"\n" or not text else b"no empty line, " + text)]


def of_case(case, status, said, messages, login):
    lines = ["hangs" if status is None else f"exit {status}"]
    for line in said.decode(errors="replace").splitlines():
        line = "says " + re.sub(r"queued as \S+", "queued as ID", re.sub(r"maildrop/\S+", "maildrop/FILE:", line))
        if line not in lines:
            lines.append(line)
    return lines + [line for m in sorted(of_message(m, case, login) for m in messages) for line in m]


def run(case, command, prepare=None, **options):
    """Exit code, or None when it hangs, and all that was said."""
    def before():
        if prepare is not None:
            prepare()
        for fd in case.closed:
            os.close(fd)
        if case.stdin != "bytes":
            os.close(0)
        if case.stdin == "directory":
            os.set_inheritable(os.open("/", os.O_RDONLY), True)
        if case.stdin == "writing":
            os.set_inheritable(os.open("/dev/null", os.O_WRONLY), True)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=before, start_new_session=True, **options) as process:
        try:
            said = process.communicate(case.input, timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None, process.communicate()[0]
    return process.returncode, said
