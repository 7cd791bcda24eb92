/* Addresses without a domain in the header of a message. */
#include "scratch.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* The domain of the scratch instance. */
#define D         "@example.org"

/* clang-format off */
static const struct {
	const char *name, *header, *want; /* NULL: as it is */
} fields[] = {
	{ "cron", "From: root (Cron Daemon)\nTo: root\n",
	    "From: root" D " (Cron Daemon)\nTo: root" D "\n" },
	{ "an address with a domain", "From: a@b\n", NULL },
	{ "each field of authors and recipients",
	    "From: a\nSender: b\nReply-To: c\nTo: d\nCc: e\n",
	    "From: a" D "\nSender: b" D "\nReply-To: c" D "\nTo: d" D "\nCc: e" D "\n" },
	{ "each Resent field",
	    "Resent-From: a\nResent-Sender: b\nResent-Reply-To: c\nResent-To: d\nResent-Cc: e\n",
	    "Resent-From: a" D "\nResent-Sender: b" D "\nResent-Reply-To: c" D
	    "\nResent-To: d" D "\nResent-Cc: e" D "\n" },
	{ "no other field", "Errors-To: a\nX-To: b\nSubject: c\nMail-To: d\n", NULL },
	{ "a field twice, in any case", "to: a\nCC : b\nTO: c@d, e\n",
	    "to: a" D "\nCC : b" D "\nTO: c@d, e" D "\n" },
	{ "angle brackets", "From: Joe <joe>\n", "From: Joe <joe" D ">\n" },
	{ "a quoted name", "From: \"B, <x> Joe\" <joe>\n",
	    "From: \"B, <x> Joe\" <joe" D ">\n" },
	{ "an encoded word", "From: =?utf-8?Q?J=C3=B6?= <joe>\n",
	    "From: =?utf-8?Q?J=C3=B6?= <joe" D ">\n" },
	{ "a list", "To: a, b@c,d , , e\n",
	    "To: a" D ", b@c,d" D " , , e" D "\n" },
	{ "a group", "To: us: a, B <b>, c@d;, e\n",
	    "To: us: a" D ", B <b" D ">, c@d;, e" D "\n" },
	{ "an empty group", "To: undisclosed-recipients:;\n", NULL },
	{ "comments", "To: (x) a (y), (z) b@c (w)\n",
	    "To: (x) a" D " (y), (z) b@c (w)\n" },
	{ "a comment with all that is special", "To: a ((\\)) <b>, c:;)\n",
	    "To: a" D " ((\\)) <b>, c:;)\n" },
	{ "a quoted local part", "To: \"a b\", \"c@d\"\n",
	    "To: \"a b\"" D ", \"c@d\"" D "\n" },
	{ "dots", "To: a.b, c . d (e)\n", "To: a.b" D ", c . d" D " (e)\n" },
	{ "dots in quotes, and between them", "To: \".a.\", \"b\".c.\"d.\"\n",
	    "To: \".a.\"" D ", \"b\".c.\"d.\"" D "\n" },
	{ "old paths", "To: a%b, c!d\n", "To: a%b" D ", c!d" D "\n" },
	{ "a route", "To: <@x,@y:a>, <@x:b@c>\n",
	    "To: <@x,@y:a" D ">, <@x:b@c>\n" },
	{ "an address literal", "To: a@[192.0.2.1], b\n",
	    "To: a@[192.0.2.1], b" D "\n" },
	{ "folds", "To: a,\n\tb\n (c),\n d@e,\n <f\n >\n",
	    "To: a" D ",\n\tb" D "\n (c),\n d@e,\n <f" D "\n >\n" },
	{ "octets above 127", "To: b\xc3\xb8" "b, B\xf8 <c>\n",
	    "To: b\xc3\xb8" "b" D ", B\xf8 <c" D ">\n" },
	{ "no address", "To:\nCc: \nFrom: <>\nSender: ,\n", NULL },
	/* Malformed: all of the field stays. */
	{ "two words", "From: a, Joe Doe\n", NULL },
	{ "a dot behind a quoted string", "To: a, \"b\".\n", NULL },
	{ "dots in front of a quoted string", "To: a, ..\"b\"\n", NULL },
	{ "a dot at the end, in brackets", "To: a, b <\"c d\".>\n", NULL },
	{ "two dots between quoted strings", "To: a, \"b\"..\"c\"\n", NULL },
	{ "an unclosed bracket", "To: a, <b\n", NULL },
	{ "an unclosed quote", "To: a, \"b\n", NULL },
	{ "an unclosed comment", "To: a (b\n", NULL },
	{ "no domain behind the at sign", "To: a, b@\n", NULL },
	{ "no local part", "To: a, @b\n", NULL },
	{ "dots in wrong places", "To: a, b.\nCc: c..d\nFrom: .e\n", NULL },
	{ "a control character", "To: a, b\001\n", NULL },
	{ "a malformed field between others", "To: a\nCc: <b\nFrom: c\n",
	    "To: a" D "\nCc: <b\nFrom: c" D "\n" },
	{ "fields that are left out", "Return-Path: <a>\nTo: b\nBcc: c\nCc: d\n",
	    "To: b" D "\nCc: d" D "\n" },
};
/* clang-format on */

