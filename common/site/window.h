/* site/window.h - the arithmetic of one window: feedback with hysteresis,
 * failed cohorts. Rule 2 of docs/SCHEDULING.md. Pure.
 *
 * Amounts compare with a tolerance of FEEDBACK_EPSILON, so that N steps of 1/N
 * make exactly one.
 */
#ifndef SITE_WINDOW_H
#define SITE_WINDOW_H

#include "base/base.h"

#define FEEDBACK_EPSILON 1e-9

enum feedback_shape {
	FEEDBACK_X,           /* x */
	FEEDBACK_X_PER_N,     /* x/concurrency */
	FEEDBACK_X_PER_ROOT_N /* x/sqrt_concurrency */
};
struct feedback {
	double x; /* 0 to 1 */
	enum feedback_shape shape;
};
/* g or f of a window, which is at least 1. */
double feedback_amount(const struct feedback *f, uint32_t window);

struct window {
	uint32_t window;
	double success, failure, fail_cohorts;
};
struct window_rules {
	uint32_t initial, limit; /* initial at least 1; limit 0: none */
	struct feedback positive, negative;
	double failed_cohort_limit; /* 0: never dead */
};

/* As at the start: initial, never above the limit; counters 0. */
void window_init(struct window *w, const struct window_rules *rules);
/* A delivery without connection or handshake failure; busy still counts it. */
void window_success(
    struct window *w, const struct window_rules *rules, uint32_t busy);
/* A failure. True: the destination is dead; the window is as it was. */
bool window_failure(struct window *w, const struct window_rules *rules);
/* New rules: never above their limit. */
void window_fit(struct window *w, const struct window_rules *rules);

#endif
