/* Content on its way: what a server takes off the wire is the normal form of
 * what went in, however the input is cut. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "smtp/smtp.h"

#define STRETCHED_MAX 3000

static void
feed(struct smtp_encode *e, const char *data, size_t len, struct buf *out)
{
	char *in = malloc(len + 1), *to = malloc(SMTP_ENCODE_MAX(len));
	size_t n;

	MUST(in != NULL && to != NULL);
	memcpy(in, data, len);
	n = smtp_encode_feed(e, in, len, to);
	MUST(n <= SMTP_ENCODE_MAX(len));
	MUST(buf_add(out, to, n) == 0);
	free(in);
	free(to);
}

static void
encode(const struct buf *in, size_t piece, bool chunk, struct buf *out)
{
	const char *data = buf_str(in);
	char end[SMTP_ENCODE_MAX(0)];
	struct smtp_encode e = { .chunk = chunk };
	size_t len = in->len;
	size_t at, n;

	for (at = 0; at < len; at += n) {
		n = len - at < piece ? len - at : piece;
		feed(&e, data + at, n, out);
	}
	n = smtp_encode_end(&e, end);
	MUST(n <= sizeof(end));
	MUST(buf_add(out, end, n) == 0);
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

/* docs/DELIVERY.md, "Content", word for word. */
static void
normal_form(const char *data, size_t len, struct buf *out)
{
	size_t i, column = 0;
	char *p;

	MUST(buf_reserve(out, 3 * len + 2) == 0);
	p = out->data;
	for (i = 0; i < len; i++) {
		char c = data[i];

		if (c == '\r' && i + 1 < len && data[i + 1] == '\n')
			continue;
		if (c == '\n') {
			*p++ = '\n';
			column = 0;
			continue;
		}
		if (c == '\r')
			c = ' ';
		if (column + promise((unsigned char)c) > 998) {
			*p++ = '\n';
			*p++ = ' ';
			column = 1;
		}
		*p++ = c;
		column++;
	}
	if (column > 0)
		*p++ = '\n';
	out->len = (size_t)(p - out->data);
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
		size_t n = c == 2 ? 900 + fuzz_number(in, 1) : 1;

		memset(run, c == 2 ? 'x' : c, n);
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
