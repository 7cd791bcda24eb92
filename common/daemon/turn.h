/* daemon/turn.h - one turn of the loop: a bounded part of all work, then the
 * one timer of the program is set to the next time. A callback that leaves work
 * asks for another turn (turn_kick), so that no callback is long and no work is
 * forgotten.
 */
#ifndef DAEMON_TURN_H
#define DAEMON_TURN_H

#include "base/base.h"

struct event;
struct event_base;

/* Does a part and returns the time until the next one: 0 or less for at once,
 * USEC_NEVER when no work is left. */
typedef usec_t turn_fn(void *arg);

/* Make `fn`, the turn_fn of a struct `type` with a member `now`: the clocks
 * are read, then each of `works` does a bounded part and returns the time of
 * its next one: a past time for at once, USEC_NEVER when no work is left. */
#define TURN_WORKS(fn, type, read_clocks, works)                            \
	usec_t fn(void *arg)                                                \
	{                                                                   \
		struct type *state = arg;                                   \
		usec_t next = USEC_NEVER, at;                               \
		size_t i;                                                   \
                                                                            \
		read_clocks(state);                                         \
		for (i = 0; i < ARRAY_LEN(works); i++) {                    \
			at = works[i](state);                               \
			next = at < next ? at : next;                       \
		}                                                           \
		return next == USEC_NEVER ? USEC_NEVER : next - state->now; \
	}

struct turn {
	struct event *timer; /* NULL: not running */
	turn_fn *work;
	void *arg;
	bool kicked; /* also while a turn runs */
	bool runs;
};

/* -ENOMEM. */
int
turn_init(struct turn *t, struct event_base *base, turn_fn *work, void *arg);
void turn_done(struct turn *t);
/* Asks for a turn soon. Does nothing before turn_init(). */
void turn_kick(struct turn *t);

#endif
