#include "qscheduler/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "base/line.h"
#include "base/num.h"

#define LIST_LOCK  "queues.lock"
#define LIST_NAME  "queues"
#define LIST_MAX   65536 /* bytes; all numbers fit in 20478 */
#define LOCK_NAME  "lock"
#define PROBE_NAME "probe" /* in lock/ of a queue */

static int
fail(struct buf *ret_error, int r, const char *path, const char *what)
{
	(void)buf_printf(
	    ret_error, "%s: %s", path, what != NULL ? what : strerror(-r));
	return r;
}

/* ---- the directory ---- */

/* Whoever may rename it can put another one in its place. */
static int
check_above(const char *path, struct buf *ret_error)
{
	char *copy = strdup(path);
	struct stat st;
	int r = 0;

	if (copy == NULL)
		return fail(ret_error, -ENOMEM, path, NULL);
	if (stat(dirname(copy), &st) < 0)
		r = fail(ret_error, -errno, path,
		    errno == ENOENT ? "the directory above does not exist"
				    : NULL);
	else if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
		r = fail(ret_error, -EPERM, path,
		    "the directory above is writable by everybody");
	free(copy);
	return r;
}

static int
check_base(int fd, const char *path, struct buf *ret_error)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail(ret_error, -errno, path, NULL);
	if (st.st_uid != geteuid())
		return fail(ret_error, -EPERM, path, "belongs to another user");
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return fail(ret_error, -EPERM, path,
		    "is writable by others than its owner");
	return 0;
}

static int
open_base(const char *path, bool private, struct buf *ret_error)
{
	const mode_t mode = private ? 0700 : 0755;
	int fd, r;
	bool made;

	if (path[0] != '/')
		return fail(ret_error, -EINVAL, path,
		    "queue_base must be an absolute path");
	r = check_above(path, ret_error);
	if (r < 0)
		return r;
	made = mkdir(path, mode) == 0;
	if (!made && errno != EEXIST)
		return fail(ret_error, -errno, path, NULL);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fail(ret_error, -errno, path,
		    errno == ENOTDIR || errno == ELOOP
			? "must be a directory, and not a link"
			: NULL);
	r = check_base(fd, path, ret_error);
	if (r == 0 && made && fchmod(fd, mode) < 0) /* past our umask */
		r = fail(ret_error, -errno, path, NULL);
	if (r == 0)
		return fd;
	io_close(&fd);
	return r;
}

static int
take_lock(struct base *b, struct buf *ret_error)
{
	int r = 0;

	b->lock = openat(b->fd, LOCK_NAME,
	    O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b->lock < 0)
		r = -errno;
	else if (flock(b->lock, LOCK_EX | LOCK_NB) < 0)
		r = errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (r == 0)
		return 0;
	return fail(ret_error, r, b->path,
	    r == -EBUSY ? "another qscheduler runs on it" : NULL);
}

int
base_open(struct base *b, const char *path, const struct daemon_users *users,
    struct buf *ret_error)
{
	int r;

	memset(b, 0, sizeof(*b));
	b->lock = -1;
	b->owner = (struct spool_owner){ users->qmailq, users->qmails,
		users->qmail, users->qdrop, users->private };
	b->fd = open_base(path, users->private, ret_error);
	if (b->fd < 0)
		return b->fd;
	b->path = strdup(path);
	r = b->path == NULL ? fail(ret_error, -ENOMEM, path, NULL)
			    : take_lock(b, ret_error);
	if (r == 0 && (r = spool_make_users(b->fd, &b->owner)) < 0)
		r = fail(ret_error, r, b->path, NULL);
	if (r == 0)
		r = base_read_list(b, ret_error);
	if (r < 0)
		base_close(b);
	return r;
}

void
base_close(struct base *b)
{
	io_close(&b->lock);
	io_close(&b->fd);
	free(b->path);
	b->path = NULL;
}

/* ---- the list ---- */

static int
parse_list(struct buf *text, bool listed[QUEUE_NUM_MAX + 1], uint32_t *ret_line)
{
	struct line_cursor c;
	const char *why;
	uint64_t queue;
	char *line;
	int r;

	line_begin(&c, text, 80);
	while ((r = line_next(&c, &line, &why)) > 0) {
		line_uncomment(line);
		line = line_trim(line);
		if (line[0] == '\0')
			continue;
		r = num_u64(line, 1, QUEUE_NUM_MAX, &queue);
		if (r < 0)
			break;
		listed[queue] = true;
	}
	*ret_line = c.number;
	return r < 0 ? -EBADMSG : 0;
}

