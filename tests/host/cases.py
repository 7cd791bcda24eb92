"""What callers of sendmail do, as data: one row a case, for our sendmail and for
Postfix's.

A row is a name, the arguments, and what else it needs. "why" says what a
difference from Postfix is for; a row without one has none.
"""
import collections

DOMAIN = "host.example.test"
SIZE_LIMIT = 20000

FIELDS = {
    "From": b"a@site.test", "To": b"bob@site.test", "Date": b"Sun, 22 Nov 2026 10:00:00 +0000",
    "Message-ID": b"<1@site.test>", "Subject": b"s",
}


def message(body=b"body\n", eol=b"\n", without=(), **fields):
    """All fields, so that none has to be added, but for those without."""
    both = FIELDS | {k.replace("_", "-"): v.encode() for k, v in fields.items()}
    head = b"".join(k.encode() + b": " + v + eol for k, v in both.items() if k not in without)
    return head + eol + body


Case = collections.namedtuple(
    "Case", "name args input why face state stdin closed", defaults=("sendmail", "", "bytes", ()))
BOB = "bob@site.test"
PLAIN = message()
BARE = b"Subject: s\n\nbody\n"
cases = []


def case(name, *args, input=PLAIN, why="", **more):
    assert name not in [c.name for c in cases if isinstance(c, Case)], name
    cases.append(Case(name, args, input, why, **more))


def section(title):
    cases.append(title)


# Words that explain more than one row.
CODE = "refused by both; Postfix's code is always 75"
ENDED = "the message is lost, which the caller learns; Postfix says so in its log alone"
DAEMON = "the daemon is `qscheduler`, and the service manager starts it; Postfix starts itself by this name"
REPORT = "Postfix mails a report of a delivery; here `-N success` asks for one"
SUCCESS = "both report the delivery; Postfix has delivered, and its report is queued, while here nothing was running"
WISH = "a wish that is not understood cannot be kept, which the caller learns; Postfix takes the message without it"
FLUSH = "a retry is for root and members of `operator_group` ([QCTL.md](QCTL.md)); Postfix lets everybody"
LIST = "the list shows addresses of others, and is for root, members of group qmail and of `reader_group`; there it is as Postfix's"
SILENT = "Postfix says nothing and does nothing"
DASH = "a switch that stands behind a recipient is a mistake; Postfix sends to it, and returns the message"
STRICT = "refused while its sender listens; Postfix makes an address of it, or returns the message"
NOBODY = "nobody has that address; Postfix sends it to the postmaster"
VERP = "the queue keeps the form of qmail; each delivery has the sender that Postfix makes"
KNOWN = "an old switch, taken without effect; Postfix refuses it"
LINE_END = "a line end in an address is an attack, or a mistake; Postfix takes what is behind it for more recipients, or cuts it"
KEPT = "a header is kept as it was sent, since signatures cover it; Postfix writes it anew"
DOMAINS = "only a domain that is missing is put; Postfix writes addresses and folds of the field anew"
MALFORMED = "a malformed field is kept as it was sent; Postfix makes addresses of it"
BYTES = "text is kept as it was sent; what SMTP cannot carry is mended on the wire"
INPUT = "input that cannot be read is no message; Postfix sends an empty one"
HANG = "the caller decides whether to wait; Postfix tries again every ten seconds for as long as it takes"

section("Recipients")
case("recipients as arguments", BOB, "carol@site.test")
case("a recipient without a domain", "bob")
case("-t", "-t")
case("-t, and arguments: both get it", "-t", "carol@site.test")
case("-t: Cc and Bcc", "-t", input=message(Cc="carol@site.test", Bcc="dave@site.test"))
case("-t: Bcc alone", "-t", input=message(without=["To"], Bcc="dave@site.test"))
case("-t: BCC in capitals, twice", "-t", input=message(BCC="dave@site.test", bcc="erin@site.test"))
case("Bcc without -t", BOB, input=message(Bcc="dave@site.test"))
case("-t with an argument: Bcc is a recipient, too", "-t", "carol@site.test", input=message(Bcc="dave@site.test"))
case("-t: Resent fields count alone", "-t",
     input=message(Resent_To="carol@site.test", Resent_Bcc="dave@site.test", Resent_From="a@site.test",
                   Resent_Date="Sun, 22 Nov 2026 10:00:00 +0000", Resent_Message_ID="<2@site.test>"))
