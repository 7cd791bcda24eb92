#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void
base_assert_failed(const char *cond, const char *file, int line)
{
	fprintf(stderr, "bug: %s:%d: %s\n", file, line, cond);
	abort();
}
