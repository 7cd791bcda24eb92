/* The envelope of qmail-queue, F…\0T…\0…\0: pieces of any size give the same,
 * and what was taken is what a plain reader finds. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "queue-inject/message.h"
#include "smtp/verp.h"

#define LIMIT 5

static bool
fits(const char *s, bool may_be_empty)
{
	size_t len = strlen(s);

	return len == 0 ? may_be_empty : address_check(s, len) == 0;
}

/* Is all of it one envelope? data is followed by a NUL of ours. */
static bool
model(const char *data, size_t len, struct buf *ret_rcpts)
{
	const char *p = data, *end = data + len;
	uint32_t n = 0;

	if (len == 0 || *p != 'F' || p + 1 + strlen(p + 1) >= end ||
	    !fits(p + 1, true) ||
	    verp_kind(p + 1, strlen(p + 1)) == VERP_MALFORMED)
		return false;
	p += strlen(p) + 1;
	for (; p < end && *p == 'T'; p += strlen(p) + 1) {
		if (p + strlen(p) >= end || !fits(p + 1, false))
			return false;
		MUST(buf_add(ret_rcpts, p + 1, strlen(p + 1) + 1) == 0);
		n++;
	}
	return p + 1 == end && *p == '\0' && n > 0 && n <= LIMIT;
}

static int
feed(struct envelope *e, const char *data, size_t len, size_t piece)
{
	struct envelope_reader rd = { 0 };
	struct refusal why = { 0 };
	size_t at;
	int r = 0, end;

	for (at = 0; at < len && r == 0; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		char *copy = malloc(n);

		MUST(copy != NULL);
		memcpy(copy, data + at, n);
		r = envelope_feed(&rd, e, copy, n, &why);
		free(copy);
	}
	MUST(r == 0 || (r == -1 && why.kind != REFUSAL_NONE));
	end = envelope_finish(&rd, e, &why);
	return r < 0 ? r : end;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct envelope whole = { .rcpt_limit = LIMIT }, cut = whole;
	size_t piece = 1 + fuzz_number(&in, 1), len, pos = 0, n;
	struct buf text = { 0 }, want = { 0 };
	const char *rcpt, *at;
	char *s = fuzz_rest(&in, &len);
	bool right;
	int r;

	MUST(buf_add(&text, s, len) == 0);
	right = model(buf_str(&text), len, &want);
	r = feed(&whole, s, len, len == 0 ? 1 : len);
	MUST(r == (right ? 0 : -1));
	MUST(feed(&cut, s, len, piece) == r);
	MUST(cut.rcpt_count == whole.rcpt_count || r < 0);
	if (right) {
		MUST(whole.has_sender);
		MUST(strcmp(buf_str(&whole.sender), s + 1) == 0);
		at = want.data;
		while ((rcpt = envelope_next_rcpt(&whole, &pos, &n)) != NULL) {
			MUST(strcmp(rcpt, at) == 0 && strlen(rcpt) == n);
			at += n + 1;
		}
		MUST(at == want.data + want.len);
	}
	MUST(whole.rcpt_count <= LIMIT);
	envelope_done(&whole);
	envelope_done(&cut);
	buf_done(&text);
	buf_done(&want);
	free(s);
	return 0;
}
