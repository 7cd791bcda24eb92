/* route/alias_table.h - the table of aliases, for its loader (alias.c) and its
 * lookups (alias_find.c). */
#ifndef ROUTE_ALIAS_TABLE_H
#define ROUTE_ALIAS_TABLE_H

#include "base/texts.h"
#include "route/alias.h"

struct alias_table {
	struct buf text;    /* that keys and members point into */
	struct texts texts; /* keys that were in U-labels */
	struct buf complaints;
	struct alias *aliases;       /* as in the file */
	struct alias_member *pool;   /* the members of all, in this order */
	const struct alias **by_key; /* nkeys, sorted; the first of each name */
	size_t n, cap, npool, pool_cap, nkeys;
	uid_t owner;
};

#endif
