/* agent/parts.h - shared by the sources of the agent's end only.
 *
 *	agent.c   deliveries in, answers out
 *	trace.c   lines of dialogues for operators
 *	delivery.c, wishes.c   what frames say of a delivery
 */
#ifndef AGENT_PARTS_H
#define AGENT_PARTS_H

#include "agent/agent.h"

RB_HEAD(delivery_tree, agent_delivery);

/* A record of a list in a frame, of a recipient or of a wish: a number, and
 * text with its length before it. -ENOMEM; false: there is no whole one. */
#define AGENT_RECORD_HEAD 8
int agent_record_add(
    struct buf *list, uint32_t number, const char *text, size_t len);
bool agent_record_take(
    struct msg_str *left, uint32_t *ret_number, struct msg_str *ret_text);

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