case("-t: Resent-From alone", "-t",
     input=message(Cc="carol@site.test", Resent_From="a@site.test", Resent_Date="Sun, 22 Nov 2026 10:00:00 +0000",
                   Resent_Message_ID="<2@site.test>"))
case("-t: an empty Resent-To", "-t",
     input=message(Resent_To="", Resent_From="a@site.test", Resent_Date="Sun, 22 Nov 2026 10:00:00 +0000",
                   Resent_Message_ID="<2@site.test>"), why=CODE)
case("-t: names, comments, quotes, a group", "-t",
     input=message(To='Bob B. <bob@site.test>, "C, D" <carol@site.test>, dave@site.test (Dave), g: erin@site.test;'))
case("-t: a folded list", "-t", input=message(To="bob@site.test,\n\tcarol@site.test"))
case("-t: the same address twice", "-t", input=message(Cc="bob@site.test"))
case("the same argument twice", BOB, BOB)
case("the same in capitals", BOB, "bob@SITE.test", "BOB@site.test")
case("-t: no recipient field", "-t", input=message(without=["To"]), why=CODE)
case("-t: an empty To", "-t", input=message(To=""), why=CODE)
case("-t: undisclosed-recipients", "-t", input=message(To="undisclosed-recipients:;"), why=CODE)
case("-t: a malformed To", "-t", input=message(To="bob@site.test, <carol@site.test"), why=STRICT)
case("-t: a word and no address", "-t", input=message(To="some body"), why=STRICT)
case("-t: Apparently-To", "-t", input=message(without=["To"], Apparently_To="bob@site.test"), why=CODE)
case("-t: empty input", "-t", input=b"", why=CODE)
case("no recipient", why=CODE)
case("a list in one argument", "bob@site.test, carol@site.test")
case("a name in an argument", "Bob B. <bob@site.test>")
case("-- and a recipient that begins with -", "--", "-bob@site.test", why="it is an address; Postfix takes the message and returns it (`allow_min_user`)")
case("a switch behind a recipient", BOB, "-t", why=DASH)
case("- alone", "-", why=DASH)
case("an empty argument", "", why=NOBODY)
case("an empty argument beside another", "", BOB, why=NOBODY)
case("<>", "<>", why=NOBODY)
case("two words", "bob b@site.test", why=STRICT)
case("no local part", "@site.test", why=STRICT)
case("no domain behind the at sign", "bob@", why=STRICT)
case("two at signs", "bob@@site.test", why=STRICT)
case("two dots", "bob@site..test", why=STRICT)
case("an unclosed bracket", "<bob@site.test", why=STRICT)
case("an unclosed quote", '"bob@site.test', why=STRICT)
case("a quoted local part", '"bob b"@site.test')
case("an address literal", "bob@[192.0.2.1]")
case("octets above 127", "bøb@site.test")
case("a line end", "bob@site.test\nBcc: x@site.test", why=LINE_END)
case("a program", "|/bin/false")
case("a file", "/dev/null")
case("an address of 300 octets", "b" * 290 + "@site.test")
case("an address of 3000 octets", "b" * 2990 + "@site.test", why=CODE)

