/* site/site.h - what is known of a destination: its window, how many
 * deliveries it has, whether it is dead. Rules: docs/SCHEDULING.md, 2 and 3.
 *
 * The caller passes the time.
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
	SITE_DELIVERED,  /* the site answered, whatever it said */
	SITE_FAILED,     /* connection or handshake failure */
	SITE_DOUBTED,    /* lost in mid-session, maybe by its message */
	SITE_AGENT_DIED, /* our own agent: says nothing of the site */
	SITE_UNTRIED,    /* never had a place: the site was dead */
};

enum site_state {
	SITE_ROOM, /* a delivery may begin */
	SITE_FULL, /* busy >= window */
	SITE_DEAD,
};

/* The end of a delivery. */
struct site_report {
	enum site_result result;
	uint32_t message; /* SITE_DOUBTED: identity of the message, not 0 */
	/* SITE_FAILED, SITE_DOUBTED: the reason if the site dies of it; NULL:
	 * not known. */
	const char *why;
};

/* A site as it is now. While it is dead, window and fail_cohorts are as they
 * were at the death, and success and failure are 0. */
struct site_view {
	enum site_state state;
	uint32_t window, busy;
	double success, failure, fail_cohorts;
	uint32_t deaths;               /* in a row, without a success between */
	usec_t dead_since, dead_until; /* while dead */
	const char *why; /* while dead; never NULL then, and lives as long */
};

/* A delivery report and what it did to the site. The reasons in it live until
 * the next report. */
struct site_step {
	enum site_result result;
	struct site_view before, after;
};

#define SITE_NAME_MAX 600 /* local@nexthop */
#define SITE_WHY_MAX  200 /* longer reasons are cut */

struct site;

/* Names compare without case. The functions cost O(1), or O(log n) in sites.
 * The table of sites: site/shared.h. */
struct shared;

/* The site is found or made, and open; NULL when memory is out. A site opened
 * twice must be closed twice. */
struct site *site_open(
    struct shared *shared, uint32_t transport, const char *name, usec_t now);
void site_close(struct site *site, usec_t now);
/* A pointer of the scheduler, kept with the site while it is open; NULL at
 * first. */
void **site_user(struct site *site);
/* The name, as it was given when the site was made. */
const char *site_name(const struct site *site);
/* The transport that the site was opened with. */
uint32_t site_transport(const struct site *site);
/* Whether site_take() would give a place. A dead site whose time has come
 * opens. */
enum site_state site_state(struct site *site, usec_t now);
/* As site_state(); waits: there are entries that want a place. A scheduler that
 * waits at a full site is a waiter, and sched_site_ready() follows when there
 * is room or the site has died. It stays a waiter until site_take() gives a
 * place or waits is false; calling this again does not lose its grant. */
enum site_state site_wait(struct site *site, bool waits, usec_t now);
/* SITE_ROOM: a place was taken; site_done() gives it back. */
enum site_state site_take(struct site *site, usec_t now);
/* The place is given back. ret_step may be NULL. */
void site_done(struct site *site, const struct site_report *report, usec_t now,
    struct site_step *ret_step);
/* The site as it was last looked at, by any function with a time. */
void site_view(const struct site *site, struct site_view *ret_view);
/* Every dead site opens. */
void site_flush(struct shared *shared, usec_t now);

#endif
