#include <criterion/criterion.h>

#include "proc/proc.h"

/* The table of docs/SUPERVISION.md, written out a second time: next state
 * when wanted, when unwanted, action, deadline. */
struct want {
	const char *state, *event, *next, *unwanted, *action;
	char deadline; /* k keep, n never, r ready, s stop, l least, g grow */
};

static const struct want wants[] = {
	{ "down", "want-up", "starting", "starting", "spawn", 'r' },
	{ "down", "want-down", "down", "down", "nothing", 'n' },
	{ "down", "want-again", "down", "down", "nothing", 'n' },
	{ "down", "spawned", "stopping", "stopping", "stop", 's' },
	{ "down", "spawn-failed", "down", "down", "nothing", 'n' },
	{ "down", "ready", "down", "down", "nothing", 'n' },
	{ "down", "exited", "down", "down", "nothing", 'n' },
	{ "down", "timer", "down", "down", "nothing", 'n' },

	{ "starting", "want-up", "starting", "starting", "nothing", 'k' },
	{ "starting", "want-down", "stopping", "stopping", "stop", 's' },
	{ "starting", "want-again", "stopping", "stopping", "stop", 's' },
	{ "starting", "spawned", "starting", "starting", "nothing", 'r' },
	{ "starting", "spawn-failed", "backoff", "down", "nothing", 'g' },
	{ "starting", "ready", "up", "up", "nothing", 'n' },
	{ "starting", "exited", "backoff", "down", "ended", 'g' },
	{ "starting", "timer", "killed", "killed", "kill", 'n' },

	{ "up", "want-up", "up", "up", "nothing", 'k' },
	{ "up", "want-down", "stopping", "stopping", "stop", 's' },
	{ "up", "want-again", "stopping", "stopping", "stop", 's' },
	{ "up", "spawned", "up", "up", "nothing", 'k' },
	{ "up", "spawn-failed", "up", "up", "nothing", 'k' },
	{ "up", "ready", "up", "up", "nothing", 'k' },
	{ "up", "exited", "backoff", "down", "ended", 'g' },
	{ "up", "timer", "up", "up", "nothing", 'n' },

	{ "stopping", "want-up", "stopping", "stopping", "nothing", 'k' },
	{ "stopping", "want-down", "stopping", "stopping", "nothing", 'k' },
	{ "stopping", "want-again", "stopping", "stopping", "nothing", 'k' },
	{ "stopping", "spawned", "stopping", "stopping", "nothing", 'k' },
	{ "stopping", "spawn-failed", "stopping", "stopping", "nothing", 'k' },
	{ "stopping", "ready", "stopping", "stopping", "nothing", 'k' },
	{ "stopping", "exited", "backoff", "down", "ended", 'l' },
	{ "stopping", "timer", "killed", "killed", "kill", 'n' },

	{ "killed", "want-up", "killed", "killed", "nothing", 'k' },
	{ "killed", "want-down", "killed", "killed", "nothing", 'k' },
	{ "killed", "want-again", "killed", "killed", "nothing", 'k' },
	{ "killed", "spawned", "killed", "killed", "nothing", 'k' },
	{ "killed", "spawn-failed", "killed", "killed", "nothing", 'k' },
	{ "killed", "ready", "killed", "killed", "nothing", 'k' },
	{ "killed", "exited", "backoff", "down", "ended", 'g' },
	{ "killed", "timer", "killed", "killed", "nothing", 'n' },

	{ "backoff", "want-up", "backoff", "backoff", "nothing", 'k' },
	{ "backoff", "want-down", "down", "down", "nothing", 'n' },
	{ "backoff", "want-again", "backoff", "backoff", "nothing", 'k' },
	{ "backoff", "spawned", "starting", "starting", "nothing", 'r' },
	{ "backoff", "spawn-failed", "backoff", "backoff", "nothing", 'k' },
	{ "backoff", "ready", "backoff", "backoff", "nothing", 'k' },
	{ "backoff", "exited", "backoff", "backoff", "nothing", 'k' },
	{ "backoff", "timer", "starting", "starting", "spawn", 'r' },
};

static const struct proc_limits limits = {
	.ready_limit = 10 * USEC_PER_SEC,
	.stop_limit = 20 * USEC_PER_SEC,
	.delay_max = 60 * USEC_PER_SEC,
};

#define NOW  (1000 * USEC_PER_SEC)
#define KEPT (7777 * USEC_PER_SEC)

static usec_t
wanted_deadline(char how)
{
	switch (how) {
	case 'k':
		return KEPT;
	case 'r':
		return NOW + limits.ready_limit;
	case 's':
		return NOW + limits.stop_limit;
	case 'l':
	case 'g':
		return NOW + PROC_DELAY_MIN;
	default:
		return USEC_NEVER;
	}
}

static void
check_cell(
    const struct want *w, enum proc_state state, enum proc_event event, bool on)
{
	struct proc p;
	enum proc_action action;
	const char *next;
	usec_t deadline;

	proc_init(&p);
	p.state = state;
	p.wanted = on;
	p.deadline = KEPT;
	action = proc_event(&p, event, NOW, &limits);
	if (event == PROC_EV_WANT_UP || event == PROC_EV_WANT_DOWN)
		on = event == PROC_EV_WANT_UP;
	next = on ? w->next : w->unwanted;
	deadline = strcmp(next, "down") == 0 ? USEC_NEVER
					     : wanted_deadline(w->deadline);
	cr_expect_str_eq(proc_state_name(p.state), next, "%s, %s (%d): next",
	    w->state, w->event, on);
	cr_expect_str_eq(proc_action_name(action), w->action,
	    "%s, %s (%d): action", w->state, w->event, on);
	cr_expect_eq(p.deadline, deadline, "%s, %s (%d): deadline %ld",
	    w->state, w->event, on, (long)p.deadline);
	cr_expect_eq(p.wanted, on, "%s, %s: wanted", w->state, w->event);
}

