/* Content of 8 bit on its way to a server of 7 bit: what goes out is of 7 bit,
 * in short lines, and a slow reader of MIME finds the same parts with the same
 * octets in it, however the input was cut. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "deliver-smtp/mime/mime.h"
#include "smtp/smtp.h"

/* ---- the module ---- */

static void
feed(struct mime *m, const char *data, size_t len, struct buf *out)
{
	char *copy = malloc(len + 1);

	MUST(copy != NULL);
	memcpy(copy, data, len);
	MUST(mime_feed(m, copy, len, out) == 0);
	free(copy);
}

static void
run(const struct mime_plan *plan, const struct buf *in, size_t piece,
    struct buf *out, struct mime_plan *ret_plan)
{
	struct mime *m;
	size_t at, n;

	MUST(mime_new(plan, &m) == 0);
	for (at = 0; at < in->len; at += n) {
		n = in->len - at < piece ? in->len - at : piece;
		feed(m, in->data + at, n, out);
	}
	MUST(mime_end(m, out) == 0);
	if (ret_plan != NULL)
		*ret_plan = *mime_plan(m);
	mime_free(&m);
}

/* ---- a slow reader: lines in memory, headers unfolded ---- */

#define LINES_MAX 512

struct line {
	const char *at;
	size_t len; /* with its end */
};
struct text {
	struct line lines[LINES_MAX];
	size_t count, next;
};

static void
split(const struct buf *in, struct text *t)
{
	const char *p = buf_str(in), *end = p + in->len;

	t->count = t->next = 0;
	while (p < end && t->count < LINES_MAX) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		size_t len =
		    eol == NULL ? (size_t)(end - p) : (size_t)(eol - p) + 1;

		t->lines[t->count++] = (struct line){ p, len };
		p += len;
	}
}

/* Without its line end. */
static size_t
bare(const struct line *l)
{
	size_t len = l->len;

	if (len > 0 && l->at[len - 1] == '\n')
		len--;
	if (len < l->len && len > 0 && l->at[len - 1] == '\r')
		len--;
	return len;
}

/* The octets of a body: line ends are LF. */
static void
take_plain(const struct line *l, struct buf *out)
{
	size_t len = bare(l);

	MUST(buf_add(out, l->at, len) == 0);
	if (len < l->len)
		MUST(buf_add_char(out, '\n') == 0);
}

static int
hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
	    : c >= 'A' && c <= 'F'  ? c - 'A' + 10
				    : -1;
}

static void
take_quoted(const struct line *l, struct buf *out)
{
	size_t len = bare(l), i;

	MUST(len <= 76);
	MUST(len == 0 || l->at[0] != '-');
	MUST(len == 0 || strchr(" \t", l->at[len - 1]) == NULL);
	for (i = 0; i < len; i++) {
		if (l->at[i] != '=') {
			MUST(buf_add_char(out, l->at[i]) == 0);
			continue;
		}
		if (i + 1 == len)
			return;
		MUST(i + 2 < len && hex(l->at[i + 1]) >= 0 &&
		    hex(l->at[i + 2]) >= 0);
		MUST(buf_add_char(out,
			 (char)(hex(l->at[i + 1]) << 4 | hex(l->at[i + 2]))) ==
		    0);
		i += 2;
	}
	if (len < l->len)
		MUST(buf_add_char(out, '\n') == 0);
}

/* ---- original and converted, side by side ---- */

static bool
is_quoted_field(const struct line *l)
{
	static const char qp[] = "Content-Transfer-Encoding: quoted-printable";

	return bare(l) == sizeof(qp) - 1 && memcmp(l->at, qp, bare(l)) == 0;
}

static bool
same(const struct line *a, const struct line *b)
{
	return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

/* A field of an encoding, without which the conversion may go on. */
static bool
is_coding(const struct line *l)
{
	static const char name[] = "content-transfer-encoding";
	size_t n = sizeof(name) - 1;

	if (l->len <= n || strncasecmp(l->at, name, n) != 0)
		return false;
	while (n < l->len && strchr(" \t", l->at[n]) != NULL)
		n++;
	return n < l->len && l->at[n] == ':';
}

static bool
is_ours(const struct line *l)
{
	static const char *const ours[] = { "MIME-Version: 1.0",
		"Content-Type: text/plain; charset=unknown-8bit",
		"Content-Transfer-Encoding: quoted-printable",
		"Content-Transfer-Encoding: 7bit", "" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(ours); i++)
		if (bare(l) == strlen(ours[i]) &&
		    memcmp(l->at, ours[i], bare(l)) == 0)
			return true;
	return false;
}

static bool
has_eight(const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)p[i] >= 0x80)
			return true;
	return false;
}

