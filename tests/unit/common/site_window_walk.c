/* Random walks of a window beside its rule written down once more: in whole
 * numbers, and for roots in long double. */
#include "site/window.h"

#include <criterion/criterion.h>
#include <math.h>

#define NEAR(a, b)  (fabs((a) - (b)) < WINDOW_EPSILON)

/* Busy enough that nothing is held back. */
#define ALL_BUSY    1000000

/* Windows to 10, quotients to 12: 1/UNIT divides all of them. */
#define WINDOW_MOST 10
#define UNIT        (INT64_C(2520) * 12)

struct model {
	int64_t window, success, failure, cohorts; /* counters in UNITs */
};
struct model_rules {
	int64_t initial, limit, cohort_limit;
	int64_t up, down; /* at window 1 */
	bool up_per_n, down_per_n;
};

static void
model_success(struct model *m, const struct model_rules *r, int64_t busy)
{
	m->cohorts = 0;
	if (r->limit > 0 && m->window >= r->limit)
		return;
	if (m->window >= busy + r->initial)
		return;
	m->success += r->up_per_n ? r->up / m->window : r->up;
	while (m->success >= UNIT) {
		m->window += 1;
		m->success -= UNIT;
		m->failure = 0;
	}
	if (r->limit > 0 && m->window > r->limit)
		m->window = r->limit;
}

static bool
model_failure(struct model *m, const struct model_rules *r)
{
	m->cohorts += UNIT / m->window;
	if (r->cohort_limit > 0 && m->cohorts >= r->cohort_limit)
		return true;
	m->failure -= r->down_per_n ? r->down / m->window : r->down;
	while (m->failure < 0) {
		m->window -= 1;
		m->failure += UNIT;
		m->success = 0;
	}
	if (m->window < 1)
		m->window = 1;
	return false;
}

static uint32_t
dice(uint64_t *state, uint32_t sides)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*state >> 33) % sides;
}

/* x = p/12, so that x/N is whole in UNITs. */
static void
random_rules(
    uint64_t *seed, struct window_rules *rules, struct model_rules *model)
{
	uint32_t limit =
	    dice(seed, 3) == 0 ? WINDOW_MOST : 1 + dice(seed, WINDOW_MOST);
	uint32_t up = dice(seed, 13), down = dice(seed, 13);
	uint32_t cohorts = dice(seed, 2) == 0 ? 0 : dice(seed, 60);

	*model = (struct model_rules){
		.initial = 1 + dice(seed, limit),
		.limit = limit,
		.cohort_limit = cohorts * UNIT / 12,
		.up = up * UNIT / 12,
		.down = down * UNIT / 12,
		.up_per_n = dice(seed, 2) == 0,
		.down_per_n = dice(seed, 2) == 0,
	};
	*rules = (struct window_rules){
		.initial = (uint32_t)model->initial,
		.limit = limit,
		.positive = { up / 12.0,
		    model->up_per_n ? WINDOW_PER_N : WINDOW_FIXED },
		.negative = { down / 12.0,
		    model->down_per_n ? WINDOW_PER_N : WINDOW_FIXED },
		.failed_cohort_limit = cohorts / 12.0,
	};
}

static bool
same(const struct window *w, const struct model *m)
{
	return w->window == m->window &&
	    NEAR(w->success, (double)m->success / UNIT) &&
	    NEAR(w->failure, (double)m->failure / UNIT) &&
	    fabs(w->fail_cohorts - (double)m->cohorts / UNIT) < 1e-8;
}

Test(site_window_walk, random_walks_beside_whole_numbers)
{
	uint64_t seed = 1;
	int walk, step;

	for (walk = 0; walk < 2000; walk++) {
		struct window_rules rules;
		struct model_rules model_rules;
		struct window w;
		struct model m;
		uint32_t odds;

		random_rules(&seed, &rules, &model_rules);
		odds = 1 + dice(&seed, 9);
		window_init(&w, &rules);
		m = (struct model){ .window = model_rules.initial };
		for (step = 0; step < 500; step++) {
			uint32_t busy = 1 + dice(&seed, WINDOW_MOST);

			if (dice(&seed, 10) >= odds) {
				window_success(&w, &rules, busy);
				model_success(&m, &model_rules, busy);
			} else {
				bool dead = window_failure(&w, &rules);

				cr_assert_eq(dead,
				    model_failure(&m, &model_rules),
				    "walk %d, step %d", walk, step);
				if (dead) {
					window_init(&w, &rules);
					m = (struct model){
						.window = model_rules.initial
					};
				}
			}
			cr_assert(same(&w, &m), "walk %d, step %d: %u %g %g %g",
			    walk, step, (unsigned)w.window, w.success,
			    w.failure, w.fail_cohorts);
		}
	}
}

/* Roots are no fractions: 1/sqrt(N) in long double, windows to 400. */
Test(site_window_walk, random_walks_of_roots)
{
	const struct window_rules rules = { .initial = 5,
		.positive = { 1, WINDOW_PER_ROOT_N },
		.negative = { 0.5, WINDOW_PER_ROOT_N } };
	uint64_t seed = 2;
	int walk, step;

	for (walk = 0; walk < 50; walk++) {
		struct window w = { .window = 5 };
		long double success = 0, failure = 0;
		uint32_t n = 5, odds = 1 + dice(&seed, 5);

		for (step = 0; step < 5000 && n < 400; step++) {
			if (dice(&seed, 10) >= odds) {
				window_success(&w, &rules, ALL_BUSY);
				success += 1 / sqrtl(n);
				if (success >= 1 - 1e-9L) {
					success -= 1;
					failure = 0;
					n++;
				}
			} else {
				window_failure(&w, &rules);
				failure -= 0.5L / sqrtl(n);
				if (failure < -1e-9L) {
					failure += 1;
					success = 0;
					n = n > 1 ? n - 1 : 1;
				}
			}
			cr_assert_eq(
			    w.window, n, "walk %d, step %d", walk, step);
			cr_assert(NEAR(w.success, (double)success));
			cr_assert(NEAR(w.failure, (double)failure));
		}
	}
}
