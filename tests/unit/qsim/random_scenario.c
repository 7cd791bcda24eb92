#include "random_scenario.h"

#include <stdio.h>
#include <string.h>

#define PICK(d, table) ((table)[dice_in((d), 0, ARRAY_LEN(table) - 1)])

static const char *const transports[] = { "smtp", "t1", "t2" };
static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };

/* splitmix64 */
uint64_t
dice_next(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint32_t
dice_in(struct dice *d, uint32_t low, uint32_t high)
{
	return low + (uint32_t)(dice_next(d) % (high - low + 1));
}

bool
dice_pct(struct dice *d, uint32_t pct)
{
	return dice_in(d, 1, 100) <= pct;
}

static void
say(struct buf *text, const char *before, const char *what, const char *value)
{
	ASSERT(buf_printf(text, "%s%s %s\n", before, what, value) == 0);
}

struct mood;

struct world {
	struct dice dice;
	const struct mood *mood;
	uint32_t ntransports, nnames;
	uint32_t large_pct, burst_pct;
	uint64_t now, last; /* in units of 100 ms */
};

/* ---- parameters ---- */

struct setting {
	const char *name; /* default_… is not part of it */
	bool bare;        /* nor is it in the file */
	uint32_t pct;     /* of scenarios that set it */
	const char *values[10];
};

/* Of everything something. */
static const struct setting any[] = {
	{ "delivery_slot_cost", false, 80,
	    { "0", "1", "2", "2", "3", "3", "5", "7", "10" } },
	{ "delivery_slot_discount", false, 60,
	    { "0", "0", "20", "50", "80", "100" } },
	{ "delivery_slot_loan", false, 60, { "0", "0", "1", "2", "7" } },
	{ "minimum_delivery_slots", false, 60, { "0", "1", "2", "5" } },
	{ "destination_recipient_limit", false, 60,
	    { "1", "2", "3", "5", "100" } },
	{ "destination_concurrency_limit", false, 70,
	    { "0", "1", "1", "2", "2", "3", "5", "8", "20" } },
	{ "initial_destination_concurrency", true, 60,
	    { "1", "1", "2", "3", "5", "10", "20" } },
	{ "destination_concurrency_positive_feedback", false, 60,
	    { "0", "1", "0.3", "1/3", "1/concurrency", "1/sqrt_concurrency",
		"0.4/concurrency" } },
	{ "destination_concurrency_negative_feedback", false, 60,
	    { "0", "1", "0.3", "1/5", "1/concurrency", "1/sqrt_concurrency",
		"0.7/sqrt_concurrency" } },
	{ "destination_concurrency_failed_cohort_limit", false, 60,
	    { "0", "0.5", "1", "2", "3.5", "20" } },
};

/* Jobs that preempt jobs that preempt, and are blocked in between. */
static const struct setting nested[] = {
	{ "delivery_slot_cost", false, 100, { "2", "2", "3", "4" } },
	{ "delivery_slot_discount", false, 80, { "0", "50", "100", "100" } },
	{ "delivery_slot_loan", false, 80, { "0", "2", "5", "20" } },
	{ "minimum_delivery_slots", false, 100, { "0", "0", "1", "2" } },
	{ "destination_recipient_limit", false, 100, { "1", "2", "2", "3" } },
	{ "destination_concurrency_limit", false, 100,
	    { "1", "1", "2", "2", "3" } },
	{ "initial_destination_concurrency", true, 100, { "1", "2" } },
	{ "destination_concurrency_failed_cohort_limit", false, 60,
	    { "0", "1", "3" } },
};

/* Destinations that die, and again, with successes between. */
static const struct setting dying[] = {
	{ "destination_recipient_limit", false, 100, { "1", "2", "3" } },
	{ "destination_concurrency_limit", false, 60, { "0", "5", "20" } },
	{ "initial_destination_concurrency", true, 100, { "3", "5", "8" } },
	{ "destination_concurrency_negative_feedback", false, 100,
	    { "0", "0.3", "1/concurrency" } },
	{ "destination_concurrency_failed_cohort_limit", false, 100,
	    { "0.3", "0.5", "1", "1.5" } },
};

struct mood {
	uint32_t pct;
	const struct setting *settings;
	size_t n;
	uint32_t large_pct, fail_pct, refuse_pct; /* at most, the first */
};
static const struct mood moods[] = {
	{ 60, any, ARRAY_LEN(any), 50, 50, 30 },
	{ 25, nested, ARRAY_LEN(nested), 80, 10, 5 },
	{ 15, dying, ARRAY_LEN(dying), 30, 60, 90 },
};

static const struct mood *
choose_mood(struct dice *d)
{
	uint32_t n = dice_in(d, 0, 99), i = 0;

	for (; n >= moods[i].pct; i++)
		n -= moods[i].pct;
	return &moods[i];
}

static const char *
value_of(struct dice *d, const struct setting *s)
{
	uint32_t n = 0;

	while (n < ARRAY_LEN(s->values) && s->values[n] != NULL)
		n++;
	return s->values[dice_in(d, 0, n - 1)];
}

static void
add_settings(struct world *w, struct buf *text)
{
	struct dice *d = &w->dice;
	const struct setting *s;
	uint32_t t;

	for (s = w->mood->settings; s < w->mood->settings + w->mood->n; s++) {
		if (dice_pct(d, s->pct))
			say(text, s->bare ? "set " : "set default_", s->name,
			    value_of(d, s));
		for (t = 0; t < w->ntransports; t++)
			if (dice_pct(d, 10))
				ASSERT(buf_printf(text, "set %s_%s %s\n",
					   transports[t], s->name,
					   value_of(d, s)) == 0);
	}
}

/* A destination that was idle for twice the maximum may be forgotten, and when
 * is not told: so it ends before. */
static void
add_backoff(struct world *w, struct buf *text)
{
	uint32_t least = dice_in(&w->dice, 1, 40);
	uint32_t most = least + dice_in(&w->dice, 0, 200);

	w->last = 2 * 10 * (uint64_t)most;
	ASSERT(buf_printf(text,
		   "set minimal_backoff_time %us\n"
		   "set maximal_backoff_time %us\n",
		   least, most) == 0);
}

/* ---- destinations ---- */

/* `a`, or of another transport `t1/a`. */
static void
add_destination(struct world *w, struct buf *text)
{
	uint32_t t = dice_in(&w->dice, 0, w->ntransports - 1);

	if (t > 0)
		ASSERT(buf_printf(text, "%s/", transports[t]) == 0);
	ASSERT(
	    buf_add_str(text, names[dice_in(&w->dice, 0, w->nnames - 1)]) == 0);
}

static void
add_of_destination(
    struct world *w, struct buf *text, const char *word, uint32_t value)
{
	ASSERT(buf_printf(text, "%s ", word) == 0);
	add_destination(w, text);
	ASSERT(buf_printf(text, " %u\n", value) == 0);
}

static void
add_servers(struct world *w, struct buf *text)
{
	static const uint32_t times[] = { 100, 500, 1000, 1000, 1500, 2000,
		5000, 7000, 20000 };
	struct dice *d = &w->dice;
	uint32_t i, n;

	ASSERT(buf_printf(text, "dur * %u\n", PICK(d, times)) == 0);
	for (i = 0, n = dice_in(d, 0, 6); i < n; i++)
		add_of_destination(w, text, "dur", PICK(d, times));
	if (dice_pct(d, w->mood->fail_pct))
		for (i = 0, n = dice_in(d, 1, 3); i < n; i++)
			add_of_destination(w, text, "fail", dice_in(d, 1, 12));
	if (dice_pct(d, w->mood->refuse_pct))
		for (i = 0, n = dice_in(d, 1, 3); i < n; i++)
			add_of_destination(w, text, "refuse", dice_in(d, 0, 5));
}

/* ---- messages ---- */

static void
add_recipients(struct world *w, struct buf *text)
{
	struct dice *d = &w->dice;
	uint32_t most = dice_pct(d, w->large_pct) ? 60 : 4;
	uint32_t n = dice_in(d, 1, most);

	add_destination(w, text);
	if (dice_pct(d, 30))
		ASSERT(buf_printf(text, "#0-%u", n - 1) == 0);
	else if (n > 1)
		ASSERT(buf_printf(text, "*%u", n) == 0);
}

static void
pass_time(struct world *w)
{
	struct dice *d = &w->dice;

	if (dice_pct(d, w->burst_pct))
		return;
	w->now += dice_pct(d, 4) ? dice_in(d, 100, 2000) : dice_in(d, 1, 60);
	if (w->now > w->last)
		w->now = w->last;
}

static void
add_message(struct world *w, struct buf *text)
{
	struct dice *d = &w->dice;
	/* A few lines are not in the order of their times. */
	uint64_t at = dice_pct(d, 3) ? w->now / 2 : w->now;
	uint32_t i, n = dice_pct(d, 60) ? 1 : dice_in(d, 1, 5);

	pass_time(w);
	if (dice_pct(d, 8))
		ASSERT(buf_printf(text, "repeat %u ", dice_in(d, 2, 8)) == 0);
	ASSERT(buf_printf(text, "at %u.%u msg", (uint32_t)(at / 10),
		   (uint32_t)(at % 10)) == 0);
	for (i = 0; i < n; i++) {
		ASSERT(buf_add_char(text, ' ') == 0);
		add_recipients(w, text);
	}
	ASSERT(buf_add_char(text, '\n') == 0);
}

void
random_scenario(uint64_t seed, struct buf *text)
{
	struct world w = { .dice = { seed } };
	struct dice *d = &w.dice;
	char agents[16];
	uint32_t i, n;

	buf_reset(text);
	w.ntransports = dice_pct(d, 60) ? 1 : dice_in(d, 2, 3);
	w.nnames = dice_in(d, 1, ARRAY_LEN(names));
	w.mood = choose_mood(d);
	w.large_pct = dice_in(d, 5, w.mood->large_pct);
	w.burst_pct = dice_in(d, 0, 95);
	add_settings(&w, text);
	add_backoff(&w, text);
	for (i = 0; i < w.ntransports; i++) {
		ASSERT(snprintf(agents, sizeof(agents), "%u",
			   dice_in(d, 1, dice_pct(d, 50) ? 2 : 10)) > 0);
		say(text, "agents ", transports[i], agents);
	}
	add_servers(&w, text);
	for (i = 0, n = dice_in(d, 2, 25); i < n; i++)
		add_message(&w, text);
}

/* ---- smaller ---- */

/* The text without `count` lines from `from` on; false: there are none. */
static bool
without_lines(
    const struct buf *text, size_t from, size_t count, struct buf *ret_text)
{
	const char *at = buf_str(text), *end;
	size_t line;
	bool cut = false;

	buf_reset(ret_text);
	for (line = 0; *at != '\0'; line++, at = end) {
		end = strchr(at, '\n') + 1;
		if (line >= from && line - from < count)
			cut = true;
		else
			ASSERT(buf_add(ret_text, at, (size_t)(end - at)) == 0);
	}
	return cut;
}

void
random_shrink(struct buf *text,
    bool (*fails)(void *ctx, const struct buf *text), void *ctx)
{
	struct buf less = { 0 }, swap;
	size_t count, from;

	for (count = 32; count > 0; count /= 2)
		for (from = 0; without_lines(text, from, count, &less);)
			if (fails(ctx, &less)) {
				swap = *text;
				*text = less;
				less = swap;
			} else
				from += count;
	buf_done(&less);
}