/* The preamble and the like: with a question mark for each. */
static bool
is_masked(const struct line *a, const struct line *b)
{
	size_t i;

	if (a->len != b->len)
		return false;
	for (i = 0; i < a->len; i++)
		if (b->at[i] != (has_eight(a->at + i, 1) ? '?' : a->at[i]))
			return false;
	return true;
}

/* The converted lines that make the original line, decoded: how many. 0: they
 * do not. */
static size_t
decodes_to(const struct text *t, size_t from, const struct line *want)
{
	struct buf got = { 0 }, all = { 0 };
	size_t n = 0, len, i;
	bool fits = false, soft = true;

	take_plain(want, &all);
	while (soft && from + n < t->count) {
		const struct line *l = &t->lines[from + n++];

		len = bare(l);
		soft = len > 0 && l->at[len - 1] == '=';
		if (len > 76 || (len > 0 && l->at[0] == '-'))
			break;
		for (i = 0; i < len; i++)
			if (l->at[i] == '=' && i + 1 < len &&
			    (i + 2 >= len || hex(l->at[i + 1]) < 0 ||
				hex(l->at[i + 2]) < 0))
				goto out;
		if (len > 0 && strchr(" \t", l->at[len - 1]) != NULL)
			goto out;
		take_quoted(l, &got);
	}
	fits = got.len == all.len &&
	    memcmp(buf_str(&got), buf_str(&all), got.len) == 0;
out:
	buf_done(&got);
	buf_done(&all);
	return fits ? n : 0;
}

/* ---- the comparison: every way in which lines may belong together ---- */

enum {
	QUOTED = 1,   /* a field has declared quoted-printable */
	DROPPING = 2, /* a field of an encoding has gone, its folds may */
	NWAYS = 4,
};

/* By the next line of the conversion and the way: may it be reached? Few are,
 * all of them from `first` on and before `end`. */
struct reach {
	bool at[LINES_MAX + 1][NWAYS];
	size_t first, end;
};

static void
clear(struct reach *r)
{
	if (r->first < r->end)
		memset(
		    r->at[r->first], 0, (r->end - r->first) * sizeof(r->at[0]));
	r->first = LINES_MAX + 1;
	r->end = 0;
}

static void
mark(struct reach *r, size_t line, int way)
{
	r->at[line][way] = true;
	if (line < r->first)
		r->first = line;
	if (line >= r->end)
		r->end = line + 1;
}

static int
behind(const struct line *l, int way)
{
	return (way & QUOTED) | (is_quoted_field(l) ? QUOTED : 0);
}

/* Fields of ours, and the blank line, may come before any line. */
static void
pass_ours(const struct text *b, struct reach *r)
{
	size_t j;
	int way;

	for (j = r->first; j < r->end && j < b->count; j++)
		for (way = 0; way < NWAYS; way++)
			if (r->at[j][way] && is_ours(&b->lines[j]))
				mark(r, j + 1, behind(&b->lines[j], way));
}

static void
pass_line(const struct line *l, const struct text *b, size_t j, int way,
    struct reach *next)
{
	const bool fold = l->len > 0 && strchr(" \t", l->at[0]) != NULL;
	size_t n;

	if (is_coding(l) || ((way & DROPPING) != 0 && fold))
		mark(next, j, (way & QUOTED) | DROPPING);
	if (j == b->count)
		return;
	if (same(l, &b->lines[j]))
		mark(next, j + 1, behind(l, way));
	if (is_masked(l, &b->lines[j]))
		mark(next, j + 1, way & QUOTED);
	n = (way & QUOTED) != 0 ? decodes_to(b, j, l) : 0;
	if (n > 0)
		mark(next, j + n, way);
}

