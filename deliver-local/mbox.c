#include "deliver-local/child.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

#define OPEN_FLAGS \
	(O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define LOCK_FLAGS (O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)
#define LOCK_EVERY (100 * USEC_PER_MSEC)
/* A dot lock that old is left by a program that died, as liblockfile and
 * Postfix judge it. */
#define STALE_AGE  (300 * USEC_PER_SEC)
#define OPEN_TRIES 8

static const char from_line[] = "From ";

struct attempt {
	struct put *b;
	const struct spool_sys *sys;
	int dir, fd;
	int lock_fd; /* of the dot lock that this process made; -1: none */
	char name[NAME_MAX + 1];
	char lock[NAME_MAX + 1];
	bool made;        /* this process made the mailbox */
	off_t size;       /* octets before the message */
	uint64_t written; /* octets of the message in the file */
	/* Output, and where it is in the content. */
	char *out;
	size_t nout;
	int matched; /* octets of from_line at the start of this line; -1: this
		      * line is another */
	char last;   /* last octet that was written */
};

static int
failed(struct attempt *a, const char *step)
{
	a->b->step = step;
	return -errno;
}

static int
refused(struct attempt *a, int error, const char *step)
{
	a->b->step = step;
	return error;
}

/* Tells that the delivery gets on. The time of the dot lock is set as well, so
 * that the lock of a long write does not grow stale. */
static int
progress(struct attempt *a)
{
	int r;

	if (a->lock_fd >= 0)
		(void)futimens(a->lock_fd, NULL);
	r = a->b->progress == NULL ? 0 : a->b->progress(a->b->arg);

	if (r < 0)
		a->b->step = "go on in time";
	return r;
}

/* ---- the file ---- */

/* Of a mail spool, the group and mode that its other programs expect (Debian
 * policy 11.6). */
static int
give_to_spool(struct attempt *a)
{
	if (a->b->spool_group == (gid_t)-1)
		return 0;
	if (fchown(a->fd, (uid_t)-1, a->b->spool_group) < 0 ||
	    fchmod(a->fd, 0660) < 0)
		return failed(a, "give it to the group of the spool");
	return 0;
}

static int
open_or_make(struct attempt *a)
{
	int try;

	for (try = 0; try < OPEN_TRIES; try++) {
		a->fd = a->sys->openat(a->dir, a->name, OPEN_FLAGS, 0);
		if (a->fd >= 0)
			return 0;
		if (errno != ENOENT)
			break;
		a->fd = a->sys->openat(
		    a->dir, a->name, OPEN_FLAGS | O_CREAT | O_EXCL, 0600);
		if (a->fd >= 0) {
			a->made = true;
			return give_to_spool(a);
		}
		if (errno != EEXIST)
			break;
	}
	return failed(a,
	    errno == EISDIR ? "open it: it is a directory" : "open or make it");
}

static int
judge_file(struct attempt *a)
{
	struct stat st;

	if (fstat(a->fd, &st) < 0)
		return failed(a, "look at it");
	if (!S_ISREG(st.st_mode))
		return refused(a, -EPERM, "it is not a regular file");
	if (st.st_nlink > 1)
		return refused(a, -EPERM, "it has more than one name");
	if (a->b->own && st.st_uid != geteuid())
		return refused(a, -EPERM, "it belongs to another user");
	return 0;
}

/* 1: the name stands for the open file; 0: the file was replaced. */
static int
is_named(struct attempt *a, int fd, const char *name)
{
	struct stat open, named;

	if (fstat(fd, &open) < 0)
		return failed(a, "look at it");
	if (fstatat(a->dir, name, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : failed(a, "look at it");
	return open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

/* ---- locks ---- */

/* A program that took the lock for a stale one may have put a lock of its own
 * in the place of this one. */
static void
drop_dot_lock(struct attempt *a)
{
	if (a->lock_fd >= 0 && is_named(a, a->lock_fd, a->lock) == 1)
		(void)a->sys->unlinkat(a->dir, a->lock, 0);
	io_close(&a->lock_fd);
}

static void
drop_stale_lock(struct attempt *a)
{
	struct stat st;

	if (fstatat(a->dir, a->lock, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) &&
	    (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC + STALE_AGE < clock_wall())
		(void)a->sys->unlinkat(a->dir, a->lock, 0);
}

/* 1: held, or not to be had in a directory that this user may not write, where
 * the lock of the kernel has to do; 0: another program has it. */
static int
take_dot_lock(struct attempt *a)
{
	char pid[32];
	int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());

	a->lock_fd = a->sys->openat(a->dir, a->lock, LOCK_FLAGS, 0644);
	if (a->lock_fd >= 0) {
		(void)!a->sys->write(a->lock_fd, pid, (size_t)n);
		return 1;
	}
	if (errno == EEXIST) {
		drop_stale_lock(a);
		return 0;
	}
	return errno == EACCES || errno == EPERM || errno == EROFS
	    ? 1
	    : failed(a, "make its dot lock");
}

/* The lock of the kernel first, as Debian policy has the order; neither is held
 * while the other is waited for. */
static int
take_locks(struct attempt *a)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int r;

	if (fcntl(a->fd, F_SETLK, &whole) < 0)
		return errno == EAGAIN || errno == EACCES
		    ? 0
		    : failed(a, "lock it");
	r = take_dot_lock(a);
	if (r > 0)
		return 1;
	whole.l_type = F_UNLCK;
	(void)fcntl(a->fd, F_SETLK, &whole);
	return r;
}

static int
open_locked(struct attempt *a)
{
	const struct timespec pause = { 0, LOCK_EVERY * 1000 };
	const usec_t until = clock_mono() + a->b->lock_limit;
	int r;

	for (;;) {
		r = open_or_make(a);
		if (r == 0)
			r = judge_file(a);
		if (r == 0)
			r = take_locks(a);
		if (r > 0) {
			r = is_named(a, a->fd, a->name);
			if (r == 0)
				drop_dot_lock(a);
		}
		if (r != 0)
			return r < 0 ? r : 0;
		io_close(&a->fd);
		if (clock_mono() >= until)
			return refused(
			    a, -ETIMEDOUT, "wait for another program's lock");
		r = progress(a);
		if (r < 0)
			return r;
		(void)nanosleep(&pause, NULL);
	}
}

/* ---- the message ---- */

static int
flush(struct attempt *a)
{
	int r = mailbox_room_size(
	    &a->b->room, (uint64_t)a->size, a->written + a->nout);

	if (r == 0)
		r = spool_write_all(a->sys, a->fd, a->out, a->nout);
	a->written += a->nout;
	a->nout = 0;
	if (r < 0)
		a->b->step = "write";
	return r < 0 ? r : progress(a);
}

static int
put_octet(struct attempt *a, char c)
{
	a->last = c;
	a->out[a->nout++] = c;
	return a->nout < MESSAGE_CHUNK ? 0 : flush(a);
}

static int
put_text(struct attempt *a, const char *s, size_t len)
{
	int r = 0;

	while (r == 0 && len-- > 0)
		r = put_octet(a, *s++);
	return r;
}

/* The octets of from_line that were held back, in front of what follows. */
static int
put_matched(struct attempt *a)
{
	size_t n = a->matched > 0 ? (size_t)a->matched : 0;

	a->matched = -1;
	return put_text(a, from_line, n);
}

/* A line that begins like a separator gets a `>`. */
static int
put_content(struct attempt *a, const char *s, size_t len)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < len; i++) {
		if (a->matched >= 0 && s[i] == from_line[a->matched]) {
			if (++a->matched < (int)sizeof(from_line) - 1)
				continue;
			r = put_octet(a, '>');
			if (r == 0)
				r = put_matched(a);
			continue;
		}
		if (a->matched >= 0)
			r = put_matched(a);
		if (r == 0)
			r = put_octet(a, s[i]);
		if (s[i] == '\n')
			a->matched = 0;
	}
	return r;
}

/* The separator: the sender without blanks, and the time as ctime() has it. */
static int
put_separator(struct attempt *a, const char *sender)
{
	const time_t now = (time_t)(clock_wall() / USEC_PER_SEC);
	struct tm tm;
	char date[64];
	int r = put_text(a, from_line, sizeof(from_line) - 1);

	if (*sender == '\0')
		sender = "MAILER-DAEMON";
	for (; r == 0 && *sender != '\0'; sender++)
		r = put_octet(
		    a, isgraph((unsigned char)*sender) ? *sender : '-');
	if (localtime_r(&now, &tm) == NULL ||
	    strftime(date, sizeof(date), " %a %b %e %H:%M:%S %Y\n", &tm) == 0)
		return refused(a, -EOVERFLOW, "tell the time");
	return r < 0 ? r : put_text(a, date, strlen(date));
}

/* The text in front of the message is made to end in an empty line. */
static int
put_gap(struct attempt *a)
{
	char end[2];
	const size_t n = a->size < 2 ? (size_t)a->size : 2;

	if (n == 0)
		return 0;
	if (io_pread_all(a->fd, end, n, a->size - (off_t)n) != (int64_t)n)
		return refused(a, -EIO, "read its end");
	if (end[n - 1] != '\n')
		return put_text(a, "\n\n", 2);
	return n == 2 && end[0] == '\n' ? 0 : put_octet(a, '\n');
}

static int
put_message(struct attempt *a, struct message *m)
{
	char *chunk = malloc(MESSAGE_CHUNK);
	int64_t n = 1;
	int r = chunk == NULL ? -ENOMEM : message_begin(m);

	if (r == 0)
		r = put_gap(a);
	if (r == 0)
		r = put_separator(a, m->sender);
	while (r == 0 && n > 0) {
		n = message_read(m, chunk, MESSAGE_CHUNK);
		if (n < 0)
			r = refused(a, (int)n, "read the message");
		else
			r = put_content(a, chunk, (size_t)n);
	}
	free(chunk);
	if (r == 0 && a->matched > 0)
		r = put_matched(a);
	if (r == 0 && a->last != '\n')
		r = put_octet(a, '\n');
	if (r == 0)
		r = put_octet(a, '\n');
	return r < 0 ? r : flush(a);
}

/* ---- all of it ---- */

static int
sync_all(struct attempt *a)
{
	int fd, r = 0;

	if (a->sys->fsync(a->fd) < 0)
		return failed(a, "sync it");
	/* The process that made an empty file has not synced the name. */
	if (!a->made && a->size > 0)
		return 0;
	fd = a->sys->openat(a->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	/* A directory that may be written and not read cannot be synced. */
	if (fd >= 0 && a->sys->fsync(fd) < 0 && errno != EINVAL &&
	    errno != EOPNOTSUPP)
		r = failed(a, "sync its directory");
	io_close(&fd);
	return r;
}

/* The mailbox as it was: no reader sees half a message. A file that was made
 * stays, empty: another program may have opened it. */
static void
take_back(struct attempt *a)
{
	if (a->sys->ftruncate(a->fd, a->size) == 0)
		(void)a->sys->fsync(a->fd);
}

static int
append(struct attempt *a, struct message *m)
{
	int r;

	a->size = lseek(a->fd, 0, SEEK_END);
	if (a->size < 0)
		return failed(a, "find its end");
	r = mailbox_room_size(&a->b->room, (uint64_t)a->size, m->len);
	if (r == 0)
		r = mailbox_room_disk(&a->b->room, a->sys, a->fd, m->len);
	if (r < 0)
		return r;
	r = put_message(a, m);
	if (r == 0)
		r = sync_all(a);
	if (r < 0)
		take_back(a);
	return r;
}

static int
make_names(struct attempt *a)
{
	const char *name = strrchr(a->b->path, '/') + 1;

	if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EISDIR;
	if (snprintf(a->lock, sizeof(a->lock), "%s.lock", name) >=
	    (int)sizeof(a->lock))
		return -ENAMETOOLONG;
	snprintf(a->name, sizeof(a->name), "%s", name);
	return 0;
}

int
mbox_deliver(struct put *b, struct message *m)
{
	struct attempt a = {
		.b = b, .sys = b->sys, .dir = -1, .fd = -1, .lock_fd = -1
	};
	int r = walk_to_file(b->path, NULL, NULL, &a.dir);

	b->step = "reach it";
	if (r == 0)
		r = make_names(&a);
	a.out = malloc(MESSAGE_CHUNK);
	if (r == 0 && a.out == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = open_locked(&a);
	if (r == 0)
		r = append(&a, m);
	drop_dot_lock(&a);
	io_close(&a.fd);
	io_close(&a.dir);
	free(a.out);
	return r;
}
