#include "qscheduler/queues/base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "spool/prepared.h"

#define LIST_LOCK  "queues.lock"
#define LOCK_NAME  "lock"
#define LOCK_WAIT  (2 * USEC_PER_SEC)
#define PROBE_NAME "probe" /* in lock/ of a queue */

int
base_fail(struct buf *ret_error, int r, const char *path, const char *what)
{
	(void)buf_printf(
	    ret_error, "%s: %s", path, what != NULL ? what : strerror(-r));
	return r;
}

/* ---- the directory ---- */

/* On a descriptor that does not write, so that the file system can be remounted
 * read-only. A child of a supervisor that was killed has the lock, too, until
 * its exec: the next supervisor waits for that, and no longer. */
static int
lock_within_limit(int fd)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000000 };
	const usec_t limit = clock_mono() + LOCK_WAIT;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return -errno;
		if (clock_mono() > limit)
			return -EBUSY;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* The process that has the lock, as the kernel lists it; 0: not known. A file
 * system may be listed there under another number than it says. */
static int
find_holder(int fd)
{
	char line[256], place[64];
	struct stat st;
	int pid = 0;
	FILE *f = fstat(fd, &st) < 0 ? NULL : fopen("/proc/locks", "re");

	if (f == NULL)
		return 0;
	snprintf(place, sizeof(place), " %02x:%02x:%ju ", major(st.st_dev),
	    minor(st.st_dev), (uintmax_t)st.st_ino);
	while (pid <= 0 && fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, place) == NULL ||
		    sscanf(line, "%*s FLOCK %*s WRITE %d", &pid) != 1)
			pid = 0;
	fclose(f);
	return pid > 0 ? pid : 0;
}

