#include "scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define BYTES(s)  s, sizeof(s) - 1

struct content_case {
	const char *name, *input;
	size_t len;
	bool header; /* has one: nothing is put between */
};

static const struct content_case contents[] = {
	{ "empty", BYTES(""), false },
	{ "headers only", BYTES("Subject: x\nTo: a@b\n"), true },
	{ "headers only, no end", BYTES("Subject: x"), true },
	{ "headers and an empty line", BYTES("Subject: x\n\n"), true },
	{ "no header", BYTES("hello world\nhow are you\n"), false },
	{ "first line continues", BYTES(" Subject: x\n\nbody\n"), false },
	{ "empty first line", BYTES("\nbody\n"), true },
	{ "NULs", BYTES("Subject: \0\n\n\0\0body\0\n\0"), true },
	{ "bare CR", BYTES("Subject: x\ry\n\na\rb\r\r\nc\r"), true },
	{ "CRLF", BYTES("Subject: x\r\n\r\nbody\r\n"), true },
	{ "8-bit", BYTES("Subject: \xff\xfe\n\n\x80\x9f\xff"), true },
	{ "no final newline", BYTES("Subject: x\n\nbody"), true },
	{ "dots", BYTES("Subject: x\n\n.\n..\n.a\n."), true },
	{ "format characters",
	    BYTES("Subject: %n%s%99999d `id` $(id)\n\n%n%s\n"), true },
	{ "text that looks like a mailbox",
	    BYTES("From here on\nall is text\n"), false },
};

/* Everything in front of the input is fields that were added. */
static void
check_front(const char *name, const char *content, size_t len, bool header)
{
	static const char *const added[] = { "Received: by mx.example (",
		"\tid 0", "From: ", "Date: ", "Message-ID: <" };
	size_t i, at = 0;

	for (i = 0; i < ARRAY_LEN(added); i++) {
		const char *lf = memchr(content + at, '\n', len - at);

		cr_assert_not_null(lf, "%s: %zu", name, i);
		cr_expect_eq(memcmp(content + at, added[i], strlen(added[i])),
		    0, "%s: %.60s", name, content + at);
		at = (size_t)(lf - content) + 1;
	}
	cr_expect_eq(len - at, header ? 0 : 1, "%s: %.*s", name,
	    (int)(len - at), content + at);
	if (!header)
		cr_expect_eq(content[at], '\n', "%s", name);
}

static void
check_content(
    const struct scratch *s, const struct content_case *c, const char *face)
{
	struct stored m = { 0 };
	struct run run = { .argv = ARGS(face, "-i", "-f", "me@x", "a@b"),
		.input = c->input,
		.len = c->len };

	scratch_run(s, &run);
	cr_assert_eq(run.status, 0, "%s: %s", c->name, run.err);
	cr_assert_eq(scratch_stored(s, &m), 1, "%s", c->name);
	cr_assert_geq(m.content.len, c->len);
	cr_expect_eq(
	    memcmp(m.content.data + m.content.len - c->len, c->input, c->len),
	    0, "%s", c->name);
	check_front(c->name, m.content.data, m.content.len - c->len, c->header);
	cr_expect_str_eq(buf_str(&m.sender), "me@x");
	cr_expect_str_eq(buf_str(&m.rcpts), "a@b");
	stored_done(&m);
	scratch_empty(s);
}

Test(mail_face, C1_C4_content_is_stored_byte_exact)
{
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(contents); i++) {
		/* In this face lines end in LF: below. */
		if (memchr(contents[i].input, '\r', contents[i].len) == NULL)
			check_content(&s, &contents[i], "/usr/sbin/sendmail");
		check_content(&s, &contents[i], "queue-inject");
	}
	scratch_done(&s);
}

struct front_case {
	const char *name;
	const char *const *argv;
	const char *input, *sender, *rcpts;
	const char *has, *has_not; /* in the content, or NULL */
};

#define TO_SELF "me@x", "a@b"

