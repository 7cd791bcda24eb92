#include "route/tls_policy.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

static char path[] = "/tmp/qsched-tls-policy-XXXXXX";

/* The result of reading this text. */
static int
load(const char *text, struct tls_policies **ret, struct buf *error)
{
	int fd, r;

	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
	r = tls_policies_load(path, ret, error);
	unlink(path);
	return r;
}

Test(tls_policy, the_row_of_a_next_hop)
{
	static const char text[] =
	    "# levels\n"
	    "mx.example            encrypt\n"
	    "mx.example:2525       none # the old one\n"
	    "[mx.example]:587      verify match=Smtp.Example "
	    "match=.example implicit\n"
	    ".example              may\n"
	    ".deep.example         encrypt\n"
	    "\n"
	    "[192.0.2.1]           verify\n"
	    "unix:/run/Lmtp        none\n"
	    "Other.Example         verify\n"
	    "root.example.:26      verify\n"
	    "[2001:DB8:0::0:1]     verify\n"
	    "b\xc3\xbc.test:26         verify match=M\xc3\xbc.Test "
	    "match=.\xc3\x9c.test\n"
	    ".\xc3\x9c.test             encrypt\n";
	static const struct {
		const char *nexthop;
		uint32_t line; /* 0: none */
	} rows[] = {
		{ "mx.example", 2 },
		{ "MX.Example", 2 },
		{ "mx.example:25", 2 },
		{ "[mx.example]", 2 },
		{ "[mx.example]:25", 2 },
		{ "mx.example:2525", 3 },
		{ "[mx.example]:2525", 2 },
		{ "[mx.example]:587", 4 },
		{ "mx.example:587", 2 },
		{ "a.example", 5 },
		{ "a.b.example:25", 5 },
		{ "[a.b.example]", 5 },
		{ "example", 0 },
		{ "badexample", 0 },
		{ "x.deep.example", 6 },
		{ "deep.example", 5 },
		{ "[192.0.2.1]:25", 8 },
		{ "192.0.2.1", 0 },
		{ "unix:/run/Lmtp", 9 },
		{ "unix:/run/lmtp", 0 },
		{ "mx.example.", 2 },
		{ "[mx.example.]:587", 4 },
		{ "root.example:26", 11 },
		{ "[root.example]:26", 5 },
		{ "[2001:db8::1]:25", 12 },
		{ "[2001:db8::0001]", 12 },
		{ "xn--b-eha.test:26", 13 },
		{ "B\xc3\x9c.Test:26", 13 },
		{ "[b\xc3\xbc.test]:26", 0 },
		{ "x.xn--tda.test", 14 },
		{ "x.\xc3\xbc.test", 14 },
		{ "other.example", 10 },
		{ "no next hop", 0 },
		{ "", 0 },
	};
	struct tls_policies *t = NULL;
	const struct tls_policy *row;
	struct buf error = { 0 };
	size_t i;

	cr_assert_eq(load(text, &t, &error), 0, "%s", buf_str(&error));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		row = tls_policies_find(t, rows[i].nexthop);
		cr_expect_eq(row == NULL ? 0 : row->at.line, rows[i].line,
		    "%s: %u", rows[i].nexthop, row == NULL ? 0 : row->at.line);
	}
	row = tls_policies_find(t, "[mx.example]:587");
	cr_expect_eq(row->level, TLS_LEVEL_VERIFY);
	cr_expect(row->implicit);
	cr_assert_eq(row->nnames, 2);
	cr_expect_str_eq(row->names[0], "smtp.example");
	cr_expect_str_eq(row->names[1], ".example");
	cr_expect_eq(tls_policies_strictest(t), TLS_LEVEL_VERIFY);
	tls_policies_free(&t);
	buf_done(&error);
}

Test(tls_policy, F4_wrong_lines)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "mx\n", ":1: a next hop and a level are needed" },
		{ "\nmx sure\n",
		    ":2: \"sure\": the level must be one of: none may "
		    "encrypt verify" },
		{ "mx May\n", ":1: \"May\": the level must be one of" },
		{ "mx e\xff\n", ":1: \"e?\": the level must be one of" },
		{ "mx: may\n", ":1: \"mx:\" is neither a next hop nor a " },
		{ "mx/1 may\n", ":1: \"mx/1\" is neither a next hop nor" },
		{ ". may\n", ":1: \".\" is neither a next hop nor a dom" },
		{ "..x may\n", ":1: \"..x\" is neither a next hop nor a " },
		{ ".[1.2.3.4] may\n", "\" is neither a next hop" },
		{ "mx may match=a\n", ":1: match= is for the level verify" },
		{ "mx verify match=\n", ":1: \"match=\": match= needs a " },
		{ "mx verify match=a:25\n", "\": match= needs a name" },
		{ "mx verify match=[a]\n", "\": match= needs a name" },
		{ "mx verify match=*.a\n", "\": match= needs a name" },
		{ "mx verify match=a match=b match=c match=d match=e match=f "
		  "match=g match=h match=i\n",
		    ":1: \"match=i\": too many names" },
		{ "mx verify names=a\n", ":1: \"names=a\": behind the lev" },
		{ "mx may implicit\n", ":1: implicit needs the level" },
		{ "mx may\nMX encrypt\n", ":2: \"mx\" is already in line 1" },
		{ "mx may\n\001\n", ":2: control character" },
	};
	struct tls_policies *t = NULL;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf error = { 0 };

		cr_expect_eq(load(rows[i].text, &t, &error), -EINVAL, "%s",
		    rows[i].text);
		cr_expect_not_null(strstr(buf_str(&error), rows[i].why),
		    "%s: %s", rows[i].text, buf_str(&error));
		cr_expect_null(t);
		buf_done(&error);
	}
}

Test(tls_policy, F1_a_file_that_is_not_there)
{
	struct tls_policies *t = NULL;
	struct buf error = { 0 };

	cr_expect_eq(
	    tls_policies_load("/nonexistent/tls", &t, &error), -ENOENT);
	cr_expect_not_null(strstr(buf_str(&error), "/nonexistent/tls: "));
	cr_assert_eq(tls_policies_load("", &t, &error), 0, "none is named");
	cr_expect_null(tls_policies_find(t, "mx"));
	cr_expect_eq(tls_policies_strictest(t), TLS_LEVEL_NONE);
	tls_policies_free(&t);
	buf_done(&error);
}

/* As many rows as there are: each is found. */
Test(tls_policy, many_rows)
{
	struct tls_policies *t = NULL;
	struct buf text = { 0 }, error = { 0 };
	char name[32];
	uint32_t i;

	for (i = 0; i < 5000; i++)
		buf_printf(&text, "d%u.example encrypt\n", i * 7919 % 5000);
	cr_assert_eq(
	    load(buf_str(&text), &t, &error), 0, "%s", buf_str(&error));
	for (i = 0; i < 5000; i += 37) {
		snprintf(name, sizeof(name), "d%u.example", i);
		cr_expect_not_null(tls_policies_find(t, name), "%s", name);
	}
	tls_policies_free(&t);
	buf_done(&text);
	buf_done(&error);
}
