/* Fields of a text line, read back as parsers of mail logs do. */
#include "log/parts.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define FIELDS_MAX 8

struct pair {
	char name[32], value[1024];
};

/* ", " between fields, the first "=" ends a name, " (" ends the fields: what
 * the tools for mail logs do, with no knowledge of our escapes. */
static size_t
parse(const char *line, struct pair pairs[FIELDS_MAX])
{
	const char *end = strstr(line, " ("), *equals, *stop;
	size_t n = 0;

	if (end == NULL)
		end = line + strlen(line);
	while (line < end) {
		stop = strstr(line, ", ");
		if (stop == NULL || stop > end)
			stop = end;
		equals = memchr(line, '=', (size_t)(stop - line));
		cr_assert_not_null(equals);
		cr_assert_lt(n, (size_t)FIELDS_MAX);
		snprintf(pairs[n].name, sizeof(pairs[n].name), "%.*s",
		    (int)(equals - line), line);
		snprintf(pairs[n].value, sizeof(pairs[n].value), "%.*s",
		    (int)(stop - equals - 1), equals + 1);
		n++;
		line = stop == end ? end : stop + 2;
	}
	return n;
}

static void
unescape(char *s)
{
	char *to = s, digits[3] = "";

	while (*s != '\0') {
		if (s[0] == '\\' && s[1] == 'x') {
			memcpy(digits, s + 2, 2);
			*to++ = (char)strtoul(digits, NULL, 16);
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* "<value>" without its brackets, of which there is one pair. */
static void
unbracket(char *s)
{
	size_t len = strlen(s);

	cr_assert_geq(len, (size_t)2);
	cr_expect_eq(s[0], '<');
	cr_expect_eq(strchr(s + 1, '<'), NULL, "%s", s);
	cr_expect_eq(strchr(s, '>'), s + len - 1, "%s", s);
	memmove(s, s + 1, len - 2);
	s[len - 2] = '\0';
}

static void
expect_same_back(const char *address, const char *relay)
{
	const struct log_field fields[] = {
		LOG_ADDR("to", address),
		LOG_STR("relay", relay),
		LOG_STR("dsn", "2.0.0"),
		LOG_STR("status", "deferred"),
	};
	const struct log_event event = {
		.fields = fields,
		.nfields = ARRAY_LEN(fields),
		.text = "451 try again, status=sent (250 ok)",
	};
	const struct log_style style = { NULL, 0 };
	struct pair pairs[FIELDS_MAX];
	struct buf line = { 0 }, clean = { 0 };
	size_t i, n;

	cr_assert_eq(log_line_text(&line, &event, &style), 0);
	n = parse(buf_str(&line), pairs);
	cr_assert_eq(n, ARRAY_LEN(fields), "%s", buf_str(&line));
	unbracket(pairs[0].value);
	for (i = 0; i < n; i++) {
		buf_reset(&clean);
		cr_assert_eq(text_clean(&clean, fields[i].str,
				 strlen(fields[i].str), 1024),
		    0);
		unescape(pairs[i].value);
		cr_expect_str_eq(pairs[i].name, fields[i].name);
		cr_expect_str_eq(
		    pairs[i].value, buf_str(&clean), "%s", buf_str(&line));
	}
	buf_done(&line);
	buf_done(&clean);
}

/* mutation: log/line.c, ends_value without `>`, `<`, `,` or the blank. */
Test(log_fields, X14_no_address_ends_its_field)
{
	static const char *const hostile[] = {
		"x>, relay=h[1.2.3.4]:25, delay=1, dsn=2.0.0, status=sent "
		"(250 ok) to=<y@example.com",
		"\"a, b\"@example.com",
		"a<b>c@example.com",
		"\"john doe\"@example.com",
		"list-bounces+user=example.com@lists.example.com",
		"a,b=c@d",
		"a (status=sent)@b",
		"a\\x3eb@c",
		"a\\",
		"a;b@c",
		"a\x01\x1b[2Jb@c",
		"gr\xc3\xbc\xc3\x9f"
		"e@example.com",
		"a\xffz@c",
		"",
		">",
		", ",
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(hostile); i++) {
		expect_same_back(hostile[i], "mx.example.com[192.0.2.1]:25");
		expect_same_back("a@example.com", hostile[i]);
	}
}

/* All strings of four out of the characters that mean something to a parser,
 * with a letter. mutation: the same. */
Test(log_fields, X14_nor_do_all_short_ones)
{
	static const char set[] = "a<>,= \"()\\;:";
	const size_t n = sizeof(set) - 1;
	char address[5] = "";
	size_t i;

	for (i = 0; i < n * n * n * n; i++) {
		address[0] = set[i % n];
		address[1] = set[i / n % n];
		address[2] = set[i / n / n % n];
		address[3] = set[i / n / n / n];
		expect_same_back(address, address);
	}
}

/* mutation: log/line.c, `room >= 4` left out: half an escape, or a line above
 * its limit. */
Test(log_fields, an_escape_is_whole_or_not_there)
{
	static char big[2 * LOG_LINE_MAX];
	const struct log_field field = LOG_ADDR("to", big);
	const struct log_event event = { .fields = &field, .nfields = 1 };
	const struct log_style style = { NULL, 0 };
	struct buf line = { 0 };
	size_t shift, i;

	for (shift = 0; shift < 4; shift++) {
		memset(big, '<', sizeof(big) - 1);
		memset(big, 'a', shift);
		buf_reset(&line);
		cr_assert_eq(log_line_text(&line, &event, &style), 0);
		cr_expect_lt(line.len, (size_t)LOG_LINE_MAX);
		cr_expect_gt(line.len, (size_t)LOG_LINE_MAX - 8);
		cr_expect_eq(line.data[line.len - 1], '>');
		for (i = 4 + shift; i + 4 < line.len; i += 4)
			cr_expect_eq(memcmp(line.data + i, "\\x3c", 4), 0);
	}
	buf_done(&line);
}

/* Does a reader of NAME=VALUE find one here? */
static bool
has_field(const char *s)
{
	const char *at;

	for (at = strchr(s, '='); at != NULL; at = strchr(at + 1, '='))
		if (at > s && strchr(" =()<>,;\"\\?&", at[-1]) == NULL)
			return true;
	return false;
}

/* mutation: common/log/line.c: text_run() is strlen(). */
Test(log_fields, X29_no_reply_is_taken_for_fields)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "host mx said: 451 no) to=<y@x>, status=sent (ok",
		    "host mx said: 451 no) to\\x3d<y@x>, status\\x3dsent (ok" },
		{ "status=sent (ok) to=<y", "status\\x3dsent (ok) to\\x3d<y" },
		{ ")), relay=a, dsn=2.0.0, status=sent ((",
		    ")), relay\\x3da, dsn\\x3d2.0.0, status\\x3dsent ((" },
		{ "a_b=1 c-d=2 E9=3", "a_b\\x3d1 c-d\\x3d2 E9\\x3d3" },
		{ "see http://x/?status=sent&to=y",
		    "see http://x/?status\\x3dsent&to\\x3dy" },
		{ "=", "=" },
		{ "queue_minfree_bytes = 1m", "queue_minfree_bytes = 1m" },
		{ "a==b", "a\\x3d\\x3db" },
		{ "\xe2\x80\xaeto=<y\xe2\x80\xa8", "???to\\x3d<y???" },
		{ "", "" },
	};
	const struct log_field fields[] = {
		LOG_ADDR("to", "alice@x.test"),
		LOG_STR("status", "deferred"),
	};
	const struct log_style style = { .program = "queue-send/1" };
	struct buf out = { 0 }, want = { 0 };
	struct pair pairs[FIELDS_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct log_event event = {
			.id = "ID",
			.fields = fields,
			.nfields = ARRAY_LEN(fields),
			.text = rows[i].text,
		};

		buf_reset(&out);
		buf_reset(&want);
		cr_assert_eq(log_line_text(&out, &event, &style), 0);
		cr_assert_eq(buf_printf(&want,
				 "queue-send/1: ID: to=<alice@x.test>, "
				 "status=deferred (%s)",
				 rows[i].want),
		    0);
		cr_expect_str_eq(buf_str(&out), buf_str(&want));
		cr_expect_not(has_field(strstr(buf_str(&out), " (")));
		cr_expect_eq(
		    parse(buf_str(&out) + strlen("queue-send/1: ID: "), pairs),
		    2);
	}
	buf_done(&out);
	buf_done(&want);
}

/* No escape is cut, and the line has its last parenthesis. */
Test(log_fields, X29_a_long_reply_ends_in_its_parenthesis)
{
	static char text[LOG_LINE_MAX + 10];
	const struct log_field fields[] = { LOG_STR("status", "x") };
	const struct log_event event = {
		.fields = fields, .nfields = 1, .text = text
	};
	const struct log_style style = { .program = "p" };
	struct buf out = { 0 };
	size_t from, i;

	for (from = 0; from < 8; from++) {
		memset(text, 'a', from);
		for (i = from; i < sizeof(text) - 1; i++)
			text[i] = "b="[(i - from) % 2];
		buf_reset(&out);
		cr_assert_eq(log_line_text(&out, &event, &style), 0);
		cr_expect_leq(out.len, (size_t)LOG_LINE_MAX);
		cr_expect(out.data[out.len - 1] == ')');
		cr_expect_not(has_field(strstr(buf_str(&out), " (")));
		cr_expect(strcmp(buf_str(&out) + out.len - 6, "\\x3db)") == 0 ||
			strcmp(buf_str(&out) + out.len - 5, "\\x3d)") == 0,
		    "%s", buf_str(&out) + out.len - 12);
	}
	buf_done(&out);
}
