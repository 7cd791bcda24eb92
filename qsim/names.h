/* qsim/names.h - the transports and destinations that a scenario names, each
 * once. Destinations compare without case, as nexthops do.
 *
 * Soft: -ENOMEM; -ENOSPC for one transport too many. Owns its copies.
 */
#ifndef QSIM_NAMES_H
#define QSIM_NAMES_H

#include <bsd/sys/tree.h>

#include "config/conf.h"
#include "qsim/scenario.h"

struct names_node;
RB_HEAD(names_tree, names_node);

struct names {
	char *transports[CONF_TRANSPORTS_MAX];
	uint32_t ntransports;
	struct names_tree tree;
	struct scenario_destination *destinations;
	uint32_t ndestinations, cap;
};

void names_init(struct names *names);
/* The index; *ret_new when it was not there before. */
int names_transport(struct names *names, const char *name, bool *ret_new,
    uint32_t *ret_transport);
/* A new one has duration -1 and no faults. */
int names_destination(struct names *names, uint32_t transport, const char *name,
    uint32_t *ret_destination);
/* The destinations are given away to *ret_destinations. */
void names_take(struct names *names,
    struct scenario_destination **ret_destinations, uint32_t *ret_count);
void names_done(struct names *names);

#endif
