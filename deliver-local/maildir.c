#include "deliver-local/child.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir_names.h"
#include "base/io.h"

#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS (O_WRONLY | O_CLOEXEC)
#define SWEEP_MAX  1000
#define NAME_TRIES 8

enum sub {
	SUB_TMP,
	SUB_NEW,
	SUB_CUR,
	NSUBS
};
static const char *const sub_names[NSUBS] = { "tmp", "new", "cur" };

/* One attempt: the directories and the file that is being written. */
struct attempt {
	struct put *md;
	const struct spool_sys *sys;
	int dir;
	int sub[NSUBS];
	int fd;
	char name[NAME_MAX + 1];
	uint64_t written; /* octets of the message in the file */
	bool named;       /* written under its name in tmp/ */
	bool in_new;      /* the name is in new/ */
};

static int
fail(struct attempt *a, const char *step)
{
	a->md->step = step;
	return -errno;
}

/* A step is done: the delivery gets on, if it still may. */
static int
progress(struct attempt *a)
{
	int r = a->md->progress == NULL ? 0 : a->md->progress(a->md->arg);

	if (r < 0)
		a->md->step = "go on in time";
	return r;
}

/* ---- directories ---- */

/* A directory that cannot be synced at all (some network file systems) is one
 * whose server makes names durable by itself. */
static int
sync_dir(struct attempt *a, int fd, const char *step)
{
	if (a->sys->fsync(fd) == 0 || errno == EINVAL || errno == EOPNOTSUPP)
		return 0;
	return fail(a, step);
}

/* A directory above that may be written but not read cannot be opened. */
static int
sync_parent(struct attempt *a)
{
	int fd = a->sys->openat(a->dir, "..", DIR_FLAGS, 0), r;

	if (fd < 0)
		return syncfs(a->dir) == 0 ? 0
					   : fail(a, "sync the file system");
	r = sync_dir(a, fd, "sync the directory above");
	io_close(&fd);
	return r;
}

/* *ret_made: it was not there. */
static int
open_or_make(struct attempt *a, int at, const char *name, bool *ret_made)
{
	int fd = a->sys->openat(at, name, DIR_FLAGS, 0);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return -1;
	*ret_made = true;
	return a->sys->openat(at, name, DIR_FLAGS, 0);
}

static int
open_dirs(struct attempt *a)
{
	bool made = false, made_sub = false;
	char name[NAME_MAX + 1];
	int above = -1, i, r;

	a->dir = io_open_straight(a->md->path, DIR_FLAGS);
	r = a->dir >= 0 ? 0 : walk_to(a->md->path, NULL, NULL, &above, name);
	if (r == 0 && a->dir < 0)
		a->dir = open_or_make(a, above, name, &made);
	else
		errno = -r;
	if (a->dir < 0)
		r = fail(a, "open or make the maildir");
	io_close(&above);
	if (r == 0)
		r = progress(a);
	if (r < 0)
		return r;
	for (i = 0; i < NSUBS; i++) {
		a->sub[i] = open_or_make(a, a->dir, sub_names[i], &made_sub);
		if (a->sub[i] < 0)
			return fail(a, "open or make tmp, new, cur");
		r = progress(a);
		if (r < 0)
			return r;
	}
	if (made_sub)
		r = sync_dir(a, a->dir, "sync the maildir");
	return r == 0 && made ? sync_parent(a) : r;
}

/* Only new/, or all of them. */
static int
open_dirs_or_new(struct attempt *a)
{
	struct buf path = { 0 };
	int r = -ENOENT;

	if (a->md->whole && !a->md->sweep && a->md->room.size_limit == 0 &&
	    buf_printf(&path, "%s/%s", a->md->path, sub_names[SUB_NEW]) == 0)
		r = io_open_straight(buf_str(&path), DIR_FLAGS);
	buf_done(&path);
	if (r < 0)
		return open_dirs(a);
	a->sub[SUB_NEW] = r;
	return progress(a);
}

/* new/ does without unnamed files after all, so tmp/ is needed. */
static int
open_anew(struct attempt *a)
{
	io_close(&a->sub[SUB_NEW]);
	return open_dirs(a);
}

/* ---- room ---- */

/* The octets of a file by the field S of its name (Maildir++), else by a call.
 */
