#include <criterion/criterion.h>

#include <string.h>

#include "qscheduler/children/proc.h"

/* The table of docs/SUPERVISION.md, written out a second time: next state
 * when wanted, when it keeps failing, when unwanted; action, deadline. */
struct want {
	const char *state, *event, *next, *looping, *unwanted, *action;
	/* k keep, n never, r ready, s stop, o soon, u stuck, l least, g grow */
	char deadline;
};

static const struct want wants[] = {
	{ "down", "want-up", "waiting", "waiting", "waiting", "ask", 'n' },
	{ "down", "want-down", "down", "down", "down", "nothing", 'n' },
	{ "down", "want-again", "down", "down", "down", "nothing", 'n' },
	{ "down", "clear", "down", "down", "down", "nothing", 'n' },
	{ "down", "release", "down", "down", "down", "nothing", 'n' },
	{ "down", "spawned", "stopping", "stopping", "stopping", "stop", 's' },
	{ "down", "spawn-failed", "down", "down", "down", "nothing", 'n' },
	{ "down", "ready", "down", "down", "down", "nothing", 'n' },
	{ "down", "silent", "down", "down", "down", "nothing", 'n' },
	{ "down", "exited", "down", "down", "down", "nothing", 'n' },
	{ "down", "timer", "down", "down", "down", "nothing", 'n' },

	{ "waiting", "want-up", "waiting", "waiting", "waiting", "nothing",
	    'k' },
	{ "waiting", "want-down", "down", "down", "down", "nothing", 'n' },
	{ "waiting", "want-again", "waiting", "waiting", "waiting", "nothing",
	    'k' },
	{ "waiting", "clear", "starting", "starting", "starting", "spawn",
	    'r' },
	{ "waiting", "release", "waiting", "waiting", "waiting", "nothing",
	    'k' },
	{ "waiting", "spawned", "starting", "starting", "starting", "nothing",
	    'r' },
	{ "waiting", "spawn-failed", "waiting", "waiting", "waiting", "nothing",
	    'k' },
	{ "waiting", "ready", "waiting", "waiting", "waiting", "nothing", 'k' },
	{ "waiting", "silent", "waiting", "waiting", "waiting", "nothing",
	    'k' },
	{ "waiting", "exited", "waiting", "waiting", "waiting", "nothing",
	    'k' },
	{ "waiting", "timer", "waiting", "waiting", "waiting", "nothing", 'n' },

	{ "starting", "want-up", "starting", "starting", "starting", "nothing",
	    'k' },
	{ "starting", "want-down", "stopping", "stopping", "stopping", "stop",
	    's' },
	{ "starting", "want-again", "stopping", "stopping", "stopping", "stop",
	    's' },
	{ "starting", "clear", "starting", "starting", "starting", "nothing",
	    'k' },
	{ "starting", "release", "starting", "starting", "starting", "nothing",
	    'k' },
	{ "starting", "spawned", "starting", "starting", "starting", "nothing",
	    'r' },
	{ "starting", "spawn-failed", "backoff", "backoff", "down", "nothing",
	    'g' },
	{ "starting", "ready", "up", "up", "up", "nothing", 'n' },
	{ "starting", "silent", "starting", "starting", "starting", "nothing",
	    'k' },
	{ "starting", "exited", "backoff", "quarantined", "down", "ended",
	    'g' },
	{ "starting", "timer", "killed", "killed", "killed", "kill", 'u' },

	{ "up", "want-up", "up", "up", "up", "nothing", 'k' },
	{ "up", "want-down", "stopping", "stopping", "stopping", "stop", 's' },
	{ "up", "want-again", "stopping", "stopping", "stopping", "stop", 's' },
	{ "up", "clear", "up", "up", "up", "nothing", 'k' },
	{ "up", "release", "up", "up", "up", "nothing", 'k' },
	{ "up", "spawned", "up", "up", "up", "nothing", 'k' },
	{ "up", "spawn-failed", "up", "up", "up", "nothing", 'k' },
	{ "up", "ready", "up", "up", "up", "nothing", 'k' },
	{ "up", "silent", "killed", "killed", "killed", "kill", 'u' },
	{ "up", "exited", "backoff", "quarantined", "down", "ended", 'g' },
	{ "up", "timer", "up", "up", "up", "nothing", 'n' },

	{ "stopping", "want-up", "stopping", "stopping", "stopping", "nothing",
	    'k' },
	{ "stopping", "want-down", "stopping", "stopping", "stopping",
	    "nothing", 'k' },
	{ "stopping", "want-again", "stopping", "stopping", "stopping",
	    "nothing", 'o' },
	{ "stopping", "clear", "stopping", "stopping", "stopping", "nothing",
	    'k' },
	{ "stopping", "release", "stopping", "stopping", "stopping", "nothing",
	    'k' },
	{ "stopping", "spawned", "stopping", "stopping", "stopping", "nothing",
	    'k' },
	{ "stopping", "spawn-failed", "stopping", "stopping", "stopping",
	    "nothing", 'k' },
	{ "stopping", "ready", "stopping", "stopping", "stopping", "nothing",
	    'k' },
	{ "stopping", "silent", "stopping", "stopping", "stopping", "nothing",
	    'k' },
	{ "stopping", "exited", "backoff", "backoff", "down", "ended", 'l' },
	{ "stopping", "timer", "killed", "killed", "killed", "kill", 'u' },

	{ "killed", "want-up", "killed", "killed", "killed", "nothing", 'k' },
	{ "killed", "want-down", "killed", "killed", "killed", "nothing", 'k' },
	{ "killed", "want-again", "killed", "killed", "killed", "nothing",
	    'k' },
	{ "killed", "clear", "killed", "killed", "killed", "nothing", 'k' },
	{ "killed", "release", "killed", "killed", "killed", "nothing", 'k' },
	{ "killed", "spawned", "killed", "killed", "killed", "nothing", 'k' },
	{ "killed", "spawn-failed", "killed", "killed", "killed", "nothing",
	    'k' },
	{ "killed", "ready", "killed", "killed", "killed", "nothing", 'k' },
	{ "killed", "silent", "killed", "killed", "killed", "nothing", 'k' },
	{ "killed", "exited", "backoff", "quarantined", "down", "ended", 'g' },
	{ "killed", "timer", "killed", "killed", "killed", "stuck", 'n' },

	{ "backoff", "want-up", "backoff", "backoff", "backoff", "nothing",
	    'k' },
	{ "backoff", "want-down", "down", "down", "down", "nothing", 'n' },
	{ "backoff", "want-again", "backoff", "backoff", "backoff", "nothing",
	    'k' },
	{ "backoff", "clear", "backoff", "backoff", "backoff", "nothing", 'k' },
	{ "backoff", "release", "waiting", "waiting", "waiting", "ask", 'n' },
	{ "backoff", "spawned", "starting", "starting", "starting", "nothing",
	    'r' },
	{ "backoff", "spawn-failed", "backoff", "backoff", "backoff", "nothing",
	    'k' },
	{ "backoff", "ready", "backoff", "backoff", "backoff", "nothing", 'k' },
	{ "backoff", "silent", "backoff", "backoff", "backoff", "nothing",
	    'k' },
	{ "backoff", "exited", "backoff", "backoff", "backoff", "nothing",
	    'k' },
	{ "backoff", "timer", "waiting", "waiting", "waiting", "ask", 'n' },

	{ "quarantined", "want-up", "quarantined", "quarantined", "quarantined",
	    "nothing", 'k' },
	{ "quarantined", "want-down", "down", "down", "down", "nothing", 'n' },
	{ "quarantined", "want-again", "quarantined", "quarantined",
	    "quarantined", "nothing", 'k' },
	{ "quarantined", "clear", "quarantined", "quarantined", "quarantined",
	    "nothing", 'k' },
	{ "quarantined", "release", "waiting", "waiting", "waiting", "ask",
	    'n' },
	{ "quarantined", "spawned", "starting", "starting", "starting",
	    "nothing", 'r' },
	{ "quarantined", "spawn-failed", "quarantined", "quarantined",
	    "quarantined", "nothing", 'k' },
	{ "quarantined", "ready", "quarantined", "quarantined", "quarantined",
	    "nothing", 'k' },
	{ "quarantined", "silent", "quarantined", "quarantined", "quarantined",
	    "nothing", 'k' },
	{ "quarantined", "exited", "quarantined", "quarantined", "quarantined",
	    "nothing", 'k' },
	{ "quarantined", "timer", "waiting", "waiting", "waiting", "ask", 'n' },
};

