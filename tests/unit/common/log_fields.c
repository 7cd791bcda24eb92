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
