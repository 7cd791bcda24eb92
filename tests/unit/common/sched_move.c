/* Destinations that next hops share, and entries that move there. */
#include "sched/sched.h"

#include <criterion/criterion.h>

#include "sched_check.h"
#include "sched_table.h"

static const struct sched_params params = { 1000000, 1, 1000 };
static const struct site_backoff backoff = { 1, 1, 0 };
static struct shared *sites;

static struct sched *
make(void)
{
	static const struct sched_transport_params transport = {
		.process_limit = 8,
		.destination_recipient_limit = 50,
		.recipient_limit = 1000000,
		.recipient_refill_limit = 1,
	};
	static const struct site_params site = {
		.initial_destination_concurrency = 4,
		.destination_concurrency_limit = 4,
		.positive = { 1, WINDOW_FIXED },
	};
	struct sched *s = NULL;

	cr_assert_eq(table_new(&site, 1, &backoff, &sites), 0);
	cr_assert_eq(sched_new(&params, &transport, 1, sites, &s), 0);
	return s;
}

static void
unmake(struct sched **s)
{
	sched_free(s);
	shared_free(&sites);
}

static struct sched_message *
message(struct sched *s)
{
	struct sched_message *m = NULL;

	cr_assert_eq(sched_message_new(s, &sites, 0, &m), 0);
	return m;
}

static void
add(struct sched_message *m, uint32_t index)
{
	const struct sched_rcpt rcpt = { index, index };

	cr_assert_eq(sched_rcpt_add(m, 0, "x", "u@x", &rcpt), 0);
}

static void
read_to_the_end(struct sched_message *m)
{
	sched_batch_end(m, true, 0);
}

/* mutation: common/sched/peer.c, take_loading() that fills up. */
Test(sched_move, entries_of_a_shared_destination_have_one_group)
{
	struct sched *s = make();
	struct sched_message *m = message(s);
	static const uint64_t groups[] = { 7, 3, 7, 3, 7 };
	static const uint32_t want[][3] = { { 1, 3 }, { 0, 2, 4 }, { 5 } };
	struct sched_entry *e[3];
	struct sched_rcpt rcpt;
	uint32_t i, k;

	for (i = 0; i < 5; i++) {
		rcpt = (struct sched_rcpt){ i, i };
		cr_assert_eq(
		    sched_rcpt_add_shared(m, 0, "mx:a", groups[i], &rcpt), 0);
	}
	sched_batch_end(m, false, 0);
	/* Another batch begins entries of its own. */
	rcpt = (struct sched_rcpt){ 5, 5 };
	cr_assert_eq(sched_rcpt_add_shared(m, 0, "mx:a", 7, &rcpt), 0);
	sched_batch_end(m, true, 0);
	for (i = 0; i < 3; i++) {
		e[i] = sched_select(s, 0);
		cr_assert_not_null(e[i]);
		cr_expect_str_eq(e[i]->destination, "mx:a");
		cr_expect_eq(e[i]->nrcpts, i == 0 ? 2 : i == 1 ? 3 : 1);
		for (k = 0; k < e[i]->nrcpts; k++)
			cr_expect_eq(e[i]->rcpts[k].index, want[i][k]);
	}
	sched_check(s);
	for (i = 0; i < 3; i++)
		sched_done(s, e[i], SITE_DELIVERED, NULL, 0);
	sched_message_free(&m);
	unmake(&s);
}

/* The window of the destination that it was selected for learns nothing. */
Test(sched_move, a_moved_entry_waits_for_the_other_destination)
{
	struct sched *s = make();
	struct sched_message *a = message(s);
	struct sched_entry *e;
	uint32_t i;

	for (i = 0; i < 3; i++)
		add(a, i);
	read_to_the_end(a);
	e = sched_select(s, 0);
	cr_assert_null(sched_select(s, 0), "all of it runs");
	cr_assert_eq(sched_move(s, e, "mx:a", 0), 0);
	sched_check(s);
	cr_expect_eq(sched_figures(s).running, 0);
	cr_expect_eq(sched_figures(s).destinations, 1, "x is gone");
	cr_expect_eq(sched_message_waiting(a), 3);
	e = sched_select(s, 0);
	cr_assert_not_null(e);
	cr_expect_str_eq(e->destination, "mx:a");
	cr_expect_eq(e->moves, 1);
	cr_expect_eq(e->nrcpts, 3);
	sched_done(s, e, SITE_DELIVERED, NULL, 0);
	sched_message_free(&a);
	unmake(&s);
}