static int
read_list(int dir, struct buf *ret_text)
{
	int fd = openat(
	    dir, LIST_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int64_t n;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = buf_reserve(ret_text, LIST_MAX);
	if (r == 0) {
		n = io_read_all(fd, ret_text->data, LIST_MAX);
		r = n < 0 ? (int)n : n == LIST_MAX ? -EFBIG : 0;
		if (r == 0) {
			ret_text->len = (size_t)n;
			ret_text->data[n] = '\0';
		}
	}
	io_close(&fd);
	return r;
}

int
base_read_list(struct base *b, struct buf *ret_error)
{
	bool listed[QUEUE_NUM_MAX + 1] = { false };
	struct buf text = { 0 };
	uint32_t line = 0;
	int r = read_list(b->fd, &text);

	if (r == 0 && text.len > 0)
		r = parse_list(&text, listed, &line);
	buf_done(&text);
	if (r == -EBADMSG)
		(void)buf_printf(ret_error,
		    "%s/" LIST_NAME ":%" PRIu32 ": not a queue number", b->path,
		    line);
	else if (r < 0)
		(void)buf_printf(
		    ret_error, "%s/" LIST_NAME ": %s", b->path, strerror(-r));
	else
		memcpy(b->listed, listed, sizeof(listed));
	return r;
}

static int
print_list(const bool listed[QUEUE_NUM_MAX + 1], struct buf *out)
{
	uint32_t queue;
	int r = buf_add_str(out,
	    "# queues ever made here; remove a line to have it made anew\n");

	for (queue = 1; r == 0 && queue <= QUEUE_NUM_MAX; queue++)
		if (listed[queue])
			r = buf_printf(out, "%" PRIu32 "\n", queue);
	return r;
}

static int
write_list(struct base *b, struct buf *ret_error)
{
	struct buf text = { 0 };
	int r = print_list(b->listed, &text);

	if (r == 0)
		r = file_replace(b->fd, LIST_NAME, 0644, &text);
	buf_done(&text);
	if (r < 0)
		(void)buf_printf(
		    ret_error, "%s/" LIST_NAME ": %s", b->path, strerror(-r));
	return r;
}

/* A lock of the list alone, until the descriptor is closed. Of a file that
 * nobody else can open: whoever can open the list, or the directory, could hold
 * a lock of that for ever. */
static int
lock_list(const struct base *b, struct buf *ret_error)
{
	int fd = openat(b->fd, LIST_LOCK,
		O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600),
	    r;

	if (fd >= 0 && flock(fd, LOCK_EX) == 0)
		return fd;
	r = -errno;
	io_close(&fd);
	return fail(ret_error, r, b->path, NULL);
}

int
base_list_add(struct base *b, uint32_t queue, struct buf *ret_error)
{
	int lock = lock_list(b, ret_error), r;

	if (lock < 0)
		return lock;
	r = base_read_list(b, ret_error);
	if (r == 0 && !b->listed[queue]) {
		b->listed[queue] = true;
		r = write_list(b, ret_error);
		b->listed[queue] = r == 0;
	}
	io_close(&lock);
	return r;
}

/* ---- one queue ---- */

/* What is no file cannot be mail, and may be what cannot be moved to corrupt/:
 * no queue is kept alive by it. */
static bool
is_mail(
    const struct spool *sp, enum spool_dir dir, const struct spool_item *item)
{
	struct stat st;
	uid_t uid;

	if (dir != SPOOL_MAILDROP)
		return item->inode != 0;
	return spool_drop_parse(item->name, &uid) &&
	    (fstatat(sp->dir[dir], item->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		S_ISREG(st.st_mode));
}

/* 1: there is one; 0: none; -errno: none where it could be read. */
static int
has_file(const struct spool *sp, enum spool_dir dir)
{
	struct spool_scan scan;
	struct spool_item item;
	int r, bad = 0;

	spool_scan_begin(&scan, sp, dir);
	/* One subdirectory that cannot be read says nothing of the others. */
	while ((r = spool_scan_next(&scan, false, &item)) != 0) {
		if (r > 0 && is_mail(sp, dir, &item))
			break;
		bad = r < 0 ? r : bad;
	}
	spool_scan_done(&scan);
	return r > 0 ? 1 : bad;
}

/* Not in corrupt/, which is for a person. What cannot be read may hold mail.
 */
static bool
has_mail(const struct spool *sp)
{
	static const enum spool_dir dirs[] = { SPOOL_INCOMING, SPOOL_ACTIVE,
		SPOOL_DEFERRED, SPOOL_MAILDROP, SPOOL_HOLD };
	size_t i;

	for (i = 0; i < ARRAY_LEN(dirs); i++)
		if (has_file(sp, dirs[i]) != 0)
			return true;
	return false;
}

/* Everything that was asked so far may have been answered from memory. That
 * the disk is full, or may only be read, is noticed elsewhere. */
static void
write_probe(const struct spool *sp)
{
	const int flags =
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(sp->dir[SPOOL_LOCK], PROBE_NAME, flags, 0600);

	if (fd >= 0 && pwrite(fd, "\n", 1, 0) == 1)
		(void)fdatasync(fd);
	io_close(&fd);
}

int
base_check(const struct base *b, uint32_t queue)
{
	struct spool sp;
	int r = spool_open(&sp, &spool_sys_real, b->path, queue);

	if (r < 0)
		return r;
	write_probe(&sp);
	spool_close(&sp);
	return 0;
}

void
base_look(const struct base *b, uint32_t queue, struct queue_facts *facts)
{
	char name[32];
	struct stat st;
	struct spool sp;

	snprintf(name, sizeof(name), "queue%" PRIu32, queue);
	facts->listed = b->listed[queue];
	facts->there = fstatat(b->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	facts->stuck =
	    facts->there ? spool_upgrade(b->path, queue, &b->owner) : 0;
	facts->error = spool_open(&sp, &spool_sys_real, b->path, queue);
	facts->marked = facts->error == 0;
	facts->mail = facts->marked && has_mail(&sp);
	if (facts->marked)
		spool_close(&sp);
}

enum verdict
base_judge(const struct queue_facts *facts)
{
	if (facts->marked)
		return facts->wanted ? VERDICT_OPEN
		    : facts->mail    ? VERDICT_DRAIN
				     : VERDICT_SKIP;
	/* One that was made and is not there may hold mail where it is. */
	if (facts->listed)
		return VERDICT_DISABLE;
	if (!facts->wanted)
		return VERDICT_SKIP;
	/* Without a marker it may be a place to mount a file system on, or a
	 * file system that has just been made for it: spool_create() tells. */
	return VERDICT_MAKE;
}

int
base_describe_lost(const struct base *b, uint32_t queue,
    const struct queue_facts *facts, struct buf *out)
{
	return buf_printf(out,
	    "%s/queue%" PRIu32 ": was made once and is %s (%s); if it is gone "
	    "for good, take its line out of %s/" LIST_NAME,
	    b->path, queue, facts->there ? "not as it was" : "not there",
	    strerror(-facts->error), b->path);
}

static int
refuse(const struct base *b, uint32_t queue, int r, struct buf *ret_error)
{
	const char *why = queue_file_reason();

	(void)buf_printf(ret_error, "%s/queue%" PRIu32 ": %s", b->path, queue,
	    why != NULL && why[0] != '\0' ? why : strerror(-r));
	return r;
}

int
base_make(struct base *b, uint32_t queue, uint32_t split, struct buf *ret_error)
{
	int r = spool_create(b->path, queue, split, &b->owner);

	if (r == 0)
		r = spool_set_closed(b->path, queue, false);
	if (r < 0)
		return refuse(b, queue, r, ret_error);
	return base_list_add(b, queue, ret_error);
}

/* ---- the end of one ---- */

/* A lock that was never made is nobody's, and is not made here: it is to
 * belong to who takes it. */
static int
take_lock_of(const struct spool *sp, const char *name, int *ret_lock)
{
	int r = 0,
	    fd = openat(sp->dir[SPOOL_LOCK], name,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		*ret_lock = fd;
	else
		r = errno == EWOULDBLOCK ? -EAGAIN : -errno;
	if (r < 0)
		io_close(&fd);
	return r;
}

/* 1: nothing is there; 0: something is. Whoever has one of the locks may still
 * move files. */
static int
look_sealed(const struct spool *sp)
{
	int locks[2] = { -1, -1 };
	int r = take_lock_of(sp, "queue-send", &locks[0]);

	if (r == 0)
		r = take_lock_of(sp, "todo-proc", &locks[1]);
	if (r == 0)
		r = !has_mail(sp);
	io_close(&locks[0]);
	io_close(&locks[1]);
	return r;
}

int
base_seal(const struct base *b, uint32_t queue)
{
	struct spool sp;
	int r = spool_open(&sp, &spool_sys_real, b->path, queue);

	if (r < 0)
		return r;
	r = spool_set_closed(b->path, queue, true);
	if (r == 0)
		r = look_sealed(&sp);
	if (r != 1)
		(void)spool_set_closed(b->path, queue, false);
	spool_close(&sp);
	return r;
}
