/* A command that acts, in its own process: the count, the question, the queues,
 * the result. */
#include "qctl/act/spread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/num.h"
#include "base/text.h"

#define ROUNDS 3 /* over messages that are not where they were seen */

/* One answer on a terminal; anything but y is no. */
static bool
ask(const struct task *t, const char *what)
{
	char line[16] = "";

	fprintf(stderr, "%s %s? [y/N] ", act_name(t->options.act), what);
	return fgets(line, sizeof(line), stdin) != NULL &&
	    (line[0] == 'y' || line[0] == 'Y');
}

/* Messages that were named are meant; many that a filter met may not be. */
static bool
is_to_be_asked(const struct task *t)
{
	const struct options *o = &t->options;

	return !o->yes && o->select.nids == 0 && isatty(STDIN_FILENO) == 1 &&
	    isatty(STDERR_FILENO) == 1;
}

/* Runs the job for the queues with targets, or all. The worker waits as long
 * for queue-send. */
static int
run_job(struct task *t, struct worker_job *job, struct worker_totals *totals)
{
	bool wanted[QUEUE_NUM_MAX + 1] = { false };
	uint32_t chosen[QUEUE_NUM_MAX];
	size_t i, n = 0;

	for (i = 0; i < t->ntargets; i++)
		wanted[t->targets[i].queue] = true;
	for (i = 0; i < job->nqueues; i++)
		if (task_is_flush(t) || wanted[t->queues[i]])
			chosen[n++] = t->queues[i];
	job->queues = chosen;
	job->nqueues = n;
	job->silence_limit *= 2;
	return worker_run_all(job, totals);
}

/* "2 messages were not found", where there are any. */
static void
tell_messages(const struct task *t, uint64_t count, const char *one,
    const char *many, const char *what)
{
	if (count > 0)
		task_tell(&t->options, "%" PRIu64 " message%s %s %s", count,
		    text_plural(count), count == 1 ? one : many, what);
}

/* As postsuper tells it: "postsuper: Deleted: 2 messages". */
static void
tell(const struct task *t)
{
	const struct options *o = &t->options;
	const struct tally *tally = &t->tally;
	const char *past = act_past(o->act);
	const bool spread = o->act == ACT_SPREAD;

	if (o->quiet)
		return;
	task_tell(o, "%c%s: %" PRIu64 " message%s", past[0] - 'a' + 'A',
	    past + 1, tally->done, text_plural(tally->done));
	/* A message on hold that is given up has its mark, and no attempt yet.
	 */
	if (act_gives_up(o->act)) {
		tell_messages(t, tally->done - tally->marked, "is", "are",
		    "due at once for a last attempt: recipients that it does "
		    "not reach are returned");
		tell_messages(t, tally->marked, "is", "are",
		    "on hold: marked for a last attempt, which comes with "
		    "`qctl release', or with `qctl expire --force'");
	}
	tell_messages(t, tally->damaged, "is", "are",
	    "damaged: in corrupt/ again, not on hold");
	if (tally->later > 0)
		task_tell(o,
		    "%" PRIu64 " message%s being delivered: %s when that "
		    "attempt ends, whatever happens to this command or to "
		    "qscheduler",
		    tally->later, tally->later == 1 ? " is" : "s are", past);
	/* Messages that may be where nothing could be read, or are not there
	 * any more. */
	tell_messages(t, t->unfound, "was", "were",
	    "not found; what cannot be read was not searched: run the command "
	    "again");
	tell_messages(t, tally->gone, spread ? "does" : "was",
	    spread ? "do" : "were",
	    spread ? "not wait any more" : "delivered or removed meanwhile");
	if (tally->unknown > 0)
		task_tell(o,
		    "%" PRIu64 " message%s without an answer, and may still be "
		    "%s: run the command again",
		    tally->unknown, tally->unknown == 1 ? " is" : "s are",
		    past);
}

/* With --rate: when the last one is due. Messages that are retried are due by
 * themselves before any later time; of those that are released a start would
 * take such a time for that of another clock. */
static int
tell_pace(const struct task *t)
{
	const usec_t span = pace_span(&t->options, t->ntargets);
	const bool release =
	    t->options.act == ACT_RELEASE || t->options.act == ACT_RELEASE_ALL;
	struct buf text = { 0 };

	if (t->options.rate_count == 0 || t->ntargets == 0)
		return 0;
	num_add_span(&text, span);
	task_tell(&t->options, "%zu message%s at this rate: the last in %s",
	    t->ntargets, text_plural(t->ntargets), buf_str(&text));
	buf_done(&text);
	if (!release || span <= t->backoff_max)
		return 0;
	task_tell(&t->options,
	    "that is longer than maximal_backoff_time: release fewer of "
	    "them, or faster; nothing is done");
	return -ERANGE;
}

