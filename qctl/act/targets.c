/* The messages that a command acts on. */
#include "qctl/act/act.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* ---- in the process that reads a queue ---- */

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

/* ---- in the process of the command ---- */

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int
order_of_messages(const struct target *a, const struct target *b)
{
	int r = ORDER(a->queue, b->queue);

	if (r == 0)
		r = ORDER(a->id.inode, b->id.inode);
	if (r == 0)
		r = ORDER(a->id.arrival_wall, b->id.arrival_wall);
	return r == 0 ? ORDER(a->id.nonce, b->id.nonce) : r;
}

/* Of one message in the order in which it was found. */
static int
order_of_finds(const void *a, const void *b, void *targets)
{
	const struct target *all = targets;
	const size_t i = *(const size_t *)a, j = *(const size_t *)b;
	int r = order_of_messages(&all[i], &all[j]);

	return r == 0 ? ORDER(i, j) : r;
}

int
targets_take(struct task *t, const void *data, size_t len)
{
	struct target target;

	if (len != sizeof(target))
		return 0;
	memcpy(&target, data, sizeof(target));
	return array_add(&t->targets, &t->ntargets, &t->targets_cap, &target,
	    sizeof(target));
}

int
task_unite_targets(struct task *t)
{
	struct target *all = t->targets;
	size_t *order, i, n = 0;

	if (t->ntargets < 2)
		return 0;
	order = calloc(t->ntargets, sizeof(*order));
	if (order == NULL)
		return -ENOMEM;
	for (i = 0; i < t->ntargets; i++)
		order[i] = i;
	qsort_r(order, t->ntargets, sizeof(*order), order_of_finds, all);
	for (i = 1; i < t->ntargets; i++)
		if (order_of_messages(&all[order[i - 1]], &all[order[i]]) == 0)
			all[order[i - 1]].queue = 0;
	free(order);
	for (i = 0; i < t->ntargets; i++)
		if (all[i].queue != 0)
			all[n++] = all[i];
	t->ntargets = n;
	return 0;
}
