/* agent/parts.h - shared by the sources of the agent's end only.
 *
 *	agent.c   deliveries in, answers out
 *	trace.c   lines of dialogues for operators
 */
#ifndef AGENT_PARTS_H
#define AGENT_PARTS_H

#include "agent/agent.h"

RB_HEAD(delivery_tree, agent_delivery);

struct agent {
	struct wire *wire; /* NULL: the link is gone */
	struct event *lost;
	const struct agent_ops *ops;
	void *arg;
	struct delivery_tree deliveries;
	/* Of the next delivery; the strings of wishes lie in wished. */
	struct msg_REUSE reuse;
	struct msg_WISHES wishes;
	struct buf wished;
	bool has_wishes;
	uint64_t placed; /* the job of site; 0: none */
	struct buf site;
	bool paused;
};

/* Sends an answer. One that cannot be queued ends the link. */
void agent_answer(struct agent *a, const struct msg *msg);
/* Clean text of a report, in room of its own; "" when memory is out. */
struct msg_str agent_clean(struct buf *room, const char *s, size_t max);
/* A frame of queue-send was dropped, for this reason. */
void agent_say_bad(struct agent *a, const char *what);
/* A TRACE frame. */
void agent_take_trace(struct agent *a, const struct msg_TRACE *frame);

#endif
