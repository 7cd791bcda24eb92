/* qctl check, in the command's own process. */
#include "qctl/check/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/text.h"

void
task_take_tally(uint32_t queue UNUSED, const void *data, size_t len, void *arg)
{
	struct task *t = arg;
	struct tally tally;

	if (len != sizeof(tally))
		return;
	memcpy(&tally, data, sizeof(tally));
	t->tally.done += tally.done;
	t->tally.later += tally.later;
	t->tally.damaged += tally.damaged;
	t->tally.refused += tally.refused;
	t->tally.unknown += tally.unknown;
	t->tally.marked += tally.marked;
	t->tally.gone += tally.gone;
}

static int
tell(const struct task *t, const struct worker_totals *totals)
{
	const unsigned long long left = t->tally.refused,
				 mended = t->tally.done;
	int n = 0;

	if (mended > 0)
		n = printf("%llu flaw%s mended, %llu left\n", mended,
		    text_plural(mended), left);
	else if (left > 0)
		n = printf("%llu flaw%s\n", left, text_plural(left));
	else if (totals->silent + totals->troubled + totals->denied == 0)
		n = printf("no flaw\n");
	return n < 0 || fflush(stdout) != 0 ? -EIO : 0;
}

static int
code_of(const struct task *t, const struct worker_totals *totals)
{
	return totals->denied > 0                   ? EX_NOPERM
	    : totals->silent + totals->troubled > 0 ? EX_TEMPFAIL
	    : t->tally.refused > 0                  ? EX_DATAERR
						    : EX_OK;
}

int
task_check_all(struct task *t, const uint32_t *queues, size_t count)
{
	uint32_t chosen[QUEUE_NUM_MAX];
	struct worker_totals totals;
	struct worker_job job = {
		.program = t->options.program,
		.queues = chosen,
		.gentle = true,
		.silence_limit = t->silence_limit,
		.silent = "its disk does not answer; it is not checked",
		.run = task_check,
		.take_row = task_take_tally,
		.arg = t,
	};
	size_t i;
	int r;

	for (i = 0; i < count; i++)
		if (select_queue(&t->options.select, queues[i]))
			chosen[job.nqueues++] = queues[i];
	r = worker_run_all(&job, &totals);
	if (r == 0)
		r = tell(t, &totals);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", t->options.program,
		    r == -EIO ? "standard output cannot be written"
			      : strerror(-r));
	if (totals.denied > 0)
		fprintf(stderr,
		    "%s: no permission; a check is for root and members of "
		    "qmail_group, a repair for root\n",
		    t->options.program);
	return r == -EIO ? EX_IOERR : r < 0 ? EX_OSERR : code_of(t, &totals);
}
