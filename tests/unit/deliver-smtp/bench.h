/* A session's surroundings in one event loop: queue-send's end of the link,
 * a queue file, and servers that follow a script. */
#ifndef TEST_BENCH_H
#define TEST_BENCH_H

#include "agent/agent.h"
#include "deliver-smtp/session.h"

#include <event2/event.h>

/* When what the client has sent since the last step ends with `want`, `say` is
 * sent ("" nothing, NULL: close). want "" does not wait. */
struct step {
	const char *want, *say;
};

struct server {
	struct event_base *base;
	int sock; /* listening */
	uint16_t port;
	struct event *event;
	const struct step *steps; /* of each connection; */
	const struct step *again; /* from the second on, if not NULL */
	unsigned connections;
	struct buf got; /* of all connections */
	void *clients[8];
};

struct bench {
	struct event_base *base;
	struct agent *agent;
	struct session_context context;
	int link; /* queue-send's end */
	int fd;   /* the queue file */
	size_t content_len;
	struct buf results; /* "S2.0.0:relay:text\n" by recipient */
	bool done, site_failed;
	struct buf site; /* dsn and text of DONE */
	struct server server;
};

void bench_open(struct bench *b, const char *content, size_t len);
void bench_close(struct bench *b);
/* On a free port of 127.0.0.1, or at a path. */
void bench_serve(struct bench *b, const char *path, const struct step *steps);
/* Hand over a job of nrcpts recipients; "%u" in nexthop is the port. */
void bench_deliver(struct bench *b, enum agent_kind kind, const char *nexthop,
    uint32_t nrcpts);
/* Run the loop until DONE. */
void bench_run(struct bench *b);
/* Run it while it has something to do at once. */
void bench_turn(struct bench *b);

#endif
