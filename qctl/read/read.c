/* The process that reads one queue. */
#include "qctl/show/explain.h"
#include "qctl/show/qread.h"

#include <errno.h>
#include <string.h>

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

/* The command that comes first, or instead. */
static const char *const next_commands[SPOOL_NDIRS] = {
	[SPOOL_MAILDROP] = "it is picked up first, by its queue",
	[SPOOL_HOLD] = "`qctl release' makes it due",
	[SPOOL_DELETED] = "`qctl undelete' puts it on hold",
	[SPOOL_CORRUPT] = "`qctl explain' says what is wrong with it, and what "
			  "can be done",
};

static const char *
next_command(enum spool_act act, enum spool_dir dir)
{
	if (act == ACT_HOLD && dir == SPOOL_HOLD)
		return "it is on hold already; `qctl hold --reason' says why";
	if (next_commands[dir] != NULL)
		return next_commands[dir];
	return act == ACT_RELEASE ? "it is not on hold: `qctl retry' makes it "
				    "due"
	    : act == ACT_UNDELETE ? "it is not deleted"
				  : "`qctl explain' says what it waits for";
}

/* A message on hold keeps its note, unless another one is given for it by its
 * id, or for messages on hold. */
static bool
is_meant(const struct options *o, enum spool_dir dir)
{
	const struct select *s = &o->select;

	if (o->act != ACT_HOLD || dir != SPOOL_HOLD)
		return act_applies(o->act, dir);
	return !o->rule && (o->hold_reason != NULL || o->hold_time > 0) &&
	    (s->nids > 0 ||
		((s->keys & 1u << SELECT_STATE) != 0 &&
		    (s->states & 1u << SPOOL_HOLD) != 0));
}

/* A message that does not go where it lies is told when it was named, and
 * passed over when a filter met it. */
int
act_collect(struct worker *w, const struct message *m, const struct view *v)
{
	struct target t = { .queue = m->sp->queue, .dir = m->dir };

	if ((m->damage[0] == '\0' || message_may_be_damaged(m->dir)) &&
	    is_meant(v->options, m->dir) && queue_id_parse(m->id, &t.id) == 0)
		worker_row(w, &t, sizeof(t));
	else if (v->options->select.nids > 0)
		worker_note(w, "%s: is in %s: it cannot be %s; %s", m->id,
		    message_state_name(m->dir), act_past(v->options->act),
		    next_command(v->options->act, m->dir));
	return 0;
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

int
task_read(struct worker *w, void *arg)
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
					: strerror(-rc));
	spool_close(&sp);
	return 0;
}
