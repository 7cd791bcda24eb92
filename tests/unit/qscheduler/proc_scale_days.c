/* The number of queues over days of load, in virtual time. */
#include "proc_scale_decide.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS       20 /* deliveries at once in one queue */
#define DAY         (24 * HOUR)
#define CHANGES_MAX 4096

/* A site of queues: what comes in a second, what the far side takes at most,
 * and what the scheduler has made of it. */
struct world {
	struct scale_params params;
	struct scale scale;
	double (*arrivals)(struct world *w, unsigned second); /* a second */
	double far_limit; /* deliveries a second, all queues; 0: none */
	double slot_rate; /* deliveries a second of one slot */
	bool remote_only; /* half of the slots are local, and idle */
	bool by_hand;
	double backlog;
	double rates[60]; /* of the last minute */
	unsigned second, open, stale_from, failing;
	usec_t clock; /* of second 0 */
	/* what happened */
	unsigned nchanges, ngrown, nclosed, most, least;
	usec_t change_at[CHANGES_MAX];
};

static double
rate_of_minute(const struct world *w)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < ARRAY_LEN(w->rates); i++)
		sum += w->rates[i];
	return sum / (double)ARRAY_LEN(w->rates);
}

/* One second of mail: the load that comes of it, in percent. */
static uint32_t
serve(struct world *w)
{
	const double slots = w->open * SLOTS;
	double can = slots * w->slot_rate, served, used;

	if (w->far_limit > 0 && can > w->far_limit)
		can = w->far_limit;
	w->backlog += w->arrivals(w, w->second);
	served = w->backlog < can ? w->backlog : can;
	w->backlog -= served;
	w->rates[w->second % ARRAY_LEN(w->rates)] = served;
	/* A far side that is slow holds every slot. */
	used = w->backlog > 0 ? slots : served / w->slot_rate;
	return (uint32_t)(used * 100 / slots);
}

/* local in use / limit and remote in use / limit: the larger, as
 * queue_page_load() has it. Their mean could never pass 50 where only one of
 * them is used, nor their sum of halves. */
static uint32_t
load_of(const struct world *w, uint32_t pct)
{
	const uint32_t local = w->remote_only ? 0 : pct;

	return pct > local ? pct : local;
}

static void
fill(const struct world *w, uint32_t pct, struct scale_queue *queues)
{
	unsigned i;

	for (i = 0; i < w->open; i++)
		queues[i] = (struct scale_queue){
			.load_pct = load_of(w, pct),
			.wanted = true,
			.usable = true,
			.known = w->stale_from == 0 || i + 1 < w->stale_from,
			.by_hand = w->by_hand,
			.waiting = (uint64_t)(w->backlog / w->open),
			.rate = (uint64_t)(rate_of_minute(w) * 100 / w->open),
		};
}

static void
note_change(struct world *w, enum scale_act act, usec_t now)
{
	cr_assert(w->nchanges < CHANGES_MAX);
	if (w->nchanges > 0)
		cr_assert(
		    now - w->change_at[w->nchanges - 1] >= w->params.interval,
		    "two changes within the interval, at second %u", w->second);
	w->change_at[w->nchanges++] = now;
	if (act == SCALE_GROW) {
		w->ngrown++;
		w->open++;
	} else {
		w->nclosed++;
		w->open--;
	}
	cr_assert(w->open >= w->params.min && w->open <= w->params.max,
	    "%u queues at second %u", w->open, w->second);
	if (w->open > w->most)
		w->most = w->open;
	if (w->open < w->least)
		w->least = w->open;
}

static void
step(struct world *w)
{
	struct scale_queue queues[QUEUES];
	const usec_t now = w->clock + (usec_t)w->second * USEC_PER_SEC;
	struct scale_input in = { .now = now, .queues = queues };
	struct scale_decision d;

	fill(w, serve(w), queues);
	in.n = w->open;
	if (scale_decide(&w->scale, &w->params, &in, &d) != SCALE_NOTHING)
		note_change(w, d.act, now);
	if (d.act == SCALE_RETIRE)
		cr_assert_eq(d.index, in.n - 1, "not from the top");
	w->second++;
}

static void
run(struct world *w, unsigned seconds)
{
	while (seconds-- > 0)
		step(w);
}

