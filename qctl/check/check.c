/* The process that looks at one queue. */
#include "qctl/check/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/num.h"
#include "spool/prepared.h"
#include "spool/reason.h"

/* Files that a queue holds as messages, named by their inodes. */
static const enum spool_dir holders[] = { SPOOL_INCOMING, SPOOL_ACTIVE,
	SPOOL_DEFERRED, SPOOL_HOLD, SPOOL_DELETED };

static void
trouble(struct check *c, const char *what, int error)
{
	worker_note(c->w, "%s: %s", what, strerror(-error));
}

/* ---- a walk over the names of a directory ---- */

static int
look_at(struct check *c, struct place *p,
    int (*judge)(struct check *c, struct place *p))
{
	int r;

	(void)spool_name_leaf(
	    p->dir, p->item.split, p->item.name, p->leaf, sizeof(p->leaf));
	r = place_open(c, p);
	if (r == 0)
		r = judge(c, p);
	io_close(&p->fd);
	if (r < 0 && r != -ENOENT && r != -ENOMEM) {
		trouble(c, p->leaf, r);
		r = 0;
	}
	return r == -ENOENT ? 0 : r;
}

static int
walk(struct check *c, enum spool_dir dir,
    int (*judge)(struct check *c, struct place *p))
{
	struct spool_scan scan;
	struct place p = { .dir = dir, .fd = -1 };
	int r = 0, n;

	if (c->sp.dir[dir] < 0)
		return 0;
	spool_scan_begin(&scan, &c->sp, dir);
	while (r == 0 && (n = spool_scan_next(&scan, false, &p.item)) != 0) {
		worker_step(c->w);
		if (n < 0)
			trouble(c, spool_dirs[dir].name, n);
		else
			r = look_at(c, &p, judge);
	}
	spool_scan_done(&scan);
	return r;
}

/* ---- messages ---- */

static int
count_recipients(int fd, const struct queue_file *file, uint32_t *ret_advanced)
{
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;
	int r;

	*ret_advanced = 0;
	queue_rcpt_begin(&cursor, file);
	while ((r = queue_rcpt_next(&cursor, fd, &rcpt)) > 0)
		*ret_advanced += rcpt.mark != RCPT_PENDING;
	return r;
}

/* Everything that a reader would refuse; the sums with --content alone, since
 * that reads all. */
static int
read_message(const struct check *c, const struct place *p,
    struct queue_file *ret_file, uint32_t *ret_advanced)
{
	struct buf sender = { 0 };
	int r = queue_file_read(p->fd, ret_file);

	if (r == 0)
		r = queue_file_sender(p->fd, ret_file, &sender);
	buf_done(&sender);
	if (r == 0)
		r = count_recipients(p->fd, ret_file, ret_advanced);
	if (r == 0 && c->t->options.content)
		r = queue_file_verify(p->fd, ret_file);
	return r;
}

static bool
has_wrong_owner(const struct check *c, const struct stat *st)
{
	const mode_t mode = c->sp.private ? 0600 : 0660;
	const bool fits = c->sp.private
	    ? st->st_uid == c->sp.owner[SPOOL_INCOMING]
	    : st->st_gid == c->sp.group;

	return !fits || (st->st_mode & 07777) != mode;
}

/* Is it still there? While the queue runs its reasons go before it. */
static bool
is_there(const struct check *c, const struct place *p)
{
	struct stat st;

	return fstatat(c->sp.dir[p->dir], p->leaf, &st, AT_SYMLINK_NOFOLLOW) ==
	    0;
}

/* The name may still be the one that the reasons have. Reasons that a repair
 * has taken along already follow later; no mark is without its reason then. */
static void
judge_marks(struct check *c, const struct place *p, uint32_t advanced)
{
	char why[48];
	uint32_t count = 0;
	int r = 0;

	if (advanced > 0 && p->item.inode != 0 &&
	    !renumber_left(c, SPOOL_BOUNCE, (uint64_t)p->st.st_ino))
		r = reason_compare_marks(
		    &c->sp, p->fd, p->item.inode, false, &count);
	if (r < 0)
		trouble(c, p->leaf, r);
	if (count == 0 || !is_there(c, p))
		return;
	snprintf(why, sizeof(why), "%" PRIu32 " of them", count);
	(void)flaw_found(c, FLAW_MARK, p, why);
}

static int
judge_whole(struct check *c, struct place *p, const struct queue_file *file,
    uint32_t advanced)
{
	char why[48];

	if (has_wrong_owner(c, &p->st)) {
		snprintf(why, sizeof(why), "uid %u, gid %u, mode %04o",
		    (unsigned)p->st.st_uid, (unsigned)p->st.st_gid,
		    (unsigned)p->st.st_mode & 07777);
		(void)flaw_found(c, FLAW_OWNER, p, why);
	}
	judge_marks(c, p, advanced);
	if (p->item.inode != (uint64_t)p->st.st_ino) {
		snprintf(why, sizeof(why), "%" PRIu64, (uint64_t)p->st.st_ino);
		(void)flaw_found(c, FLAW_NAME, p, why);
	}
	return copies_note(c, p, file, advanced);
}

