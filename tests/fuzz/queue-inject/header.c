/* The header of a message: pieces of any size give the same, every byte is
 * kept, and the fields are the header cut up. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "queue-inject/message.h"

static size_t
feed(struct header *h, const char *data, size_t len, size_t piece)
{
	size_t at = 0, used = 0;

	while (at < len && !h->complete) {
		size_t n = len - at < piece ? len - at : piece;
		char *copy = malloc(n);

		MUST(copy != NULL);
		memcpy(copy, data + at, n);
		MUST(header_feed(h, copy, n, &used) == 0);
		MUST(used == n || (used < n && h->complete));
		at += used;
		free(copy);
	}
	header_finish(h);
	MUST(h->complete);
	return at;
}

static void
check_fields(const struct header *h)
{
	size_t pos = 0, at = h->begin, i;
	struct header_field f;

	while (header_next(h, &pos, &f)) {
		MUST(f.raw == h->data.data + at && f.raw_len > 0);
		MUST(f.name == f.raw && f.name_len > 0);
		MUST(f.value + f.value_len == f.raw + f.raw_len);
		for (i = 0; i < f.name_len; i++)
			MUST(f.name[i] > 0x20 && f.name[i] < 0x7f &&
			    f.name[i] != ':');
		MUST(*f.raw != ' ' && *f.raw != '\t');
		at += f.raw_len;
		MUST(at == h->end || f.raw[f.raw_len - 1] == '\n');
		MUST(pos == at);
	}
	MUST(at == h->end);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct header whole = { 0 }, cut = { 0 };
	size_t piece = 1 + fuzz_number(&in, 1), len, used;
	char *s = fuzz_rest(&in, &len);

	used = feed(&whole, s, len, len == 0 ? 1 : len);
	MUST(whole.data.len == used);
	MUST(used == 0 || memcmp(whole.data.data, s, used) == 0);
	MUST(whole.begin <= whole.end && whole.end <= whole.body &&
	    whole.body <= used);
	MUST(
	    whole.separated ? whole.body > whole.end : whole.body == whole.end);
	check_fields(&whole);
	MUST(feed(&cut, s, len, piece) == used);
	MUST(cut.begin == whole.begin && cut.end == whole.end &&
	    cut.body == whole.body && cut.separated == whole.separated);
	header_done(&whole);
	header_done(&cut);
	free(s);
	return 0;
}
