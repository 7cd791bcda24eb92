#include "report/parts.h"

#include <string.h>
#include <unistr.h>

#include "base/dsn.h"
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

void
quoted_line(struct buf *out, const char *s, size_t len)
{
	size_t i, column = 0;

	for (i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)s[i];
		const bool literal = is_literal(c, i + 1 == len);
		const size_t width = literal ? 1 : 3;

		if (column + width > QUOTED_WIDTH) {
			buf_add_str(out, "=\n");
			column = 0;
		}
		buf_printf(out, literal ? "%c" : "=%02X", c);
		column += width;
	}
	buf_add_char(out, '\n');
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

void
quoted_fill(struct buf *out, const char *indent, const char *text)
{
	struct buf clean = { 0 }, line = { 0 };
	size_t at = 0, n;

	text_clean(&clean, text, strlen(text), SIZE_MAX);
	while (at < clean.len) {
		n = line_len(clean.data + at, clean.len - at, FILL_WIDTH);
		buf_reset(&line);
		buf_printf(&line, "%s%.*s", at == 0 ? "" : indent, (int)n,
		    clean.data + at);
		quoted_line(out, line.data, line.len);
		at += n;
		while (at < clean.len && clean.data[at] == ' ')
			at++;
	}
	buf_note(out, clean.error);
	buf_note(out, line.error);
	buf_done(&line);
	buf_done(&clean);
}

/* ---- fields for programs ---- */

/* Append text for programs; characters above 127, and those that `also` names,
 * as \x{HEX}. */
static void
add_embedded(struct buf *out, const char *text, size_t len, const char *also)
{
	struct buf clean = { 0 };
	size_t at, n;
	ucs4_t code;

	buf_note(out, text_to_utf8(&clean, text, len, SIZE_MAX));
	for (at = 0; at < clean.len; at += n) {
		n = (size_t)u8_mbtouc(
		    &code, (const uint8_t *)clean.data + at, clean.len - at);
		if (code > 0x7e || strchr(also, (int)code) != NULL)
			buf_printf(out, "\\x{%X}", (unsigned)code);
		else
			buf_add_char(out, (char)code);
	}
	buf_done(&clean);
}

/* Append words; a line of its own, which begins with a blank, for those that
 * the line has no room for. */
static void
fold(struct buf *out, size_t column, const char *s, size_t len)
{
	size_t at = 0;

	while (at < len) {
		const char *blank = memchr(s + at + 1, ' ', len - at - 1);
		size_t n = blank == NULL ? len - at : (size_t)(blank - s) - at;

		if (n > WORD_MAX)
			n = WORD_MAX;
		if (at > 0 && column + n > FOLD_WIDTH) {
			buf_add_str(out, s[at] == ' ' ? "\n" : "\n ");
			column = 0;
		}
		buf_add(out, s + at, n);
		column += n;
		at += n;
	}
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

void
field_text(struct buf *out, const char *name, const char *text, size_t len)
{
	struct buf line = { 0 };

	buf_printf(out, "%s: ", name);
	add_embedded(&line, text, len, "");
	if (line.len > 0)
		fold(out, strlen(name) + 2, line.data,
		    squeeze(line.data, line.len));
	buf_note(out, line.error);
	buf_done(&line);
	buf_add_char(out, '\n');
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

void
field_address(
    struct buf *out, const char *name, const char *type, const char *address)
{
	const bool utf8 = !is_ascii(address);
	struct buf line = { 0 };

	buf_printf(out, "%s: %s; ", name, utf8 ? "utf-8" : type);
	/* These are special in the 7-bit form. */
	add_embedded(&line, address, strlen(address), utf8 ? "\\+= " : "");
	buf_add(out, line.data, cut_embedded(&line));
	buf_note(out, line.error);
	buf_done(&line);
	buf_add_char(out, '\n');
}

void
xtext_decode(struct buf *out, const char *s)
{
	size_t left = strlen(s), n;
	int c;

	for (; left > 0; s += n, left -= n) {
		c = dsn_encoded_octet(s, left);
		n = c < 0 ? 1 : 3;
		/* A NUL would end the string. */
		buf_add_char(out, c < 0 ? *s : (char)(c == 0 ? '?' : c));
	}
}
