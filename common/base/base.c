#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

static void (*on_bug)(const char *text);

void
base_on_bug(void (*tell)(const char *text))
{
	on_bug = tell;
}

_Noreturn void
base_assert_failed(const char *cond, const char *file, int line)
{
	void (*const tell)(const char *text) = on_bug;
	char text[256];

	snprintf(text, sizeof(text), "bug: %s:%d: %s", file, line, cond);
	fprintf(stderr, "%s\n", text);
	on_bug = NULL; /* the handler is not called for a bug of its own */
	if (tell != NULL)
		tell(text);
	abort();
}
