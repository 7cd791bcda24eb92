/* queue-send/backlog.h - one destination as the active queue sees it: how many
 * of its messages are held by it, and the deferred messages that are parked
 * until it holds fewer (due.h). share.h says who is held by what.
 *
 * Another routing table makes backlogs of another generation: what is parked in
 * older ones is looked at again, as fast as todo-proc does that.
 *
 * A backlog lives while a message, a claim or a deferred message refers to it:
 * after each of these has gone, backlog_put(). NULL: memory is out.
 */
#ifndef QUEUE_SEND_BACKLOG_H
#define QUEUE_SEND_BACKLOG_H

#include "queue-send/due.h"

#include <sys/queue.h>

struct send;

struct backlog {
	RB_ENTRY(backlog) by_name;
	struct backlog_parked *parked; /* NULL: no deferred message knows it */
	uint32_t held;
	uint32_t claims;
	uint32_t transport, generation;
	char name[]; /* as route_destination() makes it */
};

enum backlog_state {
	BACKLOG_IDLE, /* nothing of it is parked */
	BACKLOG_RANKED,
	BACKLOG_RESTS,
};

/* Apart, since most destinations never have one. */
struct backlog_parked {
	struct backlog *backlog;
	struct due_backlog due;
	union {
		RB_ENTRY(backlog_parked) by_load;
		TAILQ_ENTRY(backlog_parked) resting;
	};
	usec_t ask_at; /* while it rests */
	uint32_t load; /* its rank: held and asked for */
	enum backlog_state state;
};
RB_HEAD(backlog_names, backlog);
RB_HEAD(backlog_loads, backlog_parked);
TAILQ_HEAD(backlog_resting, backlog_parked);

struct backlog *
backlog_find(const struct send *s, uint32_t transport, const char *name);
/* Found or made. */
struct backlog *
backlog_get(struct send *s, uint32_t transport, const char *name);
struct backlog_parked *backlog_get_parked(struct send *s, struct backlog *b);
/* Free what nothing refers to. */
void backlog_put(struct send *s, struct backlog *b);
/* Each of them; visit may free the one that it is given. */
void
backlog_each(struct send *s, void (*visit)(struct send *s, struct backlog *b));
/* With nothing that refers to it but deferred messages. */
void backlog_free(struct send *s, struct backlog *b);
/* By destination, in any generation, as strcmp(). */
int
backlog_compare(const struct backlog *b, uint32_t transport, const char *name);

/* Is it of another routing table? */
bool backlog_is_stale(const struct send *s, const struct backlog *b);
/* Messages that it holds, and those of its tail on their way. */
uint32_t backlog_load(const struct backlog *b);
/* Most messages that one destination may hold now: the part of what is free
 * that leaves a lone one its share of the whole, and any number of them never
 * all of it. */
uint32_t backlog_limit(const struct send *s);
/* Has it as much as it may have, or do others wait for it already? */
bool backlog_is_beyond(const struct send *s, const struct backlog *b);
/* Is the destination dead? Asks the table of destinations. */
bool backlog_is_dead(const struct send *s, const struct backlog *b);

#endif
