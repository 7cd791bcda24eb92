/* A spool that was restored from a backup, or copied to another disk: its files
 * have other inodes than their names say. A queue that ran on them would take
 * each for damaged and move it to corrupt/. */
#include "qscheduler/queues/base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* Files that are looked at, at most: a start is not to read all of a large
 * queue. */
#define RESTORED_LOOKS 1000

struct restored {
	uint64_t looked;
	uint64_t wrong; /* files with the name of another inode */
	bool copied;    /* one of them was made after it was last written */
	bool unended;   /* a repair ended before each file had its name */
};

/* A copy that keeps times is younger than what is in it. */
static bool
restored_is_copy(int dir, const char *leaf)
{
	struct statx st;

	if (statx(dir, leaf, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_MTIME,
		&st) < 0 ||
	    (st.stx_mask & STATX_BTIME) == 0)
		return false;
	return st.stx_btime.tv_sec > st.stx_mtime.tv_sec + 1;
}

/* A file that is damaged, or another user's, tells nothing of a copy. */
static void
restored_look(const struct spool *sp, enum spool_dir dir,
    const struct spool_item *item, struct restored *seen)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;

	if (strncmp(item->name, SPOOL_MEND, strlen(SPOOL_MEND)) == 0) {
		seen->looked++;
		seen->wrong++;
		seen->unended = true;
	}
	if (item->inode == 0)
		return;
	spool_leaf(sp, dir, item->inode, leaf, sizeof(leaf));
	if (fstatat(sp->dir[dir], leaf, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    spool_judge_file(sp, st.st_ino, &st) < 0)
		return;
	seen->looked++;
	if (st.st_ino == item->inode)
		return;
	seen->wrong++;
	seen->copied = seen->copied || restored_is_copy(sp->dir[dir], leaf);
}

static void
restored_walk(const struct spool *sp, enum spool_dir dir, struct restored *seen)
{
	struct spool_scan scan;
	struct spool_item item;
	int r;

	if (sp->dir[dir] < 0)
		return;
	spool_scan_begin(&scan, sp, dir);
	while (seen->looked < RESTORED_LOOKS &&
	    (r = spool_scan_next(&scan, false, &item)) != 0)
		if (r > 0)
			restored_look(sp, dir, &item, seen);
	spool_scan_done(&scan);
}

/* One wrong file is damage, unless the file is certainly a copy. A queue with
 * an unended repair does not run: its processes pass over files with the names
 * of the repair. */
static bool
restored_is_all(const struct restored *seen)
{
	return seen->unended ||
	    (seen->wrong > seen->looked / 2 &&
		(seen->wrong > 1 || seen->copied));
}

int
base_describe_names(
    uint32_t queue, uint64_t wrong, uint64_t looked, struct buf *out)
{
	return buf_printf(out,
	    "run \"qctl check --repair queue=%" PRIu32 "\" as root: %" PRIu64
	    " of %" PRIu64 " files are not named by their inodes; that is so "
	    "after a restore or a copy, and nothing was touched",
	    queue, wrong, looked);
}

int
base_judge_names(const struct base *b, uint32_t queue, struct buf *ret_error)
{
	static const enum spool_dir dirs[] = { SPOOL_INCOMING, SPOOL_ACTIVE,
		SPOOL_DEFERRED, SPOOL_HOLD, SPOOL_DELETED };
	struct restored seen = { 0 };
	struct spool sp;
	size_t i;
	int r = spool_open(&sp, &spool_sys_real, b->path, queue);

	if (r < 0)
		return r;
	for (i = 0; i < ARRAY_LEN(dirs); i++)
		restored_walk(&sp, dirs[i], &seen);
	spool_close(&sp);
	if (!restored_is_all(&seen))
		return 0;
	(void)base_describe_names(queue, seen.wrong, seen.looked, ret_error);
	return -EUCLEAN;
}
