#include "base/address.h"
#include "base/text.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"

Test(base_text, A7_foreign_bytes_are_made_fit_to_be_shown)
{
	static const struct {
		const char *name, *in;
		size_t len, max;
		const char *want;
	} rows[] = {
		{ "plain", "abc", 3, 99, "abc" },
		{ "nothing", "", 0, 99, "" },
		{ "controls", "a\r\n\tb\0c", 7, 99, "a???b?c" },
		{ "escape and DEL", "\x1b[2J\x7f", 5, 99, "?[2J?" },
		{ "two bytes", "\xc3\xa4", 2, 99, "\xc3\xa4" },
		{ "three bytes", "\xe2\x82\xac", 3, 99, "\xe2\x82\xac" },
		{ "four bytes", "\xf0\x9f\x93\xa7", 4, 99, "\xf0\x9f\x93\xa7" },
		{ "C1 control", "\xc2\x9b", 2, 99, "??" },
		{ "lone continuation", "\x80", 1, 99, "?" },
		{ "cut short", "\xe2\x82", 2, 99, "??" },
		{ "overlong", "\xc0\xaf", 2, 99, "??" },
		{ "surrogate", "\xed\xa0\x80", 3, 99, "???" },
		{ "above U+10FFFF", "\xf4\x90\x80\x80", 4, 99, "????" },
		{ "latin 1", "M\xfcller", 6, 99, "M?ller" },
		{ "limit", "abcdef", 6, 3, "abc" },
		{ "limit 0", "abc", 3, 0, "" },
		{ "limit behind a control", "a\nbc", 4, 3, "a?b" },
		{ "limit at a control", "ab\nc", 4, 2, "ab" },
		{ "all kinds", "a\xc3\xa4~ \x7f\xff z", 9, 99,
		    "a\xc3\xa4~ ?? z" },
		{ "half a character", "a\xc3\xa4", 3, 2, "a" },
		{ "whole character", "a\xc3\xa4", 3, 3, "a\xc3\xa4" },
	};
	struct buf out = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_reset(&out);
		cr_expect_eq(
		    text_clean(&out, rows[i].in, rows[i].len, rows[i].max), 0);
		cr_expect_str_eq(buf_str(&out), rows[i].want, "%s: \"%s\"",
		    rows[i].name, buf_str(&out));
	}
	buf_done(&out);
}

/* mutation: common/base/text.c: shown_len() asks for no category. */
Test(base_text, A15_what_no_reader_sees_is_replaced)
{
	static const struct {
		const char *name, *in;
		bool shown;
	} rows[] = {
		{ "right-to-left override", "\xe2\x80\xae", false },
		{ "left-to-right isolate", "\xe2\x81\xa6", false },
		{ "Arabic letter mark", "\xd8\x9c", false },
		{ "zero width space", "\xe2\x80\x8b", false },
		{ "zero width joiner", "\xe2\x80\x8d", false },
		{ "word joiner", "\xe2\x81\xa0", false },
		{ "soft hyphen", "\xc2\xad", false },
		{ "byte order mark", "\xef\xbb\xbf", false },
		{ "line separator", "\xe2\x80\xa8", false },
		{ "paragraph separator", "\xe2\x80\xa9", false },
		{ "next line (C1)", "\xc2\x85", false },
		{ "CSI (C1)", "\xc2\x9b", false },
		{ "tag A", "\xf3\xa0\x81\x81", false },
		{ "language tag", "\xf3\xa0\x80\x81", false },
		{ "U+FFFE", "\xef\xbf\xbe", false },
		{ "U+FDD0", "\xef\xb7\x90", false },
		{ "U+10FFFF", "\xf4\x8f\xbf\xbf", false },
		{ "unassigned U+0378", "\xcd\xb8", false },
		{ "private use", "\xee\x80\x80", false },
		{ "private use, plane 15", "\xf3\xb0\x80\x80", false },
		{ "Hangul filler", "\xe3\x85\xa4", false },
		{ "variation selector", "\xef\xb8\x8f", false },
		{ "interlinear annotation", "\xef\xbf\xb9", false },
		{ "musical beam", "\xf0\x9d\x85\xb3", false },
		{ "letter", "\xc3\xa9", true },
		{ "combining acute", "e\xcc\x81", true },
		{ "Hebrew", "\xd7\xa9", true },
		{ "Arabic", "\xd8\xb4", true },
		{ "Han", "\xe4\xb8\xad", true },
		{ "emoji", "\xf0\x9f\x98\x80", true },
		{ "no-break space", "\xc2\xa0", true },
		{ "U+FFFD", "\xef\xbf\xbd", true },
	};
	struct buf out = { 0 };
	char marks[8];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const size_t len = strlen(rows[i].in);

		memset(marks, '?', sizeof(marks));
		marks[len] = '\0';
		buf_reset(&out);
		cr_assert_eq(text_clean(&out, rows[i].in, len, 99), 0);
		cr_expect_str_eq(buf_str(&out),
		    rows[i].shown ? rows[i].in : marks, "%s", rows[i].name);
		/* A program gets all but controls. */
		buf_reset(&out);
		cr_assert_eq(text_to_utf8(&out, rows[i].in, len, 99), 0);
		cr_expect_str_eq(buf_str(&out),
		    strstr(rows[i].name, "(C1)") == NULL ? rows[i].in : marks,
		    "%s", rows[i].name);
	}
	buf_done(&out);
}