static const struct front_case fronts[] = {
	{ "-t takes To, Cc, Bcc", ARGS("sendmail", "-t", "-f", "me@x"),
	    "To: A <a@b>\nCC: c@d,\n\te@f\nBcc: g@h\nSubject: x\n\nb\n", "me@x",
	    "a@b|c@d|e@f|g@h", "CC: c@d,\n\te@f\nSubject: x\n\nb\n", "g@h" },
	{ "-t adds to the arguments", ARGS("sendmail", "-t", "x@y"),
	    "To: a@b\n\n", NULL, "x@y|a@b", NULL, NULL },
	{ "-ti as one", ARGS("sendmail", "-tif", "me@x"), "To: a@b\n\n.\nc",
	    "me@x", "a@b", "\n.\nc", NULL },
	{ "several fields of a name", ARGS("sendmail", "-t"),
	    "To: a@b\nto: c@d\nTO : e@f\n\n", NULL, "a@b|c@d|e@f", NULL, NULL },
	{ "Resent fields count alone", ARGS("sendmail", "-t", "-f", "me@x"),
	    "Resent-To: a@b\nResent-Bcc: c@d\nTo: x@y\nBcc: z@z\nFrom: f@f\n\n",
	    "me@x", "a@b|c@d", "Resent-From: me@x\nResent-Date: ", "Bcc" },
	{ "Resent-From alone: others count",
	    ARGS("sendmail", "-t", "-f", "me@x"),
	    "Resent-From: r@s\nTo: a@b\nCc: c@d\nBcc: e@f\n\n", "me@x",
	    "a@b|c@d|e@f", "Resent-Date: ", "Bcc" },
	{ "an empty Resent-Cc counts", ARGS("sendmail", "-t", "x@y"),
	    "Resent-Cc:\nTo: a@b\n\n", NULL, "x@y", NULL, NULL },
	{ "Bcc goes without -t", ARGS("sendmail", "a@b"),
	    "S: x\nBcc: secret@x\n\nBcc: b\n", NULL, "a@b", "S: x\n\nBcc: b\n",
	    "secret" },
	{ "own face: so do all that are not for readers",
	    ARGS("queue-inject", "a@b"),
	    "return-path: <secret>\nS: x\nContent-Length: secret\n"
	    "Resent-Bcc: secret@x\nBCC : secret@x\n\nb\n",
	    NULL, "a@b", "S: x\n\nb\n", "secret" },
	{ "a recipient comes once", ARGS("sendmail", "-t", "a@b", "c@d, a@B"),
	    "To: A@b, e@f\nCc: e@f\n\n", NULL, "a@b|c@d|e@f", NULL, NULL },
	{ "a domain has one spelling",
	    ARGS("sendmail",
		"h@b\xc3\xbc"
		"c.d",
		"h@B\xc3\x9c"
		"C.d.",
		"H@xn--bc-xka.D", "h@bc.d"),
	    "\n", NULL,
	    "h@b\xc3\xbc"
	    "c.d|h@bc.d",
	    NULL, NULL },
	{ "own face: once", ARGS("queue-inject", "a@b", "a@b", "a"), "\n", NULL,
	    "a@b|a@example.org", NULL, NULL },
	{ "-X names a file", ARGS("sendmail", "-X", "/log", "a@b"), "\n", NULL,
	    "a@b", NULL, NULL },
	{ "a group", ARGS("sendmail", "-t"),
	    "To: us: a@b, \"c d\"@e;, joe (me)\n\n", NULL,
	    "a@b|\"c d\"@e|joe@example.org", NULL, NULL },
	{ "unqualified", ARGS("sendmail", "-f", "root", "joe", "A <ann>"), "\n",
	    "root@example.org", "joe@example.org|ann@example.org", NULL, NULL },
	{ "several in an argument", ARGS("sendmail", "a@b, c@d"), "\n", NULL,
	    "a@b|c@d", NULL, NULL },
	{ "null sender", ARGS("sendmail", "-f", "<>", "a@b"), "\n", "", "a@b",
	    "From: MAILER-DAEMON@example.org\n", NULL },
	{ "empty sender", ARGS("sendmail", "-f", "", "a@b"), "\n", "", "a@b",
	    NULL, NULL },
	{ "-r is -f", ARGS("sendmail", "-rme@x", "a@b"), "\n", "me@x", "a@b",
	    "From: me@x\n", NULL },
	{ "-F", ARGS("sendmail", "-F", "Anna Berg", "-fme@x", "a@b"), "\n",
	    "me@x", "a@b", "From: Anna Berg <me@x>\n", NULL },
	{ "-F with specials", ARGS("sendmail", "-FA. \"B\"", "-fme@x", "a@b"),
	    "\n", "me@x", "a@b", "From: \"A. \\\"B\\\"\" <me@x>\n", NULL },
	{ "-F with a line end",
	    ARGS("sendmail", "-FA\nBcc: x", "-fme@x", "a@b"), "\n", "me@x",
	    "a@b", "From: \"A?Bcc: x\" <me@x>\n", "\nBcc" },
	{ "-F not ASCII", ARGS("sendmail", "-FJ\xc3\xb6rg", "-fme@x", "a@b"),
	    "\n", "me@x", "a@b", "From: =?UTF-8?Q?J=C3=B6rg?= <me@x>\n", NULL },
	{ "a sender in U-labels", ARGS("sendmail", "-fMe@B\xc3\xbc.Ex", "a@b"),
	    "\n", "Me@B\xc3\xbc.Ex", "a@b", "From: Me@xn--b-eha.ex\n", NULL },
	{ "a sender in ASCII is as it was",
	    ARGS("sendmail", "-fMe@B.Ex", "a@b"), "\n", "Me@B.Ex", "a@b",
	    "From: Me@B.Ex\n", NULL },
	{ "a sender without A-labels", ARGS("sendmail", "-fme@\xff", "a@b"),
	    "\n", "me@\xff", "a@b", "From: me@\xff\n", NULL },
	{ "fields that are there", ARGS("sendmail", "-fme@x", "a@b"),
	    "FROM: x\ndate : y\nmessage-id: z\n\n", "me@x", "a@b", NULL,
	    "From: " },
	{ "switches without a meaning",
	    ARGS("sendmail", "-oem", "-oi", "-odq", "-o7", "-em", "-m", "-n",
		"-U", "-v", "-G", "-N", "never", "-R", "hdrs", "-Venv", "-bm",
		"-B8BITMIME", "-O", "Opt=x", "-h5", "-p", "proto", "-Ac",
		"a@b"),
	    "\n.\nx", NULL, "a@b", "\n.\nx", NULL },
	{ "a lone dot ends", ARGS("sendmail", "a@b"), "S: x\n\nb\n.\nc\n", NULL,
	    "a@b", "\nb\n", "c\n" },
	{ "a dot ends the header", ARGS("sendmail", "a@b"), "S: x\n.\nc\n",
	    NULL, "a@b", "S: x\n", "\nc\n" },
	{ "mailbox line", ARGS("sendmail", "-fme@x", "a@b"),
	    "From me Mon\nFrom: q@q\n\nb\n", "me@x", "a@b", "\nFrom: q@q\n",
	    "From me" },
	{ "quoted mailbox line", ARGS("sendmail", "-fme@x", "a@b"),
	    ">From me Mon\nFrom: q@q\n\nb\n", "me@x", "a@b", "\nFrom: q@q\n",
	    "From me" },
	{ "text behind fields", ARGS("sendmail", "a@b"), "S: x\nhello you\n",
	    NULL, "a@b", "S: x\n\nhello you\n", NULL },
	{ "text behind fields, CRLF", ARGS("sendmail", "a@b"),
	    "S: x\r\nhello you\r\n", NULL, "a@b", "S: x\n\nhello you\n", "\r" },
	{ "CRLF, and CR alone", ARGS("sendmail", "-i", "a@b"),
	    "S: x\r\nT: y\rz\n\r\na\rb\r\r\n.\r\nc\r", NULL, "a@b",
	    "\nS: x\nT: y\rz\n\na\rb\n.\nc\r", NULL },
	{ "own face: text behind fields, CRLF", ARGS("queue-inject", "a@b"),
	    "S: x\r\nhello you\r\n", NULL, "a@b", "S: x\r\n\r\nhello you\r\n",
	    NULL },
	{ "own face: CRLF in what is added", ARGS("queue-inject", "a@b"),
	    "hello you\r\n", NULL, "a@b", "\r\n\r\nhello you\r\n", NULL },
	{ "-- before recipients",
	    ARGS("sendmail", "-fme@x", "--", "-f@b", "-x"), "\n", "me@x",
	    "-f@b|-x@example.org", NULL, NULL },
	{ "own face: as it stands",
	    ARGS("queue-inject", "-f", "a b@c", "d, e@f"), "\n", "a b@c",
	    "d, e@f", NULL, NULL },
	{ "own face: unqualified", ARGS("queue-inject", "--", "-joe"), "\n",
	    NULL, "-joe@example.org", NULL, NULL },
	{ "own face: -t", ARGS("queue-inject", "-it", "x@y"), "To: a@b\n\n.\nz",
	    NULL, "x@y|a@b", "\n.\nz", NULL },
	{ "C4 shell and format characters",
	    ARGS("queue-inject", "-f$(id)`id`@x", "|id;%n%s@b"), "\n",
	    "$(id)`id`@x", "|id;%n%s@b", NULL, NULL },
};

