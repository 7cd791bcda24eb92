/* From a configuration to the parameters of the schedulers: each field is the
 * one of its name, of the right transport. */
#include "limits/limits.h"

#include <criterion/criterion.h>

static struct conf
two_transports(void)
{
	static char first[] = "first", second[] = "second";

	return (struct conf){
		.message_recipient_limit_mem = 1,
		.message_recipient_minimum = 2,
		.minimal_backoff_time = 3,
		.maximal_backoff_time = 4,
		.backoff_jitter_pct = 5,
		.transports = {
			{ .name = first },
			{ .name = second,
			    .initial_destination_concurrency = 6,
			    .destination_concurrency_limit = 7,
			    .positive_feedback = { 0.8,
				FEEDBACK_PER_CONCURRENCY },
			    .negative_feedback = { 0.9,
				FEEDBACK_PER_SQRT_CONCURRENCY },
			    .failed_cohort_limit = 1.0,
			    .destination_recipient_limit = 11,
			    .delivery_slot_cost = 12,
			    .delivery_slot_discount = 13,
			    .delivery_slot_loan = 14,
			    .minimum_delivery_slots = 15,
			    .recipient_limit = 16,
			    .extra_recipient_limit = 17,
			    .recipient_refill_limit = 18,
			    .recipient_refill_delay = 19,
			    .process_limit = 20 },
		},
		.ntransports = 2,
	};
}

Test(limits, of_all_transports)
{
	const struct conf conf = two_transports();
	struct sched_params sched;
	struct site_backoff backoff;

	limits_sched(&conf, &sched);
	cr_expect_eq(sched.message_recipient_limit, 1);
	cr_expect_eq(sched.message_recipient_minimum, 2);
	limits_backoff(&conf, &backoff);
	cr_expect_eq(backoff.minimal_backoff_time, 3);
	cr_expect_eq(backoff.maximal_backoff_time, 4);
	cr_expect_eq(backoff.jitter_pct, 5);
}

Test(limits, of_a_transport)
{
	const struct conf conf = two_transports();
	struct sched_transport_params t;

	limits_transport(&conf, 1, &t);
	cr_expect_str_eq(t.name, "second");
	cr_expect_eq(t.destination_recipient_limit, 11);
	cr_expect_eq(t.delivery_slot_cost, 12);
	cr_expect_eq(t.delivery_slot_discount, 13);
	cr_expect_eq(t.delivery_slot_loan, 14);
	cr_expect_eq(t.minimum_delivery_slots, 15);
	cr_expect_eq(t.recipient_limit, 16);
	cr_expect_eq(t.extra_recipient_limit, 17);
	cr_expect_eq(t.recipient_refill_limit, 18);
	cr_expect_eq(t.recipient_refill_delay, 19);
	cr_expect_eq(t.process_limit, 20);
	limits_transport(&conf, 0, &t);
	cr_expect_str_eq(t.name, "first");
	cr_expect_eq(t.process_limit, 0);
}

Test(limits, of_the_sites_of_a_transport)
{
	const struct conf conf = two_transports();
	struct site_params p;

	limits_site(&conf, 1, &p);
	cr_expect_eq(p.initial_destination_concurrency, 6);
	cr_expect_eq(p.destination_concurrency_limit, 7);
	cr_expect(p.positive.amount == 0.8);
	cr_expect_eq(p.positive.form, WINDOW_PER_N);
	cr_expect(p.negative.amount == 0.9);
	cr_expect_eq(p.negative.form, WINDOW_PER_ROOT_N);
	cr_expect(p.failed_cohort_limit == 1);
	limits_site(&conf, 0, &p);
	cr_expect(p.positive.amount == 0);
	cr_expect_eq(p.positive.form, WINDOW_FIXED);
}

/* mutation: limits.c, account_limit() gives the limit of the transport, or
 * limits_site() asks it for no kind. */
Test(limits, X12_an_account_has_a_share_of_the_slots)
{
	static const struct {
		uint32_t process_limit, share, limit, want;
	} rows[] = {
		{ 100, 10, 2, 2 },
		{ 100, 10, 0, 10 },
		{ 100, 10, 100000, 10 },
		{ 100, 10, 11, 10 },
		{ 5, 10, 2, 1 },
		{ 1, 1, 0, 1 },
		{ 10000, 100, 0, 10000 },
	};
	struct conf conf = two_transports();
	struct site_params p;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		conf.local_account_share = rows[i].share;
		conf.transports[1].kind = AGENT_LOCAL;
		conf.transports[1].process_limit = rows[i].process_limit;
		conf.transports[1].destination_concurrency_limit =
		    rows[i].limit;
		limits_site(&conf, 1, &p);
		cr_expect_eq(p.destination_concurrency_limit, rows[i].want,
		    "row %zu: %u", i, p.destination_concurrency_limit);
		cr_expect_leq(p.initial_destination_concurrency,
		    p.destination_concurrency_limit);
		conf.transports[1].kind = AGENT_PIPE;
		limits_site(&conf, 1, &p);
		cr_expect_eq(p.destination_concurrency_limit, rows[i].limit);
	}
}
