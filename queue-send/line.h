/* queue-send/line.h - one destination as the active queue sees it: how many of
 * its messages are held by it, and the deferred messages that are parked until
 * it holds fewer (due.h). share.h says who is held by what.
 *
 * Another routing table makes lines of another generation: what is parked in
 * older ones is looked at again, as fast as todo-proc does that.
 *
 * A line lives while a message, a claim or a deferred message refers to it:
 * after each of these has gone, line_put(). NULL: memory is out.
 */
#ifndef QUEUE_SEND_LINE_H
#define QUEUE_SEND_LINE_H

#include "queue-send/due.h"

#include <sys/queue.h>

struct send;

struct line {
	RB_ENTRY(line) by_name;
	struct line_tail *tail; /* NULL: no deferred message knows it */
	uint32_t held;
	uint32_t claims;
	uint32_t transport, generation;
	char name[]; /* as route_destination() makes it */
};

enum line_place {
	LINE_IDLE, /* nothing of it is parked */
	LINE_RANKED,
	LINE_RESTS,
};

/* Apart, since most destinations never have one. */
struct line_tail {
	struct line *line;
	struct due_line due;
	union {
		RB_ENTRY(line_tail) by_load;
		TAILQ_ENTRY(line_tail) resting;
	};
	usec_t ask_at; /* while it rests */
	uint32_t load; /* its rank: held and asked for */
	enum line_place place;
};
RB_HEAD(line_names, line);
RB_HEAD(line_loads, line_tail);
TAILQ_HEAD(line_tails, line_tail);

struct line *
line_find(const struct send *s, uint32_t transport, const char *name);
/* Found or made. */
struct line *line_get(struct send *s, uint32_t transport, const char *name);
struct line_tail *line_tail(struct send *s, struct line *line);
/* Free what nothing refers to. */
void line_put(struct send *s, struct line *line);
/* Each of them; visit may free the one that it is given. */
void
line_each(struct send *s, void (*visit)(struct send *s, struct line *line));
/* With nothing that refers to it but deferred messages. */
void line_free(struct send *s, struct line *line);
/* By destination, in any generation, as strcmp(). */
int line_compare(const struct line *line, uint32_t transport, const char *name);

/* Is it of another routing table? */
bool line_is_stale(const struct send *s, const struct line *line);
/* Messages that it holds, and those of its tail on their way. */
uint32_t line_load(const struct line *line);
/* Most messages that one destination may hold now: the part of what is free
 * that leaves a lone one its share of the whole, and any number of them never
 * all of it. */
uint32_t line_places(const struct send *s);
/* Has it as much as it may have, or do others wait for it already? */
bool line_is_beyond(const struct send *s, const struct line *line);
/* Is the destination dead? Asks the table of destinations. */
bool line_is_dead(const struct send *s, const struct line *line);

#endif