static int
take_lock(struct base *b, struct buf *ret_error)
{
	char who[64] = "another qscheduler runs on it";
	int r, pid;

	b->lock = openat(b->fd, LOCK_NAME,
	    O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = b->lock < 0 ? -errno : lock_within_limit(b->lock);
	if (r == 0)
		return 0;
	pid = r == -EBUSY ? find_holder(b->lock) : 0;
	if (pid > 0)
		snprintf(who, sizeof(who),
		    "another qscheduler runs on it, pid %d", pid);
	return base_fail(ret_error, r, b->path, r == -EBUSY ? who : NULL);
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
	b->agents = users->qmailr_group;
	b->fd = base_place_open(path, users->private, ret_error);
	if (b->fd < 0)
		return b->fd;
	b->path = strdup(path);
	r = b->path == NULL ? base_fail(ret_error, -ENOMEM, path, NULL)
			    : take_lock(b, ret_error);
	if (r == 0 && (r = spool_make_users(b->fd, &b->owner)) < 0)
		r = base_fail(ret_error, r, b->path, NULL);
	if (r == 0 && (r = spool_make_mailbox(b->fd, &b->owner)) < 0)
		r = base_fail(ret_error, r, b->path, NULL);
	if (r == 0 && (r = spool_make_rules(b->fd, &b->owner)) < 0)
		r = base_fail(ret_error, r, b->path, NULL);
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

uint64_t
base_identity(const struct base *b)
{
	struct statx st = { 0 };
	uint64_t parts[5], id = UINT64_C(0xcbf29ce484222325);
	size_t i;

	/* Inode numbers are used again; the time tells, where it is known. */
	if (statx(b->fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) < 0)
		return 0;
	parts[0] = st.stx_dev_major;
	parts[1] = st.stx_dev_minor;
	parts[2] = st.stx_ino;
	parts[3] = (uint64_t)st.stx_btime.tv_sec;
	parts[4] = st.stx_btime.tv_nsec;
	for (i = 0; i < ARRAY_LEN(parts); i++)
		id = (id ^ parts[i]) * UINT64_C(0x100000001b3);
	return id;
}

/* ---- one queue ---- */

/* A name that is no file cannot be mail, and may be a name that cannot be moved
 * to corrupt/: it keeps no queue alive. */
static bool
is_mail(
    const struct spool *sp, enum spool_dir dir, const struct spool_item *item)
{
	struct prepared prepared;
	struct stat st;
	bool named;
	uid_t uid;

	if (dir != SPOOL_MAILDROP && dir != SPOOL_PREPARED)
		return item->inode != 0;
	named = dir == SPOOL_MAILDROP
	    ? spool_drop_parse(item->name, &uid)
	    : prepared_parse(item->name, &prepared) == 0;
	return named &&
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
	/* A subdirectory that cannot be read says nothing of the others. */
	while ((r = spool_scan_next(&scan, false, &item)) != 0) {
		if (r > 0 && is_mail(sp, dir, &item))
			break;
		bad = r < 0 ? r : bad;
	}
	spool_scan_done(&scan);
	return r > 0 ? 1 : bad;
}

/* corrupt/ does not count, it is for a person. A directory that cannot be read
 * may hold mail. prepared/ comes before incoming/, where its messages go. */
static bool
has_mail(const struct spool *sp)
{
	static const enum spool_dir dirs[] = { SPOOL_PREPARED, SPOOL_INCOMING,
		SPOOL_ACTIVE, SPOOL_DEFERRED, SPOOL_MAILDROP, SPOOL_HOLD };
	size_t i;

	for (i = 0; i < ARRAY_LEN(dirs); i++)
		if (has_file(sp, dirs[i]) != 0)
			return true;
	return false;
}

/* Everything that was asked so far may have been answered from memory. 0, or
 * the error of a disk that takes no data. */
static int
write_probe(const struct spool *sp)
{
	const int flags =
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int r = 0, fd = openat(sp->dir[SPOOL_LOCK], PROBE_NAME, flags, 0600);

	if (fd < 0 || pwrite(fd, "\n", 1, 0) != 1 || fdatasync(fd) < 0)
		r = -errno;
	io_close(&fd);
	return room_is_error(r) ? r : 0;
}

static int
judge_room(int fd, const struct room_want *want)
{
	struct statvfs v;

	return fstatvfs(fd, &v) < 0 ? 0 : room_judge(&v, want, 0);
}

static void
check_room(const struct base *b, const struct spool *sp,
    const struct room_want *want, struct base_room *room)
{
	static const struct room_want none;
	const struct room_want more = { want->bytes + want->bytes / 8,
		want->inodes + want->inodes / 8, want->writer };
	struct stat of_queue, of_base;
	const int probe = write_probe(sp);

	*room = (struct base_room){ 0 };
	if (fstat(sp->fd, &of_queue) < 0 || fstat(b->fd, &of_base) < 0)
		return;
	room->disk = of_queue.st_dev;
	room->error = judge_room(sp->fd, want);
	if (room->error == 0)
		room->error = probe;
	if (room->error < 0) {
		room_describe_queue(sp, want, 0, room->error, room->text);
		return;
	}
	/* Shares of users and the configuration in force are written there; the
	 * reserve is for mail. */
	room->error = judge_room(b->fd, &none);
	room->scarce = room->error == 0 && judge_room(sp->fd, &more) == -ENOSPC;
	if (room->error == 0)
		return;
	room->disk = of_base.st_dev;
	room_describe(b->fd, b->path, &none, 0, room->error, room->text);
}

int
base_check(const struct base *b, uint32_t queue, const struct room_want *want,
    struct base_room *ret_room)
{
	struct spool sp;
	int r = spool_open(&sp, &spool_sys_real, b->path, queue);

	if (r < 0)
		return r;
	check_room(b, &sp, want, ret_room);
	spool_close(&sp);
	return 0;
}

void
base_inspect(const struct base *b, uint32_t queue, struct base_facts *facts)
{
	char name[32];
	struct stat st;
	struct spool sp;

	snprintf(name, sizeof(name), "queue%" PRIu32, queue);
	facts->listed = b->listed[queue];
	facts->there = fstatat(b->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	facts->error = spool_open(&sp, &spool_sys_real, b->path, queue);
	facts->marked = facts->error == 0;
	snprintf(
	    facts->why, sizeof(facts->why), "%s", spool_error(facts->error));
	facts->mail = facts->marked && has_mail(&sp);
	facts->sealed = facts->marked && spool_is_sealed(&sp);
	if (facts->marked)
		spool_close(&sp);
}

enum verdict
base_judge(const struct base_facts *facts)
{
	if (facts->marked)
		return facts->wanted ? VERDICT_OPEN
		    : facts->mail    ? VERDICT_DRAIN
				     : VERDICT_SKIP;
	/* A queue that was made and is not there may hold mail where it is, and
	 * so may a queue of another layout. */
	if (facts->listed || facts->error == -EMEDIUMTYPE)
		return VERDICT_DISABLE;
	if (!facts->wanted)
		return VERDICT_SKIP;
	/* A directory without a marker may be a place to mount a file system
	 * on, or a file system that has just been made: spool_create() tells.
	 */
	return VERDICT_MAKE;
}

int
base_describe_lost(const struct base *b, uint32_t queue,
    const struct base_facts *facts, struct buf *out)
{
	if (facts->error == -EMEDIUMTYPE)
		return buf_add_str(out, facts->why);
	return buf_printf(out,
	    "its directory is %s (%s); if it is gone for good, take the line "
	    "%" PRIu32 " out of %s/" BASE_LIST,
	    facts->there ? "not as it was" : "not there",
	    strerror(-facts->error), queue, b->path);
}

int
base_describe_gone(int error, struct buf *out)
{
	if (error == -EMEDIUMTYPE)
		return buf_add_str(out, spool_error(error));
	return buf_printf(out,
	    "its directory is gone (%s): is a file system not mounted?",
	    strerror(-error));
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
		r = spool_set_sealed(b->path, queue, false);
	if (r < 0)
		return refuse(b, queue, r, ret_error);
	return base_list_add(b, queue, ret_error);
}

/* ---- the end of one ---- */

/* A lock that was never made has no holder, and is not made here: it is to
 * belong to the process that takes it. */
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

/* 1: nothing is there; 0: something is. The holder of one of the locks may
 * still move files. */
static int
inspect_sealed(const struct spool *sp)
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
base_is_taken(const struct base *b, uint32_t queue)
{
	struct spool sp;
	int r, lock = -1;

	if (spool_open(&sp, &spool_sys_real, b->path, queue) < 0)
		return 0;
	r = take_lock_of(&sp, "queue-send", &lock);
	io_close(&lock);
	spool_close(&sp);
	return r == -EAGAIN;
}

int
base_seal(const struct base *b, uint32_t queue)
{
	struct spool sp;
	int r = spool_open(&sp, &spool_sys_real, b->path, queue);

	if (r < 0)
		return r;
	r = spool_set_sealed(b->path, queue, true);
	if (r == 0)
		r = inspect_sealed(&sp);
	if (r != 1)
		(void)spool_set_sealed(b->path, queue, false);
	spool_close(&sp);
	return r;
}
