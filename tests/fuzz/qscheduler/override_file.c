/* QUEUE_BASE/by-hand: believed whole or not at all; what is believed writes to
 * a file that says the same. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "ipc/ask.h"
#include "qscheduler/queues/queues.h"

/* The file as override_file_write() makes it, without its fsyncs; of version 2,
 * whatever was read, as at a start. */
static void
print_row(const struct override_row *row, struct buf *out)
{
	const long long left =
	    row->left > ASK_SECONDS_MAX ? ASK_SECONDS_MAX : row->left;

	if (row->kind == OVERRIDE_DISABLED)
		MUST(buf_printf(out, "disabled %u %lld %s\n", row->queue, left,
			 row->reason) == 0);
	else if (row->kind == OVERRIDE_LOAD)
		MUST(buf_printf(out, "load %u %lld %u\n", row->queue, left,
			 row->value) == 0);
	else
		MUST(buf_printf(out, "count %lld %u\n", left, row->value) == 0);
}

static void
print(const struct override_rows *rows, struct buf *out)
{
	uint32_t i;

	MUST(buf_printf(out, "by-hand 2\n# comment\nwritten %lld %lld %s\n",
		 (long long)rows->written.wall, (long long)rows->written.mono,
		 rows->written.boot) == 0);
	for (i = 0; i < rows->n; i++)
		print_row(&rows->rows[i], out);
	MUST(buf_add_str(out, "end\n") == 0);
}

static void
check_row(const struct override_rows *b, const struct override_row *r)
{
	const bool of_queue = r->kind != OVERRIDE_COUNT;

	MUST(r->kind < NOVERRIDES && r->left >= 0);
	MUST(of_queue ? r->queue >= 1 && r->queue <= 4095 : r->queue == 0);
	MUST(b->version == 2 ? r->left <= ASK_SECONDS_MAX
			     : r->kind == OVERRIDE_DISABLED);
	MUST(r->kind != OVERRIDE_LOAD || (r->value <= 100 && r->left > 0));
	MUST(of_queue || (r->value >= 1 && r->value <= PAGE_QUEUES_MAX));
	MUST(strnlen(r->reason, sizeof(r->reason)) < sizeof(r->reason));
	MUST(fuzz_is_shown(r->reason, strlen(r->reason)));
}

/* The time that is left never grows. */
static void
check_left(const struct override_rows *b, const struct override_row *r)
{
	const usec_t all = r->left * USEC_PER_SEC;
	struct override_moment now = b->written;
	usec_t left;

	MUST(override_time_left(&b->written, r->left, &now) == all);
	now.wall = 1763712345 * USEC_PER_SEC;
	left = override_time_left(&b->written, r->left, &now);
	MUST(left >= 0 && left <= all);
	now.boot[0] ^= 1;
	left = override_time_left(&b->written, r->left, &now);
	MUST(left >= 0 && left <= all);
}

static void
check_rows(const struct override_rows *b)
{
	uint32_t i, j;

	MUST(b->version == 1 || b->version == 2);
	MUST(b->n <= OVERRIDE_ROWS_MAX);
	for (i = 0; i < b->n; i++) {
		const struct override_row *r = &b->rows[i];

		check_row(b, r);
		check_left(b, r);
		for (j = 0; j < i; j++)
			MUST(b->rows[j].queue != r->queue ||
			    b->rows[j].kind != r->kind);
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
	MUST(again.n == b->n && again.version == 2);
	MUST(again.written.wall == b->written.wall &&
	    again.written.mono == b->written.mono &&
	    strcmp(again.written.boot, b->written.boot) == 0);
	for (i = 0; i < b->n; i++)
		MUST(again.rows[i].queue == b->rows[i].queue &&
		    again.rows[i].kind == b->rows[i].kind &&
		    again.rows[i].value == b->rows[i].value &&
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
