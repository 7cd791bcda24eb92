/* site/window.h - the arithmetic of one window: feedback with hysteresis,
 * failed cohorts. Rule 2 of docs/SCHEDULING.md. Pure.
 *
 * Amounts compare with a tolerance of WINDOW_EPSILON, so that N steps of 1/N
 * make exactly one.
 */
#ifndef SITE_WINDOW_H
#define SITE_WINDOW_H

#include "site/params.h"

#define WINDOW_EPSILON 1e-9

/* By how much one report moves a window, which is at least 1. */
double window_amount(const struct window_feedback *f, uint32_t window);

struct window {
	uint32_t window;
	/* Message of the first doubted end since the last success; 0: none. */
	uint32_t doubted;
	double success, failure, fail_cohorts;
};
struct window_rules {
	uint32_t initial, limit; /* initial at least 1; limit 0: none */
	struct window_feedback positive, negative;
	double failed_cohort_limit; /* 0: never dead */
};

/* A window as it begins: initial, never above the limit, counters 0. */
void window_init(struct window *w, const struct window_rules *rules);
/* A delivery without connection or handshake failure; busy still counts it. */
void window_success(
    struct window *w, const struct window_rules *rules, uint32_t busy);
/* A connection or handshake failure. True: the destination is dead; the window
 * is as it was. */
bool window_failure(struct window *w, const struct window_rules *rules);
/* A doubted end of this message, not 0: a connection or handshake failure if
 * another message has had a doubted end since the last success, else nothing.
 * True: the destination is dead. */
bool window_doubt(
    struct window *w, const struct window_rules *rules, uint32_t message);
/* The window is cut to the limit of new rules. */
void window_fit(struct window *w, const struct window_rules *rules);
/* A delivery that began before the death has succeeded. */
void window_revive(
    struct window *w, const struct window_rules *rules, uint32_t busy);
/* Nothing was learned: as window_init() leaves it. */
bool window_is_fresh(const struct window *w, const struct window_rules *rules);

#endif
