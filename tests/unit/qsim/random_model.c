/* The fast scheduler and the model make the same of any scenario. */
#include "model.h"
#include "qsim/qsim.h"
#include "qsim/simulate.h"
#include "random_scenario.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* In so many parts, which run at the same time. */
#define SCENARIOS 3000
#define PARTS     4

/* Selections as `qsim replay` prints them; deferrals as numbers, sorted: within
 * an instant they have no order. */
struct result {
	const struct scenario *sc;
	struct buf picks;
	uint64_t *deferred;
	size_t n, room;
};

static void
result_done(struct result *r)
{
	buf_done(&r->picks);
	free(r->deferred);
}

static void
add_deferred(struct result *r, usec_t at, uint32_t message, uint32_t nrcpts)
{
	if (r->n == r->room) {
		r->room = r->room * 2 + 64;
		r->deferred =
		    reallocarray(r->deferred, r->room, sizeof(*r->deferred));
		cr_assert_not_null(r->deferred);
	}
	r->deferred[r->n++] = ((uint64_t)at << 20) + (message << 8) + nrcpts;
}

static int
compare_numbers(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void
sort_deferred(struct result *r)
{
	if (r->n > 0)
		qsort(r->deferred, r->n, sizeof(*r->deferred), compare_numbers);
}

/* ---- the two ---- */

static int
add_selected(void *ctx, const struct simulate_selection *selection)
{
	struct result *r = ctx;

	return replay_add_line(r->sc, selection, &r->picks);
}

static int
add_reported(void *ctx, const struct simulate_report *report)
{
	if (report->result == SITE_UNTRIED)
		add_deferred(
		    ctx, report->now, report->message, report->entry->nrcpts);
	return 0;
}

static void
run_fast(const struct scenario *sc, struct result *ret_result)
{
	const struct simulate_watch watch = { .ctx = ret_result,
		.selected = add_selected,
		.reported = add_reported };

	*ret_result = (struct result){ .sc = sc };
	cr_assert_eq(simulate(sc, &sc->conf, sc->seed, &watch, NULL), 0);
	sort_deferred(ret_result);
}

static void
run_model(const struct scenario *sc, struct result *ret_result)
{
	struct model_output out;
	size_t i;

	*ret_result = (struct result){ .sc = sc };
	model_run(sc, &out);
	model_print(sc, &out, &ret_result->picks);
	for (i = 0; i < out.n; i++)
		if (out.picks[i].deferred)
			add_deferred(ret_result, out.picks[i].at,
			    out.picks[i].message + 1, out.picks[i].nrcpts);
	sort_deferred(ret_result);
	model_output_done(&out);
}

/* ---- compared ---- */

static bool
same(const struct result *a, const struct result *b)
{
	return strcmp(buf_str(&a->picks), buf_str(&b->picks)) == 0 &&
	    a->n == b->n &&
	    (a->n == 0 ||
		memcmp(a->deferred, b->deferred, a->n * sizeof(*a->deferred)) ==
		    0);
}

static void
parse(const struct buf *text, struct scenario *ret_scenario)
{
	struct buf error = { 0 };

	cr_assert_eq(scenario_parse("random", buf_str(text), text->len,
			 ret_scenario, &error),
	    0, "%s", buf_str(&error));
	buf_done(&error);
}

/* The selections of the scheduler and of the model: do they differ? */
static bool
differ(const struct buf *text, struct buf *ret_fast, struct buf *ret_model)
{
	struct scenario sc;
	struct result fast, model;
	bool differs;

	parse(text, &sc);
	run_fast(&sc, &fast);
	run_model(&sc, &model);
	differs = !same(&fast, &model);
	if (ret_fast != NULL) {
		cr_assert_eq(buf_add_str(ret_fast, buf_str(&fast.picks)), 0);
		cr_assert_eq(buf_add_str(ret_model, buf_str(&model.picks)), 0);
	}
	result_done(&fast);
	result_done(&model);
	scenario_done(&sc);
	return differs;
}

/* Without some line it may be no scenario. */
static bool
still_differs(void *ctx UNUSED, const struct buf *text)
{
	struct scenario sc;
	struct buf error = { 0 };
	int r = scenario_parse("random", buf_str(text), text->len, &sc, &error);

	buf_done(&error);
	if (r < 0)
		return false;
	scenario_done(&sc);
	return differ(text, NULL, NULL);
}

static void
compare(uint64_t seed, struct buf *text)
{
	struct buf fast = { 0 }, model = { 0 };

	random_scenario(seed, text);
	if (!differ(text, NULL, NULL))
		return;
	random_shrink(text, still_differs, NULL);
	(void)differ(text, &fast, &model);
	cr_assert_fail("seed %lu:\n%s---- fast:\n%s---- model:\n%s",
	    (unsigned long)seed, buf_str(text), buf_str(&fast),
	    buf_str(&model));
}

static void
compare_part(uint64_t part)
{
	struct buf text = { 0 };
	uint64_t seed;

	for (seed = part; seed < SCENARIOS; seed += PARTS)
		compare(seed, &text);
	buf_done(&text);
}

Test(random_model, agrees_0)
{
	compare_part(0);
}

Test(random_model, agrees_1)
{
	compare_part(1);
}

Test(random_model, agrees_2)
{
	compare_part(2);
}

Test(random_model, agrees_3)
{
	compare_part(3);
}

Test(random_model, same_input_same_output)
{
	struct buf text = { 0 }, again = { 0 };
	struct scenario sc;
	struct result one, two;
	uint64_t seed;

	for (seed = 0; seed < 50; seed++) {
		random_scenario(seed, &text);
		random_scenario(seed, &again);
		cr_assert_str_eq(buf_str(&text), buf_str(&again));
		parse(&text, &sc);
		run_fast(&sc, &one);
		run_fast(&sc, &two);
		cr_assert(same(&one, &two), "%s", buf_str(&text));
		result_done(&one);
		result_done(&two);
		scenario_done(&sc);
	}
	buf_done(&text);
	buf_done(&again);
}
