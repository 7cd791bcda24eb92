/* Every disk is asked by a worker of its own, all at once. A queue whose disk
 * has not answered in time is in the table, put aside, and is judged when it
 * answers. */
#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "log/log.h"

/* Once there is a queue to run, the start waits so long for the next answer:
 * queues whose disks answer are not to wait for one that hangs. */
#define START_WAIT (5 * USEC_PER_SEC)

/* The knowledge of a number while the table is made. */
enum known {
	KNOWN_NOTHING, /* no queue of ours */
	KNOWN_WANTED,  /* the disk is to be asked */
	KNOWN_ASKED,   /* the disk has not answered */
	KNOWN_FACTS,
};

struct inventory {
	bool any_there;
	uint8_t known[QUEUE_NUM_MAX + 1]; /* enum known */
	struct base_facts facts[QUEUE_NUM_MAX + 1];
	struct event *timer; /* ends a turn of the loop */
};

static bool
is_in_range(const struct queues *all, uint32_t number, uint32_t count)
{
	return number >= all->start && number - all->start < count;
}

/* A queue that was retired is none that -n keeps; what mail it has is drained.
 */
static bool
is_there(const struct base_facts *facts)
{
	return facts->marked ? !facts->sealed : facts->listed;
}

/* With -n the queues that are there; the first start makes QUEUE_COUNT. */
static bool
is_wanted(const struct queues *all, const struct base_facts *facts,
    uint32_t number, bool any_there)
{
	if (all->keep && any_there)
		return is_there(facts);
	return is_in_range(all, number, all->count);
}

/* Queues that a load made are there for the load: a restart in the midst of it
 * keeps those that have mail, and those that are not needed retire by the
 * rules, from the top. */
static bool
is_kept(
    const struct queues *all, const struct base_facts *facts, uint32_t number)
{
	return all->dynamic && facts->mail &&
	    is_in_range(all, number, all->max);
}

static enum verdict
judge(const struct queues *all, uint32_t number, struct base_facts *facts)
{
	facts->wanted = is_wanted(all, facts, number, all->any_there) ||
	    is_kept(all, facts, number);
	return base_judge(facts);
}

/* ---- one queue ---- */

static void
make(struct queue *q)
{
	int r = worker_start(q->all->workers, &queue_making, q->number, q->all);

	q->unchecked = r == -EAGAIN;
	if (r < 0 && r != -EAGAIN && r != -EBUSY) {
		q->first_check = FIRST_DONE;
		queue_fault(q, strerror(-r));
	}
}

/* A queue that cannot be made, or is lost, is in the table nevertheless. */
static void
settle(struct queue *q, const struct base_facts *facts, enum verdict verdict)
{
	struct buf error = { 0 };

	q->first_check = FIRST_MAKE;
	if (verdict == VERDICT_DRAIN) {
		retirement_begin(q, "not among those wanted", clock_mono());
		log_info("queue %" PRIu32 " holds mail and is not among those "
			 "wanted: drained",
		    q->number);
	}
	if (verdict != VERDICT_DISABLE) {
		make(q);
		return;
	}
	q->first_check = FIRST_DONE;
	/* The queue is drained, and retires, when the fault is over. */
	if (!facts->wanted)
		retirement_begin(q, "not among those wanted", clock_mono());
	(void)base_describe_lost(q->all->base, q->number, facts, &error);
	queue_fault(q, buf_str(&error));
	buf_done(&error);
}

/* The queue does not run until its first checks have ended. */
static int
add_queue(struct queues *all, uint32_t number, struct queue **ret_queue)
{
	struct queue *q;

	if (all->nqueues == PAGE_QUEUES_MAX) {
		log_error("ALERT: queue %" PRIu32 " is one too many: not run "
			  "before another one is retired",
		    number);
		return 0;
	}
	q = queue_new(all, number, QUEUE_STATE_OPEN);
	if (q == NULL)
		return -ENOMEM;
	q->faulty = true;
	q->first_check = FIRST_FACTS;
	(void)queue_insert(q);
	*ret_queue = q;
	return 0;
}

/* After the start: the disk has answered at last. */
static void
on_late_facts(
    struct queue *q, const struct base_facts *facts, enum verdict verdict)
{
	struct queues *all = q->all;
	const uint32_t number = q->number;

