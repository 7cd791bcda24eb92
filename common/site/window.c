#include "site/window.h"

#include <math.h>

double
window_amount(const struct window_feedback *f, uint32_t window)
{
	switch (f->form) {
	case WINDOW_PER_N:
		return f->amount / window;
	case WINDOW_PER_ROOT_N:
		return f->amount / sqrt(window);
	case WINDOW_FIXED:
	default:
		return f->amount;
	}
}

/* A counter that came back to nothing is 0: what rounding left of it would add
 * up over the steps of a long life. */
static double
settled(double counter)
{
	return fabs(counter) < WINDOW_EPSILON ? 0 : counter;
}

void
window_init(struct window *w, const struct window_rules *rules)
{
	*w = (struct window){ .window = rules->initial };
	window_fit(w, rules);
}

void
window_fit(struct window *w, const struct window_rules *rules)
{
	if (rules->limit != 0 && w->window > rules->limit)
		w->window = rules->limit;
}

/* A window that is not used up has nothing to learn from success. */
static bool
is_held_back(
    const struct window *w, const struct window_rules *rules, uint32_t busy)
{
	if (rules->limit != 0 && w->window >= rules->limit)
		return true;
	return w->window >= (uint64_t)busy + rules->initial ||
	    w->window == UINT32_MAX;
}

void
window_success(
    struct window *w, const struct window_rules *rules, uint32_t busy)
{
	w->fail_cohorts = 0;
	w->doubted = 0;
	if (is_held_back(w, rules, busy))
		return;
	w->success += window_amount(&rules->positive, w->window);
	while (w->success >= 1 - WINDOW_EPSILON) {
		w->window++;
		w->success = settled(w->success - 1);
		w->failure = 0;
	}
	window_fit(w, rules);
}

bool
window_failure(struct window *w, const struct window_rules *rules)
{
	double f = window_amount(&rules->negative, w->window);

	w->fail_cohorts += 1.0 / w->window;
	if (rules->failed_cohort_limit > 0 &&
	    w->fail_cohorts >= rules->failed_cohort_limit - WINDOW_EPSILON)
		return true;
	w->failure -= f;
	if (f >= WINDOW_EPSILON)
		w->failure = settled(w->failure);
	while (w->failure < 0) {
		if (w->window > 1)
			w->window--;
		w->failure = settled(w->failure + 1);
		w->success = 0;
	}
	return false;
}

bool
window_doubt(
    struct window *w, const struct window_rules *rules, uint32_t message)
{
	if (w->doubted == 0)
		w->doubted = message;
	return w->doubted != message && window_failure(w, rules);
}

void
window_revive(struct window *w, const struct window_rules *rules, uint32_t busy)
{
	*w = (struct window){ .window = busy > 1 ? busy : 1 };
	window_fit(w, rules);
}

bool
window_is_fresh(const struct window *w, const struct window_rules *rules)
{
	struct window fresh;

	window_init(&fresh, rules);
	return w->window == fresh.window && w->doubted == 0 &&
	    !(w->success > 0) && !(w->failure > 0 || w->failure < 0) &&
	    !(w->fail_cohorts > 0);
}
