/* What the scheduler says of a message that waits. */
#include "sched/sched.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "sched_check.h"
#include "sched_table.h"

static const struct sched_params params = { 1000000, 1, 1000 };
static const struct site_backoff backoff = { 1, 1, 0 };
static struct shared *sites;
static struct sched *s;

static struct sched_transport_params transport = {
	.process_limit = 1,
	.destination_recipient_limit = 1,
	.recipient_limit = 1000000,
	.recipient_refill_limit = 1,
	.delivery_slot_cost = 5,
	.minimum_delivery_slots = 3,
};
static const struct site_params site = {
	.initial_destination_concurrency = 2,
	.destination_concurrency_limit = 2,
	.positive = { 1, WINDOW_FIXED },
};

static void
start(void)
{
	cr_assert_eq(table_new(&site, 1, &backoff, &sites), 0);
	cr_assert_eq(sched_new(&params, &transport, 1, sites, &s), 0);
}

static void
end(void)
{
	sched_check(s);
	sched_free(&s);
	shared_free(&sites);
}

TestSuite(sched_explain, .init = start, .fini = end);

/* A message of n recipients: a0@d, a1@d, … each its own destination. */
static struct sched_message *
message(char *owner, unsigned n)
{
	struct sched_message *m = NULL;
	char address[32];
	unsigned i;

	cr_assert_eq(sched_message_new(s, owner, 1, &m), 0);
	cr_assert_eq(sched_message_expect(m, 0, n), 0);
	for (i = 0; i < n; i++) {
		const struct sched_rcpt rcpt = { i, i };

		snprintf(address, sizeof(address), "%s%u@d", owner, i);
		cr_assert_eq(sched_rcpt_add(m, 0, "d", address, &rcpt), 0);
	}
	sched_batch_end(m, true, 1);
	return m;
}

static struct sched_wait waits[8];
static unsigned nwaits;

static void
each(void *ctx, const struct sched_wait *wait)
{
	cr_assert_eq(ctx, &nwaits);
	waits[nwaits++ % ARRAY_LEN(waits)] = *wait;
}

static uint32_t
explain(const struct sched_message *m, uint32_t most)
{
	uint32_t budget = 10000;

	nwaits = 0;
	return sched_explain(m, most, &budget, each, &nwaits);
}

Test(sched_explain, behind_a_large_job_by_rule_5)
{
	char big_name[] = "big", small_name[] = "small", other_name[] = "other";
	struct sched_message *big = message(big_name, 20);
	struct sched_message *small, *other;
	struct sched_entry *e = sched_select(s, 2);

	cr_assert_not_null(e);
	small = message(small_name, 1);
	other = message(other_name, 7);
	cr_expect_eq(explain(small, 8), 1);
	cr_assert_eq(nwaits, 1);
	cr_expect_eq(waits[0].reason, SCHED_WAITS_BEHIND);
	cr_expect_eq(waits[0].other.owner, big_name);
	cr_expect_eq(waits[0].other.selected, 1);
	cr_expect_eq(waits[0].other.total, 20);
	cr_expect_eq(waits[0].need, 100);
	cr_expect_eq(waits[0].have, 20);
	/* 19 deliveries are left, which pay for less than seven. */
	cr_expect_eq(explain(other, 8), 7);
	cr_expect_eq(waits[0].need, 0);
	/* The one that is current waits for an agent. */
	cr_expect_eq(explain(big, 8), 8);
	cr_expect_eq(waits[0].reason, SCHED_WAITS_LIMIT);
	cr_expect_eq(waits[0].busy, 1);
	cr_expect_eq(waits[0].limit, 1);
	sched_done(s, e, SITE_DELIVERED, NULL, 3);
	cr_expect_eq(explain(big, 1), 1);
	cr_expect_eq(waits[0].reason, SCHED_WAITS_TURN);
	sched_set_process_limit(s, 0, 0);
	cr_expect_eq(explain(big, 1), 1);
	cr_expect_eq(waits[0].reason, SCHED_WAITS_AGENT);
	sched_message_free(&big);
	sched_message_free(&small);
	sched_message_free(&other);
}

/* mutation: common/sched/sched.c: spend() always has something. */
Test(sched_explain, A9_counting_ends_with_the_budget)
{
	char name[] = "m";
	struct sched_message *messages[50];
	struct sched_entry *e;
	uint32_t budget = 10;
	size_t i;

	transport.delivery_slot_cost = 0;
	cr_assert_eq(sched_configure(s, &params, &transport, 1, 1), 0);
	for (i = 0; i < ARRAY_LEN(messages); i++)
		messages[i] = message(name, 1);
	nwaits = 0;
	sched_set_process_limit(s, 0, 1);
	e = sched_select(s, 2);
	cr_assert_not_null(e);
	cr_expect_eq(sched_explain(messages[40], 8, &budget, each, &nwaits), 1);
	cr_expect_eq(budget, 0);
	cr_expect_leq(waits[0].ahead, 11);
	cr_expect(waits[0].more);
	sched_done(s, e, SITE_DELIVERED, NULL, 3);
	for (i = 0; i < ARRAY_LEN(messages); i++)
		sched_message_free(&messages[i]);
}