	q->unanswered = false;
	if (verdict != VERDICT_SKIP) {
		settle(q, facts, verdict);
		return;
	}
	log_info("queue %" PRIu32 " is not wanted and holds no mail: not run",
	    number);
	queue_remove(q);
	queue_remove_stale(all, number);
	all->events->show(all->ctx, clock_mono());
}

static void
on_facts(void *ctx, uint32_t number, const struct worker_result *result,
    struct buf *more)
{
	struct queues *all = ctx;
	struct queue *q = queue_find(all, number);
	struct base_facts facts = disk_facts_of(more);

	if (all->inventory != NULL && result->r != -ETIMEDOUT) {
		all->inventory->facts[number] = facts;
		all->inventory->known[number] = KNOWN_FACTS;
	}
	if (q == NULL || q->first_check != FIRST_FACTS || q->stopping)
		return;
	if (result->r == -ETIMEDOUT)
		q->unanswered = true;
	else
		on_late_facts(q, &facts, judge(all, number, &facts));
}

static const struct worker_task asking = { "first check", disk_facts,
	on_facts };

void
inventory_check(struct queue *q)
{
	int r;

	if (q->first_check == FIRST_MAKE) {
		make(q);
		return;
	}
	r = worker_start(q->all->workers, &asking, q->number, q->all);
	q->unchecked = r < 0 && r != -EBUSY;
}

/* ---- all of them ---- */

/* A number that there is no room for is asked the next time. */
static void
ask(struct queues *all, struct inventory *inv)
{
	uint32_t number;
	int r;

	for (number = 1; number <= QUEUE_NUM_MAX; number++) {
		if (inv->known[number] != KNOWN_WANTED)
			continue;
		r = worker_start(all->workers, &asking, number, all);
		if (r == -EAGAIN)
			return;
		/* Without a worker the disk counts as one that does not
		 * answer. */
		inv->known[number] = KNOWN_ASKED;
		if (r < 0)
			log_error("queue %" PRIu32 ": not checked: %s", number,
			    strerror(-r));
	}
}

/* Both count the queues that a disk still owes an answer for. */
static uint32_t
count_unknown(struct queues *all)
{
	const struct inventory *inv = all->inventory;
	uint32_t number, n = 0;

	ask(all, all->inventory);
	for (number = 1; number <= QUEUE_NUM_MAX; number++)
		n += inv->known[number] == KNOWN_WANTED ||
		    (inv->known[number] == KNOWN_ASKED &&
			worker_runs(all->workers, number));
	return n;
}

/* Both tell whether there is a queue that the others would hold up. */
static bool
is_one_there(struct queues *all)
{
	uint32_t number;

	for (number = 1; number <= QUEUE_NUM_MAX; number++) {
		struct base_facts facts = all->inventory->facts[number];
		enum verdict verdict;

		if (all->inventory->known[number] != KNOWN_FACTS)
			continue;
		verdict = judge(all, number, &facts);
		if (verdict != VERDICT_SKIP && verdict != VERDICT_DISABLE)
			return true;
	}
	return false;
}

static bool
is_one_made(struct queues *all)
{
	uint32_t i;

	for (i = 0; i < all->nqueues; i++)
		if (all->queues[i]->first_check == FIRST_DONE &&
		    !all->queues[i]->faulty)
			return true;
	return false;
}

static uint32_t
count_unmade(struct queues *all)
{
	uint32_t i, n = 0;

	for (i = 0; i < all->nqueues; i++) {
		struct queue *q = all->queues[i];

		if (q->unchecked)
			inventory_check(q);
		n += q->first_check == FIRST_MAKE && !q->unanswered;
	}
	return n;
}

static void
on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *arg UNUSED)
{
}

/* The loop as it will be, with nothing in it yet but workers and signals. One
 * turn of it ends with a worker, or soon, for queues that wait for room. While
 * no queue can be started its disk may just be slow: only disk_time_limit ends
 * that wait. */
static void
wait_for(struct queues *all, uint32_t (*count)(struct queues *all),
    bool (*is_one)(struct queues *all))
{
	const usec_t last = clock_mono() + all->instance->conf->disk_time_limit;
	uint32_t before = UINT32_MAX, n;
	usec_t end = last;

	while (!all->stopping && (n = count(all)) > 0) {
		const usec_t now = clock_mono();
		struct timeval tv;

		if (n < before && is_one(all))
			end = now + START_WAIT < last ? now + START_WAIT : last;
		before = n;
		if (now >= end)
			return;
		tv = clock_timeval(end - now < WORKER_YOUNG / 8
			? end - now
			: WORKER_YOUNG / 8);
		if (event_add(all->inventory->timer, &tv) < 0)
			return;
		(void)event_base_loop(all->instance->loop, EVLOOP_ONCE);
	}
}

