/* Which queues there are, and their first start: every disk is looked at by a
 * process of its own (look.h), all at once. What has not answered in time is in
 * the table, put aside, and is judged when it answers. */
#include "qscheduler/supervisor/super.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "log/log.h"

/* The start waits so long for disks: those that answer are not to wait for
 * those that do not. */
#define START_WAIT (5 * USEC_PER_SEC)

/* The knowledge of a number while the table is made. */
enum known {
	KNOWN_NOTHING, /* it does not concern us */
	KNOWN_WANTED,  /* it is to be looked at */
	KNOWN_ASKED,   /* it has not answered */
	KNOWN_FACTS,
};

struct inventory {
	bool any_there;
	uint8_t known[QUEUE_NUM_MAX + 1]; /* enum known */
	struct queue_facts facts[QUEUE_NUM_MAX + 1];
	struct event *timer; /* ends a turn of the loop */
};

static bool
is_in_range(const struct super *s, uint32_t number, uint32_t count)
{
	return number >= s->queue_start && number - s->queue_start < count;
}

/* -n: those that are there; the first start makes QUEUE_COUNT of them. */
static bool
is_wanted(const struct super *s, const struct queue_facts *facts,
    uint32_t number, bool any_there)
{
	if (s->options.mode == MODE_KEEP && any_there)
		return facts->marked || facts->listed;
	return is_in_range(s, number, s->queue_count);
}

/* What a load made is there for the load: a restart in the midst of it keeps
 * the queues that have mail, and those that it does not need close by its
 * rules, from the top. */
static bool
is_kept(const struct super *s, const struct queue_facts *facts, uint32_t number)
{
	return s->options.mode == MODE_DYNAMIC && facts->mail &&
	    is_in_range(s, number, s->queue_max);
}

static enum verdict
judge(const struct super *s, uint32_t number, struct queue_facts *facts)
{
	facts->wanted = is_wanted(s, facts, number, s->any_there) ||
	    is_kept(s, facts, number);
	return base_judge(facts);
}

/* ---- one queue ---- */

static void
make(struct queue *q)
{
	struct super *s = q->super;
	int r = look_start(s, LOOK_MAKE, q->number, queue_on_made);

	q->unchecked = r == -EAGAIN;
	if (r < 0 && r != -EAGAIN && r != -EBUSY) {
		q->first_look = FIRST_DONE;
		queue_disable(q, strerror(-r));
	}
}

/* What cannot be made or is lost is in the table nevertheless, disabled. */
static void
settle(struct queue *q, const struct queue_facts *facts, enum verdict verdict)
{
	struct super *s = q->super;
	struct buf error = { 0 };

	q->first_look = FIRST_MAKE;
	if (facts->stuck < 0)
		log_warning("queue %" PRIu32 ": drops of an earlier version "
			    "stay in maildrop: %s",
		    q->number, strerror(-facts->stuck));
	if (verdict == VERDICT_DRAIN) {
		retire_begin(q, "not among those wanted", clock_mono());
		log_info("queue %" PRIu32 " holds mail and is not among those "
			 "wanted: drained",
		    q->number);
	}
	if (verdict != VERDICT_DISABLE) {
		make(q);
		return;
	}
	q->first_look = FIRST_DONE;
	(void)base_describe_lost(&s->base, q->number, facts, &error);
	queue_disable(q, buf_str(&error));
	buf_done(&error);
}

/* Disabled until its first looks have ended. */
static int
add_queue(struct super *s, uint32_t number, struct queue **ret_queue)
{
	struct queue *q;

	if (s->nqueues == PAGE_QUEUES_MAX) {
		log_error("ALERT: queue %" PRIu32 " is one too many: not run "
			  "before another one is retired",
		    number);
		return 0;
	}
	q = queue_new(s, number, QUEUE_STATE_OPEN);
	if (q == NULL)
		return -ENOMEM;
	q->disabled = true;
	q->first_look = FIRST_FACTS;
	(void)queue_insert(q);
	*ret_queue = q;
	return 0;
}

/* After the start: what its disk says at last. */
static void
on_late_facts(
    struct queue *q, const struct look_result *result, enum verdict verdict)
{
	struct super *s = q->super;
	const uint32_t number = q->number;

	q->unanswered = false;
	if (verdict != VERDICT_SKIP) {
		settle(q, &result->facts, verdict);
		return;
	}
	log_info("queue %" PRIu32 " is not wanted and holds no mail: not run",
	    number);
	queue_remove(q);
	objects_remove_stale(s, number);
	publish(s, clock_mono());
}

static void
on_facts(struct super *s, uint32_t number, const struct look_result *result,
    struct buf *more UNUSED)
{
	struct queue *q = queue_find(s, number);
	struct look_result judged = *result;

	if (s->inventory != NULL && result->r != -ETIMEDOUT) {
		s->inventory->facts[number] = result->facts;
		s->inventory->known[number] = KNOWN_FACTS;
	}
	if (q == NULL || q->first_look != FIRST_FACTS || q->closing)
		return;
	if (result->r == -ETIMEDOUT)
		q->unanswered = true;
	else
		on_late_facts(q, &judged, judge(s, number, &judged.facts));
}

void
inventory_look(struct queue *q)
{
	int r;

	if (q->first_look == FIRST_MAKE) {
		make(q);
		return;
	}
	r = look_start(q->super, LOOK_FACTS, q->number, on_facts);
	q->unchecked = r < 0 && r != -EBUSY;
}