static int
tell_denied(const struct task *t, const struct worker_totals *totals)
{
	if (totals->denied == 0)
		return EX_OK;
	task_tell(&t->options,
	    "no permission to act on messages of %u queue%s; this is "
	    "for root%s",
	    totals->denied, text_plural(totals->denied),
	    t->options.failed ? ""
			      : " and members of operator_group, and while "
				"the instance is stopped for root");
	return EX_NOPERM;
}

/* One time over all targets. */
static int
act_once(struct task *t, struct worker_totals *totals)
{
	struct worker_job job = task_job(t, task_act,
	    "it was asked, and has not answered: the order may still be "
	    "carried out when its disk answers");

	job.gentle = task_is_bulk(t);
	job.take_row = seek_take_row;
	return run_job(t, &job, totals);
}

static void
add_totals(struct worker_totals *all, const struct worker_totals *more)
{
	all->silent += more->silent;
	all->troubled += more->troubled;
	all->denied += more->denied;
}

/* Messages that were gone, and were found, are acted on where they are. In the
 * end such messages are told: they may have been missed. */
static int
act_on_all(struct task *t, struct worker_totals *all)
{
	struct worker_totals totals;
	unsigned round;
	int r = 0;

	for (round = 0; r == 0 && round < ROUNDS; round++) {
		if (round > 0 && t->ntargets == 0)
			break;
		r = act_once(t, &totals);
		add_totals(all, &totals);
		totals = (struct worker_totals){ 0 };
		if (r == 0)
			r = seek_targets(t, &totals);
		add_totals(all, &totals);
	}
	if (r == 0 && t->ntargets > 0) {
		task_tell(&t->options,
		    "%zu message%s went on while this command looked for "
		    "them: run the command again",
		    t->ntargets, text_plural(t->ntargets));
		all->troubled++;
	}
	/* A row that was lost is a message that may have been missed. */
	return r < 0 ? r : t->error;
}

static int
act(struct task *t)
{
	struct worker_totals totals = { 0 };
	int r = act_on_all(t, &totals);

	if (r < 0)
		task_complain(&t->options, EX_OSERR, strerror(-r));
	tell(t);
	if (totals.denied > 0)
		return tell_denied(t, &totals);
	return r < 0                              ? EX_OSERR
	    : totals.silent + totals.troubled > 0 ? EX_TEMPFAIL
						  : EX_OK;
}

static int
tell_would(const struct task *t, const char *what)
{
	if (printf("would %s %s\n", act_name(t->options.act), what) >= 0 &&
	    fflush(stdout) == 0)
		return EX_OK;
	return task_complain(
	    &t->options, EX_IOERR, "standard output cannot be written");
}

/* Where messages would go is told after the right to let them go. A queue that
 * does not answer is told by the act. */
static int
plan_spread(struct task *t)
{
	struct worker_totals totals = { 0 };
	struct worker_job job =
	    task_job(t, task_ask_right, "it does not answer");
	int r = t->options.dry_run ? 0 : run_job(t, &job, &totals);

	if (r < 0)
		return EX_OSERR;
	if (totals.denied > 0)
		return tell_denied(t, &totals);
	r = spread_targets(t);
	return r == 0 ? EX_OK : r == -ENOENT ? EX_UNAVAILABLE : EX_OSERR;
}

int
act_on_targets(struct task *t)
{
	char what[48] = "all deferred messages";
	bool go = !t->options.dry_run;
	int code = EX_OK;

	if (task_unite_targets(t) < 0)
		return EX_OSERR;
	if (t->options.act == ACT_SPREAD && (code = plan_spread(t)) != EX_OK)
		return code;
	if (tell_pace(t) < 0)
		return EX_DATAERR;
	if (!task_is_flush(t))
		snprintf(what, sizeof(what), "%zu message%s", t->ntargets,
		    text_plural(t->ntargets));
	if (t->options.dry_run)
		code = tell_would(t, what);
	else if (is_to_be_asked(t) && (t->ntargets > 0 || task_is_flush(t)))
		go = ask(t, what);
	return go ? act(t) : code;
}