static int
add_known(struct queues *all, uint32_t number, bool with_mail)
{
	struct base_facts *facts = &all->inventory->facts[number];
	const enum verdict verdict = judge(all, number, facts);
	struct queue *q = NULL;
	int r = 0;

	if (verdict == VERDICT_SKIP) {
		queue_remove_stale(all, number);
		all->inventory->known[number] = KNOWN_NOTHING;
	} else if (facts->mail == with_mail) {
		r = add_queue(all, number, &q);
		if (q != NULL)
			settle(q, facts, verdict);
	}
	return r;
}

static int
add_unknown(struct queues *all, uint32_t number)
{
	struct queue *q = NULL;
	int r = add_queue(all, number, &q);

	if (q != NULL) {
		q->unanswered = true;
		q->unchecked = !worker_runs(all->workers, number);
	}
	return r;
}

static int
add(struct queues *all, uint32_t number, enum known known, bool with_mail)
{
	if (all->inventory->known[number] != known ||
	    queue_find(all, number) != NULL)
		return 0;
	return known == KNOWN_FACTS ? add_known(all, number, with_mail)
				    : add_unknown(all, number);
}

/* Where there is not room for all, those with mail come first. */
static int
fill_table(struct queues *all)
{
	static const struct {
		enum known known;
		bool with_mail;
	} passes[] = {
		{ KNOWN_FACTS, true },
		{ KNOWN_FACTS, false },
		{ KNOWN_ASKED, false },
		{ KNOWN_WANTED, false },
	};
	uint32_t number;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < ARRAY_LEN(passes); i++)
		for (number = 1; r == 0 && number <= QUEUE_NUM_MAX; number++)
			r = add(
			    all, number, passes[i].known, passes[i].with_mail);
	return r;
}

static int
list(struct queues *all, struct inventory *inv)
{
	uint32_t disk[QUEUE_NUM_MAX], number;
	int i, n = spool_list(all->base->path, disk, ARRAY_LEN(disk));

	if (n < 0) {
		log_error("%s: %s", all->base->path, strerror(-n));
		return n;
	}
	for (i = 0; i < n; i++)
		queue_note_disk(all, disk[i]);
	for (number = 1; number <= QUEUE_NUM_MAX; number++)
		if (all->on_disk[number] || all->base->listed[number] ||
		    is_in_range(all, number, all->count))
			inv->known[number] = KNOWN_WANTED;
		/* A supervisor that was killed while it made a queue left the
		 * objects of that. */
		else if (is_in_range(all, number, all->max))
			queue_remove_stale(all, number);
	return 0;
}

/* A directory counts whose disk has not answered, or that is no queue. */
static bool
is_any_there(const struct queues *all)
{
	const struct inventory *inv = all->inventory;
	uint32_t number;

	for (number = 1; number <= QUEUE_NUM_MAX; number++)
		if (all->on_disk[number] &&
		    (inv->known[number] != KNOWN_FACTS ||
			!inv->facts[number].sealed))
			return true;
	return false;
}

static int
make_table(struct queues *all)
{
	uint32_t i;
	int r = list(all, all->inventory);

	if (r < 0)
		return r;
	wait_for(all, count_unknown, is_one_there);
	if (all->stopping)
		return 0;
	all->any_there = is_any_there(all);
	r = fill_table(all);
	if (r == 0)
		wait_for(all, count_unmade, is_one_made);
	for (i = 0; i < all->nqueues; i++)
		all->queues[i]->unanswered |=
		    all->queues[i]->first_check != FIRST_DONE;
	return r;
}

int
inventory(struct queues *all)
{
	int r = -ENOMEM;

	all->inventory = calloc(1, sizeof(*all->inventory));
	if (all->inventory == NULL)
		return -ENOMEM;
	all->inventory->timer =
	    event_new(all->instance->loop, -1, 0, on_time, NULL);
	if (all->inventory->timer != NULL) {
		r = make_table(all);
		event_free(all->inventory->timer);
	}
	free(all->inventory);
	all->inventory = NULL;
	return r;
}
