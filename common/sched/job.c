#include "sched/parts.h"

#include <stdlib.h>

static int
arrival_compare(const struct job *a, const struct job *b)
{
	return message_order(a->message, b->message);
}

TREE_GENERATE(arrival_tree, job, arrival, arrival_compare)

struct job *
job_get(struct sched_message *m, struct transport *t)
{
	struct slabs *slabs = &t->sched->slabs;
	struct job *job;

	SLIST_FOREACH (job, &m->jobs, of_message)
		if (job->transport == t)
			return job;
	if (m->reading == NULL)
		return NULL;
	job = slab_get_zeroed(&slabs->job);
	if (job == NULL)
		return NULL;
	job->reading = slab_get_zeroed(&slabs->job_reading);
	if (job->reading == NULL) {
		slab_put(&slabs->job, job);
		return NULL;
	}
	job->reading->job = job;
	RB_INIT(&job->reading->loading);
	job->message = m;
	job->transport = t;
	TAILQ_INIT(&job->ring);
	SLIST_INSERT_HEAD(&m->jobs, job, of_message);
	return job;
}

/* j has preempted no job, and its message came first. */
static bool
comes_before(const struct job *j, const struct job *job)
{
	return job_parent(j) == NULL && arrival_compare(j, job) < 0;
}

/* The place of a job by the arrival of its message: directly after the last
 * one of the list that comes before it. NULL: at the end, as for all new mail.
 * Those that never moved stand by arrival, so none behind the first of them
 * that is younger comes before it. */
static struct order_node *
place_by_arrival(struct job *job)
{
	struct transport *t = job->transport;
	struct order_node *n = TAILQ_LAST(&t->jobs, order_list), *at = NULL;
	struct job *younger;

	if (n == NULL || comes_before(ORDER_OF(n, struct job, order), job))
		return NULL;
	younger = RB_NFIND(arrival_tree, &t->by_arrival, job);
	if (younger != NULL) {
		at = &younger->order;
		n = TAILQ_PREV(at, order_list, link);
	}
	for (; n != NULL; n = TAILQ_PREV(n, order_list, link)) {
		if (comes_before(ORDER_OF(n, struct job, order), job))
			break;
		at = n;
	}
	return at;
}

/* New mail comes last. */
static void
arrival_in(struct transport *t, struct job *job)
{
	struct job *last = t->youngest;

	if (last != NULL && arrival_compare(job, last) < 0) {
		RB_INSERT(arrival_tree, &t->by_arrival, job);
		return;
	}
	TREE_PUT_LAST(arrival_tree, &t->by_arrival, last, job, arrival);
	t->youngest = job;
}

static void
arrival_out(struct transport *t, struct job *job)
{
	if (t->youngest == job)
		t->youngest = RB_PREV(arrival_tree, &t->by_arrival, job);
	RB_REMOVE(arrival_tree, &t->by_arrival, job);
}

void
job_list_in(struct job *job)
{
	struct transport *t = job->transport;

	ASSERT(!job->listed);
	order_insert(&t->jobs, place_by_arrival(job), &job->order,
	    &t->sched->job_labels);
	/* Selection has not gone by the job. */
	if (t->current == NULL || job->order.label < t->current->order.label)
		t->current = job;
	job->listed = true;
	job->moved = false;
	arrival_in(t, job);
	index_update(job);
	t->njobs++;
	t->sched->figures.jobs++;
}

static struct job *
next_job(const struct job *job)
{
	struct order_node *n = TAILQ_NEXT(&job->order, link);

	return n == NULL ? NULL : ORDER_OF(n, struct job, order);
}

void
job_list_out(struct job *job)
{
	struct transport *t = job->transport;

	ASSERT(job->listed && job->waiting == 0);
	job_leave_tree(job);
	if (!job->moved)
		arrival_out(t, job);
	if (t->current == job)
		t->current = next_job(job);
	index_remove(job);
	TAILQ_REMOVE(&t->jobs, &job->order, link);
	job->listed = false;
	job->moved = false;
	t->njobs--;
	t->sched->figures.jobs--;
}

/* ---- the preemption tree ---- */

struct branch *
branch_root(struct branch *b)
{
	while (b->into != NULL)
		b = b->into;
	return b;
}

static void
branch_unuse(struct branch *b)
{
	struct branch *into;

	for (; b != NULL && --b->users == 0; b = into) {
		into = b->into;
		free(b);
	}
}

bool
job_can_branch(struct job *job)
{
	if (job->below != NULL)
		return true;
	job->below = calloc(1, sizeof(*job->below));
	if (job->below == NULL)
		return false;
	job->below->job = job;
	job->below->users = 1;
	return true;
}

void
job_enter_tree(struct job *job, struct job *parent)
{
	job->above = parent->below;
	job->above->children++;
	job->above->users++;
	index_update(parent);
}

/* The children become those of the branch, which may be NULL. */
static void
pass_children_on(struct job *job, struct branch *to)
{
	struct branch *own = job->below;

	if (own == NULL)
		return;
	job->below = NULL;
	own->job = NULL;
	if (to != NULL && own->children > 0) {
		own->into = to;
		to->children += own->children;
		to->users++;
	}
	branch_unuse(own);
}

/* The account with the parent is closed when that has left the list. */
void
job_leave_tree(struct job *job)
{
	struct branch *above = job->moved ? job->above : NULL, *root = NULL;
	struct job *parent = NULL;

	if (above != NULL) {
		root = branch_root(above);
		parent = root->job;
		root->children--;
		if (parent != NULL && above == root && job->price > 0)
			parent->slots += job->credit;
		job->above = NULL;
	}
	pass_children_on(job, root);
	branch_unuse(above);
	if (job->moved)
		job->price = 0;
	if (parent != NULL)
		index_update(parent);
}

void
job_pass_current(struct job *job)
{
	struct transport *t = job->transport;
	struct job *current = t->current;

	index_remove(job);
	job_leave_lines(job);
	if (!job->moved) {
		arrival_out(t, job);
		job->above = NULL;
		job->price = 0;
	}
	job->moved = true;
	TAILQ_REMOVE(&t->jobs, &job->order, link);
	order_insert(
	    &t->jobs, &current->order, &job->order, &t->sched->job_labels);
	index_update(job);
	t->current = job;
	job_enter_lines(job);
}

void
job_recount(struct job *job)
{
	const struct job_reading *r = job->reading;

	/* Entries that the census counted and that were not read yet count. */
	if (r != NULL)
		job->total = r->expected > r->made ? r->expected : r->made;
	index_update(job);
}

void
job_read(struct job *job)
{
	struct job_reading *reading = job->reading;

	if (reading == NULL)
		return;
	ASSERT(RB_EMPTY(&reading->loading));
	job->reading = NULL;
	job->total = reading->made;
	pool_read(job, reading);
	slab_put(&job->transport->sched->slabs.job_reading, reading);
}
