#include "report/parts.h"

#include <string.h>

#include "base/text.h"

#define QUOTED_WIDTH  75 /* and the `=` of a soft line break */
#define FILL_WIDTH    72
#define FOLD_WIDTH    76
#define WORD_MAX      512 /* of a folded field: a longer word is broken */
#define ADDRESS_SHOWN 900 /* bytes of an encoded address */

/* ---- quoted-printable (RFC 2045 section 6.7) ---- */

static bool
is_literal(unsigned char c, bool last)
{
	if (c == ' ' || c == '\t')
		return !last;
	return c > ' ' && c < 0x7f && c != '=';
}

int
quoted_line(struct buf *out, const char *s, size_t len)
{
	size_t i, column = 0;
	int r = 0;

	for (i = 0; r == 0 && i < len; i++) {
		const unsigned char c = (unsigned char)s[i];
		const bool literal = is_literal(c, i + 1 == len);
		const size_t width = literal ? 1 : 3;

		if (column + width > QUOTED_WIDTH) {
			r = buf_add_str(out, "=\n");
			column = 0;
		}
		if (r == 0)
			r = literal ? buf_add_char(out, (char)c)
				    : buf_printf(out, "=%02X", c);
		column += width;
	}
	return r < 0 ? r : buf_add_char(out, '\n');
}

/* The length of the line that begins at s: up to the last blank that fits, or
 * the first one. */
static size_t
line_len(const char *s, size_t len, size_t width)
{
	size_t i, best = 0;

	if (len <= width)
		return len;
	for (i = 1; i < len; i++) {
		if (s[i] != ' ')
			continue;
		if (i > width && best > 0)
			break;
		best = i;
		if (i > width)
			break;
	}
	return best > 0 ? best : len;
}

static int
fill_line(struct buf *out, const char *indent, const char *s, size_t len)
{
	struct buf line = { 0 };
	int r = buf_add_str(&line, indent);

	if (r == 0)
		r = buf_add(&line, s, len);
	if (r == 0)
		r = quoted_line(out, line.data, line.len);
	buf_done(&line);
	return r;
}

int
quoted_fill(struct buf *out, const char *indent, const char *text)
{
	struct buf clean = { 0 };
	size_t at = 0, n;
	int r = text_clean(&clean, text, strlen(text), SIZE_MAX);

	while (r == 0 && at < clean.len) {
		n = line_len(clean.data + at, clean.len - at, FILL_WIDTH);
		r = fill_line(out, at == 0 ? "" : indent, clean.data + at, n);
		at += n;
		while (at < clean.len && clean.data[at] == ' ')
			at++;
	}
	buf_done(&clean);
	return r;
}

/* ---- fields for programs ---- */

/* The code point of the valid UTF-8 character at s, and its length. */
static uint32_t
code_point(const char *s, size_t *ret_len)
{
	const unsigned char *p = (const unsigned char *)s;
	const size_t n = p[0] < 0x80 ? 1
	    : p[0] < 0xe0            ? 2
	    : p[0] < 0xf0            ? 3
				     : 4;
	uint32_t code = n == 1 ? p[0] : (uint32_t)(p[0] & (0x7f >> n));
	size_t i;

	for (i = 1; i < n; i++)
		code = code << 6 | (p[i] & 0x3f);
	*ret_len = n;
	return code;
}

/* Append cleaned text; characters above 127, and those that `also` names, as
 * \x{HEX}. */
static int
add_embedded(struct buf *out, const struct buf *clean, const char *also)
{
	const char *end = clean->data + clean->len;
	const char *s;
	size_t n;
	int r = 0;

	for (s = clean->data; r == 0 && s < end; s += n) {
		const uint32_t code = code_point(s, &n);

		if (code > 0x7e || strchr(also, (int)code) != NULL)
			r = buf_printf(out, "\\x{%X}", code);
		else
			r = buf_add_char(out, (char)code);
	}
	return r;
}

/* Append words; a line of its own, which begins with a blank, for those that
 * the line has no room for. */
static int
fold(struct buf *out, size_t column, const char *s, size_t len)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && at < len) {
		const char *blank = memchr(s + at + 1, ' ', len - at - 1);
		size_t n = blank == NULL ? len - at : (size_t)(blank - s) - at;

		if (n > WORD_MAX)
			n = WORD_MAX;
		if (at > 0 && column + n > FOLD_WIDTH) {
			r = buf_add_str(out, s[at] == ' ' ? "\n" : "\n ");
			column = 0;
		}
		if (r == 0)
			r = buf_add(out, s + at, n);
		column += n;
		at += n;
	}
	return r;
}

/* The text without blanks at its ends and beside each other: a line of blanks
 * would end the fields. */
static size_t
squeeze(char *s, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		if (s[i] != ' ' || (n > 0 && s[n - 1] != ' '))
			s[n++] = s[i];
	return n > 0 && s[n - 1] == ' ' ? n - 1 : n;
}

static int
clean_embedded(struct buf *out, const char *text, size_t len, const char *also)
{
	struct buf clean = { 0 };
	int r = text_to_utf8(&clean, text, len, SIZE_MAX);

	if (r == 0 && clean.len > 0)
		r = add_embedded(out, &clean, also);
	buf_done(&clean);
	return r;
}

int
field_text(struct buf *out, const char *name, const char *text, size_t len)
{
	struct buf line = { 0 };
	int r = buf_printf(out, "%s: ", name);

	if (r == 0)
		r = clean_embedded(&line, text, len, "");
	if (r == 0 && line.len > 0)
		r = fold(out, strlen(name) + 2, line.data,
		    squeeze(line.data, line.len));
	buf_done(&line);
	return r < 0 ? r : buf_add_char(out, '\n');
}

static bool
is_ascii(const char *s)
{
	while (*s != '\0')
		if ((unsigned char)*s++ > 0x7e)
			return false;
	return true;
}

/* A whole \x{HEX} or none. */
static size_t
cut_embedded(const struct buf *b)
{
	size_t i, n = b->len < ADDRESS_SHOWN ? b->len : ADDRESS_SHOWN;

	if (n == b->len)
		return n;
	for (i = n; i > 0 && n - i < sizeof("\\x{10FFFF}"); i--)
		if (b->data[i - 1] == '\\')
			return i - 1;
	return n;
}

int
field_address(
    struct buf *out, const char *name, const char *type, const char *address)
{
	const bool utf8 = !is_ascii(address);
	struct buf line = { 0 };
	int r = buf_printf(out, "%s: %s; ", name, utf8 ? "utf-8" : type);

	if (r == 0) /* these are special in the 7-bit form */
		r = clean_embedded(
		    &line, address, strlen(address), utf8 ? "\\+= " : "");
	if (r == 0 && line.len > 0)
		r = buf_add(out, line.data, cut_embedded(&line));
	buf_done(&line);
	return r < 0 ? r : buf_add_char(out, '\n');
}

static int
hex_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
	    : c >= 'A' && c <= 'F'  ? c - 'A' + 10
				    : -1;
}

int
xtext_decode(struct buf *out, const char *s)
{
	int c, r = 0;

	for (; r == 0 && *s != '\0'; s++) {
		const int high = *s == '+' ? hex_value(s[1]) : -1;
		const int low = high < 0 ? -1 : hex_value(s[2]);

		if (low < 0) {
			r = buf_add_char(out, *s);
			continue;
		}
		c = high << 4 | low;
		/* A NUL would end the string. */
		r = buf_add_char(out, (char)(c == 0 ? '?' : c));
		s += 2;
	}
	return r;
}
