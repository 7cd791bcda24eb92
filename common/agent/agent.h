/* agent/agent.h - the agent protocol, both ends (docs/IPC.md, link WORK).
 *
 * queue-send hands an entry to an agent with an open, read-only descriptor of
 * the queue file; the agent answers per recipient (RESULT), then DONE. An
 * agent that dies, or says something it may not say (a job that it does not
 * have, a recipient twice or out of range), loses the job: what was not
 * reported is deferred (I18).
 *
 * The agent's end: agent_new() on the wire that the supervisor passes; each
 * job goes to deliver(), which owns it until agent_done().
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "ipc/msg.h"
#include "ipc/wire.h"

enum agent_outcome {
	AGENT_SENT,     /* delivered: dsn 2.x.x */
	AGENT_DEFERRED, /* temporary: dsn 4.x.x */
	AGENT_FAILED,   /* permanent: dsn 5.x.x */
	AGENT_NOUTCOMES,
};

struct agent_rcpt {
	uint32_t index; /* in the queue file */
	char *address;
	bool reported;
};

struct agent;

struct agent_job {
	struct agent *agent;
	uint64_t job;
	char *id;
	uint8_t kind; /* enum agent_kind of config/conf.h */
	char *transport, *nexthop, *sender;
	int fd; /* the queue file, read-only; closed by agent_done() */
	uint64_t content_off, content_len;
	uint32_t flags; /* enum queue_file_flags */
	uint32_t nrcpts;
	struct agent_rcpt *rcpts;
	usec_t received_at; /* monotonic */
	void *user;         /* the agent program's own */
};

struct agent_ops {
	void (*deliver)(void *arg, struct agent_job *job);
	/* queue-send is gone: end what runs, then stop. */
	void (*orphaned)(void *arg);
};

int agent_new(struct event_base *base, int sock, const struct agent_ops *ops,
    void *arg, struct agent **ret_agent);
void agent_free(struct agent **agent);

struct agent_report {
	enum agent_outcome outcome;
	const char *dsn;   /* "2.0.0" */
	const char *relay; /* "host[ip]:port", "local", … */
	const char *text;
	usec_t conn, xfer;
};
/* One recipient, by its place in job->rcpts; reporting twice is a bug. */
void agent_result(
    struct agent_job *job, uint32_t place, const struct agent_report *report);
/* The same report for every recipient that has none. */
void
agent_result_rest(struct agent_job *job, const struct agent_report *report);
/* Ends and frees the job. site_failed: dsn and text say why. */
void agent_done(
    struct agent_job *job, bool site_failed, const char *dsn, const char *text);

/* queue-send's end: the DELIVER frame. rcpts is filled with agent_rcpt_add().
 */
int agent_rcpt_add(
    struct buf *rcpts, uint32_t index, const char *address, size_t len);

#endif
