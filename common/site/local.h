/* site/local.h - the structs of the table of one process; private to local.c
 * (finding sites, opening, forgetting), local_chain.c (the hash table) and
 * local_life.c (windows and deaths of one site).
 *
 * The table may hold a million sites, so a decision about one waits for memory:
 * all that it reads of a site is one line of the processor's cache. Fields that
 * are needed only while the site is open, idle, alive or dead share their room.
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

#define CACHE_LINE 64

/* The part of a death that people are told. window: at the death; the site
 * opens with a fresh one. */
struct local_told {
	usec_t since;
	double fail_cohorts;
	uint32_t window;
	char why[];
};

struct local_death {
	LIST_ENTRY(site) link;
	usec_t until;
	struct local_told *told; /* NULL: there was no memory */
};

/* More deaths in a row are counted as so many. */
#define DEATHS_MOST 0x3fff

struct site {
	union {
		struct window window;     /* !dead */
		struct local_death death; /* dead */
	};
	union {
		void *user;             /* !idle and opens > 0 */
		TAILQ_ENTRY(site) link; /* idle */
	};
	union {
		struct { /* !idle */
			uint32_t opens, busy;
		};
		usec_t since; /* idle */
	};
	uint16_t transport;
	uint16_t deaths : 14, dead : 1, idle : 1;
	/* The rest finds it. */
	LIST_ENTRY(site) chain __attribute__((aligned(CACHE_LINE)));
	uint32_t hash; /* of transport and name in lower case */
	char name[];
};

/* Sites of up to so many bytes are of slabs, one for each size in steps. */
#define SITE_STEP    CACHE_LINE
#define SITE_NSLABS  3
/* Chains lie in pieces, so that none is moved or cleared in large numbers. */
#define CHAINS_PIECE 64

LIST_HEAD(local_sites, site);
struct local_chain {
	struct local_sites sites;
	/* A bit for each of them, by its hash; of those that have left, too, as
	 * long as the chain is not empty. Most names that are not there are not
	 * looked for among the sites. */
	uint64_t marks;
};

TAILQ_HEAD(local_idle, site);
LIST_HEAD(local_dead, site);

struct local {
	struct site_table table;
	struct local_chain **pieces;
	uint64_t npieces, pieces_room;
	uint64_t nchains, nsites;
	struct page_source pages;
	struct slab slabs[SITE_NSLABS], piece_slab;
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

/* Free all but the sites. */
void local_chains_done(struct local *local);
/* Call each() for each site, which may free it. */
void local_chains_walk(
    struct local *local, void (*each)(struct local *local, struct site *site));
/* The site, or NULL. */
struct site *local_chains_find(const struct local *local, uint32_t hash,
    uint32_t transport, const char *name);
/* The chain of the hash is fetched into the processor's cache. */
void local_chains_fetch(const struct local *local, uint32_t hash);
/* The table grows by a chain, if there are fewer than sites; without memory
 * chains become longer. False: there is not even memory for the first one. */
bool local_chains_put(struct local *local, struct site *site);
/* The table shrinks by two chains at most, so that it keeps up. */
void local_chains_remove(struct local *local, struct site *site);

/* A dead site whose time has come opens with a fresh window. Its deaths stay
 * counted. */
void local_reopen_due(struct local *local, struct site *site, usec_t now);
/* The same, whatever the time. */
void local_reopen(struct local *local, struct site *site);
/* A delivery report; busy still counts the delivery. */
void local_success(struct local *local, struct site *site);
void local_failure(
    struct local *local, struct site *site, const char *why, usec_t now);
void local_doubt(struct local *local, struct site *site,
    const struct site_report *report, usec_t now);
/* The death is removed; the caller fills in a window or frees the site. */
void local_bury(struct site *site);
/* See struct site_table. */
enum site_state local_site_state(const struct site *site);
void local_site_view(const struct site *site, struct site_view *ret_view);

#endif
