/* queue-send/dispatch.h - entries are selected and handed to agents.
 *
 * A delivery is one entry in the hands of one agent. Its message's file is open
 * for writing before the agent gets anything: who cannot write marks starts no
 * delivery (D9). The agent gets a descriptor of its own, read-only. */
#ifndef QUEUE_SEND_DISPATCH_H
#define QUEUE_SEND_DISPATCH_H

#include "queue-send/send.h"

struct delivery_rcpt {
	uint64_t offset;
	uint32_t index;
	bool reported;
	char *address; /* in the delivery's memory */
};

struct delivery {
	RB_ENTRY(delivery) link;
	TAILQ_ENTRY(delivery) of_agent;
	uint64_t id;
	struct agent_link *agent;
	struct message *message;
	struct sched_entry *entry;
	usec_t selected_at;
	uint32_t nrcpts, nreported;
	struct delivery_rcpt rcpts[]; /* by index, ascending */
};

usec_t dispatch_work(struct send *s);

struct delivery *delivery_find(struct send *s, uint64_t id);
/* The delivery is over: its entry goes back, and it is freed. why: with
 * SITE_FAILED, "DSN TEXT". */
void delivery_end(struct send *s, struct delivery *d, enum site_result result,
    const char *why);

/* The file does not let this entry be dealt with: its message is taken out of
 * the active queue for that, finish.c does what the error asks for. */
void dispatch_give_up(
    struct send *s, struct sched_entry *e, enum site_result result, int error);

#endif