static const struct proc_limits limits = {
	.ready_limit = 10 * USEC_PER_SEC,
	.stop_limit = 20 * USEC_PER_SEC,
	.delay_max = 60 * USEC_PER_SEC,
	.quarantine_max = 600 * USEC_PER_SEC,
};

#define NOW  (1000 * USEC_PER_SEC)
#define KEPT (7777 * USEC_PER_SEC)

static usec_t
wanted_deadline(char how, const char *next)
{
	switch (how) {
	case 'k':
		return KEPT;
	case 'r':
		return NOW + limits.ready_limit;
	case 's':
	case 'o':
		return NOW + limits.stop_limit;
	case 'u':
		return NOW + PROC_STUCK;
	case 'l':
		return NOW + PROC_DELAY_MIN;
	case 'g':
		return NOW +
		    (strcmp(next, "quarantined") == 0 ? limits.delay_max
						      : PROC_DELAY_MIN);
	default:
		return USEC_NEVER;
	}
}

enum mood {
	WANTED,
	LOOPING, /* wanted, and this is the failure that is too much */
	UNWANTED,
	NMOODS,
};

static void
check_cell(const struct want *w, enum proc_state state, enum proc_event event,
    enum mood mood)
{
	struct proc p;
	enum proc_action action;
	const char *next;
	usec_t deadline;
	bool on = mood != UNWANTED;

