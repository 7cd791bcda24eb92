#include "daemon/turn.h"

#include "daemon/daemon.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <unistd.h>

#define TURNS_MAX 8

/* What each turn answers, whether it kicks, and how many there are. */
struct plan {
	const char *name;
	usec_t waits[TURNS_MAX];
	uint32_t kicks; /* bit n: turn n */
	int want;       /* turns until nothing is left */
};

struct run {
	const struct plan *plan;
	struct turn turn;
	int turns;
};

static usec_t
work(void *arg)
{
	struct run *r = arg;
	int n = r->turns++;

	cr_assert_lt(n, TURNS_MAX, "%s", r->plan->name);
	if ((r->plan->kicks & (1U << n)) != 0)
		turn_kick(&r->turn);
	return r->plan->waits[n];
}

static const struct plan plans[] = {
	{ "nothing left", { USEC_NEVER }, 0, 1 },
	{ "at once", { 0, 0, USEC_NEVER }, 0, 3 },
	{ "overdue", { -5, USEC_NEVER }, 0, 2 },
	{ "in a while", { USEC_PER_MSEC, USEC_NEVER }, 0, 2 },
	{ "kicked within", { USEC_NEVER, USEC_NEVER }, 1, 2 },
	{ "kicked before a long wait", { 3600 * USEC_PER_SEC, USEC_NEVER }, 1,
	    2 },
};

Test(daemon_turn, goes_on_until_nothing_is_left)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(plans); i++) {
		struct event_base *base = daemon_loop_new(false);
		struct run r = { .plan = &plans[i] };

		cr_assert_not_null(base);
		cr_assert_eq(turn_init(&r.turn, base, work, &r), 0);
		turn_kick(&r.turn);
		/* Ends when there is no timer. */
		cr_expect_eq(event_base_dispatch(base), 1);
		cr_expect_eq(r.turns, plans[i].want, "%s", plans[i].name);
		turn_done(&r.turn);
		event_base_free(base);
	}
}

Test(daemon_turn, a_kick_before_and_after_is_nothing)
{
	struct turn t = { 0 };

	turn_kick(&t);
	turn_done(&t);
	turn_kick(&t);
	cr_expect_null(t.timer);
}

/* Something that is ready in each round of the loop, until a turn. */
static void
on_ready(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct run *r = arg;

	if (r->turns == 0)
		turn_kick(&r->turn);
}

Test(daemon_turn, who_kicks_in_each_round_puts_nothing_off, .timeout = 30)
{
	static const struct plan plan = { "kicked", { USEC_NEVER }, 0, 1 };
	struct event_base *base = daemon_loop_new(false);
	struct run r = { .plan = &plan };
	struct event *ready;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	ready = event_new(base, ends[1], EV_WRITE | EV_PERSIST, on_ready, &r);
	cr_assert_eq(event_add(ready, NULL), 0);
	cr_assert_eq(turn_init(&r.turn, base, work, &r), 0);
	while (r.turns == 0)
		event_base_loop(base, EVLOOP_ONCE);
	cr_expect_eq(r.turns, 1);
	turn_done(&r.turn);
	event_free(ready);
	event_base_free(base);
	close(ends[0]);
	close(ends[1]);
}
