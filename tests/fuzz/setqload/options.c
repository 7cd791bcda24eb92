/* The command line of setqload: loads, times and numbers are in their ranges
 * or refused in few and clean words. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/conf.h"
#include "ipc/ask.h"
#include "setqload/setqload.h"

static void
check_ratio(const struct ratio *r)
{
	MUST(r->used <= r->limit && r->limit <= ASK_LIMIT_MAX);
}

static void
check_queues(const struct options *o)
{
	uint32_t i, j;

	MUST(o->nqueues <= CONF_QUEUES_MAX);
	for (i = 0; i < o->nqueues; i++) {
		MUST(o->queues[i] >= 1 && o->queues[i] <= CONF_QUEUE_NUM_MAX);
		for (j = 0; j < i; j++)
			MUST(o->queues[j] != o->queues[i]);
	}
}

static void
check_options(const struct options *o)
{
	MUST(o->command < NCOMMANDS);
	check_queues(o);
	MUST(o->seconds <= ASK_SECONDS_MAX && o->nwords <= 2);
	if (o->command == COMMAND_SET) {
		MUST(o->nqueues >= 1 && o->local.limit >= 1);
		check_ratio(&o->local);
		check_ratio(&o->remote);
	}
	if (o->command == COMMAND_COUNT)
		MUST(o->count >= 1 && o->count <= CONF_QUEUES_MAX);
	if (o->command == COMMAND_DISABLE || o->command == COMMAND_ENABLE)
		MUST(o->nqueues >= 1);
	MUST(ask_judge_reason(o->reason, strlen(o->reason)) == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct buf error = { 0 };
	struct fuzz_args args, given;
	struct options o;
	int r;

	fuzz_args(&in, &args);
	given = args;
	FUZZ_FILL(o);
	r = options_parse(args.argc, args.argv, &o, &error);
	if (r < 0) {
		MUST(r == -EINVAL && FUZZ_UNTOUCHED(o));
		MUST(error.len > 0 && error.len < 250);
		MUST(fuzz_is_shown(error.data, error.len));
	} else {
		check_options(&o);
	}
	fuzz_args_done(&given);
	buf_done(&error);
	return 0;
}
