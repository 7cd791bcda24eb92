#!/usr/bin/env python3
"""Reports of delivery, read by parsers that were not written here: Python's
email, and Mail::DeliveryStatus::BounceParser of Debian where it is installed.

    check.py BUILD [NAME…]    BUILD is tests/report/build.c as a program

Each case is what goes in and what a reader must find, whatever is in the
strings and in the message."""
import email
import email.policy
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HEAD = b"Received: by mail.example.net\n\tid 1\nFrom: sender@example.com\nSubject: hello\n"
MAIL = HEAD + b"\nThe content.\n"
LIMIT = 998


def mail(head=b"", body=b"The content.\n"):
    return HEAD + head + b"\n" + body


def rcpt(address, finds=None, **keys):
    """A recipient: what goes in, and the fields that must be found."""
    return address, keys, {k.replace("_", "-"): v for k, v in (finds or {}).items()}


class Case:
    """What goes in, and what must be found.

    message    fields of the part of the message
    third      type and decoded text of the last part; the default is the header
    words      texts in the part for people
    header     fields of the report
    bounces    recipients that the second parser names; the default is all, and
               False where it reads addresses in its own way"""

    def __init__(self, name, *rcpts, content=MAIL, third=None, words=(), message=None, header=None,
                 bounces=None, **keys):
        self.name, self.rcpts, self.content, self.keys = name, rcpts, content, keys
        self.third = third or ("text/rfc822-headers", content.split(b"\n\n")[0] + b"\n")
        self.words, self.message, self.header = words, message or {}, header or {}
        self.bounces = bounces

    def input(self):
        def strings(keys):
            return b"".join(k.encode() + b"=" + as_bytes(v) + b"\0" for k, v in keys.items())
        out = strings(self.keys)
        for address, keys, _ in self.rcpts:
            out += strings({"rcpt": address, **keys})
        return out + b"content\0" + self.content


