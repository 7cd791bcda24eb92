#include "disk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void say(const struct disk_test *test, const char *word, const char *fmt,
    va_list ap) PRINTF(3, 0);

static void
say(const struct disk_test *test, const char *word, const char *fmt, va_list ap)
{
	printf("%s %s: ", word, test->name);
	vprintf(fmt, ap);
	printf("\n");
}

enum disk_result
disk_failed(const struct disk_test *test, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(test, "FAILED", fmt, ap);
	va_end(ap);
	/* tests/check/parts.sh: the test, its command, the reason. */
	printf("FAILED\t%s\t%s '%s'\t", test->name, program_invocation_name,
	    test->name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	return DISK_FAILED;
}

enum disk_result
disk_skip(const struct disk_test *test, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(test, "SKIP", fmt, ap);
	va_end(ap);
	return DISK_SKIPPED;
}
