/* Messages that a power cut left with two names: btrfs may bring back the old
 * name of a rename beside the new one. */
#include "spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

#define NAMES_MAX 8

/* The name that stays is the one in the first of these directories, the one
 * that a message reaches last. An active message goes back to incoming at a
 * start, so active comes after incoming. */
static const enum spool_dir order[] = { SPOOL_CORRUPT, SPOOL_DELETED,
	SPOOL_HOLD, SPOOL_DEFERRED, SPOOL_INCOMING, SPOOL_ACTIVE,
	SPOOL_MAILDROP, SPOOL_PREPARED };

struct name {
	uint32_t rank, queue;
	int dir; /* owned */
	char leaf[256];
};

struct names {
	struct stat st; /* of the message */
	size_t count;
	struct name names[NAMES_MAX];
};

static bool
names_message(const struct names *n, int dir, const char *leaf)
{
	struct stat st;

	return fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == n->st.st_dev && st.st_ino == n->st.st_ino;
}

static void
add(struct names *n, const struct spool *sp, uint32_t rank, const char *leaf)
{
	struct name *name = &n->names[n->count];
	const int dir = sp->dir[order[rank]];

	if (n->count == NAMES_MAX || !names_message(n, dir, leaf))
		return;
	*name = (struct name){ .rank = rank, .queue = sp->queue };
	name->dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	snprintf(name->leaf, sizeof(name->leaf), "%s", leaf);
	if (name->dir >= 0)
		n->count++;
}

/* Names of drops, and of prepared messages, do not follow from the inode. */
static bool
has_other_names(enum spool_dir dir)
{
	return dir == SPOOL_MAILDROP || dir == SPOOL_PREPARED;
}

static void
find_by_walk(struct names *n, const struct spool *sp, uint32_t rank)
{
	struct spool_scan scan;
	struct spool_item item;

	if (sp->dir[order[rank]] < 0)
		return;
	spool_scan_begin(&scan, sp, order[rank]);
	while (spool_scan_next(&scan, false, &item) != 0)
		add(n, sp, rank, item.name);
	spool_scan_done(&scan);
}

static void
find_here(struct names *n, const struct spool *sp)
{
	char leaf[SPOOL_PATH_MAX];
	uint32_t rank;

	for (rank = 0; rank < ARRAY_LEN(order); rank++) {
		if (has_other_names(order[rank])) {
			find_by_walk(n, sp, rank);
			continue;
		}
		spool_leaf(sp, order[rank], (uint64_t)n->st.st_ino, leaf,
		    sizeof(leaf));
		add(n, sp, rank, leaf);
	}
}

/* A message that was moving to another queue has a name in both. */
static void
find_in_others(struct names *n, const struct spool *sp)
{
	uint32_t queues[QUEUE_NUM_MAX];
	char *base = strdup(sp->path);
	struct spool other;
	int i, count = 0;

	if (base != NULL) {
		*strrchr(base, '/') = '\0'; /* the queue's own name */
		count = spool_list(base, queues, ARRAY_LEN(queues));
	}
	for (i = 0; i < count; i++) {
		if (queues[i] == sp->queue ||
		    spool_open(&other, sp->sys, base, queues[i]) < 0)
			continue;
		find_here(n, &other);
		spool_close(&other);
	}
	free(base);
}

static bool
is_before(const struct name *a, const struct name *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->queue < b->queue;
}

/* No move stays within a directory: of two names in one directory, one is a
 * link that a person made. */
static bool
is_explained(const struct names *n)
{
	size_t i, j;

	for (i = 0; i < n->count; i++)
		for (j = 0; j < i; j++)
			if (!is_before(&n->names[i], &n->names[j]) &&
			    !is_before(&n->names[j], &n->names[i]))
				return false;
	return n->count == n->st.st_nlink;
}

/* Every process finds the same names, and keeps the same one. */
static int
remove_others(const struct spool *sp, const struct names *n)
{
	size_t i, keep = 0;

	for (i = 1; i < n->count; i++)
		if (is_before(&n->names[i], &n->names[keep]))
			keep = i;
	for (i = 0; i < n->count; i++)
		if (i != keep &&
		    sp->sys->unlinkat(n->names[i].dir, n->names[i].leaf, 0) <
			0 &&
		    errno != ENOENT)
			return -errno;
	return 0;
}

static int
keep_one(const struct spool *sp, struct names *n)
{
	size_t i;
	int r = -EPERM;

	find_here(n, sp);
	if (n->count < n->st.st_nlink)
		find_in_others(n, sp);
	if (is_explained(n))
		r = remove_others(sp, n);
	for (i = 0; i < n->count; i++)
		io_close(&n->names[i].dir);
	return r;
}

/* Names are found and removed under the lock of the file: otherwise two
 * processes may find the same two names, and the second removes the name that
 * is left after the first, when the message has moved there meanwhile. The open
 * file keeps its inode number from being given to another. */
static int
lock_and_keep_one(const struct spool *sp, int fd)
{
	struct names n = { 0 };
	int r;

	if (fstat(fd, &n.st) < 0)
		return -errno;
	if (!S_ISREG(n.st.st_mode) || n.st.st_nlink < 2)
		return -EPERM;
	do
		r = flock(fd, LOCK_EX);
	while (r < 0 && errno == EINTR);
	if (r < 0 || fstat(fd, &n.st) < 0)
		return -errno;
	return n.st.st_nlink < 2 ? 0 : keep_one(sp, &n);
}

int
spool_keep_one_name(
    const struct spool *sp, enum spool_dir dir, const char *leaf)
{
	int fd = openat(sp->dir[dir], leaf,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r = fd < 0 ? -errno : lock_and_keep_one(sp, fd);

	io_close(&fd);
	return r;
}
