/* qsim/scenario.h - a workload in words: parameters, agents, how long
 * deliveries take, which messages come when.
 *
 * The format is in qsim(1). A scenario is read whole before it is run; a broken
 * one gives -EINVAL and "FILE:LINE: what was expected, what is there" in
 * *ret_error. Owns all it points to; scenario_done() frees it.
 */
#ifndef QSIM_SCENARIO_H
#define QSIM_SCENARIO_H

#include "base/buf.h"
#include "config/conf.h"

/* Recipients of one message for one destination. */
struct scenario_rcpts {
	uint32_t transport;   /* index into conf.transports */
	uint32_t destination; /* index into destinations */
	uint32_t count;
};

struct scenario_message {
	usec_t at;
	uint32_t line;     /* of the file */
	uint32_t nrcpts;   /* in all */
	uint32_t first, n; /* in rcpts: as they stand in the file */
};

/* The far end of deliveries; of its faults the first that applies. */
struct scenario_destination {
	char *name; /* the nexthop */
	uint32_t transport;
	usec_t duration; /* of one delivery */
	uint32_t fail;   /* so many first deliveries fail to connect */
	uint32_t refuse; /* connections at once, beyond which one is refused
			    at once; UINT32_MAX: none is */
	/* So many are served at once and so many wait for that; one more hangs
	 * and fails. serve 0: no such bounds. */
	uint32_t serve, backlog;
	usec_t hang;
	uint32_t bad_pct;  /* so many of 100 fail to connect, at random */
	uint32_t lose_pct; /* so many of 100 sessions are lost, at random */
};

/* A parameter as it was set, `agents` included. */
struct scenario_setting {
	char *name, *value;
	uint32_t line;
};

struct scenario {
	char *path;
	struct conf conf; /* parameters as set, the rest default; agents are
			     the transports' process_limit. The transport
			     smtp is there always, others as they are named;
			     those that are not in a parameter `transports`
			     in the order of their first recipients */
	bool jitter_set;  /* backoff_jitter was set; else there is none, in conf
			     neither */
	struct scenario_message *messages; /* number 1 is [0] */
	uint32_t nmessages;
	struct scenario_rcpts *rcpts;
	uint32_t nrcpts;
	struct scenario_destination *destinations;
	uint32_t ndestinations;
	uint32_t spread_pct; /* of durations, at random, either way */
	uint64_t seed;       /* of what is at random */
	struct scenario_setting *settings; /* source of conf */
	uint32_t nsettings;
};

/* Bounds, so that a slip of the pen does not take the machine's memory. */
#define SCENARIO_LINE_MAX     65536
#define SCENARIO_MESSAGES_MAX 5000000
#define SCENARIO_RCPTS_MAX    20000000 /* of all messages */
#define SCENARIO_ROWS_MAX     20000000 /* in rcpts */
#define SCENARIO_NUMBER_MAX   9999999  /* of a#LOW-HIGH */
#define SCENARIO_NAME_MAX     255

int scenario_read(
    const char *path, struct scenario *ret_scenario, struct buf *ret_error);
/* The same of text in memory; path only names it. */
int scenario_parse(const char *path, const char *text, size_t len,
    struct scenario *ret_scenario, struct buf *ret_error);
/* The configuration again, with other settings on top of those of the file.
 * where names them in errors. */
int scenario_configure(const struct scenario *sc, const char *where,
    const struct conf_setting *more, size_t count, struct conf *ret_conf,
    struct buf *ret_error);
void scenario_done(struct scenario *sc);

#endif