section("The sender")
case("-f", "-f", "me@site.test", BOB)
case("-f, attached", "-fme@site.test", BOB)
case("-f without a domain", "-f", "me", BOB)
case("-f with an empty value", "-f", "", BOB)
case("-f <>", "-f", "<>", BOB)
case("-f <me@site.test>", "-f", "<me@site.test>", BOB)
case("-f with a name", "-f", "Me <me@site.test>", BOB)
case("-r", "-r", "me@site.test", BOB)
case("-f twice: the last", "-f", "me@site.test", "-f", "you@site.test", BOB)
case("-f: two addresses", "-f", "me@site.test, you@site.test", BOB, why=STRICT)
case("-f: two words", "-f", "me you@site.test", BOB, why=STRICT)
case("-f: a line end", "-f", "me@site.test\nBcc: x@site.test", BOB, why=LINE_END)
case("-f without a value", "-f", why=CODE)
case("-F, no From in the header", "-F", "Full Name", BOB, input=BARE)
case("-F, attached", "-FFull Name", BOB, input=BARE)
case("-F and -f", "-F", "Full Name", "-f", "me@site.test", BOB, input=BARE)
case("-F, and a From in the header", "-F", "Full Name", BOB)
case("-F with a dot", "-F", "F. Name", BOB, input=BARE)
case("-F: octets above 127", "-F", "Fülle", BOB, input=BARE,
     why="a header is ASCII unless the whole way is known to be SMTPUTF8: an encoded word")
case("-f, no From in the header", "-f", "me@site.test", BOB, input=BARE, why="the name in the user database belongs to the user's own address; Postfix writes it beside any")
case("-f <>, no From in the header", "-f", "<>", BOB, input=BARE, why="an address of a From has a domain")

section("Switches")
case("-i", "-i", BOB)
case("-oi", "-oi", BOB)
case("-bm", "-bm", BOB)
case("-B 8BITMIME", "-B", "8BITMIME", BOB)
case("-B7BIT", "-B7BIT", BOB)
case("-B with another value", "-B", "9BIT", BOB, why=CODE)
case("-N never", "-N", "never", BOB)
case("-N with a list", "-N", "success,failure,delay", BOB, why=SUCCESS)
case("-N with another value", "-N", "perhaps", BOB, why=WISH)
case("-R hdrs", "-R", "hdrs", BOB)
case("-R full", "-R", "full", BOB)
case("-R with another value", "-R", "half", BOB, why=WISH)
case("-V", "-V", "id", BOB, why="the envelope id of sendmail; Postfix takes -V in front of an argument of two characters for -XV, so that it sends to the id")
case("-XV, VERP", "-f", "me@site.test", "-XV", BOB, why=VERP)
case("-XV-=", "-f", "me@site.test", "-XV-=", BOB, why=VERP)
case("-X", "-X", "/nonexistent/log", BOB, why="a log of all traffic, which is not written; Postfix refuses it")
case("-O", "-O", "Timeout=1", BOB)
case("-O without a value", "-O", why=CODE)
case("-oem, -odb, -o7", "-oem", "-odb", "-o7", BOB)
case("-om, -oQ, unknown ones", "-om", "-oQ/x", "-oZ", BOB)
case("-L", "-L", "tag", BOB)
case("-G", "-G", BOB)
case("-U", "-U", BOB)
case("-h", "-h", "5", BOB)
case("-n", "-n", BOB, why=KNOWN)
case("-m", "-m", BOB)
case("-c", "-c", BOB)
case("-e", "-e", "q", BOB)
case("-p", "-p", "ESMTP", BOB)
case("-x", "-x", BOB)
case("-s", "-s", BOB, why=KNOWN)
case("-d", "-d0", BOB, why=KNOWN)
case("-Ac", "-Ac", BOB)
case("-Am", "-Am", BOB)
case("-v", "-v", BOB, why=REPORT)
case("-ti", "-ti")
case("-it -f", "-it", "-f", "me@site.test")
case("-itf, the value behind it", "-itf", "me@site.test")
case("-oi -t -fme -F", "-oi", "-t", "-fme@site.test", "-F", "Me")
case("an unknown letter", "-z", BOB, why=CODE)
case("an unknown letter behind -t", "-tz", why=CODE)
case("--help", "--help", why=CODE)
case("--version", "--version", why=CODE)
case("-C: no such file", "-C", "/nonexistent", BOB)



