/* A directory of its own for each test, and the file of aliases `a` in it. */
#ifndef TESTS_ALIAS_SCRATCH_H
#define TESTS_ALIAS_SCRATCH_H

#include "route/alias.h"

/* .init and .fini of a suite. */
void alias_scratch_enter(void);
void alias_scratch_leave(void);
void alias_scratch_write(const void *text, size_t len);
/* alias_find_address() and alias_find_domain(), with the domain folded. */
const struct alias *
scratch_find_address(const struct alias_table *table, const char *address);
const struct alias *
scratch_find_domain(const struct alias_table *table, const char *address);

#endif