/* Each line of the original is there in its turn, as it was, masked, or as
 * quoted-printable where a field has declared it; a field of an encoding may
 * go. */
static void
compare(const struct text *a, const struct text *b)
{
	static struct reach both[2];
	struct reach *now = &both[0], *next = &both[1], *other;
	bool fits = false;
	size_t i, j;
	int way;

	clear(now);
	mark(now, 0, 0);
	for (i = 0; i < a->count; i++) {
		pass_ours(b, now);
		clear(next);
		for (j = now->first; j < now->end; j++)
			for (way = 0; way < NWAYS; way++)
				if (now->at[j][way])
					pass_line(
					    &a->lines[i], b, j, way, next);
		other = now;
		now = next;
		next = other;
	}
	pass_ours(b, now);
	for (way = 0; way < NWAYS; way++)
		fits |= now->at[b->count][way];
	MUST(fits);
}

/* The wire: no octet above 127, no long line. */
static void
check_wire(const struct buf *content)
{
	struct smtp_encode e = { 0 };
	char *wire = malloc(SMTP_ENCODE_MAX(content->len));
	size_t n, i, column = 0;

	MUST(wire != NULL);
	n = smtp_encode_feed(&e, buf_str(content), content->len, wire);
	for (i = 0; i < n; i++) {
		MUST((unsigned char)wire[i] < 0x80);
		column = wire[i] == '\n' ? 0 : column + 1;
		MUST(column <= 1000);
	}
	free(wire);
}

/* ---- input: words that make MIME, and what lies between ---- */

static void
write_content(struct fuzz_in *in, struct buf *out)
{
	static const char *const words[] = { "Content-Type: ",
		"Content-Transfer-Encoding: ", "MIME-Version: 1.0\n",
		"multipart/mixed; boundary=", "multipart/digest; boundary=\"",
		"multipart/signed; boundary=", "message/rfc822", "text/plain",
		"message/global", "message/partial", "8bit", "7bit", "binary",
		"base64", "quoted-printable", "b\n", "c\n", "\n\n", "--b\n",
		"--b--\n", "--c\n", "--c--\n", "\r\n", "\xc3\xa9", "\xe9",
		"Subject: ", "\n ", "\"", " \n", "--", "\r", "(x)" };

	while (in->left > 0 && out->len < 20000) {
		const uint8_t c = (uint8_t)fuzz_number(in, 1);

		if (c >= 0x80 && c < 0x80 + ARRAY_LEN(words))
			MUST(buf_add_str(out, words[c - 0x80]) == 0);
		else if (c == 0x7f)
			MUST(buf_printf(out, "%300s", "") == 0);
		else
			MUST(buf_add_char(out, (char)c) == 0);
	}
}

static void
check_conversion(
    const struct mime_plan *plan, const struct buf *content, size_t piece)
{
	static struct text a, b;
	struct buf whole = { 0 }, cut = { 0 };

	run(plan, content, SIZE_MAX, &whole, NULL);
	run(plan, content, piece, &cut, NULL);
	MUST(whole.len == cut.len &&
	    memcmp(buf_str(&whole), buf_str(&cut), cut.len) == 0);
	MUST(!has_eight(buf_str(&whole), whole.len));
	if (!plan->eight)
		MUST(whole.len == content->len &&
		    memcmp(buf_str(&whole), buf_str(content), whole.len) == 0);
	check_wire(&whole);
	split(content, &a);
	split(&whole, &b);
	if (a.count < LINES_MAX && b.count < LINES_MAX)
		compare(&a, &b);
	buf_done(&whole);
	buf_done(&cut);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	size_t piece = 1 + fuzz_number(&in, 1);
	struct buf content = { 0 };
	struct mime_plan plan, again;

	write_content(&in, &content);
	run(NULL, &content, SIZE_MAX, NULL, &plan);
	run(NULL, &content, piece, NULL, &again);
	MUST(memcmp(&plan, &again, sizeof(plan)) == 0);
	MUST((plan.eight || plan.header || plan.fault != MIME_FINE) ==
	    has_eight(buf_str(&content), content.len));
	if (plan.fault == MIME_FINE && !plan.header)
		check_conversion(&plan, &content, piece);
	buf_done(&content);
	return 0;
}
