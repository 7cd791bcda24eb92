#include "spool/corrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

#define OPEN_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static bool
is_inode(const struct spool *sp, const char *name, uint64_t inode)
{
	struct stat st;

	return fstatat(sp->dir[SPOOL_CORRUPT], name, &st,
		   AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) && (uint64_t)st.st_ino == inode;
}

static int
scan_for(const struct spool *sp, uint64_t inode, char *ret_name, size_t size)
{
	struct spool_scan scan;
	struct spool_item item;
	int n, r = -ENOENT;

	spool_scan_begin(&scan, sp, SPOOL_CORRUPT);
	while (
	    r == -ENOENT && (n = spool_scan_next(&scan, false, &item)) != 0) {
		if (n < 0)
			r = n;
		else if (is_inode(sp, item.name, inode)) {
			snprintf(ret_name, size, "%s", item.name);
			r = 0;
		}
	}
	spool_scan_done(&scan);
	return r;
}

/* Most names are the inode; only other names cost a scan. */
int
corrupt_find(
    const struct spool *sp, uint64_t inode, char *ret_name, size_t size)
{
	char name[QUEUE_FILE_MAX];

	if (sp->dir[SPOOL_CORRUPT] < 0)
		return -ENOENT;
	queue_file_name(inode, name);
	if (!is_inode(sp, name, inode))
		return scan_for(sp, inode, ret_name, size);
	snprintf(ret_name, size, "%s", name);
	return 0;
}

int
corrupt_open(const struct spool *sp, uint64_t inode, int flags)
{
	char name[sizeof(((struct spool_item *)0)->name)];
	int r = corrupt_find(sp, inode, name, sizeof(name)), fd;

	if (r < 0)
		return r;
	fd = sp->sys->openat(
	    sp->dir[SPOOL_CORRUPT], name, flags | OPEN_FLAGS, 0);
	return fd < 0 ? -errno : fd;
}

int
corrupt_id(const struct spool *sp, int fd, struct queue_id *ret_id)
{
	struct queue_file file;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_id = (struct queue_id){ clock_usec(st.st_mtim), 0, sp->queue,
		(uint64_t)st.st_ino };
	if (S_ISREG(st.st_mode) &&
	    queue_file_trailer(fd, (uint64_t)st.st_size, &file) == 0)
		*ret_id = queue_file_id(&file, ret_id->inode);
	if (ret_id->arrival_wall < 0 ||
	    ret_id->arrival_wall > QUEUE_ID_ARRIVAL_MAX)
		ret_id->arrival_wall = 0;
	return 0;
}

/* ---- checks ---- */

static void
note_fault(struct corrupt_parts *parts, const char *why)
{
	if (parts->why[0] == '\0')
		snprintf(parts->why, sizeof(parts->why), "%s", why);
}

/* -EBADMSG is the answer of a check; other errors end the checks. */
static int
take_result(struct corrupt_parts *parts, int r, bool *ret_right)
{
	*ret_right = r == 0;
	if (r == 0 || (r != -EBADMSG && r != -EPERM))
		return r;
	note_fault(parts, queue_file_reason());
	return 0;
}

static int
check_parts(int fd, struct corrupt_parts *parts)
{
	struct queue_file_sums sums = { 0 };
	int r = queue_file_sum(fd, &parts->file, &sums);

	if (r < 0 && r != -EBADMSG)
		return r;
	parts->readable = r == 0;
	parts->content = sums.content_is_right;
	parts->envelope = r == 0 && sums.envelope_is_right;
	if (!sums.content_is_right)
		note_fault(parts, QUEUE_FILE_WRONG_CONTENT);
	if (r == -EBADMSG)
		note_fault(parts, queue_file_reason());
	else if (!sums.envelope_is_right)
		note_fault(parts, QUEUE_FILE_WRONG_ENVELOPE);
	return 0;
}

int
corrupt_check(const struct spool *sp, int fd, const char *name,
    struct corrupt_parts *ret_parts)
{
	struct corrupt_parts parts = { 0 };
	uint64_t inode = 0;
	struct stat st;
	bool right;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = take_result(
	    &parts, queue_file_read(fd, &parts.file), &parts.trailer);
	if (r == 0 && parts.trailer)
		r = check_parts(fd, &parts);
	if (r == 0 && queue_file_parse(name, &inode) < 0)
		note_fault(&parts, "its name was not its inode");
	if (r == 0)
		r = take_result(&parts,
		    spool_judge_file(
			sp, inode != 0 ? inode : (uint64_t)st.st_ino, &st),
		    &right);
	if (r == 0)
		*ret_parts = parts;
	return r;
}

/* ---- moves ---- */

static int
move_name(
    const struct spool *sp, const char *name, enum spool_dir to, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(sp, to, inode, leaf, sizeof(leaf));
	return sp->sys->renameat(
		   sp->dir[SPOOL_CORRUPT], name, sp->dir[to], leaf) < 0
	    ? -errno
	    : 0;
}

int
corrupt_move(const struct spool *sp, enum spool_dir to, uint64_t inode)
{
	char name[sizeof(((struct spool_item *)0)->name)];
	int r = corrupt_find(sp, inode, name, sizeof(name));

	return r < 0 ? r : move_name(sp, name, to, inode);
}

int
corrupt_return(const struct spool *sp, uint64_t inode)
{
	char name[QUEUE_FILE_MAX];

	queue_file_name(inode, name);
	return spool_move_corrupt(sp, SPOOL_DELETED, 0, name);
}

/* An operator insists on a file of which one of the two sums is right. */
static int
renew_sums(const struct spool *sp, int fd)
{
	struct queue_file_sums sums = { 0 };
	struct queue_file file;
	int r = queue_file_read(fd, &file);

	if (r == 0)
		r = queue_file_sum(fd, &file, &sums);
	if (r < 0)
		return r;
	if (sums.content_is_right && sums.envelope_is_right)
		return 0;
	if (!sums.content_is_right && !sums.envelope_is_right)
		return -EBADMSG;
	r = queue_file_renew(sp->sys, fd, &file, &sums);
	return r == 0 && sp->sys->fsync(fd) < 0 ? -errno : r;
}

int
corrupt_release(const struct spool *sp, uint64_t inode)
{
	struct stat st;
	int r, fd = corrupt_open(sp, inode, O_RDWR);

	if (fd < 0)
		return fd == -EACCES ? -EPERM : fd;
	r = fstat(fd, &st) < 0 ? -errno : spool_judge_file(sp, inode, &st);
	if (r == 0)
		r = renew_sums(sp, fd);
	sp->sys->close(fd);
	return r < 0 ? r : corrupt_move(sp, SPOOL_DEFERRED, inode);
}
