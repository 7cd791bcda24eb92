/* queue-send/agents/own.h - the state of this floor, which no other folder
 * includes. */
#ifndef QUEUE_SEND_AGENTS_OWN_H
#define QUEUE_SEND_AGENTS_OWN_H

#include "queue-send/agents/agents.h"

#include <bsd/sys/tree.h>
#include <sys/queue.h>

RB_HEAD(delivery_tree, delivery);

RB_HEAD(kept_numbers, kept);
RB_HEAD(kept_sites, kept);

/* Connections between two deliveries (kept.c). */
struct kept_all {
	struct kept_numbers numbers;
	struct kept_sites closing;          /* closed by us; CLOSED will come */
	struct kept_sites sites;            /* free for a delivery, by site */
	TAILQ_HEAD(kept_ages, kept) ages;   /* the same, the oldest first */
	struct kept_ages promised;          /* in neither */
	uint32_t open[CONF_TRANSPORTS_MAX]; /* the same, of a transport */
	uint32_t count;                     /* all */
	usec_t check_at;
};

struct links {
	/* todo-proc */
	struct wire *todo;
	bool parked_turn; /* asked for next: parked messages, or due ones */
	uint32_t credit;  /* given and not used */
	usec_t scan_at;   /* not before */
	uint64_t suspect; /* the last one that was asked for */

	/* agents */
	struct delivery_tree deliveries;
	struct kept_all kept;
	uint64_t last_delivery;
	uint32_t agent_deaths;
};

#endif