def dialogue(*lines, eol="\r\n"):
    """What a client says: commands, and messages in bytes."""
    return b"".join(s if isinstance(s, bytes) else (s + eol).encode() for s in lines)


def sent(body=b"body\r\n", **more):
    return message(body, b"\r\n", **more) + b".\r\n"


HELLO = "HELO me.site.test"
FROM = "MAIL FROM:<me@site.test>"
TO = "RCPT TO:<bob@site.test>"
section("SMTP on standard input")
case("-bs: QUIT", "-bs", input=dialogue("QUIT"))
case("-bs: nothing", "-bs", input=b"")
case("-bs: a message", "-bs", input=dialogue(HELLO, FROM, TO, "DATA", sent(), "QUIT"))
case("-bs: the input ends without QUIT", "-bs", input=dialogue(HELLO, FROM, TO, "DATA", sent()))
case("-bs: two messages", "-bs", input=dialogue(
    HELLO, FROM, TO, "DATA", sent(), FROM, "RCPT TO:<carol@site.test>", "DATA", sent(), "QUIT"))
case("-bs: RSET", "-bs", input=dialogue(
    HELLO, FROM, "RCPT TO:<carol@site.test>", "RSET", FROM, TO, "DATA", sent(), "QUIT"))
case("-bs: no HELO", "-bs", input=dialogue(FROM, TO, "DATA", sent(), "QUIT"))
case("-bs: lines end in LF", "-bs", input=dialogue(
    HELLO, FROM, TO, "DATA", message(b"..\nbody\n"), ".", "QUIT", eol="\n"))
case("-bs: dots", "-bs", input=dialogue(HELLO, FROM, TO, "DATA", sent(b"..\r\n...\r\n.a\r\nb.\r\n"), "QUIT"))
case("-bs: Bcc", "-bs", input=dialogue(HELLO, FROM, TO, "DATA", sent(Bcc="carol@site.test"), "QUIT"))
case("-bs: no From, Date, Message-ID", "-bs", input=dialogue(
    HELLO, FROM, TO, "DATA", sent(without=("From", "Date", "Message-ID")), "QUIT"))
case("-bs: addresses without a domain", "-bs", input=dialogue(
    HELLO, "MAIL FROM:<me>", "RCPT TO:<bob>", "DATA", sent(), "QUIT"))
case("-bs: addresses without brackets", "-bs", input=dialogue(
    HELLO, "MAIL FROM: me@site.test", "RCPT TO: bob@site.test", "DATA", sent(), "QUIT"))
case("-bs: a source route, quotes that are not needed", "-bs", input=dialogue(
    HELLO, FROM, "RCPT TO:<@relay.test:bob@site.test>", 'RCPT TO:<"carol"@site.test>', "DATA", sent(), "QUIT"))
case("-bs: the null sender", "-bs", input=dialogue(HELLO, "MAIL FROM:<>", TO, "DATA", sent(), "QUIT"))
case("-bs: the same recipient twice", "-bs", input=dialogue(HELLO, FROM, TO, TO, "DATA", sent(), "QUIT"))
case("-bs: octets above 127", "-bs", input=dialogue(
    HELLO, FROM, TO, "DATA", sent("\u00e4\r\n".encode()), "QUIT"))
case("-bs: -f and -F", "-bs", "-f", "you@site.test", "-F", "Full Name", input=dialogue(
    HELLO, FROM, TO, "DATA", sent(without=("From",)), "QUIT"))
case("-bs: no recipient", "-bs", input=dialogue(HELLO, FROM, "DATA", "QUIT"))
case("-bs: a second sender", "-bs", input=dialogue(HELLO, FROM, FROM, TO, "DATA", sent(), "QUIT"))
case("-bs: recipients that are no addresses", "-bs", input=dialogue(
    HELLO, FROM, "RCPT TO:<>", "RCPT TO:<bob b@site.test>", TO, "DATA", sent(), "QUIT"))
