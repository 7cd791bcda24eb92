#include "spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/format.h"
#include "spool/marker.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Owner, group and mode of a directory. */
struct shape {
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

static int
because(int r, const char *reason)
{
	format_refused(reason);
	return r;
}

/* Opens a directory below parent, not a link to one. */
static int
open_dir(int parent, const char *name)
{
	struct stat st;
	int fd = openat(parent, name, OPEN_DIR);

	if (fd >= 0 || (errno != ENOTDIR && errno != ELOOP))
		return fd < 0 ? -errno : fd;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		return because(
		    -ELOOP, "a symbolic link in a directory's place");
	return because(-ENOTDIR, "not a directory");
}

/* Opens the directory, and makes it if it is missing. Below a directory with
 * the set-group-id bit a new one has its mode from the beginning, with that
 * bit. */
static int
open_or_make(int parent, const char *name, mode_t mode)
{
	const mode_t before = umask(0);
	const int r = mkdirat(parent, name, mode & ~(mode_t)S_ISGID);
	const int error = errno;

	(void)umask(before);
	return r < 0 && error != EEXIST ? -error : open_dir(parent, name);
}

/* A set-group-id bit that is not needed stays: directories below inherit it,
 * which matters where a service manager forbids setting it (RestrictSUIDSGID=
 * of systemd) and provides a base that has it. */
static bool
has_mode(mode_t is, mode_t want)
{
	is &= 07777;
	return is == want || is == (want | S_ISGID);
}

/* Works on a descriptor, so that the name cannot be given to another directory
 * meanwhile. The mode comes last: a change of the owner clears bits. */
static int
give_shape(int fd, const struct shape *want, const struct spool_owner *owner)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != 0 && st.st_uid != geteuid() &&
	    st.st_uid != owner->qmailq && st.st_uid != owner->qmails)
		return because(-EPERM, "a directory is owned by a stranger");
	if ((st.st_uid != want->uid || st.st_gid != want->gid) &&
	    fchown(fd, want->uid, want->gid) < 0)
		return -errno;
	if (fstat(fd, &st) < 0 ||
	    (!has_mode(st.st_mode, want->mode) && fchmod(fd, want->mode) < 0))
		return -errno;
	return 0;
}

/* A user who may write to the parent can put another directory there. */
static int
check_parent(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
		return because(-EPERM,
		    "the directory above is writable by everybody and not "
		    "sticky");
	return 0;
}

