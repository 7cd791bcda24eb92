/* site/site.h - what is known of a destination: its window, how many
 * deliveries it has, whether it is dead. Rules: docs/SCHEDULING.md, 2 and 3.
 *
 * The scheduler reaches sites through struct site_table only. local_new()
 * makes the table that lives in this process; one that several queues share
 * has the same functions. Pure: no clock, no I/O, the caller passes the time.
 *
 *	(room ◀──▶ full) ──failures──▶ dead ──time, success, flush──▶ room
 *
 * A site is opened while the scheduler has entries for it, and closed when it
 * has none; what it has learned stays known for a while (rule 3).
 */
#ifndef SITE_SITE_H
#define SITE_SITE_H

#include "base/base.h"
#include "site/window.h"

enum site_result {
	SITE_DELIVERED,  /* the site talked to us, whatever it said */
	SITE_FAILED,     /* connection or handshake failure */
	SITE_AGENT_DIED, /* our own agent, or not started: says nothing */
	SITE_UNTRIED,    /* never had a place: the site was dead */
};

enum site_state {
	SITE_ROOM, /* a delivery may begin */
	SITE_FULL, /* busy >= window; somebody is told when that changes */
	SITE_DEAD,
};

/* While dead, window and fail_cohorts are as they were at the death, success
 * and failure are 0. */
struct site_view {
	enum site_state state;
	uint32_t window, busy;
	double success, failure, fail_cohorts;
	uint32_t deaths;   /* in a row, without a success between */
	usec_t dead_until; /* while dead */
	const char *why;   /* while dead; never NULL then, and lives as long */
};

/* A delivery report and what it did to the site. Its reasons live until the
 * next one. */
struct site_step {
	enum site_result result;
	struct site_view before, after;
};

#define SITE_NAME_MAX 600 /* local@nexthop */
#define SITE_WHY_MAX  200 /* longer reasons are cut */

struct site;

/* table: of the struct it lies in. Each O(1), amortized, or O(log n) in sites.
 */
struct site_table {
	void *table;
	/* Found or made, and open; NULL when memory is out. Names compare
	 * without case. Opened twice it must be closed twice. */
	struct site *(*open)(
	    void *table, uint32_t transport, const char *name, usec_t now);
	void (*close)(void *table, struct site *site, usec_t now);
	/* A word of the scheduler's, kept with the site while it is open; NULL
	 * at first. */
	void **(*user)(struct site *site);
	/* As it was given when the site was made. */
	const char *(*name)(const struct site *site);
	/* Would take() give a place? A dead site whose time has come opens. */
	enum site_state (*state)(void *table, struct site *site, usec_t now);
	/* As state(), and says whether there are entries for the site that wait
	 * for a place. Who waits at a full site is in line for it, and
	 * sched_site_ready() follows when there is room, or it has died. In
	 * line until take() gives a place, or it waits no more; asking again
	 * does not lose the turn. NULL where nobody else takes places: then
	 * done() has told all there is to know. */
	enum site_state (*wait)(
	    void *table, struct site *site, bool waits, usec_t now);
	/* SITE_ROOM: a place was taken, give it back by done(). */
	enum site_state (*take)(void *table, struct site *site, usec_t now);
	/* The place is given back. ret_step may be NULL. */
	void (*done)(void *table, struct site *site, enum site_result result,
	    const char *why, usec_t now, struct site_step *ret_step);
	void (*view)(const struct site *site, struct site_view *ret_view);
	/* Every dead site opens. */
	void (*flush)(void *table, usec_t now);
};

/* The table of one process. seed: of the random spread; the same seed and
 * calls give the same times. idle_max: sites remembered while nobody has them
 * open; the least recently used goes first, and so does what was idle for
 * twice maximal_backoff_time, but for the dead: mail that was deferred for as
 * long as can be still finds what its destination has learned. */
struct local;
int local_new(const struct site_params *params, uint32_t count,
    const struct site_backoff *backoff, uint32_t idle_max, uint64_t seed,
    struct local **ret_local);
/* With no site open. */
void local_free(struct local **sites);
const struct site_table *local_table(const struct local *sites);
/* New parameters, by index: windows are cut to new limits at once; what was
 * learned stays. -EINVAL for another count. Then sched_configure(). */
int local_configure(struct local *sites, const struct site_params *params,
    uint32_t count, const struct site_backoff *backoff);

#endif
