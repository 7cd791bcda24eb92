/* queue-send/dispatch.h - entries are selected and handed to agents.
 *
 * A job is one entry in the hands of one agent. Its message's file is open for
 * writing before the agent gets anything: who cannot write marks starts no
 * delivery (D9). The agent gets a descriptor of its own, read-only. */
#ifndef QUEUE_SEND_DISPATCH_H
#define QUEUE_SEND_DISPATCH_H

#include "queue-send/send.h"

struct job_rcpt {
	uint64_t offset;
	uint32_t index;
	bool reported;
	char *address; /* in the job's memory */
};

struct job {
	RB_ENTRY(job) link;
	TAILQ_ENTRY(job) of_agent;
	uint64_t id;
	struct agent_link *agent;
	struct message *message;
	struct sched_entry *entry;
	usec_t selected_at;
	uint32_t nrcpts, nreported;
	struct job_rcpt rcpts[]; /* by index, ascending */
};

usec_t dispatch_work(struct send *s);
/* The limits of the scheduler: of the configuration, 0 for transports whose
 * agent is not there or does not keep up. */
void dispatch_limits(struct send *s);
/* The parameters of the scheduler, as many as there are transports. */
void dispatch_params(
    const struct send *s, struct sched_transport_params *ret_params);
enum agent_program dispatch_program(enum agent_kind kind);
/* Counted with the local or the remote deliveries? */
bool dispatch_is_local(enum agent_kind kind);

struct job *dispatch_find(struct send *s, uint64_t id);
/* The job is over: its entry goes back, and it is freed. */
void dispatch_end(struct send *s, struct job *job, enum sched_result result);

#endif
