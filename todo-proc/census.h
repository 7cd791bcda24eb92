/* todo-proc/census.h - how many recipients, destinations and entries a message
 * has per transport, and the names of its destinations while they are few.
 * Exact: entries is the sum over destinations of
 * ceil(recipients / destination_recipient_limit). Does no I/O.
 *
 * Destinations are told apart by 64 bits of a hash with a secret start, in an
 * open-addressed table of 16 bytes a place, at most CENSUS_PLACES of them:
 * 16 MiB for a message of any size, two places for each recipient of a small
 * one. A message with more destinations than fit is counted in several passes
 * over its recipients, each for its share of the hashes:
 *
 *	census_begin
 *	for each pass: for each pending recipient: census_add
 *	               census_pass_ends: another pass?
 *	census_rows, census_names, census_done
 */
#ifndef TODO_PROC_CENSUS_H
#define TODO_PROC_CENSUS_H

#include "config/conf.h"

#define CENSUS_PLACES (1u << 20)

struct census_row {
	uint32_t recipients, destinations, entries;
};

struct census_place {
	uint64_t hash; /* 0: free */
	uint64_t count;
};

struct census {
	struct census_place *places;
	uint32_t nplaces, used; /* nplaces is a power of two */
	uint32_t pass, passes;
	bool overflow; /* this pass did not fit */
	uint32_t limit[CONF_TRANSPORTS_MAX];
	uint32_t ntransports;
	struct census_row rows[CONF_TRANSPORTS_MAX];
	struct buf names; /* as the blob has them */
	uint32_t nnames;
	bool unnamed; /* too many, or no memory for them */
};

/* For at most so many recipients. -ENOMEM. */
int
census_begin(struct census *c, const struct conf *conf, uint32_t recipients);
/* transport is below conf->ntransports; nexthop and the local part count
 * without case, as in common/sched. address NULL: the nexthop is the
 * destination, whatever the limit. */
void census_add(struct census *c, uint32_t transport, const char *nexthop,
    const char *address);
/* True: walk the recipients again. */
bool census_pass_ends(struct census *c);
/* The blob of MESSAGE: rows of transports with recipients. -ENOMEM. */
int census_rows(const struct census *c, struct buf *out);
/* The other blob: the names of all destinations, or nothing. It is moved. */
void census_names(struct census *c, struct buf *out);
void census_done(struct census *c);

#endif