/* The message is stored with this end. */
static void
check_end(const struct scratch *s, const char *face, const char *input,
    const char *end)
{
	struct stored m = { 0 };
	struct run run = { .argv = ARGS(face, "-f", "me@x", "r@s"),
		.input = input,
		.len = strlen(input) };

	scratch_run(s, &run);
	cr_assert_eq(run.status, 0, "%s", run.err);
	cr_assert_eq(scratch_stored(s, &m), 1);
	cr_assert_gt(m.content.len, strlen(end));
	cr_expect_str_eq(m.content.data + m.content.len - strlen(end), end,
	    "%s: %s", face, input);
	stored_done(&m);
	scratch_empty(s);
}

static void
check_face(
    const struct scratch *s, const char *face, const char *in, const char *want)
{
	struct buf input = { 0 }, end = { 0 };

	buf_printf(&input, "%s\nTo: body\n", in);
	buf_printf(&end, "%s\nTo: body\n", want);
	check_end(s, face, input.data, end.data);
	buf_done(&input);
	buf_done(&end);
}

Test(mail_face, C11_addresses_of_the_header_get_a_domain)
{
	struct scratch s;
	size_t i;

	scratch_new(&s, 1, NULL);
	for (i = 0; i < ARRAY_LEN(fields); i++)
		check_face(&s, "/usr/sbin/sendmail", fields[i].header,
		    fields[i].want != NULL ? fields[i].want : fields[i].header);
	scratch_done(&s);
}

Test(mail_face, C11_an_address_ends_the_message)
{
	struct scratch s;

	scratch_new(&s, 1, NULL);
	check_end(&s, "sendmail", "Cc: a\nTo: b", "Cc: a" D "\nTo: b" D);
	scratch_done(&s);
}

Test(mail_face, C11_queue_inject_keeps_them)
{
	struct scratch s;

	scratch_new(&s, 1, NULL);
	check_face(&s, "queue-inject", "From: a\nTo: b, <c>\n",
	    "From: a\nTo: b, <c>\n");
	scratch_done(&s);
}

/* A domain for each octet or two would make a large message of a small one. */
Test(mail_face, C11_added_domains_count_against_the_limit)
{
	struct scratch s;
	struct run run = { 0 };
	struct buf input = { 0 };
	int i;

	scratch_new(&s, 1, "message_size_limit = 20000\n");
	buf_add_str(&input, "To: a");
	for (i = 0; i < 4000; i++)
		buf_add_str(&input, ",a");
	buf_add_str(&input, "\n\n");
	cr_expect_eq(scratch_exit(&s, &run, ARGS("queue-inject", "r@s"),
			 buf_str(&input)),
	    0, "%s", run.err);
	scratch_empty(&s);
	cr_expect_eq(
	    scratch_exit(&s, &run, ARGS("sendmail", "r@s"), buf_str(&input)),
	    65);
	cr_expect_neq(strstr(run.err, "message_size_limit"), NULL);
	cr_expect_eq(scratch_stored(&s, NULL), 0);
	buf_done(&input);
	scratch_done(&s);
}
