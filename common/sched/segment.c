/* The moved jobs in segments: a tree whose leaves hold them in the order of the
 * list, each node at most SEGMENT_PARTS of them or of nodes below it, and
 * of each what a search for a candidate can expect there. Two neighbours in one
 * node that would fill three quarters of one at most become one. */
#include "sched/parts.h"

#include <stdlib.h>
#include <string.h>

/* A split may reach the root and give the tree another floor. */
#define NEEDED_AT_ONCE SEGMENT_FLOORS

static const struct segment_part nobody = { INT64_MAX, UINT32_MAX, UINT32_MAX,
	UINT32_MAX, { NULL } };

static struct segment_part
part_of_job(struct job *job)
{
	struct segment_part p = nobody;

	p.job = job;
	if (job_needed(job) == 0 || job_has_children(job))
		return p;
	p.since = job->message->arrival;
	if (job->selected == 0) {
		p.unbegun = job->total;
	} else {
		p.begun = job->total;
		p.needed = job_needed(job);
	}
	return p;
}

struct segment_part
segment_sum(struct segment *s)
{
	struct segment_part sum = nobody;
	const struct segment_part *p;

	for (p = s->part; p < s->part + s->n; p++) {
		if (p->since < sum.since)
			sum.since = p->since;
		if (p->unbegun < sum.unbegun)
			sum.unbegun = p->unbegun;
		if (p->begun < sum.begun)
			sum.begun = p->begun;
		if (p->needed < sum.needed)
			sum.needed = p->needed;
	}
	sum.below = s;
	return sum;
}

unsigned
segment_place(const struct segment *s)
{
	unsigned i = 0;

	while (s->up->part[i].below != s)
		i++;
	return i;
}

unsigned
segment_place_of_job(const struct job *job)
{
	unsigned i = 0;

	while (job->segment->part[i].job != job)
		i++;
	return i;
}

static bool
same(const struct segment_part *a, const struct segment_part *b)
{
	return a->since == b->since && a->unbegun == b->unbegun &&
	    a->begun == b->begun && a->needed == b->needed;
}

/* The sums above are right again. */
static void
sum_up(struct segment *s)
{
	struct segment_part *above, sum;

	for (; s->up != NULL; s = s->up) {
		sum = segment_sum(s);
		above = &s->up->part[segment_place(s)];
		if (same(above, &sum))
			break;
		*above = sum;
	}
}

uint32_t
segment_least_needed(const struct transport *t)
{
	const struct segment *root = t->segments;
	const struct segment_part *p;
	uint32_t least = UINT32_MAX;

	if (root == NULL)
		return least;
	for (p = root->part; p < root->part + root->n; p++) {
		least = p->unbegun < least ? p->unbegun : least;
		least = p->needed < least ? p->needed : least;
	}
	return least;
}

/* ---- memory ---- */

/* Nodes are of a pool, so that nothing fails half way. */
static bool
reserve(struct sched *s)
{
	struct segment *new;

	for (; s->nspare_segments < NEEDED_AT_ONCE; s->nspare_segments++) {
		new = malloc(sizeof(*new));
		if (new == NULL)
			return false;
		new->up = s->spare_segments;
		s->spare_segments = new;
	}
	return true;
}

static struct segment *
node_get(struct transport *t, bool leaf)
{
	struct sched *s = t->sched;
	struct segment *new = s->spare_segments;

	s->spare_segments = new->up;
	s->nspare_segments--;
	new->up = NULL;
	new->shelf = NULL;
	new->leaf = leaf;
	new->n = 0;
	return new;
}

static void
node_spare(struct transport *t, struct segment *node)
{
	struct sched *s = t->sched;

	shelf_drop(t, node);
	node->up = s->spare_segments;
	s->spare_segments = node;
	s->nspare_segments++;
}

/* ---- parts come, move and go ---- */

/* Parts from `from` on know where they are. */
static void
own(struct segment *s, unsigned from)
{
	for (; from < s->n; from++)
		if (s->leaf)
			s->part[from].job->segment = s;
		else
			s->part[from].below->up = s;
}

static void
move_parts(
    struct segment *to, unsigned at, struct segment *from, unsigned first)
{
	unsigned n = from->n - first;

	memcpy(&to->part[at], &from->part[first], n * sizeof(to->part[0]));
	from->n = (uint16_t)first;
	to->n = (uint16_t)(at + n);
	own(to, at);
}

static void
put(struct segment *s, unsigned at, const struct segment_part *part)
{
	memmove(
	    &s->part[at + 1], &s->part[at], (s->n - at) * sizeof(s->part[0]));
	s->part[at] = *part;
	s->n++;
	if (s->leaf)
		part->job->segment = s;
	else
		part->below->up = s;
}

/* The part holds nothing but one job. */
static bool
is_one_job(const struct segment_part *part)
{
	const struct segment *s = part->below;

	while (!s->leaf && s->n == 1)
		s = s->part[0].below;
	return s->n == 1;
}

/* The full node becomes two; what only grows at its end stays full. The part of
 * the right one, which still has no place above. */
