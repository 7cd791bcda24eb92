/* A directory of its own for each test, and the file of aliases `a` in it. */
#ifndef TESTS_ALIAS_SCRATCH_H
#define TESTS_ALIAS_SCRATCH_H

#include <stddef.h>

/* .init and .fini of a suite. */
void alias_scratch_enter(void);
void alias_scratch_leave(void);
void alias_scratch_write(const void *text, size_t len);

#endif
