/* Rule 5.2: which of two messages behind bulk mail preempts it. */
#include "sched/sched.h"

#include <criterion/criterion.h>

#include "sched_check.h"
#include "sched_table.h"

static const struct sched_params params = { 1000, 1, 1000 };
static const struct sched_transport_params transport = {
	.process_limit = 100,
	.destination_recipient_limit = 1,
	.delivery_slot_cost = 5,
	.delivery_slot_discount = 50,
	.delivery_slot_loan = 3,
	.minimum_delivery_slots = 3,
	.recipient_limit = 1000,
	.recipient_refill_limit = 1,
};
static const struct site_params site = {
	.initial_destination_concurrency = 100,
	.positive = { 1, WINDOW_FIXED },
};
static const struct site_backoff backoff = { 1, 1, 0 };

#define TIES (29 * USEC_PER_SEC) /* (29 + 1) / 3 is (29 - 10 + 1) / 2 */

static const struct {
	const char *name;
	uint32_t first, second; /* entries */
	usec_t second_at, now;
	const char *want;
} cases[] = {
	{ "the older of two as large", 2, 2, USEC_PER_SEC, TIES, "first" },
	{ "the smaller of two as old", 3, 2, 0, TIES, "second" },
	{ "the older one first", 3, 2, 10 * USEC_PER_SEC, TIES - 1, "first" },
	{ "of equal ones the first of the list", 3, 2, 10 * USEC_PER_SEC, TIES,
	    "first" },
	{ "then the smaller one", 3, 2, 10 * USEC_PER_SEC, TIES + 1, "second" },
	{ "more than can be paid for is left out", 2, 5, 0, TIES, "first" },
	{ "a clock that went back stays where it was", 3, 2, 10 * USEC_PER_SEC,
	    0, "first" },
	{ "nobody", 30, 40, 0, TIES, "bulk" },
};

static struct sched_message *
message(struct sched *s, const char *owner, uint32_t entries, usec_t now)
{
	const struct sched_rcpt rcpt = { 0 };
	struct sched_message *m = NULL;

	cr_assert_eq(
	    sched_message_new(s, (void *)(uintptr_t)owner, now, &m), 0);
	for (; entries > 0; entries--)
		cr_assert_eq(sched_rcpt_add(m, 0, "host", NULL, &rcpt), 0);
	sched_batch_end(m, true, now);
	return m;
}

static void
deliver(struct sched *s, const char *want, const char *name, usec_t now)
{
	struct sched_entry *e = sched_select(s, now);

	cr_assert_not_null(e, "%s", name);
	cr_expect_str_eq(
	    e->owner, want, "%s: %s", name, (const char *)e->owner);
	sched_done(s, e, SITE_DELIVERED, NULL, now);
	sched_check(s);
}

Test(sched_candidate, has_the_best_score_now)
{
	struct sched_message *m[3];
	struct shared *sites = NULL;
	struct sched *s = NULL;
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		cr_assert_eq(table_new(&site, 1, &backoff, &sites), 0);
		cr_assert_eq(sched_new(&params, &transport, 1, sites, &s), 0);
		m[0] = message(s, "bulk", 20, 0);
		m[1] = message(s, "first", cases[i].first, 0);
		m[2] =
		    message(s, "second", cases[i].second, cases[i].second_at);
		deliver(s, "bulk", cases[i].name, cases[i].now);
		deliver(s, cases[i].want, cases[i].name, cases[i].now);
		for (k = 0; k < ARRAY_LEN(m); k++)
			sched_message_free(&m[k]);
		sched_free(&s);
		shared_free(&sites);
	}
}
