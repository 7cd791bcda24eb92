#include "base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"

#define FILES_MIN 32
#define TIME_LIMIT \
	(24 * 3600) /* seconds for one submission, as qmail-queue has */

/* ---- the process ---- */

/* A signal may end this process: the file that it writes has no name yet.
 * Errors of write() are checked at each call, so SIGPIPE and SIGXFSZ are
 * ignored. */
static void
reset_signals(void)
{
	sigset_t none;

	io_default_signals();
	io_ignore_write_signals();
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)alarm(TIME_LIMIT);
}

static int
reset_limits(void)
{
	const struct rlimit no_core = { 0, 0 };
	static const int raised[] = { RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_DATA,
		RLIMIT_AS };
	struct rlimit limit;
	size_t i;

	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return -errno;
	for (i = 0; i < ARRAY_LEN(raised); i++) {
		if (getrlimit((__rlimit_resource_t)raised[i], &limit) < 0)
			return -errno;
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit((__rlimit_resource_t)raised[i], &limit) < 0)
			return -errno;
	}
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
		limit.rlim_cur < FILES_MIN
	    ? -EMFILE
	    : 0;
}

/* The kernel locks a directory while this process waits for the disk in it:
 * a caller of the idle class would let the mail wait for an idle disk. */
static void
reset_io_priority(void)
{
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
	    IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IOPRIO_BE_NORM));
}

int
guard_process(void)
{
	const uid_t uid = getuid();
	int r;

	/* Descriptors first: no file of this process gets 0 to 2, and no
	 * descriptor of the caller stays above. */
	if (close_range(3, ~0u, 0) < 0)
		return -errno;
	r = io_std_fds();
	if (r < 0)
		return r;
	if (clearenv() != 0)
		return -ENOMEM;
	/* The submitter is the real user, also under a set-user-id caller. */
	if (setresuid(uid, uid, uid) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || chdir("/") < 0)
		return -errno;
	umask(0);
	reset_io_priority();
	reset_signals();
	return reset_limits();
}

bool
guard_is_secure(void)
{
	return getauxval(AT_SECURE) != 0 || getegid() != getgid();
}

/* ---- the instance ---- */

static int
check_root_owns(const struct stat *st)
{
	const bool sticky =
	    S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0;

	return st->st_uid == 0 && (sticky || !file_others_may_write(st))
	    ? 0
	    : -EPERM;
}

/* One step down; the descriptor of the next directory replaces *dir. */
static int
enter(int *dir, const char *name)
{
	int fd =
	    openat(*dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : check_root_owns(&st);

	io_close(dir);
	*dir = fd;
	return r;
}

static int
check_file(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? check_root_owns(&st) : -EPERM;
}

int
guard_trust(const char *base, const char *name)
{
	char path[PATH_MAX], *rest = path, *part;
	int dir = -1, r;

	if (base[0] != '/' || strlen(base) >= sizeof(path))
		return -EINVAL;
	memcpy(path, base, strlen(base) + 1);
	dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = dir < 0 ? -errno : 0;
	while (r == 0 && (part = strsep(&rest, "/")) != NULL)
		if (strcmp(part, "..") == 0)
			r = -EINVAL;
		else if (part[0] != '\0')
			r = enter(&dir, part);
	if (r == 0)
		r = check_file(dir, name);
	io_close(&dir);
	return r;
}