/* ---- all of them ---- */

/* False: all were asked. */
static bool
ask(struct super *s, struct inventory *inv)
{
	uint32_t number;
	int r;

	for (number = 1; number <= QUEUE_NUM_MAX; number++) {
		if (inv->known[number] != KNOWN_WANTED)
			continue;
		r = look_start(s, LOOK_FACTS, number, on_facts);
		if (r == -EAGAIN)
			return true;
		/* Without a process it is as one that does not answer. */
		inv->known[number] = KNOWN_ASKED;
		if (r < 0)
			log_error("queue %" PRIu32 ": not looked at: %s",
			    number, strerror(-r));
	}
	return false;
}

static bool
are_facts_known(struct super *s)
{
	bool all = !ask(s, s->inventory);
	uint32_t number;

	for (number = 1; all && number <= QUEUE_NUM_MAX; number++)
		all = s->inventory->known[number] != KNOWN_ASKED;
	return all;
}

static bool
are_all_made(struct super *s)
{
	uint32_t i;

	for (i = 0; i < s->nqueues; i++) {
		struct queue *q = s->queues[i];

		if (q->unchecked)
			inventory_look(q);
		if (q->first_look == FIRST_MAKE && !q->unanswered)
			return false;
	}
	return true;
}

static void
on_time(evutil_socket_t fd UNUSED, short what UNUSED, void *arg UNUSED)
{
}

/* The loop as it will be, with nothing in it yet but looks and signals. One
 * turn of it ends with a look, or soon, for those that wait for room. */
static void
wait_until(struct super *s, bool (*is_so)(struct super *s), usec_t end)
{
	while (!s->stopping && !is_so(s)) {
		const usec_t left = end - clock_mono();
		const struct timeval tv = clock_timeval(
		    left < LOOK_YOUNG / 8 ? left : LOOK_YOUNG / 8);

		if (left <= 0 || event_add(s->inventory->timer, &tv) < 0)
			return;
		(void)event_base_loop(s->loop, EVLOOP_ONCE);
	}
}

static int
add_known(struct super *s, uint32_t number, bool with_mail)
{
	struct queue_facts *facts = &s->inventory->facts[number];
	const enum verdict verdict = judge(s, number, facts);
	struct queue *q = NULL;
	int r = 0;

	if (verdict == VERDICT_SKIP) {
		objects_remove_stale(s, number);
		s->inventory->known[number] = KNOWN_NOTHING;
	} else if (facts->mail == with_mail) {
		r = add_queue(s, number, &q);
		if (q != NULL)
			settle(q, facts, verdict);
	}
	return r;
}

static int
add_unknown(struct super *s, uint32_t number)
{
	struct queue *q = NULL;
	int r = add_queue(s, number, &q);

	if (q != NULL) {
		q->unanswered = true;
		q->unchecked = !look_runs(s, number);
	}
	return r;
}

static int
add(struct super *s, uint32_t number, enum known known, bool with_mail)
{
	if (s->inventory->known[number] != known ||
	    queue_find(s, number) != NULL)
		return 0;
	return known == KNOWN_FACTS ? add_known(s, number, with_mail)
				    : add_unknown(s, number);
}

/* Where there is not room for all, those with mail come first. */
static int
fill_table(struct super *s)
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
			    s, number, passes[i].known, passes[i].with_mail);
	return r;
}

static int
list(struct super *s, struct inventory *inv)
{
	uint32_t disk[QUEUE_NUM_MAX], number;
	int i, n = spool_list(s->base.path, disk, ARRAY_LEN(disk));

	if (n < 0) {
		log_error("%s: %s", s->base.path, strerror(-n));
		return n;
	}
	for (i = 0; i < n; i++)
		queue_note_disk(s, disk[i]);
	s->any_there = n > 0;
	for (number = 1; number <= QUEUE_NUM_MAX; number++)
		if (s->on_disk[number] || s->base.listed[number] ||
		    is_in_range(s, number, s->queue_count))
			inv->known[number] = KNOWN_WANTED;
		/* A supervisor that was killed while it made one left what it
		 * had for it by then. */
		else if (is_in_range(s, number, s->queue_max))
			objects_remove_stale(s, number);
	return 0;
}

static usec_t
patience(const struct super *s)
{
	const usec_t limit = s->conf->disk_time_limit;

	return clock_mono() + (limit < START_WAIT ? limit : START_WAIT);
}

static int
make_table(struct super *s)
{
	uint32_t i;
	int r = list(s, s->inventory);

	if (r < 0)
		return r;
	wait_until(s, are_facts_known, patience(s));
	if (s->stopping)
		return 0;
	r = fill_table(s);
	if (r == 0)
		wait_until(s, are_all_made, patience(s));
	for (i = 0; i < s->nqueues; i++)
		s->queues[i]->unanswered |=
		    s->queues[i]->first_look != FIRST_DONE;
	return r;
}

int
inventory(struct super *s)
{
	int r = -ENOMEM;

	s->inventory = calloc(1, sizeof(*s->inventory));
	if (s->inventory == NULL)
		return -ENOMEM;
	s->inventory->timer = event_new(s->loop, -1, 0, on_time, NULL);
	if (s->inventory->timer != NULL) {
		r = make_table(s);
		event_free(s->inventory->timer);
	}
	free(s->inventory);
	s->inventory = NULL;
	return r;
}
