#include "qscheduler/children/proc.h"

/* clang-format off */
/* next: the state when the child is wanted; IF: when it is and keeps failing,
 * and when it is not, too. */
#define GO(next, act, time) \
	{ true, PROC_##next, PROC_##next, PROC_##next, PROC_ACT_##act, \
	  PROC_TIME_##time }
#define IF(next, looping, unwanted, act, time) \
	{ true, PROC_##next, PROC_##looping, PROC_##unwanted, \
	  PROC_ACT_##act, PROC_TIME_##time }

const struct proc_cell proc_table[PROC_NSTATES][PROC_NEVENTS] = {
	[PROC_DOWN] = {
		[PROC_EV_WANT_UP]       = GO(WAITING, ASK, NEVER),
		[PROC_EV_WANT_DOWN]     = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_WANT_AGAIN]    = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_CLEAR]         = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_RELEASE]       = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_SPAWNED]       = GO(STOPPING, STOP, STOP),
		[PROC_EV_SPAWN_FAILED]  = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_READY]         = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_SILENT]        = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_EXITED]        = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_TIMER]         = GO(DOWN, NOTHING, NEVER),
	},
	[PROC_WAITING] = {
		[PROC_EV_WANT_UP]       = GO(WAITING, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]     = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_WANT_AGAIN]    = GO(WAITING, NOTHING, KEEP),
		[PROC_EV_CLEAR]         = GO(STARTING, SPAWN, READY),
		[PROC_EV_RELEASE]       = GO(WAITING, NOTHING, KEEP),
		[PROC_EV_SPAWNED]       = GO(STARTING, NOTHING, READY),
		[PROC_EV_SPAWN_FAILED]  = GO(WAITING, NOTHING, KEEP),
		[PROC_EV_READY]         = GO(WAITING, NOTHING, KEEP),
		[PROC_EV_SILENT]        = GO(WAITING, NOTHING, KEEP),
		[PROC_EV_EXITED]        = GO(WAITING, NOTHING, KEEP),
		[PROC_EV_TIMER]         = GO(WAITING, NOTHING, NEVER),
	},
	[PROC_STARTING] = {
		[PROC_EV_WANT_UP]       = GO(STARTING, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]     = GO(STOPPING, STOP, STOP),
		[PROC_EV_WANT_AGAIN]    = GO(STOPPING, STOP, STOP),
		[PROC_EV_CLEAR]         = GO(STARTING, NOTHING, KEEP),
		[PROC_EV_RELEASE]       = GO(STARTING, NOTHING, KEEP),
		[PROC_EV_SPAWNED]       = GO(STARTING, NOTHING, READY),
		[PROC_EV_SPAWN_FAILED]  = IF(BACKOFF, BACKOFF, DOWN, NOTHING, GROW),
		[PROC_EV_READY]         = GO(UP, NOTHING, NEVER),
		[PROC_EV_SILENT]        = GO(STARTING, NOTHING, KEEP),
		[PROC_EV_EXITED]        = IF(BACKOFF, QUARANTINED, DOWN, ENDED, GROW),
		[PROC_EV_TIMER]         = GO(KILLED, KILL, STUCK),
	},
	[PROC_UP] = {
		[PROC_EV_WANT_UP]       = GO(UP, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]     = GO(STOPPING, STOP, STOP),
		[PROC_EV_WANT_AGAIN]    = GO(STOPPING, STOP, STOP),
		[PROC_EV_CLEAR]         = GO(UP, NOTHING, KEEP),
		[PROC_EV_RELEASE]       = GO(UP, NOTHING, KEEP),
		[PROC_EV_SPAWNED]       = GO(UP, NOTHING, KEEP),
		[PROC_EV_SPAWN_FAILED]  = GO(UP, NOTHING, KEEP),
		[PROC_EV_READY]         = GO(UP, NOTHING, KEEP),
		[PROC_EV_SILENT]        = GO(KILLED, KILL, STUCK),
		[PROC_EV_EXITED]        = IF(BACKOFF, QUARANTINED, DOWN, ENDED, GROW),
		[PROC_EV_TIMER]         = GO(UP, NOTHING, NEVER),
	},
	[PROC_STOPPING] = {
		[PROC_EV_WANT_UP]       = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]     = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_WANT_AGAIN]    = GO(STOPPING, NOTHING, SOON),
		[PROC_EV_CLEAR]         = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_RELEASE]       = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_SPAWNED]       = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_SPAWN_FAILED]  = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_READY]         = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_SILENT]        = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_EXITED]        = IF(BACKOFF, BACKOFF, DOWN, ENDED, LEAST),
		[PROC_EV_TIMER]         = GO(KILLED, KILL, STUCK),
	},
	[PROC_KILLED] = {
		[PROC_EV_WANT_UP]       = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]     = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_WANT_AGAIN]    = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_CLEAR]         = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_RELEASE]       = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_SPAWNED]       = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_SPAWN_FAILED]  = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_READY]         = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_SILENT]        = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_EXITED]        = IF(BACKOFF, QUARANTINED, DOWN, ENDED, GROW),
		[PROC_EV_TIMER]         = GO(KILLED, STUCK, NEVER),
	},
	[PROC_BACKOFF] = {
		[PROC_EV_WANT_UP]       = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]     = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_WANT_AGAIN]    = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_CLEAR]         = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_RELEASE]       = GO(WAITING, ASK, NEVER),
		[PROC_EV_SPAWNED]       = GO(STARTING, NOTHING, READY),
		[PROC_EV_SPAWN_FAILED]  = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_READY]         = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_SILENT]        = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_EXITED]        = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_TIMER]         = GO(WAITING, ASK, NEVER),
	},
	[PROC_QUARANTINED] = {
		[PROC_EV_WANT_UP]       = GO(QUARANTINED, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]     = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_WANT_AGAIN]    = GO(QUARANTINED, NOTHING, KEEP),
		[PROC_EV_CLEAR]         = GO(QUARANTINED, NOTHING, KEEP),
		[PROC_EV_RELEASE]       = GO(WAITING, ASK, NEVER),
		[PROC_EV_SPAWNED]       = GO(STARTING, NOTHING, READY),
		[PROC_EV_SPAWN_FAILED]  = GO(QUARANTINED, NOTHING, KEEP),
		[PROC_EV_READY]         = GO(QUARANTINED, NOTHING, KEEP),
		[PROC_EV_SILENT]        = GO(QUARANTINED, NOTHING, KEEP),
		[PROC_EV_EXITED]        = GO(QUARANTINED, NOTHING, KEEP),
		[PROC_EV_TIMER]         = GO(WAITING, ASK, NEVER),
	},
};
/* clang-format on */

