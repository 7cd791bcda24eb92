/* The input of a message: pieces of any size, a lone dot or none, line ends as
 * they are or in LF, come out as one definition says; going back to a mark
 * gives the same again. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "queue-inject/message.h"

/* Where the message ends: before the first line that is a dot alone. */
static size_t
model_end(const char *s, size_t len, bool dot)
{
	size_t at = 0;

	while (dot && at < len) {
		const char *lf = memchr(s + at, '\n', len - at);
		size_t n = lf == NULL ? len - at : (size_t)(lf - s) - at;

		if (s[at] == '.' &&
		    (n == 1 || (n == 2 && s[at + 1] == '\r' && lf != NULL)))
			return at;
		at += n + (lf != NULL);
	}
	return len;
}

/* Without CRs in front of a LF. */
static size_t
model_lf(char *s, size_t len)
{
	size_t in, out = 0;

	for (in = 0; in < len; in++) {
		while (s[in] == '\n' && out > 0 && s[out - 1] == '\r')
			out--;
		s[out++] = s[in];
	}
	return out;
}

static void
read_some(struct source *s, size_t max, size_t piece, struct buf *out)
{
	const char *data;
	size_t len;

	while (max > 0 && source_peek(s, &data, &len) > 0) {
		MUST(len > 0);
		len = len < piece ? len : piece;
		len = len < max ? len : max;
		MUST(buf_add(out, data, len) == 0);
		source_take(s, len);
		max -= len;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	uint64_t form = fuzz_number(&in, 1);
	bool dot = form & 1, lf = form & 2;
	size_t piece = 1 + fuzz_number(&in, 1);
	size_t before = fuzz_number(&in, 2), want, len, whole;
	struct buf first = { 0 }, second = { 0 };
	char *s = fuzz_rest(&in, &len);
	struct source src;

	MUST(source_init(
		 &src, fuzz_file("input", s, len), dot, USEC_NEVER, -1) == 0);
	src.lf = lf;
	whole = len;
	if (lf)
		len = model_lf(s, len);
	want = model_end(s, len, dot);
	read_some(&src, before, piece, &first);
	source_mark(&src);
	read_some(&src, SIZE_MAX, piece, &first);
	MUST(first.len == want && memcmp(buf_str(&first), s, want) == 0);
	before = before < want ? before : want;
	if (source_rewind(&src)) {
		read_some(&src, SIZE_MAX, SIZE_MAX, &second);
		MUST(second.len == want - before);
		MUST(memcmp(buf_str(&second), s + before, second.len) == 0);
	} else {
		MUST(whole > SOURCE_BUFFER);
	}
	source_done(&src);
	buf_done(&first);
	buf_done(&second);
	free(s);
	return 0;
}
