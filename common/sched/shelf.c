/* Hulls of all jobs below one node of the segments, but of leaves and of the
 * root: docs/SCHEDULING.md, rule 5.
 *
 * A shelf is filled in instalments, in the order of the list, those of the
 * lowest floor first; until it is whole, a search looks at the parts of the
 * node. From then on it holds each job below the node that can be a candidate.
 * When parts of a node go to another one, its shelf is dropped, and taken
 * apart in instalments, too. */
#include "sched/parts.h"

#include <stdlib.h>

/* In an instalment. */
#define JOBS  8
#define NODES 32 /* of hulls */

bool
shelf_holds(const struct shelf *shelf, const struct job *job)
{
	return shelf->next == NULL ||
	    job->order.label < shelf->next->order.label;
}

/* ---- shelves come and go ---- */

static void
due_in(struct transport *t, struct shelf *shelf)
{
	LIST_INSERT_HEAD(&t->shelves_due[shelf->floor], shelf, link);
	t->due_floors |= (uint32_t)1 << shelf->floor;
}

static void
due_out(struct transport *t, struct shelf *shelf)
{
	LIST_REMOVE(shelf, link);
	if (LIST_EMPTY(&t->shelves_due[shelf->floor]))
		t->due_floors &= ~((uint32_t)1 << shelf->floor);
}

void
shelf_drop(struct transport *t, struct segment *s)
{
	struct shelf *shelf = s->shelf;

	if (shelf == NULL)
		return;
	s->shelf = NULL;
	if (shelf->next != NULL)
		due_out(t, shelf);
	shelf->waste = t->shelves_waste;
	t->shelves_waste = shelf;
}

static unsigned
floor_of(const struct segment *s)
{
	unsigned floor = 0;

	for (; !s->leaf; s = s->part[0].below)
		floor++;
	return floor;
}

void
shelf_renew(struct transport *t, struct segment *s)
{
	struct shelf *shelf;

	shelf_drop(t, s);
	shelf = malloc(sizeof(*shelf));
	if (shelf == NULL)
		return;
	index_init(&shelf->index, true);
	shelf->index.hulls = 0;
	shelf->floor = floor_of(s);
	shelf->next = segment_first(s);
	s->shelf = shelf;
	due_in(t, shelf);
}

/* ---- instalments ---- */

static void
go_on(struct segment *s, const struct job *job)
{
	struct shelf *shelf = s->shelf;
	struct job *next = segment_after(s, job);

	if (next == NULL)
		due_out(job->transport, shelf);
	shelf->next = next;
}

void
shelf_pass(struct job *job)
{
	struct segment *s;

	for (s = job->segment->up; s != NULL; s = s->up)
		if (s->shelf != NULL && s->shelf->next == job)
			go_on(s, job);
}

static struct segment *
node_of(const struct shelf *shelf)
{
	struct segment *s = shelf->next->segment;

	while (s->shelf != shelf)
		s = s->up;
	return s;
}

static void
fill(struct transport *t)
{
	unsigned floor = (unsigned)__builtin_ctz(t->due_floors);
	struct shelf *shelf = LIST_FIRST(&t->shelves_due[floor]);
	struct segment *s = node_of(shelf);
	struct job *job = shelf->next;

	if (index_enter(&shelf->index, job, 0))
		go_on(s, job);
	else
		shelf_drop(t, s);
}

/* Whether anything of it is left. */
static bool
clear(struct shelf *shelf, struct slab *nodes)
{
	unsigned budget = NODES, i;

	for (i = 0; i < INDEX_CLASSES; i++) {
		hull_clear(&shelf->index.classes[i], &budget, nodes);
		hull_clear(&shelf->index.zeros[i], &budget, nodes);
	}
	return budget == 0;
}

static void
clear_first(struct transport *t)
{
	struct shelf *shelf = t->shelves_waste;

	if (clear(shelf, &t->sched->slabs.hull_node))
		return;
	t->shelves_waste = shelf->waste;
	free(shelf);
}

void
shelf_work(struct transport *t)
{
	unsigned i;

	for (i = 0; i < JOBS && t->due_floors != 0; i++)
		fill(t);
	if (t->shelves_waste != NULL)
		clear_first(t);
}

void
shelf_free_waste(struct transport *t)
{
	while (t->shelves_waste != NULL)
		clear_first(t);
}

/* ---- jobs change ---- */

void
shelf_move(struct job *job, struct indexed to, uint64_t stays)
{
	struct segment *s;

	for (s = job->segment->up; s != NULL; s = s->up)
		if (s->shelf != NULL && shelf_holds(s->shelf, job))
			index_leave(&s->shelf->index, job, stays);
	job->indexed = to;
	for (s = job->segment->up; s != NULL; s = s->up)
		if (s->shelf != NULL && shelf_holds(s->shelf, job) &&
		    !index_enter(&s->shelf->index, job, stays))
			shelf_drop(job->transport, s);
}