void
proc_init(struct proc *p)
{
	*p = (struct proc){
		.state = PROC_DOWN,
		.deadline = USEC_NEVER,
		.delay = PROC_DELAY_MIN,
	};
}

static usec_t
later(usec_t now, usec_t by)
{
	usec_t at;

	return __builtin_add_overflow(now, by, &at) ? USEC_NEVER : at;
}

/* Afterwards one failure is enough for quarantine. */
static void
forgive(struct proc *p)
{
	p->delay = PROC_DELAY_MIN;
	p->quarantine = 0;
	if (p->failures >= PROC_LOOPING)
		p->failures = PROC_LOOPING - 1;
}

static void
count_failure(struct proc *p, usec_t now)
{
	/* A child that was never ready did not run, however long it was there.
	 */
	if (p->was_ready && now - p->started_at >= PROC_STEADY) {
		forgive(p);
		p->failures = 0;
	}
	if (p->failures < UINT32_MAX)
		p->failures++;
}

/* *delay from now, not above max; the next one is twice that. */
static usec_t
grown(usec_t *delay, usec_t now, usec_t max)
{
	const usec_t is = *delay < max ? *delay : max;

	*delay = is > max / 2 ? max : is * 2;
	return later(now, is);
}

static usec_t
next_attempt(struct proc *p, usec_t now, const struct proc_limits *limits)
{
	usec_t max = limits->quarantine_max;

	if (p->state != PROC_QUARANTINED)
		return grown(&p->delay, now, limits->delay_max);
	if (p->quarantine == 0)
		p->quarantine = limits->delay_max;
	if (max < limits->delay_max)
		max = limits->delay_max;
	return grown(&p->quarantine, now, max);
}

static void
begin_run(struct proc *p, usec_t now)
{
	p->started_at = now;
	p->was_ready = false;
}

