/* Single looks at the queues: what leads to which decision. */
#include "proc_scale_decide.h"

#include <criterion/criterion.h>

const struct scale_params scale_defaults = {
	.dynamic = true,
	.min = 5,
	.max = 20,
	.threshold_pct = 90,
	.grow_time = 30 * USEC_PER_SEC,
	.shrink_time = 5 * MINUTE,
	.interval = MINUTE,
};

enum scale_act
scale_look_at(struct scale *s, const struct scale_params *p, usec_t now,
    uint32_t n, uint32_t load, uint64_t waiting, struct scale_decision *d)
{
	struct scale_queue queues[QUEUES];
	const struct scale_input in = { .now = now, .queues = queues, .n = n };
	uint32_t i;

	for (i = 0; i < n; i++)
		queues[i] = (struct scale_queue){ .load_pct = load,
			.wanted = true,
			.usable = true,
			.known = true,
			.waiting = waiting };
	return scale_decide(s, p, &in, d);
}

static struct scale_params
quick(void)
{
	struct scale_params p = scale_defaults;

	p.grow_time = p.shrink_time = 0;
	return p;
}

/* As the old one did, a queue for each report of a round. */
Test(scale, several_queues_over_the_threshold_add_one_in_a_round)
{
	const struct scale_params p = quick();
	struct scale_decision d;
	struct scale s;
	usec_t now = HOUR;
	int i, grown = 0;

	scale_init(&s);
	for (i = 0; i < 60; i++, now += USEC_PER_SEC)
		grown +=
		    scale_look_at(&s, &p, now, 8, 100, 9, &d) == SCALE_GROW;
	cr_expect_eq(grown, 1);
	cr_expect_eq(d.figures.mean_pct, 100);
	cr_expect_eq(d.figures.waiting, 72);
	cr_expect_eq(d.figures.usable, 8);
	cr_expect_eq(scale_look_at(&s, &p, now, 9, 85, 9, &d), SCALE_NOTHING);
	cr_expect_eq(scale_look_at(&s, &p, now, 9, 100, 9, &d), SCALE_GROW,
	    "the last one had helped");
}

Test(scale, conditions_have_to_hold)
{
	static const struct {
		const char *name;
		uint32_t n, load;
		uint64_t waiting;
		enum scale_act want;
	} rows[] = {
		{ "just at the threshold", 8, 90, 1, SCALE_GROW },
		{ "just below it", 8, 89, 1, SCALE_NOTHING },
		{ "nothing waits", 8, 100, 0, SCALE_NOTHING },
		{ "as many as there may be", 20, 100, 1, SCALE_NOTHING },
		{ "more than there may be", 22, 100, 1, SCALE_NOTHING },
		{ "the others can carry it", 10, 40, 1, SCALE_RETIRE },
		{ "just not", 10, 41, 1, SCALE_NOTHING },
		{ "as few as there must be", 5, 0, 0, SCALE_NOTHING },
		{ "fewer than there must be", 4, 0, 0, SCALE_GROW },
		{ "none", 0, 0, 0, SCALE_GROW },
		{ "absurd loads", 8, UINT32_MAX, UINT64_MAX, SCALE_GROW },
	};
	const struct scale_params p = quick();
	struct scale_decision d;
	struct scale s;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		scale_init(&s);
		cr_expect_eq(scale_look_at(&s, &p, HOUR, rows[i].n,
				 rows[i].load, rows[i].waiting, &d),
		    rows[i].want, "%s", rows[i].name);
	}
}

Test(scale, a_condition_that_breaks_begins_anew)
{
	const struct scale_params p = scale_defaults;
	struct scale_decision d;
	struct scale s;
	usec_t now = 0;
	int i;

	scale_init(&s);
	for (i = 0; i < 29; i++, now += USEC_PER_SEC)
		cr_expect_eq(
		    scale_look_at(&s, &p, now, 8, 95, 1, &d), SCALE_NOTHING);
	cr_expect_eq(scale_look_at(&s, &p, now, 8, 89, 1, &d), SCALE_NOTHING);
	for (i = 0; i < 30; i++)
		cr_expect_eq(
		    scale_look_at(&s, &p, now += USEC_PER_SEC, 8, 95, 1, &d),
		    SCALE_NOTHING);
	cr_expect_eq(scale_look_at(&s, &p, now += USEC_PER_SEC, 8, 95, 1, &d),
	    SCALE_GROW);
	cr_expect_eq(d.held_for, 30 * USEC_PER_SEC);
	cr_expect(d.by_load);
}

Test(scale, fixed_is_fixed)
{
	struct scale_params p = quick();
	struct scale_decision d;
	struct scale s;

	p.dynamic = false;
	scale_init(&s);
	cr_expect_eq(scale_look_at(&s, &p, HOUR, 8, 100, 9, &d), SCALE_NOTHING);
	cr_expect_eq(scale_look_at(&s, &p, HOUR, 8, 0, 0, &d), SCALE_NOTHING);
	cr_expect_eq(scale_look_at(&s, &p, HOUR, 4, 0, 0, &d), SCALE_GROW);
}

