/* QUEUE_BASE/by-hand: believed whole or not at all; what is believed writes to
 * a file that says the same. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "ipc/ask.h"
#include "qscheduler/queues/queues.h"

/* The file as override_file_write() makes it, without its fsyncs. */
static void
print(const struct override_rows *rows, struct buf *out)
{
	uint32_t i;

	MUST(buf_add_str(out, "# comment\n") == 0);
	for (i = 0; i < rows->n; i++)
		MUST(buf_printf(out, "%u %lld %s\n", rows->rows[i].queue,
			 (long long)rows->rows[i].until_wall,
			 rows->rows[i].reason) == 0);
	MUST(buf_add_str(out, "end\n") == 0);
}

static void
check_rows(const struct override_rows *b)
{
	uint32_t i, j;

	MUST(b->n <= PAGE_QUEUES_MAX);
	for (i = 0; i < b->n; i++) {
		const struct override_row *r = &b->rows[i];

		MUST(r->queue >= 1 && r->queue <= 4095 && r->until_wall >= 0);
		MUST(strnlen(r->reason, sizeof(r->reason)) < sizeof(r->reason));
		MUST(fuzz_is_shown(r->reason, strlen(r->reason)));
		for (j = 0; j < i; j++)
			MUST(b->rows[j].queue != r->queue);
	}
}

static void
check_again(const struct override_rows *b)
{
	static struct override_rows again;
	struct buf text = { 0 }, error = { 0 };
	uint32_t i;

	print(b, &text);
	fuzz_file(OVERRIDE_NAME, text.data, text.len);
	MUST(override_file_read(fuzz_dir(), "base", &again, &error) == 0);
	MUST(again.n == b->n);
	for (i = 0; i < b->n; i++)
		MUST(again.rows[i].queue == b->rows[i].queue &&
		    again.rows[i].until_wall == b->rows[i].until_wall &&
		    strcmp(again.rows[i].reason, b->rows[i].reason) == 0);
	buf_done(&text);
	buf_done(&error);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct override_rows rows;
	struct buf error = { 0 };
	int r;

	fuzz_file(OVERRIDE_NAME, data, size);
	rows.n = 77;
	r = override_file_read(fuzz_dir(), "base", &rows, &error);
	if (r < 0) {
		MUST((r == -EBADMSG || r == -EFBIG) && rows.n == 0);
		MUST(strncmp(buf_str(&error), "base/" OVERRIDE_NAME, 12) == 0);
	} else {
		MUST(error.len == 0);
		check_rows(&rows);
		check_again(&rows);
	}
	buf_done(&error);
	return 0;
}
