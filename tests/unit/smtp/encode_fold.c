/* Lines of a header that are longer than SMTP allows. */
#include "tests/unit/smtp/encode_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* "x{500}" is 500 times an x; in `want` LF is CRLF. */
static void
expand(const char *text, bool crlf, struct buf *out)
{
	buf_reset(out);
	for (; *text != '\0'; text++) {
		unsigned long n = 1;

		if (*text == '\n' && crlf)
			buf_add_char(out, '\r');
		buf_add_char(out, *text);
		if (text[1] != '{')
			continue;
		for (n = strtoul(text + 2, NULL, 10); n > 1; n--)
			buf_add_char(out, *text);
		text = strchr(text, '}');
	}
	buf_add_char(out, '\0');
}

/* clang-format off */
static const struct {
	const char *name, *in, *want;
} folds[] = {
	{ "at a blank", "A: x{500} y{500}\n\nb\n",
	    "A: x{500}\n y{500}\n\nb\n.\n" },
	{ "at a tab", "A: x{500}\ty{500}\n",
	    "A: x{500}\n\ty{500}\n.\n" },
	{ "at the last blank that fits", "A: x{400} y{400} z{400}\n",
	    "A: x{400} y{400}\n z{400}\n.\n" },
	{ "before the last of several blanks", "A: x{500} \t y{500}\n",
	    "A: x{500} \t\n y{500}\n.\n" },
	{ "behind the colon", "A: x{1000}\n",
	    "A:\n x{997}\n xxx\n.\n" },
	{ "a blank before the colon", "A :x{1000}\n",
	    "A :x{995}\n xxxxx\n.\n" },
	{ "a long word among short ones", "A: b c{2000} d\n",
	    "A: b\n c{997}\n c{997}\n cccccc d\n.\n" },
	{ "a line that goes on", "A: b\n c x{500} y{500}\n",
	    "A: b\n c x{500}\n y{500}\n.\n" },
	{ "not within a quoted pair", "A: b x{500}\\ y{495}\n",
	    "A: b\n x{500}\\ y{495}\n.\n" },
	{ "blanks at the end", "A: b x{970} {25}\n",
	    "A: b\n x{970} {25}\n.\n" },
	{ "blanks behind a line that is full", "A:x{996}  {9}\nB: c\n",
	    "A:x{996}\nB: c\n.\n" },
	{ "more blanks than a line", "A: b {3000}c\n",
	    "A:\n b {996}\n {997}c\n.\n" },
	{ "more blanks than a line, of two kinds", "A: b {2000}\t{13}c\n",
	    "A:\n b {996}\n {997}c\n.\n" },
	{ "a line that is no field is body", "A b x{990} y{10}\n",
	    "A b x{990} yyy\n yyyyyyy\n.\n" },
	{ "a blank first is body", " A: x{990} y{10}\n",
	    " A: x{990} yyy\n yyyyyyy\n.\n" },
	{ "behind an empty line is body", "A: b\n\nA: x{990} y{10}\n",
	    "A: b\n\nA: x{990} yyyy\n yyyyyy\n.\n" },
	{ "behind a line that is no field is body", "A: b\nc\nA: x{990} y{10}\n",
	    "A: b\nc\nA: x{990} yyyy\n yyyyyy\n.\n" },
	{ "a field that begins with a dot", ".A: x{500} y{500}\n",
	    "..A: x{500}\n y{500}\n.\n" },
	{ "no last line end", "A: x{500} y{500}",
	    "A: x{500}\n y{500}\n.\n" },
	{ "not within a character", "A: \xc3\xa4x{994}\xc3\xa4\n",
	    "A:\n \xc3\xa4x{994}\n \xc3\xa4\n.\n" },
	{ "a CR is a blank", "A: x{500}\ry{500}\n",
	    "A: x{500}\n y{500}\n.\n" },
};
/* clang-format on */

Test(encode, C10_a_header_line_is_folded_at_a_blank)
{
	struct buf in = { 0 }, want = { 0 }, wire = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(folds); i++) {
		expand(folds[i].in, false, &in);
		expand(folds[i].want, true, &want);
		encode_check(folds[i].name, in.data, in.len - 1);
		encode_whole(in.data, in.len - 1, 5, &wire);
		buf_add_char(&wire, '\0');
		cr_expect_str_eq(wire.data, want.data, "%s", folds[i].name);
	}
	buf_done(&in);
	buf_done(&want);
	buf_done(&wire);
}

/* ---- fields of every length ---- */

/* Words of up to `longest` octets behind a field name, `len` octets in all. */
static void
field_of_words(struct buf *out, size_t len, size_t longest)
{
	buf_reset(out);
	buf_add_str(out, "References:");
	while (out->len < len) {
		size_t n = 1 + (size_t)rand() % longest;

		buf_add_char(out, rand() % 8 == 0 ? '\t' : ' ');
		while (n-- > 0 && out->len < len)
			buf_add_char(out, (char)('a' + rand() % 26));
	}
	/* Without a blank at the end. */
	out->data[len - 1] = 'z';
}

/* No line is too long or blank, a fold begins with a blank, and without its
 * folds the field is as it was. */
static void
check_folds(const struct buf *field, const struct buf *wire)
{
	const char *p = wire->data, *eol;
	struct buf unfolded = { 0 };

	for (;; p = eol + 2) {
		eol =
		    memmem(p, (size_t)(wire->data + wire->len - p), "\r\n", 2);
		if (eol - p == 1 && *p == '.')
			break;
		cr_assert_leq(eol - p, 998);
		cr_assert_lt(strspn(p, " \t"), (size_t)(eol - p));
		cr_assert(p == wire->data || *p == ' ' || *p == '\t');
		buf_add(&unfolded, p, (size_t)(eol - p));
	}
	cr_assert_eq(unfolded.len, field->len);
	cr_assert_arr_eq(unfolded.data, field->data, field->len);
	buf_done(&unfolded);
}

Test(encode, C10_fields_of_every_length)
{
	static const size_t longest[] = { 1, 8, 40, 300, 990 };
	struct buf field = { 0 }, wire = { 0 }, other = { 0 };
	size_t len, cut;

	srand(1);
	for (len = 990; len <= 2100; len++) {
		field_of_words(&field, len, longest[len % ARRAY_LEN(longest)]);
		encode_whole(field.data, len, SIZE_MAX, &wire);
		check_folds(&field, &wire);
		encode_check("words", field.data, len);
	}
	/* In two slices, at each boundary. */
	for (cut = 0; cut <= field.len; cut++) {
		struct smtp_encode e = { 0 };
		char end[SMTP_ENCODE_MAX(0)];

		buf_reset(&other);
		encode_feed(&e, field.data, cut, &other);
		encode_feed(&e, field.data + cut, field.len - cut, &other);
		buf_add(&other, end, smtp_encode_end(&e, end));
		cr_assert_eq(other.len, wire.len);
		cr_assert_arr_eq(other.data, wire.data, wire.len);
	}
	buf_done(&field);
	buf_done(&wire);
	buf_done(&other);
}