Test(scale, loads_by_hand_need_no_mail_and_no_success)
{
	struct scale s;
	struct scale_queue queues[QUEUES];
	struct scale_input in = { .queues = queues, .n = 6 };
	struct scale_decision d;
	usec_t now = HOUR;
	int i, grown = 0;

	scale_init(&s);
	for (i = 0; i < QUEUES; i++)
		queues[i] = (struct scale_queue){ .load_pct = 95,
			.wanted = true,
			.usable = true,
			.known = true,
			.by_hand = true };
	for (i = 0; i < 600; i++, now += USEC_PER_SEC) {
		in.now = now;
		if (scale_decide(&s, &scale_defaults, &in, &d) == SCALE_GROW) {
			grown++;
			in.n++;
		}
	}
	cr_expect_geq(grown, 9, "each minute one: %d", grown);
}

/* Wanted, but of no use at the moment: disabled, quarantined. */
Test(scale, what_is_not_usable_does_not_count)
{
	const struct scale_params p = quick();
	struct scale_queue queues[8];
	const struct scale_input in = {
		.now = HOUR, .queues = queues, .n = ARRAY_LEN(queues)
	};
	struct scale_decision d;
	struct scale s;
	size_t i;

	for (i = 0; i < ARRAY_LEN(queues); i++)
		queues[i] = (struct scale_queue){ .wanted = true,
			.usable = i != 7,
			.known = i < 6,
			.load_pct = i < 6 ? 10 : 1000 };
	scale_init(&s);
	cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_RETIRE);
	cr_expect_eq(d.index, 5, "the highest that is known to be idle");
	cr_expect_eq(d.figures.mean_pct, 10);
	cr_expect_eq(d.figures.wanted, 8);
	cr_expect_eq(d.figures.usable, 7);
	cr_expect_eq(d.figures.known, 6);
	queues[5].wanted = queues[5].usable = queues[5].known = false;
	cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_NOTHING);
}

Test(scale, a_held_count_outranks)
{
	struct scale_params p = scale_defaults;
	struct scale_queue queues[QUEUES];
	struct scale_input in = { .now = HOUR, .queues = queues, .n = 6 };
	struct scale_decision d;
	struct scale s;
	size_t i;

	for (i = 0; i < QUEUES; i++)
		queues[i] = (struct scale_queue){ .wanted = true,
			.usable = true,
			.known = true,
			.load_pct = 100,
			.waiting = 5 };
	p.dynamic = false;
	scale_init(&s);
	in.held = 9;
	cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_GROW);
	cr_expect_not(d.by_load);
	in.busy = true;
	cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_NOTHING);
	in.busy = false;
	for (in.n = 7; in.n < 9; in.n++)
		cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_GROW);
	p.dynamic = true;
	for (i = 0; i < 600; i++, in.now += USEC_PER_SEC)
		cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_NOTHING);
	in.held = 7;
	cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_RETIRE);
	cr_expect_eq(d.index, 8);
	in.n = 5;
	in.held = 1; /* below QUEUE_COUNT */
	cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_NOTHING);
	in.n = 20;
	in.held = 1000; /* above QUEUE_MAX */
	cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_NOTHING);
	queues[3].usable = queues[3].known = false;
	cr_expect_eq(scale_decide(&s, &p, &in, &d), SCALE_NOTHING);
}

Test(scale, a_failed_attempt_waits_for_the_interval_and_is_not_judged)
{
	const struct scale_params p = quick();
	struct scale_decision d;
	struct scale s;
	usec_t now = HOUR;
	int i;

	scale_init(&s);
	cr_expect_eq(scale_look_at(&s, &p, now, 8, 100, 9, &d), SCALE_GROW);
	scale_undone(&s);
	for (i = 1; i < 60; i++)
		cr_expect_eq(scale_look_at(
				 &s, &p, now + i * USEC_PER_SEC, 8, 100, 9, &d),
		    SCALE_NOTHING);
	cr_expect_eq(
	    scale_look_at(&s, &p, now + MINUTE, 8, 100, 9, &d), SCALE_GROW);
	cr_expect_eq(scale_interval(&s, &p), p.interval);
}

/* ---- clocks ---- */

Test(scale, a_pause_says_nothing_of_what_was_between)
{
	const struct scale_params p = scale_defaults;
	struct scale_decision d;
	struct scale s;

	scale_init(&s);
	cr_expect_eq(scale_look_at(&s, &p, HOUR, 8, 100, 9, &d), SCALE_NOTHING);
	cr_expect_eq(scale_look_at(&s, &p, HOUR + 60 * MINUTE, 8, 100, 9, &d),
	    SCALE_NOTHING);
}
