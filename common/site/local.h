/* site/local.h - the structs of the table of one process; private to local.c
 * (finding sites, opening, forgetting) and local_life.c (windows and deaths of
 * one site).
 *
 * The table may hold a million sites, so a site is small: fields that are
 * needed only while it is open, idle, alive or dead share their room.
 *
 *	chains every site, by a hash of transport and name with a secret in it:
 *	       a sender who chooses names cannot choose which collide
 *	dead   the dead sites: a flush reads no others
 *	idle   the closed sites, the least recently used first
 */
#ifndef SITE_LOCAL_H
#define SITE_LOCAL_H

#include <sys/queue.h>

#include "site/site.h"

/* The window at the death is kept to be shown; the site opens with a fresh
 * one. */
struct local_death {
	LIST_ENTRY(site) link;
	usec_t since, until;
	char *why;
	uint32_t window;
	double fail_cohorts;
};

struct site {
	SLIST_ENTRY(site) link; /* in its chain */
	uint64_t hash;          /* of transport and name in lower case */
	union {
		void *user; /* opens > 0 */
		struct {    /* opens == 0 and busy == 0 */
			TAILQ_ENTRY(site) link;
			usec_t since;
		} idle;
	};
	union {
		struct window window;     /* !dead */
		struct local_death death; /* dead */
	};
	uint32_t opens, busy, deaths;
	uint16_t transport;
	bool dead;
	char name[];
};

/* A million of them: 104 bytes and the name each. */
_Static_assert(sizeof(struct site) <= 112, "struct site has grown");

SLIST_HEAD(local_chain, site);
TAILQ_HEAD(local_idle, site);
LIST_HEAD(local_dead, site);

struct local {
	struct site_table table;
	struct local_chain *chains;
	uint64_t nchains; /* a power of two, or 0 */
	uint64_t nsites;
	struct local_dead dead;
	struct local_idle idle;
	uint32_t nidle, idle_max;
	struct site_backoff backoff;
	uint64_t random;
	uint64_t secret; /* of the hash */
	/* The reasons in a step, which outlive the deaths that they are of. */
	char why_before[SITE_WHY_MAX + 1], why_after[SITE_WHY_MAX + 1];
	uint32_t count;
	struct window_rules rules[]; /* of each transport */
};

/* A dead site whose time has come opens with a fresh window. Its deaths stay
 * counted. */
void local_reopen_due(struct local *local, struct site *site, usec_t now);
/* The same, whatever the time. */
void local_reopen(struct local *local, struct site *site);
/* A delivery report; busy still counts the delivery. */
void local_success(struct local *local, struct site *site);
void local_failure(
    struct local *local, struct site *site, const char *why, usec_t now);
/* The death is removed; the caller fills in a window or frees the site. */
void local_bury(struct site *site);
/* See struct site_table. */
enum site_state local_site_state(const struct site *site);
void local_site_view(const struct site *site, struct site_view *ret_view);

#endif
