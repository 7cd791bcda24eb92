/* Places that go round between queues, in virtual time: each queue does what
 * queue-send/agents/kept.c does, with deliveries of 10 ms. */
#include <criterion/criterion.h>

#include "site_shared_scratch.h"

#define QUEUES  20
#define PLACES  20
#define MSEC    USEC_PER_MSEC
#define SERVICE (10 * MSEC)
#define CLOSE   (2 * MSEC)   /* QUIT and its answer */
#define IDLE    (100 * MSEC) /* KEPT_IDLE */

enum phase {
	FREE,
	BUSY,
	KEPT,
	CLOSING
};

struct place {
	enum phase phase;
	uint32_t queue;
	usec_t since;
};
struct queue {
	struct end end;
	struct site *site;
	uint32_t left, running, told;
	usec_t waits_since, longest; /* without any place */
};
struct turns {
	struct scratch t;
	uint32_t nqueues, limit, opened, open, peak;
	usec_t turn, now;
	struct queue queues[QUEUES];
	struct place places[PLACES];
};

static void
turns_begin(struct turns *s, uint32_t nqueues, uint32_t limit, uint32_t mail)
{
	const struct site_params params = {
		.initial_destination_concurrency = limit,
		.destination_concurrency_limit = limit,
		.failed_cohort_limit = 1,
	};
	struct queue *q;

	*s = (struct turns){ .nqueues = nqueues, .limit = limit, .now = MSEC };
	scratch_begin(&s->t, SHARED_SET_SLOTS, QUEUES);
	for (q = s->queues; q < s->queues + nqueues; q++) {
		end_begin(
		    &q->end, &s->t, (uint32_t)(q - s->queues) + 1, &params);
		q->site = end_site(&q->end, "a", s->now);
		*site_user(q->site) = &q->told;
		q->left = mail;
	}
}

static struct place *
place_of(struct turns *s, uint32_t queue, enum phase phase)
{
	struct place *p;

	for (p = s->places; p < s->places + PLACES; p++)
		if (p->phase == phase && (phase == FREE || p->queue == queue))
			return p;
	return NULL;
}

static uint32_t
count(struct turns *s, uint32_t queue, enum phase phase)
{
	uint32_t n = 0, i;

	for (i = 0; i < PLACES; i++)
		n += s->places[i].phase == phase && s->places[i].queue == queue;
	return n;
}

/* A connection that is open, or a new one. */
static void
start(struct turns *s, uint32_t queue)
{
	struct place *p = place_of(s, queue, KEPT);

	if (p == NULL) {
		p = place_of(s, queue, FREE);
		cr_assert_not_null(p, "more places than there are");
		*p = (struct place){ .queue = queue };
		s->opened++;
		s->open++;
	}
	p->phase = BUSY;
	p->since = s->now;
	s->queues[queue].running++;
}

static void
start_all(struct turns *s, uint32_t queue)
{
	struct queue *q = &s->queues[queue];
	enum site_state got = SITE_ROOM;

	while (q->left > q->running && got == SITE_ROOM) {
		got = site_take(q->site, s->now);
		if (got == SITE_ROOM)
			start(s, queue);
	}
	(void)site_wait(q->site, q->left > q->running, s->now);
}

static void
give_up(struct turns *s, struct place *p)
{
	struct queue *q = &s->queues[p->queue];

	shared_keep_not(q->site);
	shared_yield(q->site, s->now);
	p->phase = CLOSING;
	p->since = s->now;
}

static enum shared_want
want(struct turns *s, const struct place *p)
{
	return shared_want(s->queues[p->queue].site,
	    count(s, p->queue, CLOSING), s->turn, s->now);
}

static void
on_end(struct turns *s, struct place *p)
{
	struct queue *q = &s->queues[p->queue];

	q->left--;
	q->running--;
	shared_keep(q->site);
	end_done(q->site, SITE_DELIVERED, s->now);
	p->phase = KEPT;
	p->since = s->now;
	if (want(s, p) == SHARED_WANT_NOW)
		give_up(s, p);
}

