/* A command that reads queues: the process of each queue, which shows its
 * messages, then the command's own, which prints what comes behind them and has
 * the exit code. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "qctl/act/act.h"
#include "qctl/qctl.h"
#include "qctl/read/look.h"
#include "qctl/routing/rules.h"
#include "qctl/show/explain.h"
#include "qctl/show/qread.h"

/* ---- the process of a queue ---- */

static const struct {
	int (*text)(
	    struct worker *w, const struct message *m, const struct view *v);
	int (*json)(
	    struct worker *w, const struct message *m, const struct view *v);
} shown[NVERBS] = {
	[VERB_LIST] = { list_text, list_json },
	[VERB_SHOW] = { show_text, show_text },
	[VERB_EXPLAIN] = { explain_text, explain_text },
	[VERB_SHAPE] = { shape_count, shape_count },
	[VERB_ACT] = { act_collect, act_collect },
	[VERB_READ] = { qread_text, qread_text },
};

#define MOVED_ON                                                             \
	"messages move faster than they are read, and some may be missing: " \
	"run the command again"

/* Of messages that a filter met: each is a question to queue-send. */
#define EXPLAINED_MAX 1000

struct reader {
	struct worker *w;
	struct task *task;
	uint32_t explained;
};

/* Has enough been explained? */
static bool
is_enough(struct reader *r)
{
	const struct options *o = &r->task->options;

	if (o->verb != VERB_EXPLAIN || o->select.nids > 0 ||
	    r->explained++ < EXPLAINED_MAX)
		return false;
	worker_note(r->w,
	    "more than %d messages fit: the others are not explained",
	    EXPLAINED_MAX);
	return true;
}

/* A message whose recipients cannot be read is shown as far as it can be. */
static int
show_message(struct message *m, void *arg)
{
	struct reader *r = arg;
	const struct options *o = &r->task->options;
	const bool json = o->json;
	int rc = select_fits(&o->select, m, r->task->view.now_wall);

	if (rc > 0 && is_enough(r))
		return 1;
	if (rc > 0) {
		rc = (json ? shown[o->verb].json : shown[o->verb].text)(
		    r->w, m, &r->task->view);
		worker_message(r->w,
		    m->damage[0] == '\0' ? m->file.content_len : m->file_size);
	}
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		worker_note(r->w, "%s/%s: %s", spool_dirs[m->dir].name, m->name,
		    rc == -EBADMSG ? queue_file_reason() : strerror(-rc));
	return 0;
}

static void
tell_trouble(const char *what, int error, void *arg)
{
	const struct reader *r = arg;

	worker_note(r->w, "%s: %s", what, strerror(-error));
}

static void
take_step(void *arg)
{
	worker_step(((const struct reader *)arg)->w);
}

/* Is this id to be looked for in this queue, in this round? */
static bool
look_here(const struct reader *r, const struct select_id *id)
{
	const bool named = id->id.queue == r->w->queue;

	return !id->found && named != r->task->elsewhere;
}

static int
show_ids(struct reader *r, const struct spool *sp)
{
	const struct select *s = &r->task->options.select;
	struct message m;
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < s->nids; i++) {
		if (!look_here(r, &s->ids[i]))
			continue;
		worker_step(r->w);
		rc = message_find(&m, sp, &s->ids[i].id);
		if (rc == 0) {
			worker_row(r->w, &i, sizeof(i));
			rc = show_message(&m, r);
		} else if (rc != -ENOENT)
			tell_trouble(spool_dirs[m.dir].name, rc, r);
		message_close(&m);
		if (rc != -ENOMEM)
			rc = 0;
	}
	return rc;
}

static int
show_all(struct reader *r, const struct spool *sp)
{
	const struct message_walk walk = {
		.states = select_states(&r->task->options.select),
		.complete = r->task->options.verb == VERB_ACT,
		.each = show_message,
		.trouble = tell_trouble,
		.step = take_step,
		.arg = r,
	};

	return message_walk(sp, &walk);
}

static int
read_queue(struct reader *r, const struct spool *sp)
{
	struct asker asker = { .sp = sp, .limit = r->task->silence_limit };
	int rc;

	r->task->view.asker = &asker;
	if (r->task->options.verb == VERB_SHAPE &&
	    (r->task->view.rows = shape_new()) == NULL)
		return -ENOMEM;
	rc = r->task->options.select.nids > 0 ? show_ids(r, sp)
					      : show_all(r, sp);
	if (r->task->view.rows != NULL)
		shape_send(r->task->view.rows, r->w);
	if (r->task->options.verb == VERB_READ)
		qread_send(r->w);
	shape_free(&r->task->view.rows);
	asker_close(&asker);
	r->task->view.asker = NULL;
	return rc;
}