Test(base_text, A7_what_is_clean)
{
	static const struct {
		const char *text;
		size_t len;
		bool want;
	} rows[] = {
		{ "", 0, true },
		{ "abc \xc3\xa4 \xf0\x9f\x93\xa7", 11, true },
		{ "a\tb", 3, false },
		{ "a\0b", 3, false },
		{ "\x1b", 1, false },
		{ "\x7f", 1, false },
		{ "\xc2\x9b", 2, false },
		{ "\xc3", 1, false },
		{ "\xff", 1, false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(text_is_utf8(rows[i].text, rows[i].len),
		    rows[i].want, "row %zu", i);
}

Test(base_address, S2_what_may_stand_in_an_envelope)
{
	static const struct {
		const char *address;
		size_t len;
		int want;
	} rows[] = {
		{ "a@b", 3, 0 },
		{ "\"a b\"@c", 7, 0 },
		{ "\xc3\xa4@b", 4, 0 },
		{ "", 0, -EINVAL },
		{ "a\r@b", 4, -EILSEQ },
		{ "a\n@b", 4, -EILSEQ },
		{ "a\0@b", 4, -EILSEQ },
		{ "a\t@b", 4, -EILSEQ },
		{ "a\x7f@b", 4, -EILSEQ },
	};
	char longest[ADDRESS_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(address_check(rows[i].address, rows[i].len),
		    rows[i].want, "row %zu", i);
	memset(longest, 'x', sizeof(longest));
	cr_expect_eq(address_check(longest, ADDRESS_MAX), 0);
	cr_expect_eq(address_check(longest, ADDRESS_MAX + 1), -ENAMETOOLONG);
}

Test(base_address, parts)
{
	static const struct {
		const char *address, *domain;
		size_t local_len;
	} rows[] = {
		{ "a@b.c", "b.c", 1 },
		{ "\"a@b\"@c", "c", 5 },
		{ "root", "", 4 },
		{ "a@", "", 1 },
		{ "@b", "b", 0 },
		{ "", "", 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		cr_expect_str_eq(
		    address_domain(rows[i].address), rows[i].domain);
		cr_expect_eq(address_local_len(rows[i].address),
		    rows[i].local_len, "%s", rows[i].address);
	}
}

Test(base_clock, both_run)
{
	usec_t before = clock_mono();

	cr_expect_gt(clock_wall(), 1000000000 * USEC_PER_SEC);
	cr_expect_geq(clock_mono(), before);
}

Test(base_text, A1_quote_is_short_and_clean)
{
	static const struct {
		const char *s, *want;
	} rows[] = {
		{ "", "`'" },
		{ "abc", "`abc'" },
		{ "a\x1b[2J\n", "`a?[2J?'" },
		{ "012345678901234567890123456789012345678901234567",
		    "`012345678901234567890123456789012345678901234567'" },
		{ "0123456789012345678901234567890123456789012345678",
		    "`012345678901234567890123456789012345678901234567...'" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = { 0 };

		cr_assert_eq(text_quote(&b, rows[i].s), 0);
		cr_expect_str_eq(buf_str(&b), rows[i].want);
		buf_done(&b);
	}
}

Test(base_text, a_long_text_loses_its_middle)
{
	static const struct {
		const char *in;
		size_t max;
		const char *want;
	} rows[] = {
		{ "", 8, "" },
		{ "12345678", 8, "12345678" },
		{ "123456789", 8, "1...6789" },
		{ "/spool/queue1/incoming: No space left on device", 32,
		    "/spool/qu...space left on device" },
		/* No half of a character, before the dots or behind. */
		{ "\303\244\303\244\303\244\303\244\303\244\303\244", 9,
		    "\303\244...\303\244\303\244" },
		{ "abc\303\244\303\244\303\244\303\244", 9,
		    "ab...\303\244\303\244" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = { 0 };

		cr_assert_eq(text_shorten(&out, rows[i].in, rows[i].max), 0);
		cr_expect_str_eq(buf_str(&out), rows[i].want, "%s: %s",
		    rows[i].in, buf_str(&out));
		buf_done(&out);
	}
}

/* mutation: common/base/text.c, text_cut() that cuts in a word. */
Test(base_text, cut_at_a_word)
{
	static const struct {
		const char *in;
		size_t max;
		const char *want;
	} rows[] = {
		{ "", 8, "" },
		{ "is not so", 9, "is not so" },
		{ "files are not named by", 16, "files are not..." },
		{ "files are not named by", 15, "files are..." },
		{ "files are not named by", 18, "files are not..." },
		{ "a /a/word/that/has/no/end", 16, "a /a/word/tha..." },
		/* No half of a character. */
		{ "\303\244\303\244\303\244\303\244\303\244", 9,
		    "\303\244\303\244\303\244..." },
		{ "a\303\244\303\244\303\244\303\244\303\244", 9,
		    "a\303\244\303\244..." },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = { 0 };

		cr_assert_eq(text_cut(&out, rows[i].in, rows[i].max), 0);
		cr_expect_str_eq(buf_str(&out), rows[i].want, "%s: %s",
		    rows[i].in, buf_str(&out));
		buf_done(&out);
	}
}

/* mutation: common/base/text.c, text_next_word() that takes no comma for the
 * end of a word. */
Test(base_text, words_of_a_list)
{
	static const char *const words[] = { "a", "[b]:25", "c" };
	const char *rest = ", a\t,[b]:25,c  ", *word;
	size_t i, len;

	for (i = 0; i < ARRAY_LEN(words); i++) {
		word = text_next_word(&rest, &len);
		cr_assert_not_null(word);
		cr_expect_eq(len, strlen(words[i]));
		cr_expect_eq(strncmp(word, words[i], len), 0, "%s", word);
	}
	cr_expect_null(text_next_word(&rest, &len));
	cr_expect_null(text_next_word(&rest, &len), "still");
	cr_expect_str_eq(rest, "");
}
