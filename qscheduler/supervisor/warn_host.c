/* Warnings of --check for an operator who comes from another MTA: files in home
 * directories that direct mail and are not read, and queued mail of that MTA.
 *
 * A directory service or a network file system may have a million users, or not
 * answer. So a process of its own looks, for SCAN_LIMIT at most, and at
 * bounded numbers of users and files. */
#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fts.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"

#define SCAN_LIMIT  (5 * USEC_PER_SEC)
#define USERS_MAX   20000
#define USERS_NAMED 3
#define FILES_MAX   100000
#define TEXT_MAX    16384

/* ---- home directories ---- */

struct homes {
	uint32_t users, found;
	bool forward; /* look for .forward, too */
	struct buf named;
};

static int
look_at(struct homes *h, const char *home, const char *file)
{
	struct stat st;
	char path[PATH_MAX];
	int r = 0;

	if (snprintf(path, sizeof(path), "%s/%s", home, file) >=
		(int)sizeof(path) ||
	    lstat(path, &st) < 0 || S_ISDIR(st.st_mode) || st.st_size == 0)
		return 0;
	if (h->found < USERS_NAMED) {
		r = buf_add_str(&h->named, h->found == 0 ? "" : ", ");
		if (r == 0)
			r = text_clean(&h->named, path, strlen(path), PATH_MAX);
	}
	h->found++;
	return r;
}

static int
look_at_home(struct homes *h, const struct passwd *pw)
{
	int r = 0;

	if (pw->pw_dir[0] != '/' || pw->pw_dir[1] == '\0')
		return 0;
	if (h->forward)
		r = look_at(h, pw->pw_dir, ".forward");
	if (r == 0)
		r = look_at(h, pw->pw_dir, ".qmail");
	return r;
}

static int
warn_homes(const struct conf *conf, struct buf *out)
{
	struct homes h = { .forward = conf->forward_path[0] == '\0' };
	const struct passwd *pw;
	int r = 0;

	setpwent();
	while (r == 0 && h.users < USERS_MAX && (pw = getpwent()) != NULL) {
		h.users++;
		r = look_at_home(&h, pw);
	}
	endpwent();
	if (r == 0 && h.found > 0)
		r = buf_printf(out,
		    "%u file%s in home directories that direct%s mail "
		    "elsewhere %s not read: %s%s: set forward_path for "
		    ".forward, or write aliases in %s\n",
		    h.found, h.found == 1 ? "" : "s", h.found == 1 ? "s" : "",
		    h.found == 1 ? "is" : "are", buf_str(&h.named),
		    h.found > USERS_NAMED ? ", …" : "", conf->alias_file);
	if (r == 0 && h.users == USERS_MAX)
		r = buf_printf(out,
		    "only the first %d users were looked at for .forward and "
		    ".qmail\n",
		    USERS_MAX);
	buf_done(&h.named);
	return r;
}

/* ---- queues of other MTAs ---- */

/* A queue: its directories, below which each regular file whose path matches
 * `pattern` is a message. */
static const struct mta {
	const char *name, *base;
	const char *dirs[6];
	const char *pattern;
	const char *drain;
} mtas[] = {
	{ "Postfix", "/var/spool/postfix",
	    { "maildrop", "incoming", "active", "deferred", "hold", NULL }, "*",
	    "`apt install postfix` if the package is removed, start Postfix, "
	    "run `postsuper -r ALL` and `postqueue -f` of Postfix, and wait "
	    "until its `postqueue -p` shows nothing" },
	{ "Exim", "/var/spool/exim4", { "input", NULL }, "*-H",
	    "`apt install exim4` if the package is removed, start Exim, run "
	    "`exim4 -qff`, and wait until `exim4 -bpc` says "
	    "0" },
	{ "Exim", "/var/spool/exim", { "input", NULL }, "*-H",
	    "start Exim, run `exim -qff`, and wait until `exim -bpc` says 0" },
	{ "qmail", "/var/qmail/queue", { "mess", NULL }, "*",
	    "start qmail-send, send it SIGALRM, and wait until `qmail-qstat` "
	    "shows no message" },
	{ "indimail", "/var/indimail/queue", { "", NULL }, "*/mess/*",
	    "start indimail, run `svctool --flush` or send qmail-send SIGALRM, "
	    "and wait until `qmail-qstat` shows no message" },
	/* qfID has the envelope. */
	{ "Sendmail", "/var/spool/mqueue", { "", NULL }, "*/qf*",
	    "`apt install sendmail` if the package is removed, start Sendmail, "
	    "run its `sendmail -q`, and wait until its `mailq` shows nothing" },
};

