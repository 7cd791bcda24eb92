/* qctl check, in the command's own process. */
#include "qctl/check/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/text.h"

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
task_check_all(struct task *t)
{
	struct worker_job job = task_job(
	    t, task_check, "its disk does not answer; it is not checked");
	uint32_t chosen[QUEUE_NUM_MAX];
	struct worker_totals totals;
	int i, code, r;

	job.gentle = true;
	job.take_row = task_take_tally;
	job.queues = chosen;
	job.nqueues = 0;
	for (i = 0; i < t->nqueues; i++)
		if (select_queue(&t->options.select, t->queues[i]))
			chosen[job.nqueues++] = t->queues[i];
	r = worker_run_all(&job, &totals);
	if (r == 0)
		r = tell(t, &totals);
	code = r == 0   ? code_of(t, &totals)
	    : r == -EIO ? task_complain(&t->options, EX_IOERR,
			      "standard output cannot be written")
			: task_complain(&t->options, EX_OSERR, strerror(-r));
	if (totals.denied > 0)
		task_complain(&t->options, EX_NOPERM,
		    "no permission; a check is for root and members of "
		    "qmail_group, a repair for root");
	return code == EX_OK && t->base_silent ? EX_TEMPFAIL : code;
}
