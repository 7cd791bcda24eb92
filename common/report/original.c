#include "report/parts.h"

#include <string.h>

#include "base/text.h"

/* ---- lines ---- */

/* One line: its length without its end, and where the next one begins. LF and
 * CRLF end a line. */
struct line {
	const char *text;
	size_t len, next;
};

static struct line
line_at(const char *s, size_t len, size_t at)
{
	const char *end = memchr(s + at, '\n', len - at);
	struct line line = {
		.text = s + at,
		.len = end == NULL ? len - at : (size_t)(end - s) - at,
		.next = end == NULL ? len : (size_t)(end - s) + 1,
	};

	if (line.len > 0 && line.text[line.len - 1] == '\r')
		line.len--;
	return line;
}

static bool
is_name_char(char c)
{
	return c > ' ' && c < 0x7f && c != ':';
}

/* A field, or the rest of one that is folded. */
static bool
is_of_header(const struct line *line, bool first)
{
	size_t i = 0;

	if (line->len == 0)
		return false;
	if (line->text[0] == ' ' || line->text[0] == '\t')
		return !first;
	while (i < line->len && is_name_char(line->text[i]))
		i++;
	return i > 0 && i < line->len && line->text[i] == ':';
}

static size_t
header_len(const struct report_facts *r)
{
	size_t at = 0;

	while (at < r->content_len) {
		struct line line = line_at(r->content, r->content_len, at);

		if (!is_of_header(&line, at == 0))
			break;
		/* A line that was cut off is left out. */
		if (!r->whole && line.next == r->content_len && at > 0 &&
		    r->content[r->content_len - 1] != '\n')
			break;
		at = line.next;
	}
	return at;
}

/* ---- judgement ---- */

struct traits {
	bool eight;  /* bytes above 127 */
	bool broken; /* NUL, a CR alone, a line above the limit */
};

static void
judge_line(const struct line *line, struct traits *t)
{
	size_t i;

	if (line->len > LINE_LIMIT)
		t->broken = true;
	for (i = 0; i < line->len; i++) {
		if (line->text[i] == '\0' || line->text[i] == '\r')
			t->broken = true;
		if ((unsigned char)line->text[i] > 0x7f)
			t->eight = true;
	}
}

static struct traits
traits_of(const char *s, size_t len)
{
	struct traits t = { false, false };
	size_t at = 0;

	while (at < len && !t.broken) {
		struct line line = line_at(s, len, at);

		judge_line(&line, &t);
		at = line.next;
	}
	return t;
}

static bool
is_utf8(const char *s, size_t len)
{
	size_t at = 0;

	while (at < len) {
		struct line line = line_at(s, len, at);
		size_t i, from = 0;

		/* A tab is no printable character, and is right here. */
		for (i = 0; i <= line.len; i++) {
			if (i < line.len && line.text[i] != '\t')
				continue;
			if (!text_is_utf8(line.text + from, i - from))
				return false;
			from = i + 1;
		}
		at = line.next;
	}
	return true;
}

enum original_form
original_judge(const struct report_facts *r)
{
	const size_t len = header_len(r);
	const struct traits header = traits_of(r->content, len);
	const struct traits all = r->whole
	    ? traits_of(r->content, r->content_len)
	    : (struct traits){ .broken = true };

	if (all.broken || (header.eight && !is_utf8(r->content, len)))
		return header.broken || header.eight ? ORIGINAL_HEADER_ENCODED
						     : ORIGINAL_HEADER;
	if (header.eight)
		return ORIGINAL_GLOBAL;
	return all.eight ? ORIGINAL_WHOLE_8BIT : ORIGINAL_WHOLE;
}

static const struct form {
	const char *type, *encoding;
	bool eight, header;
} forms[] = {
	/* clang-format off */
	[ORIGINAL_HEADER]         = { "text/rfc822-headers", "7bit", false, true },
	[ORIGINAL_HEADER_ENCODED] = { "text/rfc822-headers", "quoted-printable", false, true },
	[ORIGINAL_WHOLE]          = { "message/rfc822", "7bit", false, false },
	[ORIGINAL_WHOLE_8BIT]     = { "message/rfc822", "8bit", true, false },
	[ORIGINAL_GLOBAL]         = { "message/global", "8bit", true, false },
	/* clang-format on */
};

bool
original_is_8bit(const struct report_facts *r)
{
	return forms[r->form].eight;
}

/* ---- the part ---- */

static const char *
charset_of(const struct report_facts *r, enum original_form form)
{
	if (form != ORIGINAL_HEADER_ENCODED)
		return "";
	return is_utf8(r->content, header_len(r)) ? "; charset=utf-8"
						  : "; charset=unknown-8bit";
}

void
original_add(const struct report_facts *r, struct buf *out)
{
	const enum original_form form = (enum original_form)r->form;
	const size_t len = forms[form].header ? header_len(r) : r->content_len;
	size_t at = 0;

	buf_printf(out,
	    "Content-Description: Original message%s\n"
	    "Content-Type: %s%s\n"
	    "Content-Transfer-Encoding: %s\n\n",
	    forms[form].header ? " headers" : "", forms[form].type,
	    charset_of(r, form), forms[form].encoding);
	while (at < len) {
		struct line line = line_at(r->content, len, at);

		if (form == ORIGINAL_HEADER_ENCODED)
			quoted_line(out, line.text, line.len);
		else {
			buf_add(out, line.text, line.len);
			buf_add_char(out, '\n');
		}
		at = line.next;
	}
}