Test(mail_face, switches_and_fields)
{
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(fronts); i++) {
		const struct front_case *c = &fronts[i];
		struct stored m = { 0 };
		struct run run;

		cr_expect_eq(scratch_exit(&s, &run, c->argv, c->input), 0,
		    "%s: %s", c->name, run.err);
		cr_expect_eq(scratch_stored(&s, &m), 1, "%s", c->name);
		if (c->sender != NULL)
			cr_expect_str_eq(buf_str(&m.sender), c->sender,
			    "%s: %s", c->name, buf_str(&m.sender));
		cr_expect_str_eq(buf_str(&m.rcpts), c->rcpts, "%s: %s", c->name,
		    buf_str(&m.rcpts));
		if (c->has != NULL)
			cr_expect_not_null(strstr(buf_str(&m.content), c->has),
			    "%s: %s", c->name, buf_str(&m.content));
		if (c->has_not != NULL)
			cr_expect_null(strstr(buf_str(&m.content), c->has_not),
			    "%s: %s", c->name, buf_str(&m.content));
		stored_done(&m);
		scratch_empty(&s);
	}
	scratch_done(&s);
}

struct refusal_case {
	const char *name;
	const char *const *argv;
	const char *input;
	int want;
	const char *text; /* part of the reason */
};

static const struct refusal_case refusals[] = {
	{ "no argument", ARGS("sendmail"), "To: a@b\n\n", 64, "5.5.1" },
	{ "no argument", ARGS("queue-inject"), "To: a@b\n\n", 64, "no recip" },
	{ "-- alone", ARGS("queue-inject", "--"), "\n", 64, "no recipient" },
	{ "unknown option", ARGS("queue-inject", "-z", "a@b"), "\n", 64,
	    "usage: queue-inject" },
	{ "unknown long option", ARGS("queue-inject", "--no", "a@b"), "\n", 64,
	    "usage" },
	{ "unknown switch", ARGS("sendmail", "-z", "a@b"), "\n", 64, "`-z'" },
	{ "value missing", ARGS("queue-inject", "-f"), "\n", 64, "value" },
	{ "value missing", ARGS("queue-inject", "a@b", "-f"), "\n", 64,
	    "behind a recipient" },
	{ "value missing", ARGS("sendmail", "-t", "-f"), "\n", 64,
	    "-f lacks its value" },
	{ "switch behind a recipient", ARGS("sendmail", "a@b", "-f", "me"),
	    "\n", 64, "behind a recipient" },
	{ "-B", ARGS("sendmail", "-B", "x", "a@b"), "\n", 64, "8BITMIME" },
	{ "-bz", ARGS("sendmail", "-bz"), "\n", 64, "unknown mode" },
	{ "-bs and a recipient", ARGS("sendmail", "-bs", "a@b"), "\n", 64,
	    "by SMTP" },
	{ "-bs and -t", ARGS("sendmail", "-tbs"), "\n", 64, "by SMTP" },
	{ "-bs, closed input", ARGS("sendmail", "-bs"), NULL, 74, "closed" },
	{ "-bs, configuration", ARGS("sendmail", "-bs", "-C", "/nowhere"), "\n",
	    75, "/nowhere" },
	{ "-bd", ARGS("sendmail", "-bd", "-q15m"), "\n", 69, "qscheduler" },
	{ "-bi", ARGS("sendmail", "-bi"), "\n", 0, "qscheduler does not run" },
	{ "-I", ARGS("sendmail", "-I"), "\n", 0, "qscheduler does not run" },
	{ "-XVxy", ARGS("sendmail", "-XVxy", "a@b"), "\n", 64, "delimiters" },
	{ "-qI alone", ARGS("sendmail", "-qI"), "\n", 64, "lacks its value" },
	{ "-q!", ARGS("sendmail", "-q!"), "\n", 69, "not supported" },
	{ "-qG", ARGS("sendmail", "-qGgroup"), "\n", 69, "not supported" },
	{ "-q and a recipient", ARGS("sendmail", "-q", "a@b"), "\n", 64,
	    "sends no message" },
	{ "-q and -t", ARGS("sendmail", "-t", "-q30m"), "\n", 64,
	    "sends no message" },
	{ "newaliases", ARGS("newaliases", "-v"), "\n", 0,
	    "qscheduler does not run" },
	{ "none in the header", ARGS("sendmail", "-t"), "Subject: x\n\n", 64,
	    "no recipient in the header" },
	{ "LF in an argument", ARGS("sendmail", "a@b\nc@d"), "\n", 65,
	    "control character" },
	{ "CR in an argument", ARGS("queue-inject", "a\r@b"), "\n", 65,
	    "control character" },
	{ "LF in the sender", ARGS("sendmail", "-f", "a\nb@c", "a@b"), "\n", 65,
	    "control character" },
	{ "fold in an argument", ARGS("sendmail", "a\n @b"), "\n", 65,
	    "control character" },
	{ "CR in the header", ARGS("sendmail", "-t"), "To: a\rb@c\n\n", 65,
	    "control character" },
	{ "malformed in the header", ARGS("sendmail", "-t"), "To: <a@b\n\n", 65,
	    "malformed" },
	{ "empty recipient", ARGS("queue-inject", ""), "\n", 65, "address" },
	{ "null recipient", ARGS("sendmail", "<>"), "\n", 65, "address" },
	{ "two senders", ARGS("sendmail", "-f", "a@b, c@d", "e@f"), "\n", 65,
	    "address" },
	{ "too many", ARGS("sendmail", "a", "b", "c", "d", "e"), "\n", 65,
	    "5.5.3" },
	{ "too many in the header", ARGS("sendmail", "-t"), "To: a,b,c,d,e\n\n",
	    65, "message_recipient_limit" },
	{ "configuration", ARGS("queue-inject", "-c", "/nowhere", "a@b"), "\n",
	    75, "/nowhere" },
	{ "configuration", ARGS("sendmail", "-C", "/nowhere", "a@b"), "\n", 75,
	    "/nowhere" },
	{ "closed input", ARGS("sendmail", "a@b"), NULL, 74, "closed" },
};

