/* Where every test starts from, whoever starts it: make leaves descriptors and
 * ignored signals behind, a background job has SIGINT ignored, a service
 * manager may have closed 0 to 2 and blocked signals, and the caller may have
 * settings of an instance of its own. Linked into each unit program; runs in
 * it and in each process that it makes for a test.
 *
 * The program has a TMPDIR of its own, which goes when it ends: what a test
 * that failed or crashed did not remove goes with it.
 *
 * A test that hangs is ended by a signal, and counts as crashed. --timeout of
 * Criterion 2.4.1 ends no test. */
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define LIMIT 300 /* seconds, for a test whose suite has no limit */

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

/* ---- the directory for temporary files ---- */

#define OURS "UNIT_TESTS_TMPDIR" /* set: somebody above us has made it */

static char top[PATH_MAX];

static int
open_up(const char *path, const struct stat *st UNUSED, int type,
    struct FTW *ftw UNUSED)
{
	if (type == FTW_D || type == FTW_DNR)
		(void)chmod(path, 0700);
	return 0;
}

static int
remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED,
    struct FTW *ftw UNUSED)
{
	(void)remove(path);
	return 0;
}

static void
own_tmpdir(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(top, sizeof(top), "%s/units-XXXXXX",
	    tmp == NULL || *tmp == '\0' ? "/tmp" : tmp);
	if (mkdtemp(top) == NULL || chmod(top, 01777) < 0) {
		perror(top);
		_exit(1);
	}
	(void)setenv("TMPDIR", top, 1);
	(void)setenv(OURS, top, 1);
}

__attribute__((destructor)) static void
end(void)
{
	if (*top == '\0')
		return;
	(void)nftw(top, open_up, 16, FTW_PHYS | FTW_MOUNT);
	(void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* LeakSanitizer asks. Each test is looked at in its own process; what the
 * program that runs them leaves is Criterion's, which loses track of some of
 * them when there are many. */
int __lsan_is_turned_off(void);
int
__lsan_is_turned_off(void)
{
	return *top != '\0';
}

__attribute__((constructor)) static void
start(void)
{
	plain_signals();
	standard_descriptors();
	no_settings();
	(void)umask(022);
	if (getenv(OURS) == NULL)
		own_tmpdir();
	else
		alarm(LIMIT); /* the process of a test */
}
