#include "qscheduler/supervisor/supervisor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define FILES_MAX 65536
#define SAFE_PATH \
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define STRING_MAX 4096

/* With "=" at its end a row is a name, without it the beginning of names. */
static const char *const passed[] = {
	"QUEUE_",
	"QSCHED_",
	"ERROR_INTERVAL=",
	"TZ=",
	"JOURNAL_STREAM=", /* of standard error (common/log) */
	/* run-time checkers of a test build */
	"ASAN_OPTIONS=",
	"LSAN_OPTIONS=",
	"UBSAN_OPTIONS=",
	"TSAN_OPTIONS=",
	NULL,
};
static const char *const manager[] = {
	"NOTIFY_SOCKET=",
	"WATCHDOG_USEC=",
	"WATCHDOG_PID=",
	"LISTEN_",
	"MAINPID=",
	NULL,
};

static bool
is_among(const char *string, const char *const *names)
{
	for (; *names != NULL; names++)
		if (strncmp(string, *names, strlen(*names)) == 0)
			return true;
	return false;
}

static bool
is_pinned(const char *string, char *const *pins)
{
	const char *end = strchr(string, '=');

	if (end == NULL)
		return true; /* not one at all */
	for (; *pins != NULL; pins++)
		if (strncmp(string, *pins, (size_t)(end - string) + 1) == 0)
			return true;
	return false;
}

static bool
is_passed(const char *string, bool private, char *const *pins)
{
	if (is_pinned(string, pins) || is_among(string, manager))
		return false;
	return private ||
	    (is_among(string, passed) && strlen(string) <= STRING_MAX);
}

static size_t
count(char *const *strings)
{
	size_t n = 0;

	while (strings[n] != NULL)
		n++;
	return n;
}

char **
env_make(char *const *from, bool private, char *const *pins)
{
	char **env = calloc(count(from) + count(pins) + 2, sizeof(*env));
	size_t n = 0, i;

	if (env == NULL)
		return NULL;
	if (!private && (env[n++] = strdup(SAFE_PATH)) == NULL)
		goto fail;
	for (i = 0; pins[i] != NULL; i++)
		if ((env[n++] = strdup(pins[i])) == NULL)
			goto fail;
	for (i = 0; from[i] != NULL; i++)
		if (is_passed(from[i], private, pins) &&
		    (env[n++] = strdup(from[i])) == NULL)
			goto fail;
	return env;
fail:
	env_free(&env);
	return NULL;
}

void
env_free(char ***env)
{
	char **p;

	if (*env == NULL)
		return;
	for (p = *env; *p != NULL; p++)
		free(*p);
	free(*env);
	*env = NULL;
}

static void
raise_limit(int resource, rlim_t want)
{
	struct rlimit limit = { want, want };

	if (setrlimit((__rlimit_resource_t)resource, &limit) == 0 ||
	    getrlimit((__rlimit_resource_t)resource, &limit) < 0)
		return;
	if (limit.rlim_max != RLIM_INFINITY && want > limit.rlim_max)
		want = limit.rlim_max;
	limit.rlim_cur = want;
	(void)setrlimit((__rlimit_resource_t)resource, &limit);
}

void
env_raise_limits(void)
{
	raise_limit(RLIMIT_NOFILE, FILES_MAX);
	raise_limit(RLIMIT_MSGQUEUE, RLIM_INFINITY);
}
