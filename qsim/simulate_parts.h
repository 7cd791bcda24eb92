/* qsim/simulate_parts.h - the far end of deliveries in a simulation: how long a
 * delivery takes and how it ends, by the words of the scenario (struct
 * scenario_destination).
 *
 * The fate of a delivery is known when it begins: nothing that comes later
 * changes it. The caller passes the time. Soft: -ENOMEM.
 */
#ifndef QSIM_SIMULATE_PARTS_H
#define QSIM_SIMULATE_PARTS_H

#include "qsim/scenario.h"
#include "site/site.h"

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

#endif