/* Numbers and the names of renumber.c; others may be an operator's files. */
static bool
is_ours(const struct place *p)
{
	uint64_t number;

	return p->item.inode != 0 || renumber_is(p->item.name, &number) ||
	    num_u64(p->item.name, 1, UINT64_MAX, &number) == 0;
}

static int
judge_message(struct check *c, struct place *p)
{
	struct queue_file file;
	uint32_t advanced;
	int r;

	if (!is_ours(p))
		return flaw_found(c, FLAW_FOREIGN, p, NULL);
	if (p->fd < 0)
		return flaw_found(c, FLAW_KIND, p, NULL);
	if (p->st.st_nlink > 1)
		return flaw_found(c, FLAW_LINKS, p, NULL);
	r = spool_file_settled(p->fd);
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	r = read_message(c, p, &file, &advanced);
	if (r == -EBADMSG)
		return flaw_found(c, FLAW_DAMAGE, p, queue_file_reason());
	return r < 0 ? r : judge_whole(c, p, &file, advanced);
}

/* ---- reasons, prepared messages, drops ---- */

/* Reasons get their name before their message does: that one may still have
 * the name which a repair gave it for a while. */
static bool
has_message(const struct check *c, uint64_t inode)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(holders); i++)
		if (c->sp.dir[holders[i]] >= 0 &&
		    renumber_left(c, holders[i], inode))
			return true;
	return spool_has(&c->sp, inode);
}

static int
judge_reason(struct check *c, struct place *p)
{
	uint64_t number;

	if (renumber_is(p->item.name, &number))
		return 0; /* of a repair that did not end */
	if (p->item.inode == 0)
		(void)flaw_found(c, FLAW_FOREIGN, p, NULL);
	else if (p->fd < 0)
		(void)flaw_found(c, FLAW_KIND, p, NULL);
	else if (!has_message(c, p->item.inode) && is_there(c, p))
		(void)flaw_found(c, FLAW_REASON_ORPHAN, p, NULL);
	else if (p->st.st_uid != c->sp.owner[p->dir])
		(void)flaw_found(c, FLAW_REASON_OWNER, p, NULL);
	return 0;
}

/* All messages have their names: what is left belongs to none. */
static int
judge_left_reason(struct check *c, struct place *p)
{
	uint64_t number;

	if (renumber_is(p->item.name, &number))
		(void)flaw_found(c, FLAW_REASON_ORPHAN, p, NULL);
	return 0;
}

static bool
has_parent(const struct check *c, const struct queue_id *id)
{
	enum spool_dir dir;
	int fd = act_find(&c->sp, SPOOL_DEFERRED, id, &dir);
	const bool found = fd >= 0 || fd == -EAGAIN;
	struct stat st;

	io_close(&fd);
	return found || spool_stat(&c->sp, SPOOL_CORRUPT, id->inode, &st) == 0;
}

static int
judge_prepared(struct check *c, struct place *p)
{
	struct prepared prepared;
	const struct seen *parent;

	if (prepared_parse(p->item.name, &prepared) < 0)
		return flaw_found(c, FLAW_FOREIGN, p, NULL);
	parent = copies_find(c, &prepared.parent);
	if (parent != NULL && parent->inode != prepared.parent.inode)
		(void)flaw_found(c, FLAW_PARENT, p, NULL);
	else if (parent == NULL && !has_parent(c, &prepared.parent) &&
	    is_there(c, p))
		(void)flaw_found(c, FLAW_PREPARED, p, NULL);
	return 0;
}

static int
judge_drop(struct check *c, struct place *p)
{
	int fd = spool_drop_open(&c->sp, p->item.name);

	if (fd == -EPERM)
		(void)flaw_found(c, FLAW_DROP, p, queue_file_reason());
	io_close(&fd);
	return 0;
}

/* ---- directories ---- */

static void
judge_dir(struct check *c, enum spool_dir dir, const char *leaf,
    const struct stat *st)
{
	const mode_t want = c->sp.private ? (mode_t)spool_dirs[dir].mode_private
					  : (mode_t)spool_dirs[dir].mode_shared;
	const mode_t mode = st->st_mode & 07777;
	struct place p = { .dir = dir, .fd = -1 };
	char why[64];

	if (S_ISDIR(st->st_mode) && st->st_uid == c->sp.owner[dir] &&
	    (c->sp.private || st->st_gid == c->sp.group) &&
	    (mode == want || mode == (want | S_ISGID)))
		return;
	snprintf(p.leaf, sizeof(p.leaf), "%s", leaf);
	snprintf(why, sizeof(why), "uid %u, gid %u, mode %04o",
	    (unsigned)st->st_uid, (unsigned)st->st_gid, (unsigned)mode);
	(void)flaw_found(c, FLAW_DIRECTORY, &p, why);
}

