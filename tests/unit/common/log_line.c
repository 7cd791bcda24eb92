/* Events as lines. */
#include "log/parts.h"

#include <criterion/criterion.h>
#include <string.h>

#define TEXT(...) .style = { "queue-send/3", 0 }, .event = { __VA_ARGS__ }
#define FIELDS(...)                                          \
	.fields = (const struct log_field[]){ __VA_ARGS__ }, \
	.nfields = ARRAY_LEN(((struct log_field[]){ __VA_ARGS__ }))

struct row {
	const char *name;
	struct log_style style;
	struct log_event event;
	const char *want;
};

Test(log_line, text_as_parsers_of_mail_logs_know_it)
{
	const struct row rows[] = {
		{ "delivery",
		    TEXT(.level = LOG_INFO_L, .name = "delivery", .id = "5A",
			FIELDS(LOG_ADDR("to", "a@b.c"),
			    LOG_STR("relay", "h[1.2.3.4]:25"),
			    LOG_TIME("delay", 2300 * USEC_PER_MSEC),
			    LOG_STR("dsn", "2.0.0"), LOG_STR("status", "sent")),
			.text = "250 ok"),
		    "queue-send/3: 5A: to=<a@b.c>, relay=h[1.2.3.4]:25, "
		    "delay=2.3, dsn=2.0.0, status=sent (250 ok)" },
		{ "queue active",
		    TEXT(.level = LOG_INFO_L, .name = "active", .id = "5A",
			FIELDS(LOG_ADDR("from", ""), LOG_INT("size", 12),
			    LOG_INT("nrcpt", 1)),
			.text = "queue active"),
		    "queue-send/3: 5A: from=<>, size=12, nrcpt=1 (queue "
		    "active)" },
		{ "text alone",
		    TEXT(.level = LOG_INFO_L, .name = "removed", .id = "5A",
			.text = "removed"),
		    "queue-send/3: 5A: removed" },
		{ "warning",
		    TEXT(.level = LOG_WARNING_L, .name = "x", .text = "low",
			.plain = true),
		    "queue-send/3: warning: low" },
		{ "error with an id",
		    TEXT(.level = LOG_ERROR_L, .name = "x", .id = "5A",
			FIELDS(LOG_STR("path", "p")), .text = "gone",
			.plain = true),
		    "queue-send/3: error: 5A: path=p gone" },
		{ "nothing", TEXT(.level = LOG_INFO_L, .name = "x"),
		    "queue-send/3: " },
		{ "fields that are not there",
		    TEXT(.level = LOG_INFO_L, .name = "x",
			FIELDS(LOG_ADDR("to", NULL), LOG_STR("a", NULL))),
		    "queue-send/3: to=<>, a=" },
		{ "syslog shows the program itself", .style = { NULL, 0 },
		    .event = { .level = LOG_INFO_L, .id = "5A", .text = "x" },
		    .want = "5A: x" },
	};
	struct buf line = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_reset(&line);
		cr_assert_eq(
		    log_line_text(&line, &rows[i].event, &rows[i].style), 0);
		cr_expect_str_eq(buf_str(&line), rows[i].want, "%s: \"%s\"",
		    rows[i].name, buf_str(&line));
	}
	buf_done(&line);
}

Test(log_line, C4_A7_bytes_from_outside_make_no_new_line)
{
	const struct log_field field =
	    LOG_ADDR("to", "a\r\nfrom=<x>\x1b[2J%n@b");
	const struct log_event event = {
		.level = LOG_INFO_L,
		.name = "x",
		.fields = &field,
		.nfields = 1,
		.text = "550 \"no\"\n\\",
	};
	const struct log_style style = { "p", 0 };
	struct buf line = { 0 };

	cr_assert_eq(log_line_text(&line, &event, &style), 0);
	cr_expect_str_eq(buf_str(&line),
	    "p: to=<a??from=\\x3cx\\x3e?[2J%n@b> (550 \"no\"?\\)");
	buf_reset(&line);
	cr_assert_eq(log_line_json(&line, &event, &style), 0);
	cr_expect_str_eq(buf_str(&line),
	    "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"program\":\"p\","
	    "\"level\":\"info\",\"event\":\"x\","
	    "\"to\":\"a??from=<x>?[2J%n@b\","
	    "\"text\":\"550 \\\"no\\\"?\\\\\"}");
	buf_done(&line);
}

Test(log_line, json_decimals_are_numbers)
{
	static const struct {
		const char *delay, *delays, *want;
	} rows[] = {
		{ "0", "0/0.02/1.5/73",
		    "\"delay\":0,\"delays\":{\"a\":0,\"b\":0.02,\"c\":1.5,"
		    "\"d\":73}}" },
		{ "1.", "1",
		    "\"delay\":null,\"delays\":{\"a\":1,\"b\":null,"
		    "\"c\":null,\"d\":null}}" },
		{ "01", "x/.5/1e3/",
		    "\"delay\":null,\"delays\":{\"a\":null,\"b\":null,"
		    "\"c\":null,\"d\":null}}" },
	};
	const struct log_style style = { "p", 0 };
	struct buf line = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct log_field fields[] = {
			LOG_DECIMAL("delay", rows[i].delay),
			LOG_DECIMALS("delays", rows[i].delays, "a/b/c/d"),
		};
		const struct log_event event = { .fields = fields,
			.nfields = ARRAY_LEN(fields) };

		buf_reset(&line);
		cr_assert_eq(log_line_json(&line, &event, &style), 0);
		cr_expect_not_null(
		    strstr(buf_str(&line), rows[i].want), "%s", buf_str(&line));
		buf_reset(&line);
		cr_assert_eq(log_line_text(&line, &event, &style), 0);
		cr_expect_not_null(strstr(buf_str(&line), rows[i].delays));
	}
	buf_done(&line);
}

