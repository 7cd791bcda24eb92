/* A command that reads queues, in its own process: the queues, what is printed
 * behind the messages, the exit code. */
#include "qctl/show/qread.h"
#include "qctl/show/shares.h"
#include "qctl/routing/rules.h"
#include "qctl/act/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "qctl/check/check.h"
#include "qctl/read/look.h"

/* The index of an id that was found. */
static void
take_id(struct task *t, const void *data)
{
	size_t i;

	memcpy(&i, data, sizeof(i));
	if (i < t->options.select.nids)
		t->options.select.ids[i].found = true;
}

/* A row is an id that was found, a domain, or a message to act on. */
static void
take_row(uint32_t queue UNUSED, const void *data, size_t len, void *arg)
{
	struct task *t = arg;
	struct target target;
	int r = 0;

	if (t->options.verb == VERB_SHAPE)
		r = shape_take(t->view.rows, data, len);
	else if (t->options.verb == VERB_READ)
		qread_take(data, len);
	else if (len == sizeof(size_t))
		take_id(t, data);
	else if (len == sizeof(target)) {
		memcpy(&target, data, sizeof(target));
		r = targets_add(
		    &t->targets, &t->ntargets, &t->targets_cap, &target);
	}
	if (r < 0)
		t->error = r;
}

/* Is there an id for this queue in this round? Without ids every queue is read.
 */
static bool
queue_wanted(const struct task *t, uint32_t queue)
{
	const struct select *s = &t->options.select;
	size_t i;

	if (!select_queue(s, queue))
		return false;
	for (i = 0; i < s->nids; i++)
		if (!s->ids[i].found &&
		    (s->ids[i].id.queue == queue) != t->elsewhere)
			return true;
	return s->nids == 0;
}

static int
read_round(struct task *t, uint32_t *queues, size_t count,
    struct worker_totals *totals)
{
	const bool head = t->options.verb == VERB_LIST && !t->options.json;
	const struct worker_job job = {
		.program = t->options.program,
		.queues = queues,
		.nqueues = count,
		.gentle = task_is_bulk(t),
		.silence_limit = t->silence_limit,
		.silent =
		    "its disk does not answer; what it holds is not shown",
		.run = task_read,
		.head = head && totals->messages == 0 ? list_head : NULL,
		.take_row = take_row,
		.arg = t,
	};
	struct worker_totals more;
	int r = worker_run_all(&job, &more);

	totals->messages += more.messages;
	totals->bytes += more.bytes;
	totals->silent += more.silent;
	totals->troubled += more.troubled;
	totals->denied += more.denied;
	return r;
}

/* First the queues that ids name, then for those not found the others: a
 * message may have gone to another queue. */
static int
read_queues(struct task *t, const uint32_t *all, size_t count,
    struct worker_totals *totals)
{
	uint32_t wanted[QUEUE_NUM_MAX];
	int round, r = 0;

	for (round = 0; r == 0 && round < 2; round++) {
		size_t i, n = 0;

		t->elsewhere = round == 1;
		if (round == 1 && t->options.select.nids == 0)
			break;
		for (i = 0; i < count; i++)
			if (queue_wanted(t, all[i]))
				wanted[n++] = all[i];
		r = read_round(t, wanted, n, totals);
	}
	return r;
}

static bool
is_for_people(const struct options *o)
{
	return (o->verb == VERB_LIST && !o->json) || o->verb == VERB_SHOW ||
	    o->verb == VERB_EXPLAIN;
}

static int
print_total(const struct task *t, const struct worker_totals *totals)
{
	const struct options *o = &t->options;
	struct buf text = { 0 };
	int code, r = 0;

	if (o->verb == VERB_SHAPE)
		r = shape_print(t->view.rows, o, &text);
	else if (o->verb == VERB_READ)
		r = qread_print(o, &text);
	else if (o->verb == VERB_LIST && !o->json && totals->messages > 0)
		r = list_total(totals, &text);
	else if (is_for_people(o) && o->select.nids == 0 &&
	    totals->messages + totals->silent + totals->troubled == 0)
		r = buf_add_str(&text,
		    o->select.keys != 0 ? "No message fits\n"
					: "Mail queue is empty\n");
	code = task_put(o, r, &text);
	buf_done(&text);
	return code;
}

