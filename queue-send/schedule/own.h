/* queue-send/schedule/own.h - the state of this floor, which no other folder
 * includes. */
#ifndef QUEUE_SEND_SCHEDULE_OWN_H
#define QUEUE_SEND_SCHEDULE_OWN_H

#include "queue-send/schedule/schedule.h"

#include <bsd/sys/tree.h>
#include <sys/queue.h>

RB_HEAD(dead_names, dead_site);
RB_HEAD(dead_times, dead_site);

/* Dead destinations whose opening is to be told (schedule_log.c). */
struct schedule_log {
	struct dead_names names;
	struct dead_times times;
	uint32_t count;
};

RB_HEAD(rolled_tree, rolled);
TAILQ_HEAD(rolled_list, rolled);

/* Next hops that are at a shared destination (rollup.c). */
struct rollup {
	struct rolled_tree tree;
	struct rolled_list used; /* all of them; the last used is the last */
	uint32_t count;
	uint64_t numbers; /* given so far */
};

RB_HEAD(greeted_tree, greeted);
RB_HEAD(ungreeted_tree, ungreeted_site);

/* Destinations that have greeted, and the others with deliveries or in wait for
 * a slot (ungreeted.c). */
struct ungreeted {
	struct greeted_tree greeted;
	TAILQ_HEAD(greeted_list, greeted) used; /* the last used is the last */
	uint32_t ngreeted;
	uint64_t secret; /* of the hash of names */
	struct ungreeted_tree sites;
	TAILQ_HEAD(ungreeted_list, ungreeted_site) held; /* in their order */
	uint32_t nheld, unchecked; /* held: all, and those to be asked for */
	usec_t check_at;
	bool checks; /* a round began at check_at; unchecked ones remain */
	uint32_t running[CONF_TRANSPORTS_MAX]; /* deliveries not greeted */
};

struct schedule {
	struct schedule_log log;
	struct rollup rollup;
	struct ungreeted ungreeted;
	bool starts_nothing; /* schedule_pause() */

	/* The table of destinations (schedule.c). */
	struct event *wake;  /* another process made room */
	bool lost;           /* the table is lost, and that was said */
	usec_t lost_told_at; /* to the supervisor; log_due() */
	uint32_t counted;    /* the table that it was told of, if has_told */
	bool has_told;
	uint64_t told;  /* of its troubles, in the log */
	usec_t told_at; /* log_due() */
};

#endif
