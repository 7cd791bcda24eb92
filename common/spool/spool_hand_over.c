#include "spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/reason.h"

/* The directory in the other queue, for a message of each directory. */
static const struct {
	bool moves;
	enum spool_dir to;
} roads[SPOOL_NDIRS] = {
	[SPOOL_INCOMING] = { true, SPOOL_INCOMING },
	[SPOOL_ACTIVE] = { true, SPOOL_INCOMING },
	[SPOOL_DEFERRED] = { true, SPOOL_DEFERRED },
	[SPOOL_HOLD] = { true, SPOOL_HOLD },
};

static bool
is_in(const struct spool *sp, enum spool_dir dir, uint64_t inode)
{
	struct stat st;

	return spool_stat(sp, dir, inode, &st) == 0;
}

bool
spool_has(const struct spool *sp, uint64_t inode)
{
	static const enum spool_dir dirs[] = { SPOOL_INCOMING, SPOOL_ACTIVE,
		SPOOL_DEFERRED, SPOOL_HOLD, SPOOL_CORRUPT, SPOOL_DELETED };
	size_t i;

	for (i = 0; i < ARRAY_LEN(dirs); i++)
		if (is_in(sp, dirs[i], inode))
			return true;
	return false;
}

/* Gives a file of reasons a second name in the other queue: so both queues
 * could go on with the message, wherever its name is found after a crash. A
 * file that has the name there already is left from an earlier try, or foreign.
 */
static int
lend_reasons(const struct spool *from, const struct spool *to,
    enum spool_dir dir, uint64_t inode)
{
	char old[SPOOL_PATH_MAX], new[SPOOL_PATH_MAX];
	int r = reason_clear(to, dir, inode);

	spool_leaf(from, dir, inode, old, sizeof(old));
	spool_leaf(to, dir, inode, new, sizeof(new));
	if (r == 0 &&
	    from->sys->linkat(from->dir[dir], old, to->dir[dir], new, 0) < 0 &&
	    errno != ENOENT)
		r = -errno;
	return r;
}

static void
clear_reasons(const struct spool *sp, uint64_t inode)
{
	(void)reason_clear(sp, SPOOL_DEFER, inode);
	(void)reason_clear(sp, SPOOL_BOUNCE, inode);
}

static int
move_across(const struct spool *from, enum spool_dir from_dir,
    const struct spool *to, enum spool_dir to_dir, uint64_t inode)
{
	char old[SPOOL_PATH_MAX], new[SPOOL_PATH_MAX];

	spool_leaf(from, from_dir, inode, old, sizeof(old));
	spool_leaf(to, to_dir, inode, new, sizeof(new));
	if (from->sys->renameat(
		from->dir[from_dir], old, to->dir[to_dir], new) == 0)
		return 0;
	/* Finds the one of the two directories that is missing. */
	if (errno == ENOENT && is_in(from, from_dir, inode))
		return -ESTALE;
	return -errno;
}

/* The other queue may have been sealed during the move: as in accept_commit(),
 * either the supervisor has seen the file, or its mark is seen here. A message
 * that the other queue has begun to work on stays there. */
static int
look_again(const struct spool *from, enum spool_dir dir, const struct spool *to,
    uint64_t inode)
{
	if (!spool_is_sealed(to) ||
	    move_across(to, roads[dir].to, from, dir, inode) < 0)
		return 0;
	return -ESHUTDOWN;
}

/* On another file system the inode number belongs to another file, and so do
 * the reasons of that name. */
static bool
is_foreign(const struct spool *from, const struct spool *to, enum spool_dir dir)
{
	struct stat here, there;

	return fstat(from->dir[dir], &here) == 0 &&
	    fstat(to->dir[roads[dir].to], &there) == 0 &&
	    here.st_dev != there.st_dev;
}

/* Where names keep no order (btrfs), a power cut may take the move and not the
 * second name of reasons before it, or the removal of the first name and not
 * the move. A failure without its reasons would be reported again, and a hold
 * would never end. Of other reasons the loss costs an early attempt. */
static int
sync_names(const struct spool *to, enum spool_dir dir, uint64_t inode)
{
	if (to->keeps_order ||
	    !(is_in(to, SPOOL_BOUNCE, inode) ||
		(dir == SPOOL_HOLD && is_in(to, SPOOL_DEFER, inode))))
		return 0;
	return spool_sync_names(to, roads[dir].to, inode);
}

int
spool_hand_over(const struct spool *from, const struct spool *to,
    enum spool_dir dir, uint64_t inode)
{
	int r;

	ASSERT(roads[dir].moves);
	if (is_foreign(from, to, dir))
		return -EXDEV;
	if (spool_has(to, inode))
		return -EEXIST;
	if (spool_is_sealed(to))
		return -ESHUTDOWN;
	r = lend_reasons(from, to, SPOOL_DEFER, inode);
	if (r == 0)
		r = lend_reasons(from, to, SPOOL_BOUNCE, inode);
	if (r == 0)
		r = sync_names(to, dir, inode);
	if (r == 0)
		r = move_across(from, dir, to, roads[dir].to, inode);
	if (r == 0)
		r = look_again(from, dir, to, inode);
	if (sync_names(to, dir, inode) == 0)
		clear_reasons(r == 0 ? from : to, inode);
	return r;
}