static struct segment_part
split(struct transport *t, struct segment *s, unsigned at,
    const struct segment_part *part)
{
	struct segment *right = node_get(t, s->leaf);
	unsigned cut = at == s->n ? s->n : s->n / 2u;
	/* All that leaves is a job which has come just now. */
	bool keeps =
	    !s->leaf && s->up != NULL && cut == s->n && is_one_job(part);
	struct segment_part sum;

	move_parts(right, 0, s, cut);
	if (at > cut || right->n == 0)
		put(right, at - cut, part);
	else
		put(s, at, part);
	sum = segment_sum(s);
	if (s->up == NULL) {
		t->segments = node_get(t, false);
		put(t->segments, 0, &sum);
	} else {
		s->up->part[segment_place(s)] = sum;
	}
	if (!s->leaf) {
		if (!keeps)
			shelf_renew(t, s);
		shelf_renew(t, right);
	}
	return segment_sum(right);
}

static void
insert_at(struct transport *t, struct segment *s, unsigned at,
    struct segment_part part)
{
	while (s->n == t->sched->segment_most) {
		part = split(t, s, at, &part);
		at = segment_place(s) + 1;
		s = s->up;
	}
	put(s, at, &part);
	sum_up(s);
}

/* The first job of a part. */
static struct job *
first_of(const struct segment *s, unsigned at)
{
	while (!s->leaf) {
		s = s->part[at].below;
		at = 0;
	}
	return s->part[at].job;
}

struct job *
segment_first(const struct segment *s)
{
	return first_of(s, 0);
}

struct job *
segment_after(const struct segment *s, const struct job *job)
{
	const struct segment *at = job->segment;
	unsigned next = segment_place_of_job(job) + 1;

	while (next == at->n && at != s) {
		next = segment_place(at) + 1;
		at = at->up;
	}
	return next == at->n ? NULL : first_of(at, next);
}

/* Down to the last part that begins before the label; the part behind it is
 * where the next job is, if that is not farther down. */
struct job *
segment_next_job(const struct job *job)
{
	const struct segment *s = job->transport->segments;
	struct job *next = NULL;
	unsigned i;

	for (; s != NULL; s = s->part[i - 1].below) {
		for (i = s->n; i > 0; i--)
			if (first_of(s, i - 1)->order.label <= job->order.label)
				break;
		if (i < s->n)
			next = first_of(s, i);
		if (i == 0 || s->leaf)
			break;
	}
	return next;
}

void
segment_insert(struct job *job)
{
	struct transport *t = job->transport;
	struct job *next = segment_next_job(job);
	struct segment *s = t->segments;

	ASSERT(job->segment == NULL);
	if (!reserve(t->sched))
		return;
	shelf_work(t);
	if (next != NULL) {
		insert_at(t, next->segment, segment_place_of_job(next),
		    part_of_job(job));
		return;
	}
	if (s == NULL)
		s = t->segments = node_get(t, true);
	while (!s->leaf)
		s = s->part[s->n - 1].below;
	insert_at(t, s, s->n, part_of_job(job));
}

static void
erase(struct segment *s, unsigned at)
{
	s->n--;
	memmove(
	    &s->part[at], &s->part[at + 1], (s->n - at) * sizeof(s->part[0]));
}

/* The node takes in its neighbour on the right if both are small. */
static bool
merge(struct transport *t, struct segment *up, unsigned left)
{
	struct segment *a, *b;

	if (left + 1 >= up->n)
		return false;
	a = up->part[left].below;
	b = up->part[left + 1].below;
	if (a->n + b->n > (t->sched->segment_most + 1) / 2)
		return false;
	move_parts(a, a->n, b, 0);
	up->part[left] = segment_sum(a);
	erase(up, left + 1);
	node_spare(t, b);
	if (!a->leaf)
		shelf_renew(t, a);
	return true;
}

/* A root with one part is none. */
static void
lower_root(struct transport *t)
{
	struct segment *root = t->segments;

	while (!root->leaf && root->n == 1) {
		t->segments = root->part[0].below;
		t->segments->up = NULL;
		shelf_drop(t, t->segments);
		node_spare(t, root);
		root = t->segments;
	}
	if (root->n == 0) {
		t->segments = NULL;
		node_spare(t, root);
	}
}

void
segment_remove(struct job *job)
{
	struct transport *t = job->transport;
	struct segment *s = job->segment, *up;
	unsigned most = t->sched->segment_most, at;

	if (s == NULL)
		return;
	shelf_pass(job);
	erase(s, segment_place_of_job(job));
	job->segment = NULL;
	sum_up(s);
	/* Of two that would fit into a half, one is no larger than a quarter:
	 * that one looks at the other. */
	for (; (up = s->up) != NULL && s->n <= (most + 1) / 4; s = up) {
		at = segment_place(s);
		if (s->n == 0) {
			erase(up, at);
			node_spare(t, s);
		} else if (!merge(t, up, at) &&
		    (at == 0 || !merge(t, up, at - 1))) {
			break;
		}
	}
	lower_root(t);
	shelf_work(t);
}

/* Of one part the least need has become less. */
static void
lower_needed(struct segment *s, uint32_t needed)
{
	struct segment_part *above;

	for (; s->up != NULL; s = s->up) {
		above = &s->up->part[segment_place(s)];
		if (above->needed <= needed)
			break;
		above->needed = needed;
	}
}

void
segment_update(struct job *job)
{
	struct segment *s = job->segment;
	struct segment_part part, *p;

	if (s == NULL)
		return;
	part = part_of_job(job);
	p = &s->part[segment_place_of_job(job)];
	if (part.begun == p->begun && part.needed < p->needed) {
		p->needed = part.needed; /* as by most selections */
		lower_needed(s, part.needed);
	} else if (!same(p, &part)) {
		*p = part;
		sum_up(s);
	}
}