static uint64_t
file_size(int dir, const char *name)
{
	const char *field = strstr(name, ",S=");
	struct stat st;

	if (field != NULL && isdigit((unsigned char)field[3]))
		return strtoull(field + 3, NULL, 10);
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0
	    ? 0
	    : (uint64_t)st.st_size;
}

/* Adds the files of a directory to *size, up to above the limit. */
static int
add_files(struct attempt *a, int dir, uint64_t *size)
{
	const uint64_t limit = a->md->room.size_limit;
	struct dir_names names;
	const char *name;
	uint64_t more;
	int r = 0;

	dir_names_begin(&names, dir);
	while (r == 0 && *size <= limit &&
	    (name = dir_names_next(&names, &r)) != NULL) {
		more = mailbox_room_of_file(file_size(dir, name));
		*size += more <= limit ? more : limit + 1;
		r = progress(a);
	}
	if (r < 0)
		a->md->step = "count its mail";
	return r;
}

/* The mail is counted under a lock, which ends with the attempt: the next
 * delivery counts this message, too. */
static int
check_size(struct attempt *a, uint64_t len)
{
	struct mailbox_room *room = &a->md->room;
	uint64_t size = 0;
	int r;

	if (room->size_limit == 0)
		return 0;
	if (a->sys->flock(a->dir, LOCK_EX) < 0)
		return fail(a, "lock the maildir");
	r = progress(a);
	if (r == 0)
		r = add_files(a, a->sub[SUB_NEW], &size);
	if (r == 0)
		r = add_files(a, a->sub[SUB_CUR], &size);
	return r < 0 ? r
		     : mailbox_room_size(room, size, mailbox_room_of_file(len));
}

static int
check_room(struct attempt *a, const struct message *m)
{
	int r = check_size(a, m->len);

	return r < 0
	    ? r
	    : mailbox_room_disk(&a->md->room, a->sys, a->sub[SUB_NEW], m->len);
}

/* ---- the file ---- */

/* `/` and `:` of a host name would end the name or look like flags. The size is
 * in the name where the next delivery counts. */
static void
make_name(struct attempt *a, int try)
{
	usec_t now = clock_wall();
	char host[128], size[32] = "";
	size_t i;

	snprintf(host, sizeof(host), "%s", a->md->host);
	for (i = 0; host[i] != '\0'; i++)
		if (host[i] == '/' || host[i] == ':' ||
		    (unsigned char)host[i] <= 0x20)
			host[i] = '_';
	if (a->md->room.size_limit > 0 && a->written > 0)
		snprintf(size, sizeof(size), ",S=%" PRIu64, a->written);
	snprintf(a->name, sizeof(a->name), "%lld.M%06dP%ldQ%lluR%d.%s%s",
	    (long long)(now / USEC_PER_SEC), (int)(now % USEC_PER_SEC),
	    (long)a->md->pid, (unsigned long long)a->md->delivery, try, host,
	    size);
}

static bool
no_unnamed_files(int error)
{
	return error == EOPNOTSUPP || error == EISDIR || error == EINVAL ||
	    error == ENOENT;
}

