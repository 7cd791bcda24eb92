/* QUEUE_BASE/by-hand: believed whole or not at all; what is believed writes to
 * a file that says the same. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "ipc/ask.h"
#include "qscheduler/queues/queues.h"

static void
check_row(const struct override_moment *written, const struct override *o,
    uint32_t number, enum override_kind kind)
{
	const usec_t until = o->until[kind], left = until - written->mono;

	if (until == 0)
		return;
	MUST((kind == OVERRIDE_COUNT) == (number == 0));
	MUST(until == USEC_NEVER
		? kind != OVERRIDE_LOAD
		: left > 0 && left <= ASK_SECONDS_MAX * USEC_PER_SEC);
	MUST(kind != OVERRIDE_LOAD || o->value[kind] <= 100);
	MUST(kind != OVERRIDE_COUNT ||
	    (o->value[kind] >= 1 && o->value[kind] <= PAGE_QUEUES_MAX));
	MUST(strnlen(o->reason, sizeof(o->reason)) < sizeof(o->reason));
	MUST(fuzz_is_shown(o->reason, strlen(o->reason)));
}

/* The time that is left never grows. */
static void
check_left(const struct override_moment *written, usec_t until)
{
	const usec_t left = until - written->mono;
	struct override_moment now = *written;

	if (until == 0 || until == USEC_NEVER)
		return;
	MUST(override_until(written, until, &now) == until);
	now.wall = 1763712345 * USEC_PER_SEC;
	MUST(override_until(written, until, &now) - now.mono <= left);
	now.boot[0] ^= 1;
	MUST(override_until(written, until, &now) - now.mono <= left);
}

static void
check_again(const struct override *table, const struct override_moment *written)
{
	static struct override again[QUEUE_NUM_MAX + 1];
	struct override_moment when;
	struct buf text = { 0 }, error = { 0 };

	MUST(override_print(table, written, &text) == 0);
	MUST((text.len > 0) == override_is_any(table, written->mono));
	if (text.len > 0) {
		fuzz_file(OVERRIDE_NAME, text.data, text.len);
		MUST(override_read(fuzz_dir(), "base", again, &when, &error) ==
		    1);
		MUST(memcmp(table, again, sizeof(again)) == 0);
		MUST(when.wall == written->wall && when.mono == written->mono &&
		    strcmp(when.boot, written->boot) == 0);
	}
	buf_done(&text);
	buf_done(&error);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct override table[QUEUE_NUM_MAX + 1];
	struct override_moment written;
	struct buf error = { 0 };
	uint32_t n;
	enum override_kind kind;
	int r;

	fuzz_file(OVERRIDE_NAME, data, size);
	table[7].until[OVERRIDE_LOAD] = USEC_NEVER;
	r = override_read(fuzz_dir(), "base", table, &written, &error);
	if (r < 0) {
		MUST(r == -EBADMSG || r == -EFBIG);
		MUST(!override_is_any(table, 0));
		MUST(strncmp(buf_str(&error), "base/" OVERRIDE_NAME, 12) == 0);
	} else {
		MUST(r == 1 && error.len == 0);
		for (n = 0; n <= QUEUE_NUM_MAX; n++)
			for (kind = 0; kind < NOVERRIDES; kind++) {
				check_row(&written, &table[n], n, kind);
				check_left(&written, table[n].until[kind]);
			}
		check_again(table, &written);
	}
	buf_done(&error);
	return 0;
}
