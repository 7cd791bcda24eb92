/* A session's surroundings in one event loop: queue-send's end of the link,
 * a queue file, and servers that follow a script. */
#ifndef TEST_BENCH_H
#define TEST_BENCH_H

#include "agent/agent.h"
#include "deliver-smtp/session/session.h"
#include "tests/unit/deliver-smtp/tls_peer.h"

#include <event2/event.h>

#define BENCH_CONTENT "Subject: x\n\n.dot\nend\n"
#define BENCH_WIRE    "Subject: x\r\n\r\n..dot\r\nend\r\n.\r\n"

/* When what the client has sent since the last step ends with `want`, `say` is
 * sent ("" nothing, NULL: close; BENCH_TLS: TLS begins, and the next step comes
 * when it has). want "" does not wait. */
struct step {
	const char *want, *say;
};
extern const char BENCH_TLS[];

struct server {
	struct event_base *base;
	int sock; /* listening */
	uint16_t port;
	struct event *event;
	const struct step *steps; /* of each connection; */
	const struct step *again; /* from the second on, if not NULL */
	SSL_CTX *tls;             /* the server's, which frees it */
	/* Octets on the wire, of all connections, that it says and hears before
	 * it ends, and how; 0: any number. */
	size_t says, hears;
	enum server_end {
		SERVER_CLOSES,
		SERVER_RESETS,
		SERVER_IS_SILENT,
	} end;
	bool over;
	char host[256];   /* that the client asked for */
	unsigned secured; /* handshakes that came to an end */
	unsigned resumed; /* of those */
	unsigned connections;
	struct buf got; /* of all connections */
	void *clients[8];
};

struct bench {
	struct event_base *base;
	struct agent *agent;
	struct session_context context;
	struct conf conf; /* of the context */
	int link;         /* queue-send's end */
	int fd;           /* the queue file */
	const char *content;
	size_t content_len;
	uint32_t flags; /* of the next deliveries, enum queue_file_flags */
	bool whole; /* the next deliveries have the content in their frames */
	bool reuse; /* the next deliveries may keep their connections, */
	uint64_t connection;  /* and are to use this one */
	const char *place;    /* of the next deliveries, by SITE; NULL: none */
	struct buf elsewhere; /* "site seconds" of ELSEWHERE */
	uint64_t closed;      /* the last one that was closed */
	uint64_t number;      /* the number of the next */
	struct buf results;   /* "S2.0.0:relay:text\n" by recipient */
	bool done, kept, site_failed;
	enum agent_site end; /* of DONE */
	unsigned greeted;    /* GREETED of the last delivery */
	struct buf site;     /* dsn and text of DONE */
	struct server server;
};

/* A server that takes BENCH_CONTENT for one recipient; its first steps. */
#define BENCH_PLAIN_STEPS 8
extern const struct step bench_plain[BENCH_PLAIN_STEPS];
#define BENCH_TO_DATA                                                  \
	{ "", "220 mx\r\n" }, { "EHLO me.example\r\n", "250 mx\r\n" }, \
	    { "MAIL FROM:<s@y>\r\n", "250 ok\r\n" },                   \
	{                                                              \
		"RCPT TO:<r0@x>\r\n", "250 ok\r\n"                     \
	}

void bench_open(struct bench *b, const char *content, size_t len);
void bench_close(struct bench *b);
/* On a free port of 127.0.0.1, at a path, or ("*") on a port of every address.
 */
void bench_serve(struct bench *b, const char *path, const struct step *steps);
void bench_server_close(struct server *s);
/* New policies, from parameters of the configuration. */
struct conf_setting;
void bench_policies(
    struct bench *b, const struct conf_setting *settings, size_t count);
/* The transport of this name, which later deliveries have. */
struct conf_transport *bench_transport(struct bench *b, const char *name);
/* Hand over a delivery of nrcpts recipients; "%u" in nexthop is the port. */
void bench_deliver(struct bench *b, enum agent_kind kind, const char *nexthop,
    uint32_t nrcpts);
/* A template for mkstemp() and mkdtemp(), below $TMPDIR or /tmp. */
#define BENCH_PATH 80
void bench_template(char ret_path[BENCH_PATH]);
/* The names that are looked up from now on are those of this new file, which is
 * the caller's to remove: two.test has 127.0.0.2 and 127.0.0.1, in this order.
 */
void bench_name_two(char ret_path[BENCH_PATH]);
/* Somewhere in the results is this; and whether the site is said to have
 * failed, never without a reason. */
void bench_expect(struct bench *b, const char *result, bool site_failed);
void bench_expect_end(struct bench *b, const char *result, enum agent_site end);
/* A port of 127.0.0.1 where nobody listens yet: the socket. */
int bench_reserve_port(struct bench *b);
/* Run the loop until DONE or KEPT. */
void bench_run(struct bench *b);
/* Run it while it has something to do at once. */
void bench_turn(struct bench *b);

#endif