static void
judge_split(struct check *c, enum spool_dir dir, const char *leaf)
{
	struct place p = { .dir = dir, .fd = -1 };
	struct stat st;

	if (fstatat(c->sp.dir[dir], leaf, &st, AT_SYMLINK_NOFOLLOW) == 0)
		judge_dir(c, dir, leaf, &st);
	else {
		snprintf(p.leaf, sizeof(p.leaf), "%s", leaf);
		(void)flaw_found(c, FLAW_DIRECTORY, &p, strerror(errno));
	}
}

static void
judge_dirs(struct check *c)
{
	char leaf[16];
	unsigned dir;
	uint32_t i;

	for (dir = 0; dir < SPOOL_NDIRS; dir++) {
		/* Behind the gate is root's alone. */
		if (dir == SPOOL_MAILDROP && c->sp.dir[dir] < 0 &&
		    geteuid() != 0)
			continue;
		judge_split(c, (enum spool_dir)dir, ".");
		for (i = 0; spool_dirs[dir].split && c->sp.dir[dir] >= 0 &&
		     i < c->sp.split;
		     i++) {
			snprintf(leaf, sizeof(leaf), "%" PRIu32, i);
			judge_split(c, (enum spool_dir)dir, leaf);
		}
	}
}

/* ---- one queue ---- */

static void
finish_names(struct check *c)
{
	int r;

	if (!c->repair)
		return;
	r = renumber_all(c);
	if (r < 0) {
		trouble(c, "not all files got their names", r);
		c->tally.refused++;
		return;
	}
	(void)walk(c, SPOOL_DEFER, judge_left_reason);
	(void)walk(c, SPOOL_BOUNCE, judge_left_reason);
}

static int
check_queue(struct check *c)
{
	size_t i;
	int r;

	judge_dirs(c);
	r = walk(c, SPOOL_DEFER, judge_reason);
	if (r == 0)
		r = walk(c, SPOOL_BOUNCE, judge_reason);
	for (i = 0; r == 0 && i < ARRAY_LEN(holders); i++)
		r = walk(c, holders[i], judge_message);
	if (r < 0)
		return r;
	finish_names(c);
	copies_judge(c);
	r = walk(c, SPOOL_PREPARED, judge_prepared);
	if (r == 0)
		r = walk(c, SPOOL_MAILDROP, judge_drop);
	return r;
}

/* A lock that root has just made is for the user of its process. */
static int
take_lock(const struct spool *sp, const char *name, uid_t owner)
{
	struct stat st;
	int fd = spool_lock(sp, name, false);

	if (fd < 0 || geteuid() != 0)
		return fd;
	if (fstat(fd, &st) == 0 &&
	    (st.st_uid != 0 || fchown(fd, owner, sp->group) == 0))
		return fd;
	io_close(&fd);
	return -EIO;
}

/* The two processes that change a queue. */
static int
lock_queue(const struct spool *sp, int locks[2])
{
	locks[0] = take_lock(sp, "queue-send", sp->owner[SPOOL_ACTIVE]);
	if (locks[0] < 0)
		return locks[0];
	locks[1] = take_lock(sp, "todo-proc", sp->owner[SPOOL_INCOMING]);
	return locks[1] < 0 ? locks[1] : 0;
}

static int
open_queue(struct check *c, int locks[2])
{
	const char *base = c->t->base;
	int r;

	if (!c->repair)
		return message_queue_open(&c->sp, base, c->w->queue);
	r = spool_open(&c->sp, &spool_sys_real, base, c->w->queue);
	if (r == 0 && c->sp.dir[SPOOL_LOCK] < 0)
		r = -EACCES;
	return r < 0 ? r : lock_queue(&c->sp, locks);
}

int
task_check(struct worker *w, void *task)
{
	struct check c = { .w = w, .t = task };
	int locks[2] = { -1, -1 };
	int r;

	c.repair = c.t->options.repair;
	r = open_queue(&c, locks);
	if (r == 0)
		r = check_queue(&c);
	if (r == 0 && c.repair && c.tally.done > 0 && syncfs(locks[0]) < 0)
		r = -errno;
	if (r == -EACCES || r == -EPERM)
		worker_denied(w);
	else if (r < 0)
		worker_note(w, "%s",
		    r == -EAGAIN ? "runs: nothing of it is repaired; stop "
				   "the instance first"
			: r == -EBADMSG ? queue_file_reason()
					: spool_error(r));
	worker_row(w, &c.tally, sizeof(c.tally));
	io_close(&locks[0]);
	io_close(&locks[1]);
	spool_close(&c.sp);
	free(c.seen);
	renumber_done(&c);
	return 0;
}