	proc_init(&p);
	p.state = state;
	p.wanted = on;
	p.failures = mood == LOOPING ? PROC_LOOPING - 1 : 0;
	p.deadline = KEPT;
	action = proc_event(&p, event, NOW, &limits);
	if (event == PROC_EV_WANT_UP || event == PROC_EV_WANT_DOWN)
		on = event == PROC_EV_WANT_UP;
	next = !on ? w->unwanted : mood == LOOPING ? w->looping : w->next;
	deadline = strcmp(next, "down") == 0
	    ? USEC_NEVER
	    : wanted_deadline(w->deadline, next);
	cr_expect_str_eq(proc_state_name(p.state), next, "%s, %s (%d): next",
	    w->state, w->event, mood);
	cr_expect_str_eq(proc_action_name(action), w->action,
	    "%s, %s (%d): action", w->state, w->event, mood);
	cr_expect_eq(p.deadline, deadline, "%s, %s (%d): deadline %ld",
	    w->state, w->event, mood, (long)p.deadline);
	cr_expect_eq(p.wanted, on, "%s, %s: wanted", w->state, w->event);
}

Test(proc, every_cell)
{
	size_t i;
	int mood;

	cr_assert_eq(ARRAY_LEN(wants), (size_t)PROC_NSTATES * PROC_NEVENTS);
	for (i = 0; i < ARRAY_LEN(wants); i++) {
		enum proc_state state = (enum proc_state)(i / PROC_NEVENTS);
		enum proc_event event = (enum proc_event)(i % PROC_NEVENTS);

		cr_assert_str_eq(wants[i].state, proc_state_name(state));
		cr_assert_str_eq(wants[i].event, proc_event_name(event));
		cr_expect(proc_table[state][event].valid);
		for (mood = 0; mood < NMOODS; mood++)
			check_cell(&wants[i], state, event, (enum mood)mood);
	}
}

static void
begin(struct proc *p, usec_t now)
{
	cr_assert_eq(
	    proc_event(p,
		p->state == PROC_DOWN ? PROC_EV_WANT_UP : PROC_EV_TIMER, now,
		&limits),
	    PROC_ACT_ASK);
	cr_assert_eq(
	    proc_event(p, PROC_EV_CLEAR, now, &limits), PROC_ACT_SPAWN);
	proc_event(p, PROC_EV_SPAWNED, now, &limits);
}

/* Start, run so long, end: the delay until the next start. */
static usec_t
one_life(struct proc *p, usec_t *now, usec_t run)
{
	usec_t ended;

	begin(p, *now);
	proc_event(p, PROC_EV_READY, *now, &limits);
	ended = *now + run;
	cr_assert_eq(
	    proc_event(p, PROC_EV_EXITED, ended, &limits), PROC_ACT_ENDED);
	*now = p->deadline;
	return p->deadline - ended;
}

/* The delay after so many failures in a row. */
static usec_t
delay_after(int failures)
{
	usec_t want =
	    failures < PROC_LOOPING ? PROC_DELAY_MIN : limits.delay_max;
	const usec_t max =
	    failures < PROC_LOOPING ? limits.delay_max : limits.quarantine_max;
	int i = failures < PROC_LOOPING ? 1 : PROC_LOOPING;

	for (; i < failures; i++)
		want = want * 2 > max ? max : want * 2;
	return want;
}