static void
set_deadline(struct proc *p, enum proc_timing timing, usec_t now,
    const struct proc_limits *limits)
{
	switch (timing) {
	case PROC_TIME_KEEP:
		break;
	case PROC_TIME_NEVER:
		p->deadline = USEC_NEVER;
		break;
	case PROC_TIME_READY:
		begin_run(p, now);
		p->deadline = later(now, limits->ready_limit);
		break;
	case PROC_TIME_STOP:
		p->deadline = later(now, limits->stop_limit);
		break;
	case PROC_TIME_SOON:
		if (p->deadline > later(now, limits->stop_limit))
			p->deadline = later(now, limits->stop_limit);
		break;
	case PROC_TIME_STUCK:
		p->deadline = later(now, PROC_STUCK);
		break;
	case PROC_TIME_LEAST:
		p->deadline = later(now, PROC_DELAY_MIN);
		break;
	case PROC_TIME_GROW:
		p->deadline = next_attempt(p, now, limits);
		break;
	}
}

static enum proc_state
next_state(const struct proc *p, const struct proc_cell *cell)
{
	if (!p->wanted)
		return cell->unwanted;
	return p->failures >= PROC_LOOPING ? cell->looping : cell->next;
}

enum proc_action
proc_event(struct proc *p, enum proc_event event, usec_t now,
    const struct proc_limits *limits)
{
	const struct proc_cell *cell;

	ASSERT(p->state < PROC_NSTATES && event < PROC_NEVENTS);
	cell = &proc_table[p->state][event];
	ASSERT(cell->valid);
	if (event == PROC_EV_WANT_UP)
		p->wanted = true;
	else if (event == PROC_EV_WANT_DOWN)
		p->wanted = false;
	else if (event == PROC_EV_RELEASE)
		forgive(p);
	if (cell->timing == PROC_TIME_GROW)
		count_failure(p, now);
	if (cell->action == PROC_ACT_SPAWN) {
		p->restarts += p->was_started;
		p->was_started = true;
	}
	p->state = next_state(p, cell);
	p->was_ready |= p->state == PROC_UP;
	set_deadline(p, cell->timing, now, limits);
	if (p->state == PROC_DOWN)
		p->deadline = USEC_NEVER;
	return cell->action;
}

bool
proc_is_looping(const struct proc *p, usec_t now)
{
	if (p->state == PROC_UP && now - p->started_at >= PROC_STEADY)
		return false;
	return p->failures >= PROC_LOOPING;
}

bool
proc_is_there(const struct proc *p)
{
	return p->state == PROC_STARTING || p->state == PROC_UP ||
	    p->state == PROC_STOPPING || p->state == PROC_KILLED;
}

static const char *const state_names[PROC_NSTATES] = {
	[PROC_DOWN] = "down",
	[PROC_WAITING] = "waiting",
	[PROC_STARTING] = "starting",
	[PROC_UP] = "up",
	[PROC_STOPPING] = "stopping",
	[PROC_KILLED] = "killed",
	[PROC_BACKOFF] = "backoff",
	[PROC_QUARANTINED] = "quarantined",
};
static const char *const event_names[PROC_NEVENTS] = {
	[PROC_EV_WANT_UP] = "want-up",
	[PROC_EV_WANT_DOWN] = "want-down",
	[PROC_EV_WANT_AGAIN] = "want-again",
	[PROC_EV_CLEAR] = "clear",
	[PROC_EV_RELEASE] = "release",
	[PROC_EV_SPAWNED] = "spawned",
	[PROC_EV_SPAWN_FAILED] = "spawn-failed",
	[PROC_EV_READY] = "ready",
	[PROC_EV_SILENT] = "silent",
	[PROC_EV_EXITED] = "exited",
	[PROC_EV_TIMER] = "timer",
};
static const char *const action_names[] = {
	[PROC_ACT_NOTHING] = "nothing",
	[PROC_ACT_ASK] = "ask",
	[PROC_ACT_SPAWN] = "spawn",
	[PROC_ACT_STOP] = "stop",
	[PROC_ACT_KILL] = "kill",
	[PROC_ACT_STUCK] = "stuck",
	[PROC_ACT_ENDED] = "ended",
};

const char *
proc_state_name(enum proc_state state)
{
	return state < PROC_NSTATES ? state_names[state] : "?";
}

const char *
proc_event_name(enum proc_event event)
{
	return event < PROC_NEVENTS ? event_names[event] : "?";
}

const char *
proc_action_name(enum proc_action action)
{
	return action < ARRAY_LEN(action_names) ? action_names[action] : "?";
}