Test(mail_face, A1_refusals_leave_nothing)
{
	struct scratch s;
	struct run run;
	size_t i;

	scratch_new(&s, 1, "message_recipient_limit = 4\n");
	for (i = 0; i < ARRAY_LEN(refusals); i++) {
		const struct refusal_case *c = &refusals[i];

		cr_expect_eq(scratch_exit(&s, &run, c->argv, c->input), c->want,
		    "%s: %d %s", c->name, WEXITSTATUS(run.status), run.err);
		cr_expect_not_null(
		    strstr(run.err, c->text), "%s: %s", c->name, run.err);
		cr_expect_eq(scratch_stored(&s, NULL), 0, "%s", c->name);
	}
	scratch_done(&s);
}

Test(mail_face, A1_long_argument)
{
	static char address[128 << 10];
	struct scratch s;
	struct run run;

	memset(address, 'a', sizeof(address) - 1);
	scratch_new(&s, 1, NULL);
	cr_expect_eq(
	    scratch_exit(&s, &run, ARGS("sendmail", address), "\n"), 65);
	cr_expect_eq(
	    scratch_exit(&s, &run, ARGS("queue-inject", address), "\n"), 65);
	cr_expect_eq(
	    scratch_exit(&s, &run, ARGS("sendmail", "-f", address, "a"), ""),
	    65);
	cr_expect_not_null(strstr(run.err, "too long"), "%s", run.err);
	cr_expect_eq(
	    scratch_exit(&s, &run, ARGS("sendmail", "-F", address, "a"), "\n"),
	    0, "%s", run.err);
	cr_expect_eq(scratch_stored(&s, NULL), 1);
	scratch_done(&s);
}

