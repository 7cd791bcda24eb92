#include "spool/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Bytes written between two checks of the free space. */
#define ROOM_EVERY   ((uint64_t)1 << 20)
#define NAME_TRIES   8
/* Room beyond the reserve that is ample: more than is written within the moment
 * for which a caller believes that. */
#define AMPLE_BYTES  ((uint64_t)256 << 20)
#define AMPLE_INODES 65536

/* Refuses a message before any work, and while it grows. The reserve stays free
 * for other mail and for marks. */
static int
check_room(struct accept *a, uint64_t to_come)
{
	const struct room_want want = a->opt.reserve;
	const struct room_want ample = { want.bytes + AMPLE_BYTES + 1,
		want.inodes + AMPLE_INODES + 1, ROOM_USER };
	struct statvfs v;
	int r;

	if (a->sp->sys->fstatvfs(a->sp->dir[a->opt.dir], &v) < 0)
		return -errno;
	r = room_judge(&v, &want, to_come);
	a->ample = r == 0 && room_judge(&v, &ample, to_come) == 0;
	return r;
}

/* Before any work. */
static int
look(struct accept *a)
{
	if (a->opt.looked)
		return 0;
	return spool_is_sealed(a->sp) ? -ESHUTDOWN
				      : check_room(a, a->opt.announced);
}

static mode_t
file_mode(const struct accept *a)
{
	return a->sp->private ? 0600 : 0660;
}

/* For a file system without O_TMPFILE: a name that readers ignore. The file is
 * locked at once, and renamed at the end. */
static int
open_named(struct accept *a)
{
	const struct spool_sys *sys = a->sp->sys;
	char name[sizeof(a->temp_name)];

	snprintf(name, sizeof(name), "%s" SPOOL_TEMP_PREFIX "%u.%d.%08" PRIx32,
	    spool_dirs[a->opt.dir].split ? "0/" : "", (unsigned)a->uid,
	    (int)getpid(), arc4random());
	a->fd = sys->openat(a->sp->dir[a->opt.dir], name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode(a));
	if (a->fd < 0)
		return -errno;
	memcpy(a->temp_name, name, sizeof(name));
	return 0;
}

static int
open_file(struct accept *a)
{
	a->fd = a->sp->sys->openat(a->sp->dir[a->opt.dir], ".",
	    O_WRONLY | O_TMPFILE | O_CLOEXEC, file_mode(a));
	if (a->fd >= 0)
		return 0;
	if (errno == EOPNOTSUPP || errno == EISDIR)
		return open_named(a);
	return -errno;
}

/* The inode names the file; the umask may have changed the mode. */
static int
note_file(struct accept *a)
{
	struct stat st;

	if (fstat(a->fd, &st) < 0)
		return -errno;
	a->inode = (uint64_t)st.st_ino;
	a->owner = st.st_uid;
	a->mode = st.st_mode & 07777;
	return 0;
}

/* One byte tells messages of one inode and one microsecond apart. Bytes are had
 * from the kernel many at a time. */
static uint8_t
make_nonce(void)
{
	static _Thread_local uint8_t stock[64];
	static _Thread_local unsigned left;

	if (left == 0) {
		arc4random_buf(stock, sizeof(stock));
		left = sizeof(stock);
	}
	return stock[--left];
}

int
accept_begin(struct accept *a, const struct spool *sp,
    const struct accept_options *opt, usec_t arrival_wall, uint32_t uid)
{
	int r;

	memset(a, 0, sizeof(*a));
	a->sp = sp;
	a->opt = *opt;
	a->uid = uid;
	a->fd = -1;
	if (sp->dir[opt->dir] < 0)
		return -EACCES;
	r = look(a);
	if (r == 0)
		r = open_file(a);
	if (r == 0)
		r = note_file(a);
	if (r == 0)
		r = queue_file_writer_init(
		    &a->writer, sp->sys, a->fd, opt->max_content);
	if (r < 0)
		return r;
	a->writer.file.arrival_wall = arrival_wall < 0 ? 0
	    : arrival_wall > QUEUE_ID_ARRIVAL_MAX      ? QUEUE_ID_ARRIVAL_MAX
						       : arrival_wall;
	a->writer.file.queue = sp->queue;
	a->writer.file.uid = uid;
	a->writer.file.flags = opt->flags;
	a->writer.file.nonce = make_nonce();
	return 0;
}

/* Bytes that are still to come after this much of the content. */
static uint64_t
to_come(const struct accept *a)
{
	const uint64_t have = a->writer.file.content_len;

	return a->opt.announced > have ? a->opt.announced - have : 0;
}

void
accept_describe(const struct accept *a, int error, char out[ROOM_TEXT_SIZE])
{
	if (room_is_error(error))
		room_describe_queue(
		    a->sp, &a->opt.reserve, to_come(a), error, out);
	else
		snprintf(out, ROOM_TEXT_SIZE, "queue%" PRIu32 ": %s",
		    a->sp->queue,
		    error == -ESHUTDOWN ? "the queue is being closed"
					: strerror(-error));
}

