/* Content on its way: what a server takes off the wire is the normal form of
 * what went in, however the input is cut. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "smtp/smtp.h"

#define STRETCHED_MAX 3000

/* Encode in pieces. Each piece and the room for its result end where their
 * memory ends, so that the sanitizer sees an octet too many. */
static void
encode(const struct buf *in, size_t piece, bool chunk, struct buf *out)
{
	const size_t len = in->len, most = piece < len ? piece : len;
	char *from = malloc(most + 1), *to = malloc(SMTP_ENCODE_MAX(most));
	char end[SMTP_ENCODE_MAX(0)];
	struct smtp_encode e = { .chunk = chunk };
	size_t at, n, put;

	MUST(from != NULL && to != NULL);
	for (at = 0; at < len; at += n) {
		char *data, *room;

		n = len - at < most ? len - at : most;
		data = from + most + 1 - n;
		room = to + SMTP_ENCODE_MAX(most) - SMTP_ENCODE_MAX(n);
		memcpy(data, in->data + at, n);
		put = smtp_encode_feed(&e, data, n, room);
		MUST(put <= SMTP_ENCODE_MAX(n));
		MUST(buf_add(out, room, put) == 0);
	}
	n = smtp_encode_end(&e, end);
	MUST(n <= sizeof(end));
	MUST(buf_add(out, end, n) == 0);
	free(from);
	free(to);
}

/* RFC 5321 section 4.5.2, and what the wire must never have. */
static void
receive(const struct buf *wire, struct buf *out)
{
	const char *p = wire->data, *end = p + wire->len;

	for (;;) {
		const char *eol = memmem(p, (size_t)(end - p), "\r\n", 2);
		size_t len;

		MUST(eol != NULL);
		len = (size_t)(eol - p);
		MUST(memchr(p, '\r', len) == NULL);
		MUST(memchr(p, '\n', len) == NULL);
		MUST(len - (len > 0 && *p == '.') <= 998);
		if (len == 1 && *p == '.') {
			MUST(eol + 2 == end);
			return;
		}
		if (len > 0 && *p == '.') {
			p++;
			len--;
		}
		MUST(buf_add(out, p, len) == 0);
		MUST(buf_add_char(out, '\n') == 0);
		p = eol + 2;
	}
}