Test(mail_face, A1_many_arguments)
{
	static const char *argv[100003];
	static char rcpts[100003][10];
	struct scratch s;
	struct stored m = { 0 };
	struct run run;
	size_t i;

	argv[0] = "sendmail";
	for (i = 1; i <= 100001; i++) {
		snprintf(rcpts[i], sizeof(rcpts[i]), "%zu@b", i);
		argv[i] = rcpts[i];
	}
	scratch_new(&s, 1, "message_recipient_limit = 100000\n");
	cr_expect_eq(scratch_exit(&s, &run, argv, "\n"), 65);
	cr_expect_not_null(strstr(run.err, "100000 recip"), "%s", run.err);
	cr_expect_eq(scratch_stored(&s, NULL), 0);
	argv[100001] = "1@B"; /* one that is there already */
	argv[0] = "queue-inject";
	cr_expect_eq(scratch_exit(&s, &run, argv, "\n"), 0, "%s", run.err);
	cr_expect_eq(scratch_stored(&s, &m), 1);
	cr_expect_eq(m.file.rcpt_count, 100000);
	stored_done(&m);
	scratch_done(&s);
}

Test(mail_face, help_and_version)
{
	struct scratch s;
	struct run run;

	scratch_new(&s, 1, NULL);
	cr_expect_eq(
	    scratch_exit(&s, &run, ARGS("queue-inject", "--help"), ""), 0);
	cr_expect_not_null(strstr(run.out, "usage: "), "%s", run.out);
	cr_expect_eq(
	    scratch_exit(&s, &run, ARGS("queue-inject", "--version"), ""), 0);
	cr_expect_not_null(strstr(run.out, "queue-inject "), "%s", run.out);
	scratch_done(&s);
}

