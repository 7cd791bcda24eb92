/* qscheduler/children/proc.h - the supervision table: what to do with a child,
 * pure.
 *
 * A child is a state; what happens to it is an event; the table
 * proc_table[state][event] says the next state and the action that the
 * supervisor carries out. No process is started, signalled or waited for
 * here, no clock is read: deadlines are computed from the time passed in.
 * 0 is never a valid cell, so a hole cannot hide (docs/SUPERVISION.md).
 *
 * A child that ends, with whatever status, exit 0 included, is started
 * again after a delay that doubles from PROC_DELAY_MIN to the limit; a run of
 * PROC_STEADY that became ready resets it. One that was asked to stop for its
 * group comes back after the least delay: it is not to blame.
 *
 * PROC_LOOPING failures in a row are a crash loop: a child that ends once more
 * is in quarantine, tried again with a delay that doubles from delay_max to
 * quarantine_max, or when it is released. One that cannot be started stays in
 * back-off: what is missing may be the machine's.
 *
 * Nothing is started without asking: the owner of the children answers with
 * CLEAR when nothing of the child's last group is left.
 *
 * The table is total: an event that cannot happen in a state, or comes late,
 * is ignored there, and a process that is there without being wanted is
 * stopped.
 */
#ifndef QSCHEDULER_CHILDREN_PROC_H
#define QSCHEDULER_CHILDREN_PROC_H

#include "base/base.h"

#define PROC_DELAY_MIN (1 * USEC_PER_SEC / 4)
#define PROC_STEADY    (60 * USEC_PER_SEC)
/* So many failures without a steady run between are a crash loop. */
#define PROC_LOOPING   5

/* A process that SIGKILL has not ended by then hangs in the kernel. */
#define PROC_STUCK     (10 * USEC_PER_SEC)

enum proc_state {
	PROC_DOWN,     /* not wanted, not there */
	PROC_WAITING,  /* to be started when its last group is gone */
	PROC_STARTING, /* spawned, has not said READY */
	PROC_UP,
	PROC_STOPPING,    /* asked to stop, deadline running */
	PROC_KILLED,      /* SIGKILL sent, wait for its end */
	PROC_BACKOFF,     /* ended; wanted again after a delay */
	PROC_QUARANTINED, /* the same, in a crash loop: a long delay */
	PROC_NSTATES,
};

enum proc_event {
	PROC_EV_WANT_UP,
	PROC_EV_WANT_DOWN,  /* for good: stop of the queue or of all */
	PROC_EV_WANT_AGAIN, /* the group went: stop, then start again */
	PROC_EV_CLEAR,      /* nothing of its last group is left */
	PROC_EV_RELEASE,    /* an operator says: try at once */
	PROC_EV_SPAWNED,
	PROC_EV_SPAWN_FAILED,
	PROC_EV_READY,
	PROC_EV_SILENT, /* no sign of life */
	PROC_EV_EXITED,
	PROC_EV_TIMER, /* the deadline has passed */
	PROC_NEVENTS,
};

enum proc_action {
	PROC_ACT_NOTHING,
	PROC_ACT_ASK, /* give CLEAR, now or as soon as it is true */
	PROC_ACT_SPAWN,
	PROC_ACT_STOP,  /* ask: STOP frame and SIGTERM */
	PROC_ACT_KILL,  /* SIGKILL */
	PROC_ACT_STUCK, /* alert: it does not end */
	PROC_ACT_ENDED, /* tell the rest of its group; it is down */
};

struct proc_limits {
	usec_t ready_limit; /* STARTING at most this long, then KILL */
	usec_t stop_limit;  /* STOPPING at most this long, then KILL */
	usec_t delay_max;
	usec_t quarantine_max; /* not less than delay_max counts */
};

struct proc {
	enum proc_state state;
	bool wanted;       /* start again when it has ended */
	usec_t deadline;   /* USEC_NEVER: none */
	usec_t delay;      /* the next back-off */
	usec_t quarantine; /* the next one in quarantine, 0: delay_max */
	usec_t started_at;
	bool was_started;
	bool was_ready;    /* since started_at */
	uint32_t restarts; /* starts after the first */
	uint32_t failures; /* since the last steady run */
};

/* How the deadline is set by a cell. */
enum proc_timing {
	PROC_TIME_KEEP,  /* as it is */
	PROC_TIME_NEVER, /* none */
	PROC_TIME_READY, /* ready_limit from now, and the start of the run */
	PROC_TIME_STOP,  /* stop_limit from now */
	PROC_TIME_SOON,  /* the same, if it is not nearer already */
	PROC_TIME_STUCK, /* PROC_STUCK from now */
	PROC_TIME_LEAST, /* PROC_DELAY_MIN from now */
	PROC_TIME_GROW,  /* a failure: its delay from now, which then doubles */
};

struct proc_cell {
	bool valid;
	enum proc_state next;     /* when it is wanted */
	enum proc_state looping;  /* when it is wanted, and keeps failing */
	enum proc_state unwanted; /* when it is not */
	enum proc_action action;
	enum proc_timing timing; /* unless next is DOWN: never */
};
extern const struct proc_cell proc_table[PROC_NSTATES][PROC_NEVENTS];

void proc_init(struct proc *p);
/* The event happens at `now`; the action is for the caller to carry out. */
enum proc_action proc_event(struct proc *p, enum proc_event event, usec_t now,
    const struct proc_limits *limits);
/* The child keeps dying: it is shown, and its queue quarantined. */
bool proc_is_looping(const struct proc *p, usec_t now);
/* Is there, as far as is known, a process? */
bool proc_is_there(const struct proc *p);
const char *proc_state_name(enum proc_state state);
const char *proc_event_name(enum proc_event event);
const char *proc_action_name(enum proc_action action);

#endif
