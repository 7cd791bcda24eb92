/* Which messages go to which queue. */
#include "qctl/act/spread.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ALL UINT64_MAX

struct figures {
	bool gives, takes;
	uint64_t backlog, room, waiting, volume;
};

static const struct {
	const char *name;
	struct figures queues[4];
	uint32_t moves[4][4];
} rows[] = {
	{ "half of it goes to the one with room",
	    { { true, false, 10, 0, 10, 1 }, { false, true, 0, 99, 0, 1 } },
	    { { 0, 5 } } },
	{ "three are level after it",
	    { { true, false, 30, 0, 30, 1 }, { false, true, 0, 99, 0, 1 },
		{ false, true, 6, 99, 0, 1 } },
	    { { 0, 12, 6 } } },
	{ "no more than has room",
	    { { true, false, 100, 0, 100, 1 }, { false, true, 0, 3, 0, 1 } },
	    { { 0, 3 } } },
	{ "no more than was selected and waits",
	    { { true, false, 100, 0, 2, 1 }, { false, true, 0, 99, 0, 1 } },
	    { { 0, 2 } } },
	{ "nothing to a queue that has as much, or one less",
	    { { true, false, 10, 0, 10, 1 }, { false, true, 10, 99, 0, 1 },
		{ false, true, 9, 99, 0, 1 } },
	    { { 0 } } },
	{ "two less: one goes",
	    { { true, false, 10, 0, 10, 1 }, { false, true, 8, 99, 0, 1 } },
	    { { 0, 1 } } },
	{ "full queues take nothing",
	    { { true, false, 10, 0, 10, 1 }, { true, false, 0, 99, 0, 1 } },
	    { { 0 } } },
	{ "queues that are not full give nothing",
	    { { false, true, 10, 99, 10, 1 }, { false, true, 0, 99, 0, 1 } },
	    { { 0 } } },
	{ "another file system takes nothing, and holds up nobody",
	    { { true, false, 90, 0, 90, 2 }, { true, false, 10, 0, 10, 1 },
		{ false, true, 0, 99, 0, 1 } },
	    { { 0 }, { 0, 0, 5 } } },
	{ "of two full ones first the one that has more",
	    { { true, false, 20, 0, 20, 1 }, { true, false, 16, 0, 16, 1 },
		{ false, true, 0, 99, 0, 1 } },
	    { { 0, 0, 8 }, { 0, 0, 4 } } },
	{ "a queue that is out of use gives all",
	    { { true, false, ALL, 0, 7, 1 }, { false, true, 50, 99, 0, 1 } },
	    { { 0, 7 } } },
};

static struct spread_plan *
plan_of(const struct figures queues[4])
{
	struct spread_plan *plan = calloc(1, sizeof(*plan));
	uint32_t i;

	cr_assert_not_null(plan);
	for (i = 0; i < 4; i++)
		plan->queues[i] = (struct spread_queue){ i + 1, queues[i].gives,
			queues[i].takes, queues[i].backlog, queues[i].room,
			queues[i].waiting, queues[i].volume };
	plan->nqueues = 4;
	return plan;
}

Test(spread, mail_goes_where_less_is)
{
	size_t i, from, to;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct spread_plan *plan = plan_of(rows[i].queues);

		spread_level(plan);
		for (from = 0; from < 4; from++)
			for (to = 0; to < 4; to++)
				cr_expect_eq(plan->moves[from][to],
				    rows[i].moves[from][to],
				    "%s: %zu to %zu: %u", rows[i].name, from,
				    to, plan->moves[from][to]);
		free(plan);
	}
}

/* Whatever the figures: nothing goes to or from where it may not, nor more than
 * there is, and no queue has more afterwards than the fullest had. */
Test(spread, chance)
{
	struct figures f[4];
	unsigned seed = 7, round;
	size_t from, to;

	for (round = 0; round < 2000; round++) {
		struct spread_plan *plan;
		uint64_t most = 0;

		for (from = 0; from < 4; from++) {
			f[from] = (struct figures){ rand_r(&seed) % 2 == 0,
				false, (uint64_t)rand_r(&seed) % 50,
				(uint64_t)rand_r(&seed) % 30, 0,
				(uint64_t)rand_r(&seed) % 4 / 3 };
			f[from].takes = !f[from].gives && rand_r(&seed) % 3 > 0;
			f[from].waiting =
			    (uint64_t)rand_r(&seed) % (f[from].backlog + 1);
			if (f[from].backlog > most)
				most = f[from].backlog;
		}
		plan = plan_of(f);
		spread_level(plan);
		for (from = 0; from < 4; from++) {
			uint64_t out = 0, in = 0;

			for (to = 0; to < 4; to++) {
				out += plan->moves[from][to];
				in += plan->moves[to][from];
				cr_assert(plan->moves[from][to] == 0 ||
				    f[from].volume == f[to].volume);
			}
			cr_assert_leq(out, f[from].gives ? f[from].waiting : 0);
			cr_assert_leq(in, f[from].takes ? f[from].room : 0);
			cr_assert(in == 0 || f[from].backlog + in < most);
		}
		free(plan);
	}
}

/* mutation: qctl/act/spread.c: spread_backlog() leaves `untried` out. */
Test(spread, messages_that_were_never_tried_are_backlog)
{
	const struct queue_page page = { .maildrop = 1,
		.incoming = 20,
		.active = 300,
		.deferred = 4000,
		.untried = 50000,
		.hold = 600000 };
	const struct queue_page lies = { .active = ALL, .untried = ALL };

	cr_expect_eq(spread_backlog(&page), 54321);
	cr_expect_eq(spread_backlog(&lies), ALL - 1);
}