static void
count_messages(const char *pattern, char *path, uint32_t *count)
{
	char *const paths[] = { path, NULL };
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	const FTSENT *e;

	while (
	    tree != NULL && *count < FILES_MAX && (e = fts_read(tree)) != NULL)
		*count += e->fts_info == FTS_F && e->fts_name[0] != '.' &&
		    fnmatch(pattern, e->fts_path, 0) == 0;
	if (tree != NULL)
		fts_close(tree);
}

/* Warns of mail that waits in the queue of one MTA. root is a prefix of all
 * paths: "" in the program, a directory of their own in tests. */
static int
warn_mta(
    const struct mta *mta, const char *root, const char *own, struct buf *out)
{
	const size_t len = strlen(mta->base);
	char path[PATH_MAX];
	uint32_t count = 0;
	size_t i;

	/* The queues of this instance may have the place of another MTA's. */
	if (strncmp(own, mta->base, len) == 0 &&
	    (own[len] == '\0' || own[len] == '/'))
		return 0;
	for (i = 0; mta->dirs[i] != NULL; i++) {
		snprintf(path, sizeof(path), "%s%s/%s", root, mta->base,
		    mta->dirs[i]);
		count_messages(mta->pattern, path, &count);
	}
	if (count == 0)
		return 0;
	return buf_printf(out,
	    "%s%s has %s%u queued message%s of %s, which qscheduler does not "
	    "deliver: %s\n",
	    root, mta->base, count == FILES_MAX ? "more than " : "", count,
	    count == 1 ? "" : "s", mta->name, mta->drain);
}

int
files_warn_queued(const char *root, const char *own, struct buf *out)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < ARRAY_LEN(mtas); i++)
		r = warn_mta(&mtas[i], root, own, out);
	return r;
}

/* ---- the process that looks ---- */

static _Noreturn void
scan(const struct conf *conf, int fd)
{
	struct buf out = { 0 };
	int r = files_warn_queued("", conf->queue_base, &out);

	/* Queued mail is told first: a home directory may hang. */
	if (r == 0 && out.len > 0)
		r = io_write_all(fd, out.data, out.len);
	buf_reset(&out);
	if (r == 0)
		r = warn_homes(conf, &out);
	if (r == 0 && out.len > 0)
		r = io_write_all(fd, out.data, out.len);
	_exit(r < 0);
}

/* Adds the text that comes until the end of the pipe. 1: the end; 0: the time
 * is over. */
static int
collect(int fd, struct buf *out)
{
	const usec_t until = clock_mono() + SCAN_LIMIT;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[1024];
	usec_t now;
	ssize_t n;
	int r = 0;

	while (r == 0 && (now = clock_mono()) < until) {
		if (poll(&p, 1, (int)((until - now) / USEC_PER_MSEC) + 1) <= 0)
			continue;
		n = read(fd, text, sizeof(text));
		if (n == 0)
			return 1;
		if (n > 0 && out->len < TEXT_MAX)
			r = buf_add(out, text, (size_t)n);
	}
	return r;
}

int
files_warn_host(const struct conf *conf, struct buf *out)
{
	int fds[2], r;
	pid_t pid;

	/* The mail of a user's own instance is not that of the host. */
	if (geteuid() != 0)
		return 0;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		scan(conf, fds[1]);
	io_close(&fds[1]);
	r = pid < 0 ? -errno : collect(fds[0], out);
	io_close(&fds[0]);
	if (r == 0) {
		(void)kill(pid, SIGKILL);
		r = buf_printf(out,
		    "home directories could not be looked at within %d s for "
		    ".forward and .qmail\n",
		    (int)(SCAN_LIMIT / USEC_PER_SEC));
	} else if (pid > 0) {
		(void)waitpid(pid, NULL, 0);
	}
	return r < 0 ? r : 0;
}
