#include "queue-send/state/due.h"

static int
inode_compare(const struct due *a, const struct due *b)
{
	return (a->inode > b->inode) - (a->inode < b->inode);
}

static int
time_compare(const struct due *a, const struct due *b)
{
	int r = (a->at_mono > b->at_mono) - (a->at_mono < b->at_mono);

	return r != 0 ? r : inode_compare(a, b);
}

TREE_GENERATE(due_inodes, due, by_inode, inode_compare)
TREE_GENERATE(due_times, due, by_time, time_compare)

void
due_init(struct due_queue *q)
{
	*q = (struct due_queue){ 0 };
	slab_init(&q->slab, sizeof(struct due), NULL);
}

void
due_done(struct due_queue *q)
{
	struct due *d;

	while ((d = RB_MIN(due_inodes, &q->nodes)) != NULL) {
		RB_REMOVE(due_inodes, &q->nodes, d);
		slab_put(&q->slab, d);
	}
	slab_done(&q->slab);
}

struct due *
due_find(const struct due_queue *q, uint64_t inode)
{
	struct due key = { .inode = inode };
	struct due_inodes nodes = q->nodes; /* RB_FIND takes no const */

	return RB_FIND(due_inodes, &nodes, &key);
}

static struct due *
due_first_of(const struct due_queue *q, uint32_t epoch)
{
	struct due_times times = q->times[epoch % DUE_EPOCHS];

	return RB_MIN(due_times, &times); /* which takes no const */
}

/* The first of those that a flush made due. */
static struct due *
due_first_flushed(const struct due_queue *q)
{
	return due_first_of(q, q->epoch + 1);
}

static void
wait_until(struct due_queue *q, struct due *d, usec_t at_mono)
{
	d->at_mono = at_mono;
	d->epoch = q->epoch % DUE_EPOCHS;
	RB_INSERT(due_times, &q->times[d->epoch], d);
}

static void
stop_waiting(struct due_queue *q, struct due *d)
{
	struct due_backlog *b = d->backlog;

	if (d->asked) {
		RB_REMOVE(due_times, &q->asking, d);
		d->asked = false;
		q->asked--;
		if (b != NULL)
			b->nasked--;
	} else if (d->parked) {
		RB_REMOVE(due_times, &b->waiting, d);
		d->parked = false;
		b->nwaiting--;
		q->parked--;
	} else {
		RB_REMOVE(due_times, &q->times[d->epoch], d);
		if (q->flush_waits)
			due_flush(q);
	}
}

/* The node is in no tree. */
static struct due *
ask(struct due_queue *q, struct due *d)
{
	struct due_backlog *b = d->backlog;

	RB_INSERT(due_times, &q->asking, d);
	d->asked = true;
	q->asked++;
	if (b != NULL)
		b->nasked++;
	return d;
}

struct due *
due_put(struct due_queue *q, uint64_t inode, usec_t at_mono)
{
	struct due *d = due_find(q, inode);

	if (d != NULL) {
		stop_waiting(q, d);
	} else {
		d = slab_get_zeroed(&q->slab);
		if (d == NULL)
			return NULL;
		d->inode = inode;
		RB_INSERT(due_inodes, &q->nodes, d);
		q->count++;
	}
	d->untouched = false;
	wait_until(q, d, at_mono);
	return d;
}

void
due_set_untouched(struct due_queue *q, uint64_t inode, bool untouched)
{
	struct due *d = due_find(q, inode);

	if (d != NULL)
		d->untouched = untouched;
}

bool
due_is_untouched(const struct due_queue *q, uint64_t inode)
{
	const struct due *d = due_find(q, inode);

	return d != NULL && d->untouched;
}

void
due_set_untried(struct due_queue *q, struct due *d, bool untried)
{
	q->untried -= d->untried;
	d->untried = untried;
	q->untried += d->untried;
}

void
due_drop(struct due_queue *q, uint64_t inode)
{
	struct due *d = due_find(q, inode);

	if (d == NULL)
		return;
	stop_waiting(q, d);
	due_set_backlog(d, NULL);
	due_set_untried(q, d, false);
	RB_REMOVE(due_inodes, &q->nodes, d);
	q->count--;
	slab_put(&q->slab, d);
}

struct due *
due_ask(struct due_queue *q, usec_t now)
{
	struct due *d = due_first_flushed(q);

	if (d == NULL) {
		d = due_first_of(q, q->epoch);
		if (d == NULL || d->at_mono > now)
			return NULL;
	}
	stop_waiting(q, d);
	return ask(q, d);
}

void
due_unask(struct due_queue *q, struct due *d, usec_t at_mono)
{
	ASSERT(d->asked);
	stop_waiting(q, d);
	wait_until(q, d, at_mono);
}

void
due_unask_all(struct due_queue *q, usec_t now)
{
	struct due *d;

	while ((d = RB_ROOT(&q->asking)) != NULL)
		due_unask(q, d, d->at_mono < now ? d->at_mono : now);
}

void
due_ask_again(struct due_queue *q, struct due *d)
{
	ASSERT(!d->asked);
	stop_waiting(q, d);
	(void)ask(q, d);
}

void
due_flush(struct due_queue *q)
{
	q->flush_waits = due_first_flushed(q) != NULL;
	if (!q->flush_waits)
		q->epoch = (q->epoch + 1) % DUE_EPOCHS;
}

usec_t
due_next(const struct due_queue *q)
{
	const struct due *d;

	if (due_first_flushed(q) != NULL)
		return INT64_MIN;
	d = due_first_of(q, q->epoch);
	return d == NULL ? USEC_NEVER : d->at_mono;
}

/* ---- backlogs ---- */

void
due_set_backlog(struct due *d, struct due_backlog *b)
{
	struct due_backlog *old = d->backlog;

	ASSERT(!d->parked);
	if (old != NULL) {
		old->nodes--;
		old->nasked -= d->asked;
	}
	d->backlog = b;
	if (b != NULL) {
		b->nodes++;
		b->nasked += d->asked;
	}
}

void
due_park(struct due_queue *q, struct due *d)
{
	struct due_backlog *b = d->backlog;

	ASSERT(b != NULL);
	stop_waiting(q, d);
	d->parked = true;
	RB_INSERT(due_times, &b->waiting, d);
	b->nwaiting++;
	q->parked++;
}

struct due *
due_ask_backlog(struct due_queue *q, struct due_backlog *b)
{
	struct due *d = RB_MIN(due_times, &b->waiting);

	if (d == NULL)
		return NULL;
	stop_waiting(q, d);
	return ask(q, d);
}

uint32_t
due_parked_before(const struct due *d, uint32_t most, bool *ret_more)
{
	struct due_backlog *b = d->backlog;
	struct due *before;
	uint32_t n = 0;

	ASSERT(b != NULL);
	before = RB_MIN(due_times, &b->waiting);
	for (; before != d && n < most; n++)
		before = RB_NEXT(due_times, &b->waiting, before);
	*ret_more = before != d;
	return n;
}
