/* Turns at a destination that queues share, as their schedulers use them: who
 * has no agent free lets the others go on. */
#include <criterion/criterion.h>

#include "sched/sched.h"
#include "sched_check.h"
#include "site_shared_scratch.h"

#define RCPTS    400
#define DELIVERY (5 * USEC_PER_MSEC)

struct queue {
	struct end e;
	struct sched *s;
	struct sched_message *m;
	struct sched_entry *slow, *runs;
	usec_t now, until;
	uint32_t done;
};

struct two {
	struct scratch t;
	struct queue queues[2];
	usec_t now;
};

static struct sched_transport_params
params(uint32_t process_limit)
{
	return (struct sched_transport_params){
		.process_limit = process_limit,
		.destination_recipient_limit = 2,
		.recipient_limit = 10000,
		.recipient_refill_limit = 10000,
	};
}

static void
configure(struct two *t, struct queue *q, uint32_t process_limit)
{
	static const struct sched_params common = { 10000, 10, 10 };
	const struct sched_transport_params two[] = { params(process_limit),
		params(process_limit) };

	if (q->s == NULL)
		cr_assert_eq(sched_new(&common, two, 2, q->e.shared, &q->s), 0);
	else
		cr_assert_eq(sched_configure(q->s, &common, two, 2, t->now), 0);
}

static void
add(struct queue *q, const char *nexthop, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct sched_rcpt rcpt = { .index = i, .offset = i };

		cr_assert_eq(sched_rcpt_add(q->m, 0, nexthop, "u@x", &rcpt), 0);
	}
}

static void
two_begin(struct two *t)
{
	struct site_params one = plain;
	uint32_t i;

	*t = (struct two){ .now = USEC_PER_SEC };
	one.initial_destination_concurrency = 1;
	one.destination_concurrency_limit = 1;
	scratch_begin(&t->t, 64, 2);
	for (i = 0; i < 2; i++) {
		struct queue *q = &t->queues[i];

		end_begin(&q->e, &t->t, i + 1, &one);
		configure(t, q, i == 0 ? 5 : 1);
		cr_assert_eq(sched_message_new(q->s, q, t->now, &q->m), 0);
	}
}

static void
select_one(struct two *t, struct queue *q)
{
	q->runs = sched_select(q->s, t->now);
	q->until = t->now + DELIVERY;
	sched_check(q->s);
}

/* The first has the only place at "x"; the second has mail for it, too, and
 * its only agent is at "slow". */
static void
second_is_busy(struct two *t)
{
	struct queue *a = &t->queues[0], *b = &t->queues[1];

	add(a, "x", RCPTS);
	sched_batch_end(a->m, true, t->now);
	select_one(t, a);
	cr_assert_not_null(a->runs);
	add(b, "slow", 1);
	add(b, "x", RCPTS);
	sched_batch_end(b->m, true, t->now);
	b->slow = sched_select(b->s, t->now);
	cr_assert_str_eq(b->slow->nexthop, "slow");
	cr_assert_null(sched_select(b->s, t->now));
}

static void
on_ready(void *ctx, void *user)
{
	const struct queue *q = ctx;

	sched_site_ready(q->s, user, q->now);
}

static void
turn(struct two *t, struct queue *q)
{
	q->now = t->now;
	if (q->runs != NULL && q->until <= t->now) {
		sched_done(q->s, q->runs, SITE_DELIVERED, NULL, t->now);
		q->runs = NULL;
		q->done++;
	}
	(void)shared_work(q->e.shared, t->now, on_ready, q);
	sched_check(q->s);
	if (q->runs == NULL)
		select_one(t, q);
}

static void
run(struct two *t, usec_t length)
{
	const usec_t end = t->now + length;

	for (; t->now < end; t->now += USEC_PER_MSEC) {
		turn(t, &t->queues[0]);
		turn(t, &t->queues[1]);
	}
}

static void
two_end(struct two *t)
{
	uint32_t i;

	for (i = 0; i < 2; i++) {
		struct queue *q = &t->queues[i];

		if (q->slow != NULL)
			sched_done(q->s, q->slow, SITE_DELIVERED, NULL, t->now);
		if (q->runs != NULL)
			sched_done(q->s, q->runs, SITE_DELIVERED, NULL, t->now);
		sched_message_free(&q->m);
		sched_free(&q->s);
		end_close(&q->e);
	}
	scratch_end(&t->t);
}

Test(sched_shared_grants, who_has_no_agent_free_holds_nobody_up)
{
	struct two t;

	two_begin(&t);
	second_is_busy(&t);
	run(&t, 600 * USEC_PER_MSEC);
	/* Six milliseconds for each, as there are steps of one. */
	cr_expect_geq(t.queues[0].done, 90, "%u", t.queues[0].done);
	cr_expect_eq(t.queues[1].done, 0);
	two_end(&t);
}

Test(sched_shared_grants, and_has_its_share_when_it_has_one)
{
	struct two t;

	two_begin(&t);
	second_is_busy(&t);
	run(&t, 100 * USEC_PER_MSEC);
	sched_done(
	    t.queues[1].s, t.queues[1].slow, SITE_DELIVERED, NULL, t.now);
	t.queues[1].slow = NULL;
	t.queues[0].done = 0;
	run(&t, 600 * USEC_PER_MSEC);
	cr_expect_geq(t.queues[0].done, 40, "%u", t.queues[0].done);
	cr_expect_geq(t.queues[1].done, 40, "%u", t.queues[1].done);
	two_end(&t);
}

Test(sched_shared_grants, nor_does_who_may_not_start_anything)
{
	struct two t;

	two_begin(&t);
	second_is_busy(&t);
	sched_done(
	    t.queues[1].s, t.queues[1].slow, SITE_DELIVERED, NULL, t.now);
	t.queues[1].slow = NULL;
	sched_set_process_limit(t.queues[1].s, 0, 0);
	run(&t, 600 * USEC_PER_MSEC);
	cr_expect_geq(t.queues[0].done, 90, "%u", t.queues[0].done);
	sched_set_process_limit(t.queues[1].s, 0, 1);
	run(&t, 600 * USEC_PER_MSEC);
	cr_expect_geq(t.queues[1].done, 40, "%u", t.queues[1].done);
	two_end(&t);
}