case("-bs: unknown commands", "-bs", input=dialogue("XYZ", "STARTTLS", "AUTH PLAIN", "VRFY", "RCPT", "QUIT"))
case("-bs: a line of 5000 octets", "-bs", input=dialogue("NOOP " + 5000 * "x", "QUIT"))
case("-bs: more than message_size_limit, and another message", "-bs", input=dialogue(
    HELLO, FROM, TO, "DATA", sent(SIZE_LIMIT // 62 * (b"x" * 62 + b"\r\n")), FROM, TO, "DATA", sent(), "QUIT"))
case("-bs: the input ends inside of a message", "-bs", input=dialogue(
    HELLO, FROM, TO, "DATA", message(eol=b"\r\n")), why=ENDED)
case("-bs: a recipient as argument", "-bs", BOB, input=dialogue("QUIT"), why=CODE)
case("-bs -t", "-bs", "-t", input=dialogue("QUIT"), why=CODE)
case("-bs: the disk is full", "-bs", input=dialogue(HELLO, FROM, TO, "DATA", sent(), "QUIT"), state="full")

section("Other tasks")
case("-bp", "-bp", why=LIST)
case("-bi", "-bi")
case("-I", "-I")
case("-bd", "-bd", why=DAEMON)
case("-bd -q15m", "-bd", "-q15m", why=DAEMON)
case("-bD", "-bD", why=CODE)
case("-bv", "-bv", BOB, input=b"", why=REPORT)
case("-bt", "-bt", why=CODE)
case("-bh", "-bh", why=SILENT)
case("-bH", "-bH", why=SILENT)
case("-b with another value", "-bz", BOB, why=CODE)
case("-b without a value", "-b", why=CODE)
case("-q", "-q", why=FLUSH)
case("-q15m", "-q15m")
case("-qR", "-qRsite.test", why="a part of an address of a recipient; Postfix knows domains that it was told of (`fast_flush_domains`). A retry is for root and members of `operator_group`")
case("-qS", "-qSsite.test", why="a part of the sender; a retry is for root and members of `operator_group`")
case("-qI", "-qI123ABC", why=FLUSH)
case("mailq", face="mailq", why=LIST)
case("newaliases", face="newaliases")
case("newaliases with an argument", "/etc/aliases", face="newaliases", why="scripts of packages must not fail on it; Postfix refuses the argument")

section("What is on standard input")
case("nothing", BOB, input=b"")
case("a header alone", BOB, input=b"Subject: s\n")
case("a header without an empty line, then text", BOB, input=b"Subject: s\ntext\n")
case("text without a header", BOB, input=b"text\n")
case("an empty line first", BOB, input=b"\ntext\n")
case("a line that begins with a blank first", BOB, input=b" text\nmore\n")
case("no From, Date, Message-ID", BOB, input=BARE)
case("no Date", BOB, input=message(without=["Date"]))
case("no Message-ID", BOB, input=message(without=["Message-ID"]))
case("no To", BOB, input=message(without=["To"]))
case("Resent-To alone", BOB, input=message(Resent_To="carol@site.test"))
case("a mailbox line From", BOB, input=b"From a@site.test Sun Nov 22 10:00:00 2026\n" + PLAIN)
case("a mailbox line >From", BOB, input=b">From a@site.test Sun Nov 22 10:00:00 2026\n" + PLAIN)
case("Return-Path", BOB, input=message(Return_Path="<x@site.test>"))
case("Content-Length", BOB, input=message(Content_Length="5"))
case("Sender, Status, X-Mailer, Received", BOB,
     input=message(Sender="x@site.test", Status="RO", X_Mailer="m", Received="by x; Sun, 22 Nov 2026 10:00:00 +0000"))
case("addresses of the header without a domain", BOB, input=message(To="bob", Cc="carol"))
case("mail of cron", BOB, input=message(From="root (Cron Daemon)", To="root"))
case("each field of authors and recipients without a domain", BOB,
     input=message(From="a", Sender="b", Reply_To="c", Resent_From="d", Resent_Sender="e", Resent_Reply_To="f",
                   Resent_To="g", Resent_Cc="h", Resent_Date="Sun, 22 Nov 2026 10:00:00 +0000",
                   Resent_Message_ID="<2@site.test>"))
case("names, quotes, an encoded word and no domain", BOB,
     input=message(From='"A, B" <a>', To='Bob B <bob>, "c d", =?utf-8?Q?D=C3=A4?= <d>'), why=DOMAINS)
case("a group without domains", BOB, input=message(To="us: bob, carol@site.test;"))
case("undisclosed recipients", BOB, input=message(To="undisclosed-recipients:;"))
case("a folded field without domains", BOB, input=message(To="bob,\n\tcarol"), why=DOMAINS)
case("old paths in the header", BOB, input=message(To="bob%site.test, site!carol"), why=DOMAINS)
case("a malformed field in the header", BOB, input=message(To="Bob B, carol"), why=MALFORMED)
case("a dot at the end of an address in the header", BOB, input=message(To="bob@site.test, carol."), why=MALFORMED)
case("a blank before the colon", BOB, input=PLAIN.replace(b"Subject:", b"Subject :"), why=KEPT)
case("a dot line", BOB, input=message(b"one\n.\ntwo\n"))
case("a dot line with -i", "-i", BOB, input=message(b"one\n.\ntwo\n"))
case("a dot line with -oi", "-oi", BOB, input=message(b"one\n.\ntwo\n"))
case("a dot line with -t", "-t", input=message(b"one\n.\ntwo\n"))
case("two dots and text with dots", BOB, input=message(b"..\n.a\n.\n"))
case("a dot and no line end", BOB, input=message(b"one\n."))
case("a dot in the header", BOB, input=b"Subject: s\n.\ntwo\n")
case("CRLF", BOB, input=message(b"one\r\ntwo\r\n", eol=b"\r\n"))
case("CRLF in the header, LF in the text", BOB, input=message(b"one\ntwo\n", eol=b"\r\n"))
case("LF in the header, CRLF in the text", BOB, input=message(b"one\r\ntwo\r\n"))
case("CRLF and a dot line", BOB, input=message(b"one\r\n.\r\ntwo\r\n", eol=b"\r\n"))
case("CR alone", BOB, input=message(b"one\rtwo\r\r\nthree\r"), why=BYTES)
case("no line end at the end", BOB, input=message(b"one"), why=BYTES)
case("NUL", BOB, input=message(b"one\0two\n"))
case("NUL in the header", BOB, input=PLAIN.replace(b": s\n", b": s\0t\n"), why="nothing is lost; Postfix cuts the field there")
case("octets above 127 in the text", BOB, input=message("ä\n".encode()))
case("a line of 15000 octets", BOB, input=message(b"x" * 15000 + b"\n"))
case("a field of 15000 octets", BOB, input=message(X_Long="x " * 7500))
case("more than message_size_limit", BOB, input=message(b"x" * 60 + b"\n") + (b"x" * 60 + b"\n") * (SIZE_LIMIT // 50), why=CODE)
case("-t, more than message_size_limit", "-t",
     input=message(b"x" * 60 + b"\n") + (b"x" * 60 + b"\n") * (SIZE_LIMIT // 50), why=CODE)
case("a header of 2 MB", BOB, input=message(X_Long="x" * 2000000), why=CODE)

section("Descriptors and queues")
case("standard input is closed", BOB, stdin="closed", why=INPUT)
case("standard input is a directory", BOB, stdin="directory", why=INPUT)
case("standard input is open for writing", BOB, stdin="writing", why=INPUT)
case("standard output is closed", BOB, closed=(1,))
case("standard error is closed", BOB, closed=(2,))
case("all but standard input are closed, a refusal", closed=(1, 2), why=CODE)
case("the system is stopped", BOB, state="stopped")
case("the disk is full", BOB, state="full")
case("the queue may not be written", BOB, state="unwritable", why=HANG)
case("the configuration is not there", BOB, state="unconfigured")
