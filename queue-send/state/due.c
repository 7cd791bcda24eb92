#include "queue-send/state/due.h"

#include <errno.h>
#include <stdlib.h>

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
	unsigned i;

	*q = (struct due_queue){ 0 };
	RB_INIT(&q->nodes);
	RB_INIT(&q->asking);
	for (i = 0; i < DUE_EPOCHS; i++)
		RB_INIT(&q->times[i]);
}

void
due_done(struct due_queue *q)
{
	struct due *d;

	while ((d = RB_MIN(due_inodes, &q->nodes)) != NULL) {
		RB_REMOVE(due_inodes, &q->nodes, d);
		free(d);
	}
	free(q->numbers);
	due_init(q);
}

struct due *
due_find(const struct due_queue *q, uint64_t inode)
{
	struct due key = { .inode = inode };
	struct due_inodes nodes = q->nodes; /* RB_FIND takes no const */

	return RB_FIND(due_inodes, &nodes, &key);
}

/* The first node of the n-th tree from the oldest, which is 1; the current one
 * is 0. */
static struct due *
first_of(const struct due_queue *q, unsigned n)
{
	struct due_times times = q->times[(q->epoch + n) % DUE_EPOCHS];

	return RB_MIN(due_times, &times); /* which takes no const */
}

static void
wait_until(struct due_queue *q, struct due *d, usec_t at_mono)
{
	d->at_mono = at_mono;
	d->epoch = q->epoch % DUE_EPOCHS;
	RB_INSERT(due_times, &q->times[d->epoch], d);
}

struct due_backlog *
due_backlog_of(const struct due_queue *q, const struct due *d)
{
	return d->backlog == 0 ? NULL : q->numbers[d->backlog].backlog;
}

static void
stop_waiting(struct due_queue *q, struct due *d)
{
	struct due_backlog *b = due_backlog_of(q, d);

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
	struct due_backlog *b = due_backlog_of(q, d);

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
		d = calloc(1, sizeof(*d));
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
	due_set_backlog(q, d, NULL);
	due_set_untried(q, d, false);
	RB_REMOVE(due_inodes, &q->nodes, d);
	q->count--;
	free(d);
}

static struct due *
first_flushed(const struct due_queue *q)
{
	struct due *d = NULL;
	unsigned n;

	for (n = 1; d == NULL && n < DUE_EPOCHS; n++)
		d = first_of(q, n);
	return d;
}

struct due *
due_ask(struct due_queue *q, usec_t now)
{
	struct due *d = first_flushed(q);

	if (d == NULL) {
		d = first_of(q, 0);
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
	q->flush_waits = first_of(q, 1) != NULL;
	if (!q->flush_waits)
		q->epoch = (q->epoch + 1) % DUE_EPOCHS;
}

usec_t
due_next(const struct due_queue *q)
{
	const struct due *d;

	if (first_flushed(q) != NULL)
		return INT64_MIN;
	d = first_of(q, 0);
	return d == NULL ? USEC_NEVER : d->at_mono;
}

/* ---- backlogs ---- */

static int
more_numbers(struct due_queue *q)
{
	uint32_t n = q->nnumbers < 16 ? 16 : q->nnumbers * 2, i;
	struct due_number *more;

	if (n > DUE_NUMBER_MAX + 1)
		return -ENOMEM;
	more = reallocarray(q->numbers, n, sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	q->numbers = more;
	for (i = n - 1; i >= q->nnumbers && i > 0; i--) {
		more[i] = (struct due_number){ .next_free = q->free_number };
		q->free_number = i;
	}
	q->nnumbers = n;
	return 0;
}

int
due_backlog_add(struct due_queue *q, struct due_backlog *b)
{
	int r = q->free_number == 0 ? more_numbers(q) : 0;

	if (r < 0)
		return r;
	*b = (struct due_backlog){ .number = q->free_number };
	RB_INIT(&b->waiting);
	q->free_number = q->numbers[b->number].next_free;
	q->numbers[b->number].backlog = b;
	return 0;
}

void
due_backlog_drop(struct due_queue *q, struct due_backlog *b)
{
	ASSERT(b->nodes == 0);
	q->numbers[b->number] =
	    (struct due_number){ .next_free = q->free_number };
	q->free_number = b->number;
}

void
due_set_backlog(struct due_queue *q, struct due *d, struct due_backlog *b)
{
	struct due_backlog *old = due_backlog_of(q, d);

	ASSERT(!d->parked);
	if (old != NULL) {
		old->nodes--;
		old->nasked -= d->asked;
	}
	d->backlog = b == NULL ? 0 : b->number & DUE_NUMBER_MAX;
	if (b != NULL) {
		b->nodes++;
		b->nasked += d->asked;
	}
}

void
due_park(struct due_queue *q, struct due *d)
{
	struct due_backlog *b = due_backlog_of(q, d);

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
due_parked_before(const struct due_queue *q, const struct due *d, uint32_t most,
    bool *ret_more)
{
	struct due_backlog *b = due_backlog_of(q, d);
	struct due *before;
	uint32_t n = 0;

	ASSERT(b != NULL);
	before = RB_MIN(due_times, &b->waiting);
	for (; before != d && n < most; n++)
		before = RB_NEXT(due_times, &b->waiting, before);
	*ret_more = before != d;
	return n;
}
