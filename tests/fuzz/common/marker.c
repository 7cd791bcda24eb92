/* The marker of a queue directory: believed only as it was written. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spool/marker.h"
#include "spool/spool.h"

#define PREFIX     "qscheduler queue 1 split "
#define PREFIX_LEN (sizeof(PREFIX) - 1)

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t split = 0xa5a5;
	char number[16];
	size_t i;
	int r, n;

	fuzz_file(MARKER_NAME, data, size);
	r = marker_read(fuzz_dir(), &split);
	if (r < 0) {
		MUST((r == -EBADMSG || r == -EMEDIUMTYPE) && split == 0xa5a5);
		return 0;
	}
	MUST(split >= 1 && split <= SPOOL_SPLIT_MAX);
	/* The text that says this, but for leading zeros of the number. */
	n = snprintf(number, sizeof(number), "%u\n", split);
	MUST(size >= PREFIX_LEN + (size_t)n && size < 64);
	MUST(memcmp(data, PREFIX, PREFIX_LEN) == 0);
	MUST(memcmp(data + size - n, number, (size_t)n) == 0);
	for (i = PREFIX_LEN; i < size - (size_t)n; i++)
		MUST(data[i] == '0');
	return 0;
}
