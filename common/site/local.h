/* site/local.h - the structs of the table of one process; private to local.c
 * (finding sites, opening, forgetting), local_chain.c (the hash table) and
 * local_life.c (windows and deaths of one site).
 *
 * The table may hold a million sites, so a site is small: fields that are
 * needed only while it is open, idle, alive or dead share their room.
 *
 *	chains every site, by a hash of transport and name with a secret in it:
 *	       a sender who chooses names cannot choose which collide. With each
 *	       site that comes or goes the table grows or shrinks by a chain or
 *	       two (linear hashing), so no call pays for all of it
 *	dead   the dead sites: a flush reads no others
 *	idle   the closed sites, the least recently used first
 */
#ifndef SITE_LOCAL_H
#define SITE_LOCAL_H

#include <sys/queue.h>

#include "base/slab.h"
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

/* A million of them: 111 bytes and the name each. */
_Static_assert(sizeof(struct site) <= 112, "struct site has grown");

/* Sites of up to so many bytes are of slabs, one for each size in steps. */
#define SITE_STEP    16
#define SITE_NSLABS  12
/* Chains lie in pieces, so that none is moved or cleared in large numbers. */
#define CHAINS_PIECE 512

SLIST_HEAD(local_chain, site);
TAILQ_HEAD(local_idle, site);
LIST_HEAD(local_dead, site);

struct local {
	struct site_table table;
	struct local_chain **pieces;
	uint64_t npieces, pieces_room;
	uint64_t nchains, nsites;
	struct slab slabs[SITE_NSLABS];
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

/* The chain of a hash, while there are any; chain i of nchains. */
struct local_chain *local_chain_of(const struct local *local, uint64_t hash);
struct local_chain *local_chain_at(const struct local *local, uint64_t i);
/* Before a site comes: a chain more, if there are fewer than sites. Without
 * memory the number of chains stays, and chains are longer. */
void local_chains_grow(struct local *local);
/* After a site has gone: two chains less at most, so that the table keeps up.
 */
void local_chains_shrink(struct local *local);
/* With no site left. */
void local_chains_free(struct local *local);

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