static int
tell_missing(const struct options *o)
{
	char id[QUEUE_ID_SIZE];
	size_t i;
	int code = EX_OK;

	for (i = 0; i < o->select.nids; i++)
		if (!o->select.ids[i].found) {
			queue_id_format(&o->select.ids[i].id, id);
			fprintf(stderr, "%s: %s: no such message\n", o->program,
			    id);
			code = EX_DATAERR;
		}
	return code;
}

static int
finish(const struct task *t, const struct worker_totals *totals)
{
	const struct options *o = &t->options;
	int code;

	if (t->error < 0)
		return task_complain(o, EX_OSERR, strerror(-t->error));
	if (totals->denied > 0)
		return task_complain(o, EX_NOPERM, LOOK_DENIED);
	code = print_total(t, totals);
	if (code == EX_OK)
		code = tell_missing(o);
	return code == EX_OK && totals->silent + totals->troubled > 0
	    ? EX_TEMPFAIL
	    : code;
}

/* A command that acts: messages that are not there, and queues that could not
 * be read, are told however the others fared. */
static int
finish_act(struct task *t, const uint32_t *queues, size_t count,
    const struct worker_totals *totals)
{
	const int missing = tell_missing(&t->options);
	const int code = task_act_all(t, queues, count);

	if (code != EX_OK || missing != EX_OK)
		return code != EX_OK ? code : missing;
	return totals->silent + totals->troubled > 0 ? EX_TEMPFAIL : EX_OK;
}

/* Does queue= name queues, and none that is there? */
static bool
names_no_queue(const struct task *t, const uint32_t *queues, size_t count)
{
	const struct select *s = &t->options.select;
	size_t i;

	for (i = 0; i < count; i++)
		if (select_queue(s, queues[i]))
			return false;
	return (s->keys & 1u << SELECT_QUEUE) != 0;
}

static int
check_all(struct task *t)
{
	const int code = task_check_all(t, t->queues, (size_t)t->nqueues);

	return code == EX_OK && t->base_silent ? EX_TEMPFAIL : code;
}

int
task_read_all(struct task *t)
{
	const uint32_t *queues = t->queues;
	const int count = t->nqueues;
	struct worker_totals totals = { 0 };
	bool troubled = false;
	int code, r = 0;

	if (count < 0) {
		fprintf(stderr, "%s: %s: %s\n", t->options.program, t->base,
		    strerror(-count));
		return count == -EACCES ? EX_NOPERM : EX_UNAVAILABLE;
	}
	if (t->base_silent && count == 0)
		return EX_TEMPFAIL;
	if (names_no_queue(t, queues, (size_t)count))
		return task_complain(&t->options, EX_DATAERR,
		    "no queue that queue= names is there");
	if (t->options.verb == VERB_CHECK)
		return check_all(t);
	if (t->options.verb == VERB_SHARES)
		return shares_show(t);
	if (t->options.verb == VERB_SHAPE &&
	    (t->view.rows = shape_new()) == NULL)
		return task_complain(&t->options, EX_OSERR, strerror(ENOMEM));
	if (t->options.rule && !t->options.dry_run) {
		code = rules_change(t, queues, (size_t)count, &troubled);
		if (code != EX_OK)
			return code;
		t->options.yes = true; /* mail to come cannot be counted */
	}
	if (!(t->options.verb == VERB_ACT && task_is_flush(t)))
		r = read_queues(t, queues, (size_t)count, &totals);
	if (r == -EIO)
		return task_complain(
		    &t->options, EX_IOERR, "standard output cannot be written");
	if (r < 0)
		return task_complain(&t->options, EX_OSERR, strerror(-r));
	totals.troubled += troubled;
	totals.silent += t->base_silent;
	if (t->options.verb == VERB_ACT && t->error == 0 && totals.denied == 0)
		return finish_act(t, queues, (size_t)count, &totals);
	return finish(t, &totals);
}
