/* qsim/simulate_parts.h - what a simulation is made of, private to it:
 *
 *   random.c    chance that comes out the same each time: the same seed gives
 *               the same numbers on every machine (splitmix64)
 *   server.c    the far end: how long a delivery takes and how it ends, by the
 *               words of the scenario (struct scenario_destination)
 *   heap.c      deliveries that run, by the time of their end; of one instant
 *               in the order in which they began
 *
 * The fate of a delivery is known when it begins: nothing that comes later
 * changes it. The caller passes the time. Soft: -ENOMEM.
 */
#ifndef QSIM_SIMULATE_PARTS_H
#define QSIM_SIMULATE_PARTS_H

#include "qsim/scenario.h"
#include "sched/sched.h"
#include "site/site.h"

/* ---- chance ---- */

struct random {
	uint64_t state; /* starts as the seed */
};

uint64_t random_next(struct random *r);
/* 0 to 1, 1 excluded. */
double random_unit(struct random *r);

/* ---- the far end ---- */

struct servers;

struct delivery_fate {
	usec_t length;
	enum site_result result;
	bool connected;  /* counts as a connection until it ends */
	const char *why; /* of a failure */
};

int servers_new(
    const struct scenario *sc, uint64_t seed, struct servers **ret_servers);
void servers_free(struct servers **servers);
int servers_begin(struct servers *servers, uint32_t destination, usec_t now,
    struct delivery_fate *ret_fate);
void servers_end(struct servers *servers, uint32_t destination,
    const struct delivery_fate *fate);

/* ---- deliveries that run ---- */

struct delivery {
	usec_t ends;
	uint64_t number; /* of the deliveries, as they began */
	struct sched_entry *entry;
	uint32_t destination; /* index into those of the scenario */
	struct delivery_fate fate;
};

struct heap {
	struct delivery *all;
	uint32_t count;
	size_t cap;
};

int heap_add(struct heap *heap, const struct delivery *d);
/* The first one, or NULL. The pointer is good until the next change. */
const struct delivery *heap_first(const struct heap *heap);
void heap_remove_first(struct heap *heap);
void heap_done(struct heap *heap);

#endif