Test(proc, P6_dies_at_once_1000_times_the_delay_doubles_to_the_limit)
{
	struct proc p;
	usec_t now = NOW;
	int i;

	proc_init(&p);
	for (i = 1; i <= 1000; i++) {
		cr_assert_eq(
		    one_life(&p, &now, 0), delay_after(i), "life %d", i);
		cr_assert_eq(proc_is_looping(&p, now), i >= PROC_LOOPING);
		cr_assert_eq(p.state,
		    i < PROC_LOOPING ? PROC_BACKOFF : PROC_QUARANTINED);
	}
	cr_expect_eq(p.restarts, 999);
	cr_expect_eq(p.failures, 1000);
}

Test(proc, P6_released_it_is_tried_at_once_and_one_failure_decides)
{
	struct proc p;
	usec_t now = NOW;
	int i;

	proc_init(&p);
	for (i = 0; i < PROC_LOOPING + 3; i++)
		one_life(&p, &now, 0);
	now -= limits.delay_max;
	cr_assert_eq(
	    proc_event(&p, PROC_EV_RELEASE, now, &limits), PROC_ACT_ASK);
	cr_expect_not(proc_is_looping(&p, now));
	cr_assert_eq(
	    proc_event(&p, PROC_EV_CLEAR, now, &limits), PROC_ACT_SPAWN);
	proc_event(&p, PROC_EV_SPAWNED, now, &limits);
	proc_event(&p, PROC_EV_EXITED, now, &limits);
	cr_expect_eq(p.state, PROC_QUARANTINED);
	cr_expect_eq(p.deadline, now + limits.delay_max, "as at first");

	/* One that runs is no longer thought ill of either. */
	proc_event(&p, PROC_EV_TIMER, p.deadline, &limits);
	proc_event(&p, PROC_EV_CLEAR, now, &limits);
	proc_event(&p, PROC_EV_READY, now, &limits);
	cr_expect(proc_is_looping(&p, now));
	cr_expect_eq(
	    proc_event(&p, PROC_EV_RELEASE, now, &limits), PROC_ACT_NOTHING);
	cr_expect_eq(p.state, PROC_UP);
	cr_expect_not(proc_is_looping(&p, now));
}

Test(proc, a_quarantine_is_never_shorter_than_a_back_off)
{
	struct proc_limits small = limits;
	struct proc p;
	int i;

	small.quarantine_max = 1;
	proc_init(&p);
	p.wanted = true;
	for (i = 0; i < 2 * PROC_LOOPING; i++) {
		p.state = PROC_STARTING;
		proc_event(&p, PROC_EV_EXITED, NOW, &small);
	}
	cr_expect_eq(p.state, PROC_QUARANTINED);
	cr_expect_eq(p.deadline, NOW + small.delay_max);
}

/* It has less time than it was given, when its group goes meanwhile. */
Test(proc, a_stop_becomes_shorter_and_never_longer)
{
	const struct proc_limits orphan = { .stop_limit = 2 };
	struct proc p;

	proc_init(&p);
	begin(&p, NOW);
	proc_event(&p, PROC_EV_WANT_DOWN, NOW, &limits);
	proc_event(&p, PROC_EV_WANT_AGAIN, NOW, &orphan);
	cr_expect_eq(p.deadline, NOW + 2);
	proc_event(&p, PROC_EV_WANT_AGAIN, NOW, &limits);
	cr_expect_eq(p.deadline, NOW + 2);
}

Test(proc, a_steady_run_resets_the_delay)
{
	struct proc p;
	usec_t now = NOW;
	int i;

	proc_init(&p);
	for (i = 1; i < 12; i++)
		cr_expect_eq(
		    one_life(&p, &now, PROC_STEADY - 1), delay_after(i));
	cr_expect_eq(one_life(&p, &now, PROC_STEADY), PROC_DELAY_MIN);
	cr_expect_eq(p.failures, 1);
	cr_expect_not(proc_is_looping(&p, now));
	for (i = 2; i < 12; i++)
		cr_expect_eq(one_life(&p, &now, 0), delay_after(i));
}

