/* Names for tests of expansions: an alias file, the routing beside it. */
#ifndef TESTS_EXPAND_H
#define TESTS_EXPAND_H

#include "deliver-local/expand.h"

struct names_scratch {
	struct route_table *routes;
	struct members_names names;
	struct includes includes; /* opened by this process */
};

/* Local are one.test and addresses without a domain; the rest goes to smtp. */
void
names_begin(struct names_scratch *n, const char *aliases, const char *admin);
void names_done(struct names_scratch *n);

#endif