static struct world *
world_new(double (*arrivals)(struct world *w, unsigned second))
{
	struct world *w = calloc(1, sizeof(*w));

	cr_assert_not_null(w);
	w->params = scale_defaults;
	w->arrivals = arrivals;
	w->slot_rate = 1;
	w->open = w->least = w->most = scale_defaults.min;
	w->clock = HOUR * USEC_PER_SEC;
	scale_init(&w->scale);
	return w;
}

/* ---- days ---- */

static double
nothing(struct world *w UNUSED, unsigned second UNUSED)
{
	return 0;
}

static double
steady_high(struct world *w UNUSED, unsigned second UNUSED)
{
	return 190; /* 9.5 queues full, 11 below the threshold */
}

static double
working_day(struct world *w UNUSED, unsigned second)
{
	const double hour = fmod((double)second / HOUR, 24);

	return 200 - 190 * cos(hour * 3.14159265 / 12);
}

/* Ten minutes of flood every two hours. */
static double
bursts(struct world *w UNUSED, unsigned second)
{
	return second % (2 * HOUR) < 600 ? 900 : 10;
}

/* Around the threshold of whatever there is, 20 s above, 20 s below. */
static double
saw(struct world *w, unsigned second)
{
	return w->open * SLOTS * (second / 20 % 2 == 0 ? 0.97 : 0.80);
}

/* Above the threshold longer than the hold time, and then far below, as long
 * again: the worst for whoever follows every move. */
static double
slow_saw(struct world *w UNUSED, unsigned second)
{
	return second / 120 % 2 == 0 ? 130 : 20;
}

Test(scale_days, a_day_of_nothing)
{
	struct world *w = world_new(nothing);

	run(w, DAY);
	cr_expect_eq(w->nchanges, 0);
	free(w);
}

Test(scale_days, a_steady_load_finds_its_number_and_stays)
{
	struct world *w = world_new(steady_high);

	run(w, HOUR);
	cr_expect_geq(w->open, 10);
	cr_expect_leq(w->open, 14, "what had piled up takes some, too");
	cr_expect_eq(w->nclosed, 0);
	w->nchanges = 0;
	run(w, DAY);
	cr_expect_eq(w->nchanges, 0, "it is there, nothing has to move");
	w->arrivals = nothing;
	run(w, 2 * HOUR);
	cr_expect_eq(w->open, 5);
	free(w);
}

Test(scale_days, loads_decay_three_working_days)
{
	struct world *w = world_new(working_day);

	run(w, 3 * DAY);
	cr_expect_geq(w->most, 18, "%u", w->most);
	cr_expect_leq(w->most, 20);
	cr_expect_eq(w->least, 5);
	/* Up and down once a day, some 15 steps each way, and no more. */
	cr_expect_leq(w->nchanges, 3 * 36, "%u changes", w->nchanges);
	free(w);
}

Test(scale_days, bursts_are_met_and_forgotten)
{
	struct world *w = world_new(bursts);

	run(w, DAY);
	cr_expect_geq(w->most, 12);
	cr_expect_leq(w->nchanges, 12 * 32, "%u changes", w->nchanges);
	run(w, 2 * HOUR - 1);
	cr_expect_eq(w->open, 5, "all but QUEUE_COUNT are gone again");
	free(w);
}

Test(scale_days, no_flapping_around_the_threshold)
{
	struct world *w = world_new(saw);

	run(w, DAY);
	cr_expect_leq(w->nchanges, 4, "%u changes", w->nchanges);
	free(w);
}

Test(scale_days, no_flapping_between_two_loads)
{
	struct world *w = world_new(slow_saw);

	run(w, DAY);
	cr_expect_leq(w->nchanges, 8, "%u changes", w->nchanges);
	cr_expect_eq(w->nclosed, 0, "the low half is shorter than 5 min");
	free(w);
}

/* The far side takes 60 a second, however many queues ask it. */
Test(scale_days, growth_that_does_not_help_becomes_rare)
{
	struct world *w = world_new(steady_high);
	usec_t gap, before = 0;
	unsigned i;

	w->far_limit = 60;
	run(w, 6 * HOUR);
	for (i = 1; i < w->nchanges; i++) {
		gap = w->change_at[i] - w->change_at[i - 1];
		cr_expect_geq(gap, before, "change %u", i);
		before = gap;
	}
	cr_expect_leq(w->ngrown, 11, "%u", w->ngrown);
	cr_expect_geq(w->ngrown, 6, "but it is tried again");
	free(w);
}

