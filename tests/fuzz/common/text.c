/* Foreign bytes made fit to be shown. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	size_t max = fuzz_number(&in, 1), len;
	struct buf out = { 0 }, again = { 0 };
	char *s = fuzz_rest(&in, &len);

	MUST(text_is_utf8(s, len) == fuzz_is_shown(s, len));
	MUST(text_clean(&out, s, len, max) == 0);
	MUST(out.len <= max && fuzz_is_shown(buf_str(&out), out.len));
	/* Clean text goes through as it is; nothing is lost without need. */
	MUST(text_clean(&again, buf_str(&out), out.len, SIZE_MAX) == 0);
	MUST(again.len == out.len &&
	    memcmp(buf_str(&again), buf_str(&out), out.len) == 0);
	buf_reset(&again);
	MUST(text_to_utf8(&again, s, len, SIZE_MAX) == 0);
	MUST(again.len == len && fuzz_is_shown(buf_str(&again), len));
	if (fuzz_is_shown(s, len))
		MUST(memcmp(buf_str(&again), s, len) == 0);
	MUST(out.len == len || out.len + 4 > max);
	free(s);
	in = (struct fuzz_in){ data, size };
	s = fuzz_string(&in);
	buf_reset(&out);
	MUST(text_quote(&out, s) == 0);
	MUST(out.len <= TEXT_QUOTE_MAX + 5);
	MUST(fuzz_is_shown(buf_str(&out), out.len));
	free(s);
	buf_done(&out);
	buf_done(&again);
	return 0;
}