Test(log_line, json_has_time_and_numbers)
{
	const struct log_field fields[] = {
		LOG_INT("size", -5),
		LOG_TIME("delay", 1050 * USEC_PER_MSEC),
		LOG_STR("relay", "h\xc3\xa4"),
	};
	const struct log_event event = {
		.level = LOG_WARNING_L,
		.name = "delivery",
		.id = "5A",
		.fields = fields,
		.nfields = ARRAY_LEN(fields),
	};
	/* date -u -d @1754000000 */
	const struct log_style style = { "queue-send/3",
		1754000000 * USEC_PER_SEC + 42 };
	struct buf line = { 0 };

	cr_assert_eq(log_line_json(&line, &event, &style), 0);
	cr_expect_str_eq(buf_str(&line),
	    "{\"time\":\"2025-07-31T22:13:20.000042Z\","
	    "\"program\":\"queue-send/3\",\"level\":\"warning\","
	    "\"event\":\"delivery\",\"queue_id\":\"5A\",\"size\":-5,"
	    "\"delay\":1.05,\"relay\":\"h\xc3\xa4\"}");
	buf_done(&line);
}

Test(log_line, times_have_one_to_three_decimals)
{
	static const struct {
		usec_t value;
		const char *want;
	} rows[] = {
		{ 0, "p: t=0.0" },
		{ 999, "p: t=0.0" },
		{ 1000, "p: t=0.001" },
		{ 20000, "p: t=0.02" },
		{ 1500000, "p: t=1.5" },
		{ 3600 * USEC_PER_SEC, "p: t=3600.0" },
		{ -5, "p: t=0.0" },
	};
	const struct log_style style = { "p", 0 };
	struct buf line = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct log_field field = LOG_TIME("t", rows[i].value);
		const struct log_event event = {
			.fields = &field,
			.nfields = 1,
		};

		buf_reset(&line);
		cr_assert_eq(log_line_text(&line, &event, &style), 0);
		cr_expect_str_eq(buf_str(&line), rows[i].want);
	}
	buf_done(&line);
}

/* Quotes and backslashes outside of strings are even, braces are there. */
static void
expect_whole_json(const char *s)
{
	bool in_string = false;
	const char *p;

	cr_expect_eq(s[0], '{');
	for (p = s; *p != '\0'; p++) {
		if (in_string && *p == '\\')
			p++;
		else if (*p == '"')
			in_string = !in_string;
	}
	cr_expect_not(in_string);
	cr_expect_eq(p[-1], '}');
	cr_expect_neq(p[-2], ',');
}

Test(log_line, whatever_its_length_a_line_fits_and_is_whole)
{
	static char big[2 * LOG_LINE_MAX];
	const struct log_style style = { "p", 0 };
	const char *const units[] = { "x", "\"", "\xc3\xa4" };
	struct buf line = { 0 };
	size_t u, n, len;

	for (u = 0; u < ARRAY_LEN(units); u++)
		for (n = LOG_LINE_MAX / 2 - 120; n < LOG_LINE_MAX; n++) {
			const struct log_field fields[] = {
				LOG_ADDR("to", big),
				LOG_INT("n", INT64_MIN),
				LOG_STR("s", big),
			};
			const struct log_event event = {
				.id = "5A",
				.fields = fields,
				.nfields = ARRAY_LEN(fields),
				.text = big,
			};

			len = strlen(units[u]);
			for (size_t i = 0; i < n / len; i++)
				memcpy(big + i * len, units[u], len);
			big[n / len * len] = '\0';
			buf_reset(&line);
			cr_assert_eq(log_line_text(&line, &event, &style), 0);
			cr_assert_lt(line.len, LOG_LINE_MAX);
			buf_reset(&line);
			cr_assert_eq(log_line_json(&line, &event, &style), 0);
			cr_assert_lt(line.len, LOG_LINE_MAX);
			expect_whole_json(buf_str(&line));
		}
	cr_expect_not_null(strstr(buf_str(&line), "\"truncated\":true}"));
	buf_done(&line);
}

Test(log_line, text_that_is_cut_keeps_its_parenthesis)
{
	static char big[2 * LOG_LINE_MAX];
	const struct log_field field = LOG_STR("status", "sent");
	const struct log_event event = {
		.fields = &field,
		.nfields = 1,
		.text = big,
	};
	const struct log_style style = { "p", 0 };
	struct buf line = { 0 };

	memset(big, 'x', sizeof(big) - 1);
	cr_assert_eq(log_line_text(&line, &event, &style), 0);
	cr_expect_eq(line.len, LOG_LINE_MAX - 1);
	cr_expect_eq(line.data[line.len - 1], ')');
	buf_done(&line);
}