static int
read_one(struct worker *w, void *arg)
{
	struct reader r = { .w = w, .task = arg };
	struct spool sp;
	int rc = message_queue_open(&sp, r.task->base, w->queue);

	if (rc == -EACCES) {
		worker_denied(w);
		return 0;
	}
	if (rc == 0)
		rc = read_queue(&r, &sp);
	if (rc < 0)
		worker_note(w, "%s",
		    rc == -EBADMSG      ? queue_file_reason()
			: rc == -EAGAIN ? MOVED_ON
					: spool_error(rc));
	spool_close(&sp);
	return 0;
}
/* ---- the process of the command ---- */

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
	int r = 0;

	if (t->options.verb == VERB_SHAPE)
		r = shape_take(t->view.rows, data, len);
	else if (t->options.verb == VERB_READ)
		qread_take(data, len);
	else if (len == sizeof(size_t))
		take_id(t, data);
	else
		r = targets_take(t, data, len);
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
read_round(struct task *t, struct worker_totals *totals)
{
	const bool head = t->options.verb == VERB_LIST && !t->options.json;
	struct worker_job job = task_job(t, read_one,
	    "its disk does not answer; what it holds is not shown");
	uint32_t wanted[QUEUE_NUM_MAX];
	struct worker_totals more;
	size_t i;
	int r;

	job.gentle = task_is_bulk(t);
	job.head = head && totals->messages == 0 ? list_head : NULL;
	job.take_row = take_row;
	job.queues = wanted;
	job.nqueues = 0;
	for (i = 0; i < (size_t)t->nqueues; i++)
		if (queue_wanted(t, t->queues[i]))
			wanted[job.nqueues++] = t->queues[i];
	r = worker_run_all(&job, &more);
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
read_queues(struct task *t, struct worker_totals *totals)
{
	int r;

	t->elsewhere = false;
	r = read_round(t, totals);
	t->elsewhere = true;
	return r < 0 || t->options.select.nids == 0 ? r : read_round(t, totals);
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
	int r = 0;

	if (o->verb == VERB_SHAPE)
		r = shape_print(t->view.rows, o, &text);
	else if (o->verb == VERB_READ)
		qread_print(o, &text);
	else if (o->verb == VERB_LIST && !o->json && totals->messages > 0)
		list_total(totals, &text);
	else if (is_for_people(o) && o->select.nids == 0 &&
	    totals->messages + totals->silent + totals->troubled == 0)
		buf_add_str(&text,
		    o->select.keys != 0 ? "No message fits\n"
					: "Mail queue is empty\n");
	return task_put(o, r, &text);
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
			task_tell(o, "%s: no such message", id);
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
finish_act(struct task *t, const struct worker_totals *totals)
{
	const int missing = tell_missing(&t->options);
	const int code = act_on_targets(t);

	if (code != EX_OK || missing != EX_OK)
		return code != EX_OK ? code : missing;
	return totals->silent + totals->troubled > 0 ? EX_TEMPFAIL : EX_OK;
}

int
task_read_all(struct task *t)
{
	struct worker_totals totals = { 0 };
	bool troubled = false;
	int code, r = 0;

	if (t->options.verb == VERB_SHAPE &&
	    (t->view.rows = shape_new()) == NULL)
		return task_complain(&t->options, EX_OSERR, strerror(ENOMEM));
	if (t->options.rule && !t->options.dry_run) {
		code = rules_change(t, &troubled);
		if (code != EX_OK)
			return code;
		t->options.yes = true; /* mail to come cannot be counted */
	}
	if (!(t->options.verb == VERB_ACT && task_is_flush(t)))
		r = read_queues(t, &totals);
	if (r == -EIO)
		return task_complain(
		    &t->options, EX_IOERR, "standard output cannot be written");
	if (r < 0)
		return task_complain(&t->options, EX_OSERR, strerror(-r));
	totals.troubled += troubled;
	totals.silent += t->base_silent;
	if (t->options.verb == VERB_ACT && t->error == 0 && totals.denied == 0)
		return finish_act(t, &totals);
	return finish(t, &totals);
}
