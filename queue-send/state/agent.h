/* queue-send/state/agent.h - agents that are linked, and entries in their
 * hands.
 */
#ifndef QUEUE_SEND_STATE_AGENT_H
#define QUEUE_SEND_STATE_AGENT_H

#include "ipc/wire.h"
#include "queue-send/state/send.h"

struct agent_link {
	TAILQ_ENTRY(agent_link) link;
	struct send *send;
	struct wire *wire; /* NULL: lost */
	usec_t over_at;    /* lost: when its deliveries end */
	enum agent_program program;
	uint32_t pid; /* as it says; 0: not known */
	TAILQ_HEAD(delivery_list, delivery) deliveries;
	TAILQ_HEAD(kept_of_agent, kept) kept;
	bool full; /* the socket does not take more now */
};

struct delivery_rcpt {
	uint64_t offset;
	uint32_t index;
	bool reported;
	bool passed_on; /* the server tells of a success */
	char *address;  /* in the memory of the delivery */
};

/* One entry in the hands of one agent. */
struct delivery {
	RB_ENTRY(delivery) link;
	TAILQ_ENTRY(delivery) of_agent;
	uint64_t id;
	struct agent_link *agent;
	struct message *message;
	struct sched_entry *entry;
	char *nexthop; /* in the memory of the delivery */
	usec_t selected_at;
	bool may_keep; /* the connection */
	bool placed;   /* the agent may say ELSEWHERE */
	bool greeted;  /* by the server */
	bool closing;  /* all is reported, its connection is being closed */
	uint32_t nrcpts, nreported;
	struct delivery_rcpt rcpts[]; /* by index, ascending */
};

/* The agent ends this delivery if it has come no further than that. */
void delivery_cancel_one(struct delivery *d, uint8_t stage);

#endif