int
accept_content(struct accept *a, const void *data, size_t len)
{
	const char *from = data;
	size_t part;
	int r = 0;

	for (; r == 0 && len > 0; from += part, len -= part) {
		part = len < ROOM_EVERY ? len : ROOM_EVERY;
		r = queue_file_add_content(&a->writer, from, part);
		a->unchecked += part;
		if (r == 0 && a->unchecked >= ROOM_EVERY) {
			a->unchecked = 0;
			r = check_room(a, to_come(a));
		}
	}
	return r;
}

/* The owner and the mode that a queue file has. In a private instance one user
 * owns and reads all files, so root submits for that user, too. */
static int
settle(const struct accept *a)
{
	const uid_t owner = a->sp->owner[a->opt.dir];

	if (a->sp->private && a->owner != owner && geteuid() == 0 &&
	    fchown(a->fd, owner, (gid_t)-1) < 0)
		return -errno;
	if (a->mode != file_mode(a) && fchmod(a->fd, file_mode(a)) < 0)
		return -errno;
	return 0;
}

/* The name of a drop is random, that of a prepared message its caller's; in
 * other directories it is the inode. */
static void
make_name(const struct accept *a, char name[SPOOL_PATH_MAX])
{
	uint64_t random;

	if (a->opt.dir == SPOOL_PREPARED) {
		snprintf(name, SPOOL_PATH_MAX, "%s", a->opt.name);
		return;
	}
	if (a->opt.dir != SPOOL_MAILDROP) {
		spool_leaf(a->sp, a->opt.dir, a->inode, name, SPOOL_PATH_MAX);
		return;
	}
	arc4random_buf(&random, sizeof(random));
	spool_drop_name(a->uid, random, name);
}

static int
give_name(struct accept *a, const char *name)
{
	const struct spool_sys *sys = a->sp->sys;
	int dir = a->sp->dir[a->opt.dir], r;
	char self[32];

	if (a->temp_name[0] != '\0') {
		r = sys->renameat(dir, a->temp_name, dir, name);
	} else {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", a->fd);
		r = sys->linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW);
	}
	if (r < 0)
		return -errno;
	a->temp_name[0] = '\0';
	memcpy(a->name, name, sizeof(a->name));
	return 0;
}

static int
take_name(struct accept *a)
{
	char name[sizeof(a->name)] = "";
	int tries, r = -EEXIST;

	for (tries = 0; r == -EEXIST && tries < NAME_TRIES; tries++) {
		make_name(a, name);
		r = give_name(a, name);
		if (a->opt.dir != SPOOL_MAILDROP)
			break;
	}
	return r;
}

static int
sync_directory(const struct accept *a)
{
	const struct spool_sys *sys = a->sp->sys;
	const char *slash = strchr(a->name, '/');
	char name[sizeof(a->name)] = ".";
	int fd, r = 0;

	if (slash != NULL)
		snprintf(name, sizeof(name), "%.*s", (int)(slash - a->name),
		    a->name);
	fd = sys->openat(a->sp->dir[a->opt.dir], name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sys->fsync(fd) < 0)
		r = -errno;
	sys->close(fd);
	return r;
}

/* Steps 4 to 6 of docs/SPOOL.md, in the order that survives a power cut. */
static int
make_durable(struct accept *a)
{
	const struct spool_sys *sys = a->sp->sys;
	int r;

	if (sys->flock(a->fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	r = take_name(a);
	if (r < 0)
		return r;
	if (spool_is_sealed(a->sp))
		return -ESHUTDOWN;
	if (sys->fsync(a->fd) < 0)
		return -errno;
	return a->opt.strict ? sync_directory(a) : 0;
}

int
accept_commit(struct accept *a, struct queue_id *ret_id)
{
	int r = queue_file_finish(&a->writer);

	if (r == 0)
		r = settle(a);
	if (r == 0)
		r = make_durable(a);
	if (r < 0)
		return r;
	a->accepted = true;
	*ret_id = queue_file_id(&a->writer.file, a->inode);
	return 0;
}

/* The name goes before the lock, so that no reader takes a refused message. The
 * fsync has reported all errors that a close could report. */
void
accept_end(struct accept *a)
{
	const struct spool_sys *sys = a->sp->sys;
	int dir = a->sp->dir[a->opt.dir];

	if (a->temp_name[0] != '\0')
		sys->unlinkat(dir, a->temp_name, 0);
	if (a->name[0] != '\0' && !a->accepted)
		sys->unlinkat(dir, a->name, 0);
	/* Before the close, which wakes the reader of maildrop/. */
	if (a->accepted && a->opt.dir == SPOOL_MAILDROP)
		sys->flock(a->fd, LOCK_UN);
	if (a->fd >= 0)
		sys->close(a->fd);
	a->fd = -1;
	a->temp_name[0] = a->name[0] = '\0';
	queue_file_writer_done(&a->writer);
}