def as_bytes(value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


BOB = "bob@example.org"
MX = "mx.example.org[192.0.2.1]:25"
SAID = "host mx.example.org[192.0.2.1] said: "
INNER = (b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="0123456789abcdef"\n'
         b"\n--0123456789abcdef\n\nA part.\n--0123456789abcdef--\n")

CASES = [
    # ---- what is usual ----
    Case("one recipient refused by a server",
         rcpt(BOB, {"Final-Recipient": "rfc822; " + BOB, "Action": "failed", "Status": "5.1.1",
                    "Remote-MTA": "dns; mx.example.org",
                    "Diagnostic-Code": "smtp; 550 5.1.1 no such user"},
              relay=MX, dsn="5.1.1",
              text=SAID + "550 5.1.1 no such user (in reply to RCPT TO command)"),
         words=["<" + BOB + ">: host", "in reply to RCPT TO command", "final"],
         message={"Reporting-MTA": "dns; mail.example.net",
                  "Arrival-Date": "Fri, 15 Jan 2027 08:00:00 +0000"},
         header={"From": "Mail Delivery System <MAILER-DAEMON@example.net>",
                 "To": "<sender@example.com>", "Auto-Submitted": "auto-replied",
                 "Subject": "Undelivered Mail Returned to Sender",
                 "Message-ID": "<0123456789abcdef@mail.example.net>"}),
    Case("three recipients, each with its reason",
         *[rcpt(f"user{i}@example.org", {"Status": f"5.1.{i}", "Final-Recipient": f"rfc822; user{i}@example.org"},
                dsn=f"5.1.{i}", text=f"reason number {i}") for i in range(1, 4)],
         words=["<user1@example.org>: reason number 1 (status 5.1.1)", "<user3@example.org>: reason number 3"]),
    Case("a failure found here", rcpt(BOB, {"Diagnostic-Code": "X-Qscheduler; unknown user: bob", "Remote-MTA": None},
                                      relay="local", text="unknown user: bob")),
    Case("expired, with the last reply",
         rcpt(BOB, {"Status": "4.4.7", "Diagnostic-Code": "smtp; 451 4.3.0 later"}, dsn="4.4.7", relay=MX,
              text="delivery time expired: 4.3.0 " + SAID + "451 4.3.0 later (in reply to DATA command)")),
    Case("an address literal as relay", rcpt(BOB, {"Remote-MTA": "dns; [192.0.2.7]"}, relay="[192.0.2.7]:25")),
    Case("a delay", rcpt(BOB, {"Action": "delayed", "Status": "4.4.1",
                               "Will-Retry-Until": "Wed, 20 Jan 2027 08:00:00 +0000"},
                         action="delayed", dsn="4.4.1", relay="none", text="Connection refused"),
         kind="delay", until=1800432000, words=["need not send it again", "20 Jan 2027"],
         header={"Subject": "Delayed Mail (still being retried)"}, bounces=[]),
    Case("delivered and relayed, where asked for",
         rcpt("a@example.org", {"Action": "delivered", "Status": "2.1.5"}, action="delivered", dsn="2.1.5", text="ok"),
         rcpt("b@example.org", {"Action": "relayed", "Status": "2.0.0"}, action="relayed", dsn="2.0.0", text="250 ok"),
         rcpt("c@example.org", {"Action": "expanded", "Status": "2.0.0"}, action="expanded", dsn="2.0.0", text="list"),
         kind="success", words=["delivered: ok", "handed on to a system", "recipients of an alias"], bounces=[]),
    Case("some failed, some have it",
         rcpt(BOB, {"Action": "failed", "Status": "5.1.1"}),
         rcpt("carol@example.org", {"Action": "relayed", "Status": "2.0.0", "Remote-MTA": "dns; mx.example.org"},
              action="relayed", dsn="2.0.0", relay=MX, text="250 2.0.0 taken"),
         rcpt("dora@example.org", {"Action": "delivered", "Status": "2.0.0"}, action="delivered", dsn="2.0.0", text="maildir"),
         mixed=1, words=["could not be delivered", "Others below have it", "delivered: maildir"], bounces=[BOB],
         header={"Subject": "Undelivered Mail Returned to Sender"}),
    Case("an alias that was expanded",
         rcpt("team@example.net", {"Action": "expanded", "Status": "2.0.0", "Remote-MTA": None,
                                   "Original-Recipient": "rfc822; Team@Example.NET"},
              action="expanded", dsn="2.0.0", text="alias team: 2 recipients as 1, 2", orcpt="rfc822;Team@Example.NET"),
         kind="success", words=["handed on to the recipients of an alias: alias team"], bounces=["team@example.net"],
         header={"Subject": "Successful Mail Delivery Report"}),
    Case("delivered, the details lost", rcpt(BOB, {"Action": "delivered", "Status": "2.0.0"}, action="delivered", dsn="", text="lost"),
         kind="success", bounces=[]),
    Case("hostile strings in a report of success",
         rcpt("a\r\nAction: failed\r\n\r\nx@example.org", {"Action": "relayed", "Status": "2.0.0"}, action="relayed",
              dsn="2.0.0\nStatus: 5.1.1", relay=MX, text="250 ok\n\nAction: failed\n--0123456789abcdef=_0--",
              orcpt="rfc822;x+0D+0AAction:+20failed"),
         kind="success", envid="e+0A+0AAction: failed", bounces=False),
    Case("an ORCPT and an ENVID as long as they can be",
         rcpt(BOB, {"Original-Recipient": "rfc822; " + "o" * 493}, orcpt="rfc822;" + "o" * 493),
         envid="e" * 100, message={"Original-Envelope-Id": "e" * 100}, bounces=False),
    Case("a report that failed, for postmaster", rcpt(BOB), kind="double", sender="", to="postmaster@example.net",
         header={"To": "<postmaster@example.net>"}, words=["No other report", "from <>"],
         message={"X-Qscheduler-Sender": "rfc822; "}),
    Case("ENVID and ORCPT", rcpt(BOB, {"Original-Recipient": "rfc822; Bob+news@Example.ORG"},
                                 orcpt="rfc822;Bob+2Bnews@Example.ORG"),
         envid="QQ+2B314+3D1", bounces=["bob+news@example.org"], message={"Original-Envelope-Id": "QQ+314=1"}),
    Case("when it was tried last", rcpt(BOB, {"Last-Attempt-Date": "Fri, 15 Jan 2027 08:05:00 +0000"}, when=1800000300)),
    # ---- the message that is returned ----
    Case("the whole message", rcpt(BOB), whole=1, third=("message/rfc822", MAIL), words=["The message is below"]),
    Case("the whole message, 8 bit", rcpt(BOB), whole=1, content=mail(body="Grüße\n".encode()),
         third=("message/rfc822", mail(body="Grüße\n".encode()))),
    Case("a header in UTF-8, the whole", rcpt(BOB), whole=1, content=mail("Subject: Grüße\n".encode()),
         third=("message/global", mail("Subject: Grüße\n".encode()))),
    Case("a header in UTF-8", rcpt(BOB), content=mail("Subject: Grüße\n".encode())),
    Case("a header in latin 1", rcpt(BOB), whole=1, content=mail(b"Subject: Gr\xfc\xdfe\n"),
         words=["cannot be returned unchanged"],
         third=("text/rfc822-headers", HEAD + b"Subject: Gr\xfc\xdfe\n")),
    Case("a NUL in the content", rcpt(BOB), whole=1, content=mail(body=b"a\0b\n"),
         words=["cannot be returned unchanged"]),
    Case("a NUL in the header", rcpt(BOB), content=mail(b"X-N: a\0b\n")),
    Case("a CR alone in the content, with a boundary behind it", rcpt(BOB), whole=1,
         content=mail(body=b"a\r--0123456789abcdef=_0\rb\n"), words=["cannot be returned unchanged"]),
    Case("a CR alone in the header", rcpt(BOB), content=mail(b"X-N: a\rBcc: x\n")),
    Case("CRLF at the ends of lines", rcpt(BOB), whole=1, content=MAIL.replace(b"\n", b"\r\n"),
         third=("message/rfc822", MAIL)),
    Case("a line of 5000 bytes", rcpt(BOB), whole=1, content=mail(body=b"x" * 5000 + b"\n"),
         words=["cannot be returned unchanged"]),
    Case("a field of 5000 bytes", rcpt(BOB), content=mail(b"X-Long: " + b"y" * 5000 + b"\n")),
    Case("our boundary in the content", rcpt(BOB), whole=1,
         content=mail(body=b"--0123456789abcdef=_0\n\nforged\n--0123456789abcdef=_0--\n"),
         third=("message/rfc822", mail(body=b"--0123456789abcdef=_0\n\nforged\n--0123456789abcdef=_0--\n"))),
    Case("our boundary in the header", rcpt(BOB), content=mail(b"X-B: a\n --0123456789abcdef=_0\n --0123456789abcdef=_1--\n")),
    Case("a multipart with a part of our boundary", rcpt(BOB), whole=1, content=HEAD + INNER,
         third=("message/rfc822", HEAD + INNER)),
    Case("a multipart without an end", rcpt(BOB), whole=1,
         content=mail(b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="q"\n', b"--q\n\nno end\n"),
         third=("message/rfc822",
                mail(b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="q"\n', b"--q\n\nno end\n"))),
    Case("no header", rcpt(BOB), content=b"just text\n\nmore\n", third=("text/rfc822-headers", b"")),
    Case("nothing at all", rcpt(BOB), content=b"", third=("text/rfc822-headers", b"")),
    Case("no end of the last line", rcpt(BOB), whole=1, content=MAIL[:-1], third=("message/rfc822", MAIL)),
    Case("a header that was cut off", rcpt(BOB), content=HEAD + b"X-Cut: in the mid",
         third=("text/rfc822-headers", HEAD)),
    # ---- hostile recipients ----
    Case("an address with a line end and fields", rcpt("a\r\nAction: delivered\r\n\r\nx@example.org",
         {"Final-Recipient": "rfc822; a??Action: delivered????x@example.org", "Action": "failed"}), bounces=False),
    Case("an address with a boundary", rcpt("--0123456789abcdef=_0--\n--0123456789abcdef=_0@example.org", {"Action": "failed"}),
         bounces=False),
    Case("an address of 512 bytes", rcpt("a" * 500 + "@example.org", {"Final-Recipient": "rfc822; " + "a" * 500 + "@example.org"})),
    Case("an address in UTF-8", rcpt("bär@exämple.org", {"Final-Recipient": r"utf-8; b\x{E4}r@ex\x{E4}mple.org"}),
         words=["<bär@exämple.org>"], bounces=False),
    Case("an address in UTF-8 that is special in 7 bit", rcpt("b+ä=\\ @x.org",
         {"Final-Recipient": r"utf-8; b\x{2B}\x{E4}\x{3D}\x{5C}\x{20}@x.org"}), bounces=False),
    Case("a long address in UTF-8", rcpt("€" * 166 + "@example.org", {"Action": "failed"}), bounces=False),
    Case("an address that is no UTF-8", rcpt(b"b\xe4r@example.org", {"Action": "failed"}), words=["<b?r@example.org>"],
         bounces=False),
    Case("a quoted address", rcpt('"a b\\"c"@example.org', {"Final-Recipient": 'rfc822; "a b\\"c"@example.org'}), bounces=False),
    Case("a hostile ORCPT", rcpt(BOB, {"Original-Recipient": "rfc822; a??Action: delivered??"},
                                 orcpt="rfc822;a+0D+0AAction:+20delivered+00+0A"), bounces=False),
    Case("an ORCPT without a type", rcpt(BOB, {"Original-Recipient": "unknown; x y+ZZ+4"}, orcpt="x y+ZZ+4"), bounces=False),
    Case("an ORCPT in UTF-8", rcpt(BOB, {"Original-Recipient": r"utf-8; b\x{E4}r@x.org"}, orcpt="utf-8;b+C3+A4r@x.org"), bounces=False),
    # ---- hostile replies, statuses, senders ----
    Case("a reply with line ends and fields", rcpt(BOB, {"Action": "failed", "Status": "5.7.1"}, dsn="5.7.1", relay=MX,
         text=SAID + "550 no\r\n\r\nFinal-Recipient: rfc822; eve@example.org\nAction: delivered")),
    Case("a reply with a boundary", rcpt(BOB, {"Action": "failed"}, relay=MX,
         text=SAID + "550 \n--0123456789abcdef=_0\n\n--0123456789abcdef=_0--")),
    Case("a reply of 2000 bytes without a blank", rcpt(BOB, {"Action": "failed"}, relay=MX, text=SAID + "550 " + "z" * 2000)),
    Case("a reply of 2000 blanks", rcpt(BOB, {"Diagnostic-Code": "smtp; 550 a b"}, relay=MX,
                                        text=SAID + "550 a" + " " * 2000 + "b" + " " * 100)),
    Case("a reply in UTF-8", rcpt(BOB, {"Diagnostic-Code": r"smtp; 550 pas d'abonn\x{E9}"}, relay=MX,
                                  text=SAID + "550 pas d'abonné"), words=["pas d'abonné"]),
    Case("a program that says what a server says", rcpt(BOB, {"Diagnostic-Code": "X-Qscheduler; x said: 250 fine"},
                                                        relay="local", text="x said: 250 fine")),
    Case("no status", rcpt(BOB, {"Status": "5.0.0"}, dsn=""), words=["no such user"]),
    Case("a status that is none", rcpt(BOB, {"Status": "5.0.0"}, dsn="5.1.1\nAction: x")),
    Case("a status of another class", rcpt(BOB, {"Status": "5.0.0"}, dsn="2.0.0")),
    Case("no text", rcpt(BOB, {"Diagnostic-Code": None}, text="")),
    Case("a hostile relay", rcpt(BOB, {"Remote-MTA": "dns; evil?Action: delivered"}, relay="evil\nAction: delivered[::1]:25")),
    Case("a sender that no header can have", rcpt(BOB), to='a"b\n@x', sender='a"b\n@x', words=['from <a"b?@x>'],
         header={"To": "undisclosed-recipients:;"}),
    Case("a sender in UTF-8", rcpt(BOB), to="jürgen@example.com", sender="jürgen@example.com",
         header={"To": "undisclosed-recipients:;"}, message={"X-Qscheduler-Sender": r"utf-8; j\x{FC}rgen@example.com"}),
    Case("a quoted sender", rcpt(BOB), to='"a b"@example.com', header={"To": '<"a b"@example.com>'}),
    Case("a hostile ENVID", rcpt(BOB), envid="x+0A+0AAction: delivered" + "e" * 3000, bounces=False),
    Case("1500 recipients", *[rcpt(f"u{i}@example.org", {"Final-Recipient": f"rfc822; u{i}@example.org"}) for i in range(1500)],
         words=["<u999@example.org>", "not named here: 500"]),
]


def wrong(text, *values):
    raise AssertionError(text % tuple(ascii(v)[:300] for v in values))


def equal(what, got, want):
    if got != want:
        wrong(what + ": %s, not %s", got, want)


def unfold(value):
    return None if value is None else re.sub(r"\n[ \t]", " ", value)


def check_lines(raw):
    for line in raw.split(b"\n"):
        if len(line) > LIMIT:
            wrong("a line of %s bytes", len(line))
    if b"\r" in raw or b"\0" in raw:
        wrong("a CR or a NUL in the report")
    if not raw.endswith(b"--\n"):
        wrong("the report has no end")


def returned(raw, message, part):
    """What the last part has, decoded; of a message its bytes."""
    if part.get_content_maintype() != "message":
        return part.get_payload(decode=True)
    boundary = b"\n--" + message.get_boundary().encode()
    last = raw[:raw.rindex(boundary + b"--\n")]
    return last[last.rindex(boundary):].split(b"\n\n", 1)[1]


def check_defects(message):
    for part in [message, *message.get_payload()]:
        if part.defects:
            wrong("defects in %s: %s", part.get_content_type(), part.defects)


def check_structure(case, message):
    equal("type", message.get_content_type(), "multipart/report")
    equal("report-type", message.get_param("report-type"), "delivery-status")
    equal("parts", [p.get_content_type() for p in message.get_payload()],
          ["text/plain", "message/delivery-status", case.third[0]])
    check_defects(message)
    for field in ("Date", "From", "To", "Subject", "Message-ID", "MIME-Version", "Auto-Submitted"):
        equal(f"fields {field}", len(message.get_all(field, [])), 1)
    for field, want in case.header.items():
        equal(field, message[field], want)
    for field in ("Bcc", "Action"):
        equal(field, message[field], None)


def check_words(case, part):
    text = part.get_payload(decode=True).decode("utf-8")
    joined = " ".join(text.split())
    for want in case.words:
        if want not in joined:
            wrong("%s is not in the words: %s", want, joined)
    for line in text.split("\n"):
        if any(ord(c) < 32 or ord(c) == 127 for c in line):
            wrong("a control character in the words: %s", line)


def check_status(case, part):
    blocks = part.get_payload()
    equal("groups of fields", len(blocks), 1 + len(case.rcpts))
    raw = part.as_bytes()
    if any(b > 126 for b in raw):
        wrong("a byte above 126 in the fields")
    for block, finds in zip(blocks, [case.message] + [r[2] for r in case.rcpts]):
        if block.defects or block.get_payload():
            wrong("defects in the fields: %s %s", block.defects, block.get_payload())
        for field, want in finds.items():
            equal(field, unfold(block[field]), want)
        for field in set(block.keys()):
            equal(f"fields {field}", len(block.get_all(field)), 1)


def check_email(case, raw):
    message = email.message_from_bytes(raw, policy=email.policy.compat32)
    check_structure(case, message)
    words, status, last = message.get_payload()
    check_words(case, words)
    check_status(case, status)
    equal("the message", returned(raw, message, last).replace(b"\r\n", b"\n").rstrip(b"\n"), case.third[1].rstrip(b"\n"))
    eight = any(b > 127 for b in raw)
    equal("encoding", message["Content-Transfer-Encoding"], "8bit" if eight else "7bit")


# ---- the second parser ----

def has_bounce_parser():
    return subprocess.run(["perl", "-MMail::DeliveryStatus::BounceParser", "-e", "1"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def bounces_of(files):
    """{file: [(address, status, action)]} as Mail::DeliveryStatus::BounceParser reads them."""
    done = subprocess.run(["perl", str(HERE / "bounce.pl"), *map(str, files)], stdout=subprocess.PIPE,
                          check=True, text=True, errors="replace")
    found = {str(f): [] for f in files}
    for line in done.stdout.splitlines():
        name, *fields = line.split("\t")
        found[name].append(tuple(fields))
    return found


def expected_bounces(case):
    if case.bounces is not None:
        return case.bounces
    return [a for a, _, _ in case.rcpts]


def check_bounces(case, found):
    want = expected_bounces(case)
    if want is not False:
        equal("recipients of the second parser", [f[0].lower() for f in found], [a.lower() for a in want])
    for _, status, action in found:
        # The second parser counts an expansion as a bounce.
        equal("action of the second parser", action if action != "expanded" else "failed", "failed")
        if not re.fullmatch(r"[245]\.\d+\.\d+", status):
            wrong("status of the second parser: %s", status)


def main():
    build, names = sys.argv[1], sys.argv[2:]
    cases = [c for c in CASES if not names or c.name in names]
    second = has_bounce_parser()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="qsched-report-") as top:
        files = {}
        for i, case in enumerate(cases):
            done = subprocess.run([build], input=case.input(), stdout=subprocess.PIPE, check=False)
            files[case] = pathlib.Path(top) / f"{i:03}.eml"
            files[case].write_bytes(done.stdout)
        found = bounces_of(files.values()) if second else {}
        for case in cases:
            raw = files[case].read_bytes()
            try:
                check_lines(raw)
                check_email(case, raw)
                if second:
                    check_bounces(case, found[str(files[case])])
                passed += 1
            except (AssertionError, ValueError, LookupError) as error:
                failed += 1
                print(f"report: {case.name}: FAILED: {error}")
                again = shlex.join([sys.executable, "-B", "tests/report/check.py", build, case.name])
                print(f"FAILED\t{case.name}\t{again}\t{' '.join(str(error).split())}")
    if not second:
        print("SKIP report: Mail::DeliveryStatus::BounceParser (libmail-deliverystatus-bounceparser-perl) is not installed")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