Test(mail_face, print_id_names_the_file)
{
	struct scratch s;
	struct stored m = { 0 };
	struct queue_id id;
	struct run run;

	scratch_new(&s, 2, NULL);
	cr_assert_eq(scratch_exit(&s, &run,
			 ARGS("queue-inject", "--print-id", "a@b"), "x"),
	    0);
	run.out[strcspn(run.out, "\n")] = '\0';
	cr_expect_eq(queue_id_parse(run.out, &id), 0, "%s", run.out);
	cr_expect_eq(scratch_stored(&s, &m), 1);
	cr_expect_eq(id.queue, m.queue);
	cr_expect_eq(id.arrival_wall, m.file.arrival_wall);
	cr_expect_eq(id.nonce, m.file.nonce);
	cr_expect_not_null(strstr(m.content.data, run.out), "in Received");
	stored_done(&m);
	scratch_done(&s);
}

Test(mail_face, C2_size_limit_is_exact)
{
	static const char head[] = "Subject: x\n\n";
	static char data[1 << 20];
	static const struct {
		size_t len;
		int want;
	} cases[] = { { 199999, 0 }, { 200000, 0 }, { 200001, 65 },
		{ sizeof(data), 65 } };
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, "message_size_limit = 200000\n");
	memset(data, 'x', sizeof(data));
	memcpy(data, head, sizeof(head) - 1);
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct run run = { .argv = ARGS("sendmail", "a@b"),
			.input = data,
			.len = cases[i].len };

		scratch_run(&s, &run);
		cr_expect_eq(WEXITSTATUS(run.status), cases[i].want, "%zu: %s",
		    cases[i].len, run.err);
		cr_expect_eq(scratch_stored(&s, NULL), cases[i].want == 0);
		scratch_empty(&s);
	}
	scratch_done(&s);
}

Test(mail_face, C2_header_limit)
{
	static char data[(1 << 20) + 100];
	struct scratch s;
	struct run run = { .argv = ARGS("sendmail", "-t"),
		.input = data,
		.len = sizeof(data) };

	memset(data, 'x', sizeof(data));
	memcpy(data, "To: a@b\nX: ", 11);
	scratch_new(&s, 1, NULL);
	scratch_run(&s, &run);
	cr_expect_eq(WEXITSTATUS(run.status), 65, "%s", run.err);
	cr_expect_not_null(strstr(run.err, "header"), "%s", run.err);
	cr_expect_eq(scratch_stored(&s, NULL), 0);
	scratch_done(&s);
}