/* Any user may pass, whatever the umask. */
static int
make_above(const char *path)
{
	int fd, r = 0;

	if (mkdir(path, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = open(path, OPEN_DIR);
	if (fd < 0 || fchmod(fd, 0755) < 0)
		r = -errno;
	io_close(&fd);
	return r;
}

/* Opens the directory above base; missing directories on the way are made.
 * Links on the way are the operator's. */
static int
open_parent(char *path)
{
	char *slash;
	int fd, r = 0;

	for (slash = strchr(path + 1, '/'); r == 0 && slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = make_above(path);
		*slash = '/';
	}
	if (r == 0)
		r = make_above(path);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int
open_base_below(int parent, const char *name, const struct spool_owner *owner)
{
	const struct shape shape = {
		.uid = geteuid(),
		.gid = getegid(),
		.mode = owner->private ? 0700 : 0755,
	};
	int fd, r;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    strcmp(name, "/") == 0)
		return because(-EINVAL, "queue_base has no name of its own");
	fd = open_or_make(parent, name, shape.mode);
	if (fd < 0)
		return fd;
	r = give_shape(fd, &shape, owner);
	if (r == 0 && fsync(parent) < 0)
		r = -errno;
	if (r == 0)
		return fd;
	io_close(&fd);
	return r;
}

static int
open_base(const char *base, const struct spool_owner *owner)
{
	char *for_dir = NULL, *for_name = NULL;
	int parent = -1, fd;

	if (base[0] != '/')
		return because(-EINVAL, "queue_base is not absolute");
	for_dir = strdup(base);
	for_name = strdup(base);
	fd = -ENOMEM;
	if (for_dir != NULL && for_name != NULL) {
		parent = open_parent(dirname(for_dir));
		fd = parent < 0 ? parent : check_parent(parent);
	}
	if (fd == 0)
		fd = open_base_below(parent, basename(for_name), owner);
	io_close(&parent);
	free(for_dir);
	free(for_name);
	return fd;
}

/* Opens the directory, makes it if it is missing, and its subdirectories. */
static int
make_dir(int parent, const char *name, const struct shape *shape,
    uint32_t split, const struct spool_owner *owner)
{
	int fd = open_or_make(parent, name, shape->mode), part, r;
	char number[16];
	uint32_t i;

	if (fd < 0)
		return fd;
	r = give_shape(fd, shape, owner);
	for (i = 0; r == 0 && i < split; i++) {
		snprintf(number, sizeof(number), "%" PRIu32, i);
		part = open_or_make(fd, number, shape->mode);
		r = part < 0 ? part : give_shape(part, shape, owner);
		io_close(&part);
	}
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	io_close(&fd);
	return r;
}

/* A directory beside the queues, or above one of theirs. mode: of a shared
 * instance. */
static int
make_plain(int parent, const char *name, uid_t uid, gid_t gid, mode_t mode,
    const struct spool_owner *owner)
{
	const struct shape shape = { uid, gid, owner->private ? 0700 : mode };

	return make_dir(parent, name, &shape, 0, owner);
}

int
spool_make_users(int base, const struct spool_owner *owner)
{
	return make_plain(
	    base, SPOOL_USERS, owner->qmailq, owner->qdrop, 01730, owner);
}

int
spool_make_mailbox(int base, const struct spool_owner *owner)
{
	return make_plain(
	    base, SPOOL_MAILBOX, owner->qmails, owner->qmail, 0700, owner);
}

/* Members of the group read the file by its name: one that could open the
 * directory could keep its lock. */
int
spool_make_rules(int base, const struct spool_owner *owner)
{
	return make_plain(
	    base, SPOOL_RULES, owner->qmails, owner->qmail, 02710, owner);
}

static int
make_state(int queue, const struct spool_dir_info *info, uint32_t split,
    const struct spool_owner *owner)
{
	const struct shape shape = {
		.uid = info->owner_qmailq ? owner->qmailq : owner->qmails,
		.gid = owner->qmail,
		.mode = owner->private ? info->mode_private : info->mode_shared,
	};

	return make_dir(
	    queue, info->name, &shape, info->split ? split : 0, owner);
}

/* A directory that is there without a marker is a place where a file
 * system should be mounted, or has just been mounted for the first time. */
static int
check_unmarked(int base, int queue)
{
	struct stat above, here;

	if (fstat(base, &above) < 0 || fstat(queue, &here) < 0)
		return -errno;
	if (above.st_dev == here.st_dev)
		return because(
		    -ENOENT, "a queue directory without marker: not mounted?");
	return 0;
}

static mode_t
queue_mode(const struct spool_owner *owner)
{
	return owner->private ? 0700 : 0751;
}

/* No move may write over a name that is taken; a file system that cannot see to
 * that says so of a name that is free alone. One without room is asked by the
 * next start. */
static int
check_moves(int queue)
{
	static const char from[] = SPOOL_TEMP_PREFIX "from",
			  to[] = SPOOL_TEMP_PREFIX "to";
	int fd = openat(queue, from,
	    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return 0;
	io_close(&fd);
	r = renameat2(queue, from, queue, to, RENAME_NOREPLACE) < 0 &&
		errno == EINVAL
	    ? because(-ENOTSUP,
		  "its file system cannot rename without replacing "
		  "(RENAME_NOREPLACE)")
	    : 0;
	unlinkat(queue, from, 0);
	unlinkat(queue, to, 0);
	return r;
}

/* The marker comes last: a directory that has it is complete. */
static int
fill_queue(int queue, uint32_t split, const struct spool_owner *owner)
{
	const struct shape shape = {
		.uid = owner->qmails,
		.gid = owner->qmail,
		.mode = queue_mode(owner),
	};
	uint32_t marked = split;
	unsigned dir;
	int r, has_marker;

	has_marker = marker_read(queue, &marked);
	if (has_marker < 0 && has_marker != -ENOENT)
		return has_marker;
	r = give_shape(queue, &shape, owner);
	if (r == 0)
		r = make_plain(queue, SPOOL_GATE, owner->qmailq, owner->qdrop,
		    SPOOL_GATE_MODE, owner);
	for (dir = 0; r == 0 && dir < SPOOL_NDIRS; dir++)
		r = make_state(queue, &spool_dirs[dir], marked, owner);
	if (r == 0)
		r = check_moves(queue);
	if (r == 0 && has_marker < 0)
		r = marker_write(queue, marked);
	if (r == 0 && fsync(queue) < 0)
		r = -errno;
	return r;
}

static int
complete(
    int base, const char *name, uint32_t split, const struct spool_owner *owner)
{
	uint32_t marked;
	int queue = open_dir(base, name), r;

	if (queue < 0)
		return queue;
	r = marker_read(queue, &marked);
	if (r == -ENOENT)
		r = check_unmarked(base, queue);
	if (r == 0)
		r = fill_queue(queue, split, owner);
	io_close(&queue);
	return r;
}

/* A new queue is made under another name, so that a crash leaves either a whole
 * queue or a directory that the next start completes. */
static int
make_new(
    int base, const char *name, uint32_t split, const struct spool_owner *owner)
{
	char temp[48];
	int queue, r;

	snprintf(temp, sizeof(temp), "new.%s", name);
	queue = open_or_make(base, temp, queue_mode(owner));
	if (queue < 0)
		return queue;
	r = fill_queue(queue, split, owner);
	if (r == 0 && renameat(base, temp, base, name) < 0)
		r = -errno;
	if (r == 0 && fsync(base) < 0)
		r = -errno;
	io_close(&queue);
	return r;
}

int
spool_create(const char *base, uint32_t queue, uint32_t split,
    const struct spool_owner *owner)
{
	char name[32];
	struct stat st;
	int fd, r;

	if (split == 0 || split > SPOOL_SPLIT_MAX || queue > QUEUE_NUM_MAX)
		return because(-EINVAL, "split or queue out of range");
	format_refused("");
	fd = open_base(base, owner);
	if (fd < 0)
		return fd;
	snprintf(name, sizeof(name), "queue%" PRIu32, queue);
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = complete(fd, name, split, owner);
	else if (errno == ENOENT)
		r = make_new(fd, name, split, owner);
	else
		r = -errno;
	io_close(&fd);
	return r;
}