static int
open_file(struct attempt *a)
{
	int try;

	a->fd =
	    a->sys->openat(a->sub[SUB_NEW], ".", FILE_FLAGS | O_TMPFILE, 0600);
	a->md->unnamed = a->fd >= 0;
	if (a->fd >= 0)
		return 0;
	if (!no_unnamed_files(errno))
		return fail(a, "create the file");
	if (a->sub[SUB_TMP] < 0) {
		int r = open_anew(a);

		if (r < 0)
			return r;
	}
	for (try = 0; try < NAME_TRIES; try++) {
		make_name(a, try);
		a->fd = a->sys->openat(a->sub[SUB_TMP], a->name,
		    FILE_FLAGS | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (a->fd >= 0 || errno != EEXIST)
			break;
	}
	if (a->fd < 0)
		return fail(a, "create the file in tmp");
	a->named = true;
	return 0;
}

static int
write_all(struct attempt *a, const char *data, size_t len)
{
	int r;

	while (len > 0) {
		ssize_t n = a->sys->write(a->fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return fail(a, "write");
		data += n;
		len -= (size_t)n;
		a->written += (uint64_t)n;
		r = progress(a);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
write_message(struct attempt *a, struct message *m)
{
	char *chunk = malloc(MESSAGE_CHUNK);
	int64_t n;
	int r = message_begin(m);

	if (chunk == NULL)
		r = -ENOMEM;
	while (r == 0) {
		n = message_read(m, chunk, MESSAGE_CHUNK);
		if (n < 0) {
			a->md->step = "read the message";
			r = (int)n;
		} else if (n == 0) {
			break;
		} else {
			r = write_all(a, chunk, (size_t)n);
		}
	}
	free(chunk);
	return r;
}

static int
link_unnamed(struct attempt *a)
{
	char self[32];
	int try, r = -1;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", a->fd);
	for (try = 0; try < NAME_TRIES; try++) {
		make_name(a, try);
		r = a->sys->linkat(AT_FDCWD, self, a->sub[SUB_NEW], a->name,
		    AT_SYMLINK_FOLLOW);
		if (r == 0 || errno != EEXIST)
			break;
	}
	return r;
}

static int
move_to_new(struct attempt *a)
{
	int r = a->named ? a->sys->renameat(a->sub[SUB_TMP], a->name,
			       a->sub[SUB_NEW], a->name)
			 : link_unnamed(a);

	if (r < 0)
		return fail(a, "move to new");
	a->in_new = true;
	return 0;
}

/* Content first, then the name: after a cut a name stands for a whole file.
 * Syncing new/ commits the name on ext4, xfs and btrfs. */
static int
commit(struct attempt *a)
{
	int r;

	if (a->sys->fsync(a->fd) < 0)
		return fail(a, "sync the file");
	r = progress(a);
	if (r == 0)
		r = move_to_new(a);
	if (r == 0)
		r = progress(a);
	if (r < 0)
		return r;
	r = sync_dir(a, a->sub[SUB_NEW], "sync new");
	if (r < 0)
		return r;
	r = a->sys->close(a->fd);
	a->fd = -1;
	return r < 0 ? fail(a, "close the file") : 0;
}

static void
end_attempt(struct attempt *a, bool delivered)
{
	int i;

	if (!delivered && (a->in_new || a->named))
		(void)a->sys->unlinkat(
		    a->sub[a->in_new ? SUB_NEW : SUB_TMP], a->name, 0);
	io_close(&a->fd);
	for (i = 0; i < NSUBS; i++)
		io_close(&a->sub[i]);
	io_close(&a->dir);
}

/* ---- files left in tmp/ ---- */

/* "1754000000.M000042P123Q7R0.host", as make_name() makes them. */
static bool
is_our_name(const char *name)
{
	static const char marks[] = ".MPQR.";
	const char *mark;

	for (mark = marks; *mark != '\0'; mark++) {
		size_t digits = strspn(name, "0123456789");

		/* The first dot and the M behind it are one mark. */
		if ((digits == 0) != (*mark == 'M') || name[digits] != *mark)
			return false;
		name += digits + 1;
	}
	return *name != '\0';
}

static void
sweep_entry(int dir, const char *name, usec_t oldest_wall)
{
	struct stat st;

	if (!is_our_name(name) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC >= oldest_wall)
		return;
	(void)unlinkat(dir, name, 0);
}

/* Through the descriptor that the delivery used: no name leads elsewhere. */
static void
sweep(struct attempt *a)
{
	usec_t oldest = clock_wall() - MAILDIR_TMP_AGE;
	struct dir_names names;
	const char *name;
	int i, r;

	dir_names_begin(&names, a->sub[SUB_TMP]);
	for (i = 0; i < SWEEP_MAX; i++) {
		name = dir_names_next(&names, &r);
		if (name == NULL)
			break;
		sweep_entry(a->sub[SUB_TMP], name, oldest);
		(void)progress(a);
	}
}

/* ---- all of it ---- */

int
maildir_deliver(struct put *md, struct message *m)
{
	struct attempt a = { .md = md,
		.sys = md->sys,
		.dir = -1,
		.sub = { -1, -1, -1 },
		.fd = -1 };
	int r;

	md->step = "deliver";
	if (md->pid == 0)
		md->pid = getpid();
	r = open_dirs_or_new(&a);
	if (r == 0)
		r = check_room(&a, m);
	if (r == 0)
		r = open_file(&a);
	if (r == 0)
		r = write_message(&a, m);
	if (r == 0)
		r = commit(&a);
	if (r == 0 && md->sweep)
		sweep(&a);
	end_attempt(&a, r == 0);
	return r;
}
