/* queue-send/links.h - the peers: the page, todo-proc, the agents.
 *
 * A later agent of the same name takes over at once; the earlier one keeps
 * what it has until its end is seen, so that results it had sent still count.
 * The end of its link is the first that is seen of a process that ends, and
 * the end of its connections the last: what it had keeps its places until the
 * next one is there, or for LINKS_LOST.
 * A peer that says what it may not say loses its link, and its supervisor
 * starts it again (I18). */
#ifndef QUEUE_SEND_LINKS_H
#define QUEUE_SEND_LINKS_H

#include "ipc/wire.h"
#include "queue-send/send.h"

#define LINKS_LOST (500 * USEC_PER_MSEC)

struct delivery;

struct agent_link {
	TAILQ_ENTRY(agent_link) link;
	struct send *send;
	struct wire *wire; /* NULL: lost */
	usec_t over_at;    /* lost: when its deliveries end */
	enum agent_program program;
	TAILQ_HEAD(delivery_list, delivery) deliveries;
	bool full; /* its socket does not take more now */
};

/* A link of the supervisor: takes the descriptor. */
void links_linked(struct send *s, const char *name, int fd);
void links_done(struct send *s);
/* Deliveries of agents that are lost end when it is time. */
usec_t links_work(struct send *s);
/* Time is over: agents are to close their connections. */
void links_hang_up(struct send *s);

#endif
