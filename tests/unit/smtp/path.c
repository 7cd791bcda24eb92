#include "smtp/smtp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct {
	const char *address, *path; /* NULL: cannot be said */
} rows[] = {
	{ "", "<>" },
	{ "a@b", "<a@b>" },
	{ "postmaster", "<postmaster>" },
	{ "a.b+c=d@e.example", "<a.b+c=d@e.example>" },
	{ "a@[1.2.3.4]", "<a@[1.2.3.4]>" },
	{ "a@[IPv6:::1]", "<a@[IPv6:::1]>" },
	{ "\xc3\xa4@\xc3\xb6", "<\xc3\xa4@\xc3\xb6>" },
	{ "a@b.", "<a@b>" },
	{ "a@b..", "<a@b..>" },
	{ "a@.", "<a@.>" },
	{ "\"a b\"@c", "<\"a b\"@c>" },
	{ "\"a\\\"b\"@c", "<\"a\\\"b\"@c>" },
	{ "a b@c", "<\"a b\"@c>" },
	{ "a@b@c", "<\"a@b\"@c>" },
	{ "a> SIZE=1@c", "<\"a> SIZE=1\"@c>" },
	{ "a\"b@c", "<\"a\\\"b\"@c>" },
	{ "a\\@c", "<\"a\\\\\"@c>" },
	{ "\"a\\\"@c", "<\"\\\"a\\\\\\\"\"@c>" },
	{ "\"a\"b\"@c", "<\"\\\"a\\\"b\\\"\"@c>" },
	{ "\"@c", "<\"\\\"\"@c>" },
	{ ".a@c", "<\".a\"@c>" },
	{ "a.@c", "<\"a.\"@c>" },
	{ "a..b@c", "<\"a..b\"@c>" },
	{ "@c", "<\"\"@c>" },
	{ "-oProxy@c", "<-oProxy@c>" },
	{ "a@", NULL },
	{ "a@b c", NULL },
	{ "a@b>", NULL },
	{ "a@<b", NULL },
	{ "a@b\"", NULL },
	{ "a\r\nRSET@b", NULL },
	{ "a@b\r\nRSET", NULL },
	{ "a\tb@c", NULL },
	{ "a\x7f@c", NULL },
};
/* clang-format on */

Test(path, S2_no_address_ends_the_path)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = { 0 };
		int r = smtp_path_add(&out, rows[i].address);

		cr_expect_eq(r, rows[i].path == NULL ? -EINVAL : 0, "%s",
		    rows[i].address);
		cr_expect_str_eq(buf_str(&out),
		    rows[i].path == NULL ? "" : rows[i].path, "%s: %s",
		    rows[i].address, buf_str(&out));
		cr_expect_eq(
		    smtp_path_is_fit(rows[i].address), rows[i].path != NULL);
		buf_done(&out);
	}
}

/* Outside of quotes no blank and no bracket but the last. */
static bool
is_closed(const char *path)
{
	bool quoted = false;
	size_t i, len = strlen(path);

	if (path[0] != '<' || path[len - 1] != '>')
		return false;
	for (i = 1; i < len - 1; i++) {
		if (path[i] == '"')
			quoted = !quoted;
		else if (quoted && path[i] == '\\')
			i++;
		else if (!quoted && strchr("<> ", path[i]) != NULL)
			return false;
	}
	return !quoted && i == len - 1;
}

Test(path, S2_any_octets)
{
	static const char hard[] = "\"\\@<> .a\xc3\r\n\t[]:";
	unsigned round;

	for (round = 0; round < 100000; round++) {
		struct buf out = { 0 };
		char in[12];
		size_t len, i;

		srand(99 + round);
		len = (size_t)rand() % sizeof(in);
		for (i = 0; i < len; i++)
			in[i] = hard[(size_t)rand() % (sizeof(hard) - 1)];
		in[len] = '\0';
		if (smtp_path_add(&out, in) == 0)
			cr_expect(is_closed(buf_str(&out)), "%s gives %s", in,
			    buf_str(&out));
		buf_done(&out);
	}
}

static void
parse(const char *text, struct smtp_ehlo *ret_ehlo)
{
	struct smtp_reply reply = { .code = 250, .lines = 2 };

	buf_add_str(&reply.text, text);
	smtp_ehlo_parse(&reply, 0, ret_ehlo);
	buf_done(&reply.text);
}

Test(ehlo, keywords)
{
	struct smtp_ehlo e;

	parse("mx hello\nPIPELINING\nsize 4000 \n8BitMime\nSMTPUTF8\nX\nDSN\n",
	    &e);
	cr_expect(e.pipelining && e.size && e.eight_bit && e.utf8 && e.dsn);
	cr_expect_eq(e.size_max, 4000);
	parse("PIPELINING\n", &e);
	cr_expect_not(e.pipelining, "the first line is a name");
	parse("mx\nSIZE\n", &e);
	cr_expect(e.size && e.size_max == 0);
	parse("mx\nSIZE 99999999999999999999999\n", &e);
	cr_expect(e.size && e.size_max == 0);
	parse("mx\nSIZE -5\n", &e);
	cr_expect(e.size && e.size_max == 0);
	parse("mx\nSIZE 5 6\n", &e);
	cr_expect(e.size && e.size_max == 5);
	parse("mx\nPIPELININGX\nXPIPELINING\nSIZE=5\n\n \n", &e);
	cr_expect_not(e.pipelining || e.size);
}