/* Killed each time when its time to become ready is over. */
Test(proc, P14_hanging_at_the_start_is_no_steady_run)
{
	const struct proc_limits slow = { .ready_limit = 2 * PROC_STEADY,
		.stop_limit = PROC_STEADY,
		.delay_max = 60 * USEC_PER_SEC };
	struct proc p;
	usec_t now = NOW;
	uint32_t i;

	proc_init(&p);
	proc_event(&p, PROC_EV_WANT_UP, now, &slow);
	proc_event(&p, PROC_EV_CLEAR, now, &slow);
	for (i = 1; i <= 2 * PROC_LOOPING; i++) {
		proc_event(&p, PROC_EV_SPAWNED, now, &slow);
		now = p.deadline;
		cr_assert_eq(
		    proc_event(&p, PROC_EV_TIMER, now, &slow), PROC_ACT_KILL);
		proc_event(&p, PROC_EV_EXITED, now, &slow);
		cr_assert_eq(p.failures, i);
		now = p.deadline;
		cr_assert_eq(
		    proc_event(&p, PROC_EV_TIMER, now, &slow), PROC_ACT_ASK);
		cr_assert_eq(
		    proc_event(&p, PROC_EV_CLEAR, now, &slow), PROC_ACT_SPAWN);
	}
	cr_expect(proc_is_looping(&p, now));
}

Test(proc, looping_ends_with_a_steady_run_that_still_runs)
{
	struct proc p;
	usec_t now = NOW;
	int i;

	proc_init(&p);
	for (i = 0; i < PROC_LOOPING; i++)
		one_life(&p, &now, 0);
	begin(&p, now);
	proc_event(&p, PROC_EV_READY, now, &limits);
	cr_expect(proc_is_looping(&p, now + PROC_STEADY - 1));
	cr_expect_not(proc_is_looping(&p, now + PROC_STEADY));
}

Test(proc, P4_spawn_failures_back_off_and_never_give_up)
{
	struct proc p;
	usec_t now = NOW, want = PROC_DELAY_MIN;
	int i;

	proc_init(&p);
	proc_event(&p, PROC_EV_WANT_UP, now, &limits);
	proc_event(&p, PROC_EV_CLEAR, now, &limits);
	for (i = 0; i < 100; i++) {
		cr_assert_eq(proc_event(&p, PROC_EV_SPAWN_FAILED, now, &limits),
		    PROC_ACT_NOTHING);
		cr_assert_eq(p.deadline - now, want);
		want =
		    want * 2 > limits.delay_max ? limits.delay_max : want * 2;
		now = p.deadline;
		cr_assert_eq(p.state, PROC_BACKOFF, "not quarantined");
		cr_assert_eq(
		    proc_event(&p, PROC_EV_TIMER, now, &limits), PROC_ACT_ASK);
		cr_assert_eq(proc_event(&p, PROC_EV_CLEAR, now, &limits),
		    PROC_ACT_SPAWN);
	}
}

/* Small limits and far times do not overflow. */
Test(proc, T4_deadlines_saturate)
{
	const struct proc_limits odd = { .ready_limit = USEC_NEVER,
		.stop_limit = USEC_NEVER,
		.delay_max = 1 };
	struct proc p;

	proc_init(&p);
	proc_event(&p, PROC_EV_WANT_UP, NOW, &odd);
	proc_event(&p, PROC_EV_CLEAR, NOW, &odd);
	cr_expect_eq(p.deadline, USEC_NEVER);
	proc_event(&p, PROC_EV_SPAWN_FAILED, NOW, &odd);
	cr_expect_eq(p.deadline, NOW + 1);
	proc_event(&p, PROC_EV_TIMER, NOW, &odd);
	proc_event(&p, PROC_EV_CLEAR, NOW, &odd);
	proc_event(&p, PROC_EV_SPAWN_FAILED, NOW, &odd);
	cr_expect_eq(p.deadline, NOW + 1);
}

/* Which states count as having a process decides what is signalled. */
Test(proc, is_there)
{
	static const bool want[PROC_NSTATES] = {
		[PROC_STARTING] = true,
		[PROC_UP] = true,
		[PROC_STOPPING] = true,
		[PROC_KILLED] = true,
	};
	int s;

	for (s = 0; s < PROC_NSTATES; s++) {
		struct proc p = { .state = (enum proc_state)s };

		cr_expect_eq(proc_is_there(&p), want[s]);
	}
}
