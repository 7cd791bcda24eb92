/* QUEUE_BASE/queues, the list of queues ever made: a number a line. On failure
 * the list is as it was. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qscheduler/queues/base.h"

static char path[] = "base";

/* The numbers by sscanf(), of a text that is known to be right. */
static void
model(const char *text, bool listed[QUEUE_NUM_MAX + 1])
{
	unsigned n;
	int used;

	memset(listed, 0, QUEUE_NUM_MAX + 1);
	while (*text != '\0') {
		used = 0;
		if (sscanf(text, " %u%n", &n, &used) == 1 && used > 0 &&
		    n <= QUEUE_NUM_MAX)
			listed[n] = true;
		text += used;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool want[QUEUE_NUM_MAX + 1];
	static struct base b;
	struct fuzz_in in = { data, size };
	struct buf error = { 0 };
	char *text = fuzz_string(&in);
	int r;

	fuzz_file("queues", data, size);
	b.fd = fuzz_dir();
	b.path = path;
	memset(b.listed, 0, sizeof(b.listed));
	b.listed[4095] = b.listed[1] = true;
	r = base_read_list(&b, &error);
	if (r < 0) {
		MUST((r == -EBADMSG || r == -EFBIG) && error.len > 0);
		memset(want, 0, sizeof(want));
		want[4095] = want[1] = true;
	} else {
		MUST(strlen(text) == size && error.len == 0);
		model(text, want);
		MUST(!b.listed[0]);
	}
	MUST(memcmp(b.listed, want, sizeof(want)) == 0);
	free(text);
	buf_done(&error);
	return 0;
}