Test(scale_days, what_did_not_help_is_forgotten_when_the_load_goes)
{
	struct world *w = world_new(steady_high);

	w->far_limit = 60;
	run(w, HOUR);
	cr_expect_gt(
	    scale_interval(&w->scale, &w->params), 8 * w->params.interval);
	w->arrivals = nothing;
	w->backlog = 0;
	run(w, 60);
	cr_expect_eq(scale_interval(&w->scale, &w->params), w->params.interval);
	free(w);
}

Test(scale_days, one_that_helps_makes_the_next_one_soon)
{
	struct world *w = world_new(steady_high);

	w->far_limit = 60;
	run(w, HOUR);
	w->far_limit = 0; /* the far side has recovered */
	w->ngrown = 0;
	run(w, 2 * HOUR);
	cr_expect_eq(scale_interval(&w->scale, &w->params), w->params.interval);
	free(w);
}

/* The old sum of two ratios was halved by the idle one, so that a queue that
 * only sends remotely could never push it over. */
Test(scale_days, a_sum_that_a_remote_only_queue_cannot_push_over)
{
	struct world *w = world_new(steady_high);

	w->remote_only = true;
	run(w, HOUR);
	cr_expect_geq(w->open, 10);
	free(w);
}

Test(scale_days, a_page_that_is_stuck_does_not_count)
{
	struct world *w = world_new(steady_high);

	w->stale_from = 5; /* all from the fifth on */
	run(w, 300);
	cr_expect_gt(w->ngrown, 0, "the mean is of the fresh ones");
	w->arrivals = nothing;
	w->backlog = 0;
	w->nclosed = 0;
	run(w, HOUR);
	cr_expect_eq(w->nclosed, 0, "four are known to work, five are to stay");
	w->stale_from = 0;
	run(w, HOUR);
	cr_expect_eq(w->open, 5);
	free(w);
}

/* Whatever the clock says: bounds hold, and it goes on working after. */
Test(scale_days, T2_clocks_that_jump)
{
	static const usec_t jumps[] = { 0, INT64_MAX, INT64_MIN, -1, 1,
		INT64_MAX - 1, HOUR, -HOUR * MINUTE, INT64_MIN + 1, 42 };
	struct world *w = world_new(steady_high);
	struct scale_decision d;
	size_t i, j;

	for (i = 0; i < ARRAY_LEN(jumps); i++)
		for (j = 0; j < ARRAY_LEN(jumps); j++) {
			scale_look_at(
			    &w->scale, &w->params, jumps[i], 20, 100, 9, &d);
			cr_expect_eq(d.act, SCALE_NOTHING);
			scale_look_at(
			    &w->scale, &w->params, jumps[j], 5, 0, 0, &d);
			cr_expect_eq(d.act, SCALE_NOTHING);
		}
	w->scale.changed = true; /* in the far future, as it turns out */
	w->scale.changed_at = INT64_MAX;
	run(w, HOUR);
	cr_expect_geq(w->open, 10);
	free(w);
}

static double
dice_load(struct world *w, unsigned second)
{
	static double rate;

	if (second % 97 == 0)
		rate = (double)(rand() % 1000);
	w->far_limit = rand() % 3000 == 0 ? rand() % 300 : w->far_limit;
	w->stale_from =
	    rand() % 500 == 0 ? (unsigned)rand() % 10 : w->stale_from;
	return rate;
}

/* The properties are asserted at each step of each world. */
Test(scale_days, random_days_never_leave_the_bounds)
{
	unsigned seed;

	for (seed = 1; seed <= 20; seed++) {
		struct world *w = world_new(dice_load);

		srand(seed);
		w->params.grow_time = rand() % 60 * USEC_PER_SEC;
		w->params.shrink_time = rand() % 600 * USEC_PER_SEC;
		w->params.interval = rand() % 300 * USEC_PER_SEC;
		run(w, DAY / 4);
		free(w);
	}
}
