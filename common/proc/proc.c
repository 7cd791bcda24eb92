#include "proc/proc.h"

/* clang-format off */
/* next: the state when the child is wanted; IF: when it is not, too. */
#define GO(next, act, time) \
	{ true, PROC_##next, PROC_##next, PROC_ACT_##act, PROC_TIME_##time }
#define IF(next, unwanted, act, time) \
	{ true, PROC_##next, PROC_##unwanted, PROC_ACT_##act, PROC_TIME_##time }

const struct proc_cell proc_table[PROC_NSTATES][PROC_NEVENTS] = {
	[PROC_DOWN] = {
		[PROC_EV_WANT_UP]      = GO(STARTING, SPAWN, READY),
		[PROC_EV_WANT_DOWN]    = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_WANT_AGAIN]   = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_SPAWNED]      = GO(STOPPING, STOP, STOP),
		[PROC_EV_SPAWN_FAILED] = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_READY]        = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_EXITED]       = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_TIMER]        = GO(DOWN, NOTHING, NEVER),
	},
	[PROC_STARTING] = {
		[PROC_EV_WANT_UP]      = GO(STARTING, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]    = GO(STOPPING, STOP, STOP),
		[PROC_EV_WANT_AGAIN]   = GO(STOPPING, STOP, STOP),
		[PROC_EV_SPAWNED]      = GO(STARTING, NOTHING, READY),
		[PROC_EV_SPAWN_FAILED] = IF(BACKOFF, DOWN, NOTHING, GROW),
		[PROC_EV_READY]        = GO(UP, NOTHING, NEVER),
		[PROC_EV_EXITED]       = IF(BACKOFF, DOWN, ENDED, GROW),
		[PROC_EV_TIMER]        = GO(KILLED, KILL, NEVER),
	},
	[PROC_UP] = {
		[PROC_EV_WANT_UP]      = GO(UP, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]    = GO(STOPPING, STOP, STOP),
		[PROC_EV_WANT_AGAIN]   = GO(STOPPING, STOP, STOP),
		[PROC_EV_SPAWNED]      = GO(UP, NOTHING, KEEP),
		[PROC_EV_SPAWN_FAILED] = GO(UP, NOTHING, KEEP),
		[PROC_EV_READY]        = GO(UP, NOTHING, KEEP),
		[PROC_EV_EXITED]       = IF(BACKOFF, DOWN, ENDED, GROW),
		[PROC_EV_TIMER]        = GO(UP, NOTHING, NEVER),
	},
	[PROC_STOPPING] = {
		[PROC_EV_WANT_UP]      = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]    = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_WANT_AGAIN]   = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_SPAWNED]      = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_SPAWN_FAILED] = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_READY]        = GO(STOPPING, NOTHING, KEEP),
		[PROC_EV_EXITED]       = IF(BACKOFF, DOWN, ENDED, LEAST),
		[PROC_EV_TIMER]        = GO(KILLED, KILL, NEVER),
	},
	[PROC_KILLED] = {
		[PROC_EV_WANT_UP]      = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]    = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_WANT_AGAIN]   = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_SPAWNED]      = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_SPAWN_FAILED] = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_READY]        = GO(KILLED, NOTHING, KEEP),
		[PROC_EV_EXITED]       = IF(BACKOFF, DOWN, ENDED, GROW),
		[PROC_EV_TIMER]        = GO(KILLED, NOTHING, NEVER),
	},
	[PROC_BACKOFF] = {
		[PROC_EV_WANT_UP]      = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_WANT_DOWN]    = GO(DOWN, NOTHING, NEVER),
		[PROC_EV_WANT_AGAIN]   = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_SPAWNED]      = GO(STARTING, NOTHING, READY),
		[PROC_EV_SPAWN_FAILED] = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_READY]        = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_EXITED]       = GO(BACKOFF, NOTHING, KEEP),
		[PROC_EV_TIMER]        = GO(STARTING, SPAWN, READY),
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

static usec_t
grown(struct proc *p, usec_t now, usec_t max)
{
	usec_t delay;

	/* One that was never ready did not run, however long it was there. */
	if (p->was_ready && now - p->started_at >= PROC_STEADY) {
		p->delay = PROC_DELAY_MIN;
		p->failures = 0;
	}
	if (p->failures < UINT32_MAX)
		p->failures++;
	delay = p->delay < max ? p->delay : max;
	p->delay = delay > max / 2 ? max : delay * 2;
	return later(now, delay);
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
		p->started_at = now;
		p->was_ready = false;
		p->deadline = later(now, limits->ready_limit);
		break;
	case PROC_TIME_STOP:
		p->deadline = later(now, limits->stop_limit);
		break;
	case PROC_TIME_LEAST:
		p->deadline = later(now, PROC_DELAY_MIN);
		break;
	case PROC_TIME_GROW:
		p->deadline = grown(p, now, limits->delay_max);
		break;
	}
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
	if (p->state == PROC_BACKOFF && cell->action == PROC_ACT_SPAWN)
		p->restarts++;
	p->state = p->wanted ? cell->next : cell->unwanted;
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
	return p->state != PROC_DOWN && p->state != PROC_BACKOFF;
}

static const char *const state_names[PROC_NSTATES] = {
	[PROC_DOWN] = "down",
	[PROC_STARTING] = "starting",
	[PROC_UP] = "up",
	[PROC_STOPPING] = "stopping",
	[PROC_KILLED] = "killed",
	[PROC_BACKOFF] = "backoff",
};
static const char *const event_names[PROC_NEVENTS] = {
	[PROC_EV_WANT_UP] = "want-up",
	[PROC_EV_WANT_DOWN] = "want-down",
	[PROC_EV_WANT_AGAIN] = "want-again",
	[PROC_EV_SPAWNED] = "spawned",
	[PROC_EV_SPAWN_FAILED] = "spawn-failed",
	[PROC_EV_READY] = "ready",
	[PROC_EV_EXITED] = "exited",
	[PROC_EV_TIMER] = "timer",
};
static const char *const action_names[] = {
	[PROC_ACT_NOTHING] = "nothing",
	[PROC_ACT_SPAWN] = "spawn",
	[PROC_ACT_STOP] = "stop",
	[PROC_ACT_KILL] = "kill",
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