static size_t
promise(unsigned char c)
{
	return c >= 0xf8 ? 1
	    : c >= 0xf0  ? 4
	    : c >= 0xe0  ? 3
	    : c >= 0xc0  ? 2
			 : 1;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static size_t
blank_run(const char *p, size_t len)
{
	size_t i = 0;

	while (i < len && is_blank(p[i]))
		i++;
	return i;
}

/* The first octet that is too much for a line, or len. */
static size_t
overflow(const char *line, size_t len)
{
	size_t i = 0;

	while (i < len && i + promise((unsigned char)line[i]) <= 998)
		i++;
	return i;
}

/* Behind the colon of a field; 0: the line begins none. */
static size_t
field_value(const char *line, size_t len)
{
	size_t name = 0, i;

	while (name < len && line[name] > ' ' && line[name] < 0x7f &&
	    line[name] != ':')
		name++;
	i = name + blank_run(line + name, len - name);
	return name > 0 && i < len && i < 998 && line[i] == ':' ? i + 1 : 0;
}

/* The blank that a line of the header is cut before; 0: there is none. */
static size_t
blank_cut(const char *line, size_t too_much)
{
	size_t any = 0, word = 0, i;

	i = is_blank(line[0]) ? blank_run(line, too_much) + 1
			      : field_value(line, too_much);
	for (; i <= too_much; i++) {
		if (!is_blank(line[i]) || line[i - 1] == '\\')
			continue;
		any = i;
		if (i < too_much && !is_blank(line[i + 1]))
			word = i;
	}
	return word > 0 ? word : any;
}

static void
put(struct buf *out, const char *data, size_t len, bool begun)
{
	if (begun)
		MUST(buf_add_char(out, '\n') == 0);
	MUST(buf_add(out, data, len) == 0);
}

/* The line may be changed. */
static void
fold(char *line, size_t len, bool header, struct buf *out)
{
	bool begun = false;
	size_t more, cut, run, keep;

	while ((more = overflow(line, len)) < len) {
		run = header ? blank_run(line, len - 1) : 0;
		if (run >= more) {
			keep = 998 - promise((unsigned char)line[run]);
			memmove(line + keep, line + run, len - run);
			len -= run - keep;
			continue;
		}
		cut = header ? blank_cut(line, more) : 0;
		put(out, line, cut > 0 ? cut : more, begun);
		begun = true;
		line += cut > 0 ? cut : more - 1;
		len -= cut > 0 ? cut : more - 1;
		if (cut == 0)
			*line = ' ';
	}
	if (!header || !begun || blank_run(line, len) < len)
		put(out, line, len, begun);
}

/* docs/DELIVERY.md, "Content", word for word. */
static void
normal_form(const char *data, size_t len, struct buf *out)
{
	struct buf plain = { 0 };
	bool header = true, first = true;
	size_t i, n;

	for (i = 0; i < len; i++)
		if (data[i] != '\r')
			MUST(buf_add_char(&plain, data[i]) == 0);
		else if (i + 1 == len || data[i + 1] != '\n')
			MUST(buf_add_char(&plain, ' ') == 0);
	for (i = 0; i < plain.len; i += n + 1) {
		char *line = plain.data + i;
		char *lf = memchr(line, '\n', plain.len - i);

		n = lf == NULL ? plain.len - i : (size_t)(lf - line);
		header = header && n > 0 &&
		    ((is_blank(*line) && !first) || field_value(line, n) > 0);
		fold(line, n, header, out);
		MUST(buf_add_char(out, '\n') == 0);
		first = false;
	}
	buf_done(&plain);
}

/* A chunk for BDAT is the same without what marks its end in DATA: a dot less
 * at the start of lines, and no last one. */
static void
check_chunk(const struct buf *in, size_t piece, const struct buf *want)
{
	struct buf chunk = { 0 };
	size_t i, k = 0;

	encode(in, piece, true, &chunk);
	for (i = 0; i < chunk.len; i++) {
		if (chunk.data[i] == '\r') {
			MUST(i + 1 < chunk.len && chunk.data[i + 1] == '\n');
			continue;
		}
		MUST(chunk.data[i] != '\n' || chunk.data[i - 1] == '\r');
		MUST(k < want->len && chunk.data[i] == want->data[k]);
		k++;
	}
	MUST(k == want->len);
	buf_done(&chunk);
}

/* A byte of the input may stand for many, so that long lines are met. */
static void
stretch(struct fuzz_in *in, struct buf *out)
{
	while (in->left > 0 && out->len < STRETCHED_MAX) {
		char c = (char)fuzz_number(in, 1), run[1200];
		size_t n = c == 2 || c == 3 ? 900 + fuzz_number(in, 1) : 1;

		memset(run, c == 2 ? 'x' : c == 3 ? ' ' : c, n);
		MUST(buf_add(out, run, n) == 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	size_t piece = 1 + fuzz_number(&in, 2);
	struct buf content = { 0 }, whole = { 0 }, cut = { 0 };
	struct buf got = { 0 }, want = { 0 };

	stretch(&in, &content);
	encode(&content, SIZE_MAX, false, &whole);
	receive(&whole, &got);
	normal_form(buf_str(&content), content.len, &want);
	MUST(got.len == want.len);
	MUST(memcmp(buf_str(&got), buf_str(&want), got.len) == 0);
	encode(&content, piece, false, &cut);
	MUST(cut.len == whole.len);
	MUST(memcmp(cut.data, whole.data, cut.len) == 0);
	check_chunk(&content, piece, &want);
	buf_done(&content);
	buf_done(&whole);
	buf_done(&cut);
	buf_done(&got);
	buf_done(&want);
	return 0;
}