Test(proc, every_cell)
{
	size_t i;

	cr_assert_eq(ARRAY_LEN(wants), PROC_NSTATES * PROC_NEVENTS);
	for (i = 0; i < ARRAY_LEN(wants); i++) {
		enum proc_state state = (enum proc_state)(i / PROC_NEVENTS);
		enum proc_event event = (enum proc_event)(i % PROC_NEVENTS);

		cr_assert_str_eq(wants[i].state, proc_state_name(state));
		cr_assert_str_eq(wants[i].event, proc_event_name(event));
		cr_expect(proc_table[state][event].valid);
		check_cell(&wants[i], state, event, true);
		check_cell(&wants[i], state, event, false);
	}
}

/* Start, run so long, end: the delay until the next start. */
static usec_t
one_life(struct proc *p, usec_t *now, usec_t run)
{
	usec_t ended;

	cr_assert_eq(
	    proc_event(p,
		p->state == PROC_DOWN ? PROC_EV_WANT_UP : PROC_EV_TIMER, *now,
		&limits),
	    PROC_ACT_SPAWN);
	proc_event(p, PROC_EV_SPAWNED, *now, &limits);
	proc_event(p, PROC_EV_READY, *now, &limits);
	ended = *now + run;
	cr_assert_eq(
	    proc_event(p, PROC_EV_EXITED, ended, &limits), PROC_ACT_ENDED);
	*now = p->deadline;
	return p->deadline - ended;
}

Test(proc, P6_dies_at_once_1000_times_the_delay_doubles_to_the_limit)
{
	struct proc p;
	usec_t now = NOW, want = PROC_DELAY_MIN;
	int i;

	proc_init(&p);
	for (i = 0; i < 1000; i++) {
		cr_assert_eq(one_life(&p, &now, 0), want, "life %d", i);
		want =
		    want * 2 > limits.delay_max ? limits.delay_max : want * 2;
		cr_assert_eq(proc_is_looping(&p, now), i + 1 >= PROC_LOOPING);
	}
	cr_expect_eq(p.restarts, 999);
	cr_expect_eq(p.failures, 1000);
}

Test(proc, a_steady_run_resets_the_delay)
{
	struct proc p;
	usec_t now = NOW;
	int i;

	proc_init(&p);
	for (i = 0; i < 12; i++)
		one_life(&p, &now, PROC_STEADY - 1);
	cr_expect_eq(one_life(&p, &now, PROC_STEADY - 1), limits.delay_max);
	cr_expect_eq(one_life(&p, &now, PROC_STEADY), PROC_DELAY_MIN);
	cr_expect_eq(p.failures, 1);
	cr_expect_not(proc_is_looping(&p, now));
}

/* Killed each time when its time to become ready is over. */
Test(proc, P14_hanging_at_the_start_is_no_steady_run)
{
	const struct proc_limits slow = { 2 * PROC_STEADY, PROC_STEADY,
		60 * USEC_PER_SEC };
	struct proc p;
	usec_t now = NOW;
	uint32_t i;

	proc_init(&p);
	proc_event(&p, PROC_EV_WANT_UP, now, &slow);
	for (i = 1; i <= 2 * PROC_LOOPING; i++) {
		proc_event(&p, PROC_EV_SPAWNED, now, &slow);
		now = p.deadline;
		cr_assert_eq(
		    proc_event(&p, PROC_EV_TIMER, now, &slow), PROC_ACT_KILL);
		proc_event(&p, PROC_EV_EXITED, now, &slow);
		cr_assert_eq(p.failures, i);
		now = p.deadline;
		cr_assert_eq(
		    proc_event(&p, PROC_EV_TIMER, now, &slow), PROC_ACT_SPAWN);
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
	proc_event(&p, PROC_EV_TIMER, now, &limits);
	proc_event(&p, PROC_EV_SPAWNED, now, &limits);
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
	for (i = 0; i < 100; i++) {
		cr_assert_eq(proc_event(&p, PROC_EV_SPAWN_FAILED, now, &limits),
		    PROC_ACT_NOTHING);
		cr_assert_eq(p.deadline - now, want);
		want =
		    want * 2 > limits.delay_max ? limits.delay_max : want * 2;
		now = p.deadline;
		cr_assert_eq(proc_event(&p, PROC_EV_TIMER, now, &limits),
		    PROC_ACT_SPAWN);
	}
}

/* Small limits and far times do not overflow. */
Test(proc, T4_deadlines_saturate)
{
	const struct proc_limits odd = { USEC_NEVER, USEC_NEVER, 1 };
	struct proc p;

	proc_init(&p);
	proc_event(&p, PROC_EV_WANT_UP, NOW, &odd);
	cr_expect_eq(p.deadline, USEC_NEVER);
	proc_event(&p, PROC_EV_SPAWN_FAILED, NOW, &odd);
	cr_expect_eq(p.deadline, NOW + 1);
	proc_event(&p, PROC_EV_TIMER, NOW, &odd);
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