static void
place_work(struct turns *s, struct place *p)
{
	struct queue *q = &s->queues[p->queue];

	if (p->phase == BUSY && s->now - p->since >= SERVICE) {
		on_end(s, p);
	} else if (p->phase == KEPT && s->now - p->since >= IDLE &&
	    want(s, p) > SHARED_WANT_NONE) {
		give_up(s, p);
	} else if (p->phase == CLOSING && s->now - p->since >= CLOSE) {
		end_done(q->site, SITE_AGENT_DIED, s->now);
		p->phase = FREE;
		s->open--;
	}
}

/* How long a queue with mail has no place at all. */
static void
note_wait(struct turns *s, struct queue *q)
{
	if (q->left == 0 || q->running > 0)
		q->waits_since = s->now;
	else if (s->now - q->waits_since > q->longest)
		q->longest = s->now - q->waits_since;
}

static uint32_t
turn_of_all(struct turns *s)
{
	uint32_t i, left = 0;

	for (i = 0; i < PLACES; i++)
		place_work(s, &s->places[i]);
	for (i = 0; i < s->nqueues; i++) {
		(void)end_work(&s->queues[i].end, s->now);
		start_all(s, i);
		note_wait(s, &s->queues[i]);
		left += s->queues[i].left;
	}
	cr_assert_leq(s->open, s->limit, "at %lld", (long long)s->now);
	s->now += MSEC;
	return left;
}

static void
turns_end(struct turns *s)
{
	uint32_t i;

	for (i = 0; i < PLACES; i++) {
		struct queue *q = &s->queues[s->places[i].queue];

		if (s->places[i].phase == KEPT)
			shared_keep_not(q->site);
		if (s->places[i].phase != FREE)
			end_done(q->site, SITE_AGENT_DIED, s->now);
	}
	for (i = 0; i < s->nqueues; i++)
		end_close(&s->queues[i].end);
	scratch_end(&s->t);
}

/* connections: at most. A queue waits at most for the places of those before
 * it: a turn, a delivery and a close for each round. */
Test(site_shared_turns, N45_a_place_goes_round_once_in_a_turn, .timeout = 120)
{
	static const struct {
		uint32_t queues, limit, mail;
		usec_t turn;
		uint32_t connections;
	} rows[] = {
		{ 1, 5, 400, USEC_PER_SEC, 5 },
		{ 2, 5, 200, USEC_PER_SEC, 10 },
		{ 4, 5, 100, USEC_PER_SEC, 16 },
		{ 4, 10, 100, USEC_PER_SEC, 20 },
		{ 4, 20, 100, USEC_PER_SEC, 40 },
		{ 20, 5, 20, USEC_PER_SEC, 25 },
		{ 20, 20, 20, USEC_PER_SEC, 40 },
		{ 4, 5, 2000, USEC_PER_SEC, 40 },
		{ 20, 5, 400, USEC_PER_SEC, 120 },
		{ 20, 5, 400, 4 * USEC_PER_SEC, 50 },
	};
	size_t n;

	for (n = 0; n < ARRAY_LEN(rows); n++) {
		const uint32_t rounds =
		    (rows[n].queues + rows[n].limit - 1) / rows[n].limit;
		struct turns s;
		uint32_t i;

		turns_begin(&s, rows[n].queues, rows[n].limit, rows[n].mail);
		s.turn = rows[n].turn;
		while (turn_of_all(&s) > 0)
			cr_assert_lt(s.now, 1000 * USEC_PER_SEC, "row %zu", n);
		cr_expect_leq(s.opened, rows[n].connections, "row %zu: %u", n,
		    (unsigned)s.opened);
		for (i = 0; i < s.nqueues; i++)
			cr_expect_leq(s.queues[i].longest,
			    rounds *
				(s.turn + SERVICE + CLOSE + SHARED_GRANT_TIME),
			    "row %zu: queue %u: %lld", n, (unsigned)i,
			    (long long)s.queues[i].longest);
		turns_end(&s);
	}
}
