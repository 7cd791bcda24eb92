/* Where every test starts from, whoever starts it: make leaves descriptors and
 * ignored signals behind, a background job has SIGINT ignored, a service
 * manager may have closed 0 to 2 and blocked signals, and the caller may have
 * settings of an instance of its own. Linked into each unit program; runs in
 * it and in each process that it makes for a test. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

extern char **environ;

static void
plain_signals(void)
{
	sigset_t none;
	int sig;

	for (sig = 1; sig <= SIGRTMAX; sig++) {
		struct sigaction sa;

		if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
			(void)signal(sig, SIG_DFL);
	}
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 3);
	if (fd >= 3)
		close(fd);
}

/* The name of the first setting of ours, cut from its value; NULL: none. */
static char *
first_setting(void)
{
	static const char *const ours[] = { "QUEUE_", "QSCHED_",
		"ERROR_INTERVAL=" };
	size_t i;
	char **at;

	for (at = environ; at != NULL && *at != NULL; at++)
		for (i = 0; i < ARRAY_LEN(ours); i++)
			if (strncmp(*at, ours[i], strlen(ours[i])) == 0)
				return strndup(*at, strcspn(*at, "="));
	return NULL;
}

static void
no_settings(void)
{
	char *name;

	while ((name = first_setting()) != NULL) {
		(void)unsetenv(name);
		free(name);
	}
}

__attribute__((constructor)) static void
start(void)
{
	plain_signals();
	standard_descriptors();
	no_settings();
	(void)umask(022);
}
