#include "spool/act.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "spool/corrupt.h"
#include "spool/prepared.h"
#include "spool/reason.h"

#define DIR_BIT(dir) (1u << (dir))
#define WAITING      (DIR_BIT(SPOOL_INCOMING) | DIR_BIT(SPOOL_DEFERRED))

enum due {
	DUE_KEPT,
	DUE_NOW,
	DUE_END, /* when a deleted message goes */
};

static const struct {
	const char *name, *past;
	unsigned from;
	enum spool_dir to;
	enum due due;
	unsigned stays; /* bits of directories that it is not moved out of */
} acts[NACTS] = {
	/* Of a message on hold it is a note alone (hold_note_replaces()). */
	[ACT_HOLD] = { "hold", "held",
	    WAITING | DIR_BIT(SPOOL_ACTIVE) | DIR_BIT(SPOOL_HOLD), SPOOL_HOLD,
	    DUE_KEPT, 0 },
	[ACT_RELEASE] = { "release", "released", DIR_BIT(SPOOL_HOLD),
	    SPOOL_DEFERRED, DUE_NOW, 0 },
	[ACT_REQUEUE] = { "requeue", "requeued",
	    WAITING | DIR_BIT(SPOOL_ACTIVE) | DIR_BIT(SPOOL_HOLD),
	    SPOOL_DEFERRED, DUE_NOW, 0 },
	[ACT_DELETE] = { "delete", "deleted",
	    WAITING | DIR_BIT(SPOOL_ACTIVE) | DIR_BIT(SPOOL_HOLD) |
		DIR_BIT(SPOOL_CORRUPT),
	    SPOOL_DELETED, DUE_END, 0 },
	[ACT_UNDELETE] = { "undelete", "undeleted", DIR_BIT(SPOOL_DELETED),
	    SPOOL_HOLD, DUE_KEPT, 0 },
	[ACT_RETRY] = { "retry", "retried", DIR_BIT(SPOOL_DEFERRED),
	    SPOOL_DEFERRED, DUE_NOW, 0 },
	[ACT_EXPIRE] = { "expire", "expired",
	    WAITING | DIR_BIT(SPOOL_ACTIVE) | DIR_BIT(SPOOL_HOLD),
	    SPOOL_DEFERRED, DUE_NOW, DIR_BIT(SPOOL_HOLD) },
	[ACT_EXPIRE_HELD] = { "expire", "expired",
	    WAITING | DIR_BIT(SPOOL_ACTIVE) | DIR_BIT(SPOOL_HOLD),
	    SPOOL_DEFERRED, DUE_NOW, 0 },
	/* Never out of active/; the other queue is act_spread()'s. */
	[ACT_SPREAD] = { "spread", "spread", WAITING, SPOOL_DEFERRED, DUE_KEPT,
	    WAITING },
	[ACT_RELEASE_ALL] = { "release", "released",
	    DIR_BIT(SPOOL_HOLD) | DIR_BIT(SPOOL_CORRUPT), SPOOL_DEFERRED,
	    DUE_NOW, 0 },
};

const char *
act_name(unsigned act)
{
	return act < ACT_HOLD || act >= NACTS ? "?" : acts[act].name;
}

const char *
act_past(unsigned act)
{
	return act < ACT_HOLD || act >= NACTS ? "?" : acts[act].past;
}

bool
act_applies(enum spool_act act, enum spool_dir dir)
{
	return (acts[act].from & DIR_BIT(dir)) != 0;
}

enum spool_dir
act_target(enum spool_act act, enum spool_dir dir)
{
	return (acts[act].stays & DIR_BIT(dir)) != 0 ? dir : acts[act].to;
}

/* ---- finding ---- */

enum spool_dir
act_source(enum spool_act act)
{
	return act == ACT_UNDELETE                         ? SPOOL_DELETED
	    : act == ACT_RELEASE || act == ACT_RELEASE_ALL ? SPOOL_HOLD
							   : SPOOL_DEFERRED;
}

/* In deleted/ a file may be damaged, too. */
static int
open_damaged(
    const struct spool *sp, enum spool_dir dir, const struct queue_id *id)
{
	int fd = dir == SPOOL_CORRUPT
	    ? corrupt_open(sp, id->inode, O_RDONLY)
	    : spool_open_name(sp, dir, id->inode, O_RDONLY);
	struct queue_id its;

	if (fd >= 0 &&
	    (corrupt_id(sp, fd, &its) < 0 || !queue_id_is(&its, id))) {
		sp->sys->close(fd);
		return -ENOENT;
	}
	return fd;
}

/* The message with this id at this name; -ENOENT: another one, or none. */
static int
open_here(const struct spool *sp, enum spool_dir dir, const struct queue_id *id)
{
	struct queue_file file;
	struct stat st;
	int r, fd;

	if (sp->dir[dir] < 0)
		return -ENOENT;
	if (dir == SPOOL_CORRUPT)
		return open_damaged(sp, dir, id);
	fd = spool_open_settled(sp, dir, id->inode, O_RDONLY, &st);
	if (fd == -EPERM && dir == SPOOL_DELETED)
		return open_damaged(sp, dir, id);
	if (fd < 0)
		return fd;
	r = queue_file_trailer(fd, (uint64_t)st.st_size, &file);
	if (r == 0 && !queue_file_is(&file, id))
		r = -ENOENT;
	if (r == 0)
		return fd;
	sp->sys->close(fd);
	return r == -EBADMSG && dir == SPOOL_DELETED ? open_damaged(sp, dir, id)
						     : r;
}

#define PASSES 3 /* a message may move back meanwhile */

/* A file in corrupt/ is looked for once, in the last pass: the name of a file
 * that is not there costs a scan. */
int
act_find(const struct spool *sp, enum spool_dir first,
    const struct queue_id *id, enum spool_dir *ret_dir)
{
	static const enum spool_dir dirs[] = { SPOOL_DEFERRED, SPOOL_INCOMING,
		SPOOL_ACTIVE, SPOOL_HOLD, SPOOL_DELETED };
	int r = open_here(sp, first, id);
	size_t i;

	*ret_dir = first;
	for (i = 0; r == -ENOENT && i < PASSES * ARRAY_LEN(dirs); i++) {
		*ret_dir = dirs[i % ARRAY_LEN(dirs)];
		r = open_here(sp, *ret_dir, id);
	}
	if (r == -ENOENT) {
		*ret_dir = SPOOL_CORRUPT;
		r = open_here(sp, *ret_dir, id);
	}
	return r;
}

/* ---- moving ---- */

static int
sync_reasons(const struct spool *sp, uint64_t inode)
{
	int r = 0, fd = reason_open(sp, SPOOL_BOUNCE, inode);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (sp->sys->fsync(fd) < 0)
		r = -errno;
	sp->sys->close(fd);
	return r;
}

/* Marks of the last process of the queue may not be on disk. */
static int
sync_marks(const struct spool *sp, uint64_t inode, int fd)
{
	int r = sync_reasons(sp, inode);

	return r == 0 && sp->sys->fsync(fd) < 0 ? -errno : r;
}

/* Marks are before the move: a message that is found moved has them. A hold or
 * delete that was decided during a delivery is over when an operator sends the
 * message on: its mark would count again in the active queue. A retry is a time
 * alone. */
static int
mark(const struct spool *sp, enum spool_act act, enum spool_dir to,
    uint64_t inode, int fd, usec_t now_wall)
{
	const bool sent_on = to == SPOOL_DEFERRED && act != ACT_RETRY;
	struct queue_file file;
	struct queue_id id;
	int r;

	if (!act_gives_up(act) && !sent_on)
		return 0;
	r = queue_file_read(fd, &file);
	if (r < 0)
		return r;
	id = queue_file_id(&file, inode);
	if (act_gives_up(act))
		r = reason_add_expiry(sp, &id, now_wall);
	return r == 0 && sent_on ? reason_add_decision(sp, &id, 0, now_wall)
				 : r;
}

/* A message that is retried keeps a due time that is earlier. */
static int
set_due(
    const struct spool *sp, enum spool_act act, uint64_t inode, usec_t due_wall)
{
	struct stat st;

	if (act == ACT_RETRY && spool_stat(sp, SPOOL_DEFER, inode, &st) == 0 &&
	    (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC <= due_wall)
		return 0;
	return spool_set_due(sp, inode, due_wall);
}

/* A damaged file that is undeleted is not to lie in hold/. */
static bool
is_damaged(const struct spool *sp, uint64_t inode, int fd)
{
	struct queue_file file;
	struct stat st;

	return fstat(fd, &st) < 0 || spool_judge_file(sp, inode, &st) < 0 ||
	    queue_file_read(fd, &file) < 0;
}

static int
move_file(const struct spool *sp, enum spool_dir dir, enum spool_dir *to,
    uint64_t inode, int fd)
{
	if (dir == SPOOL_CORRUPT)
		return *to == SPOOL_DEFERRED ? corrupt_release(sp, inode)
					     : corrupt_move(sp, *to, inode);
	if (dir != SPOOL_DELETED || !is_damaged(sp, inode, fd))
		return spool_move(sp, dir, *to, inode);
	*to = SPOOL_CORRUPT;
	return corrupt_return(sp, inode);
}

int
act_move(const struct spool *sp, enum spool_act act, enum spool_dir dir,
    uint64_t inode, int fd, usec_t now_wall, enum spool_dir *ret_to)
{
	const usec_t due =
	    acts[act].due == DUE_END ? now_wall + ACT_DELETED_TIME : now_wall;
	enum spool_dir to = act_target(act, dir);
	int r;

	if (act == ACT_SPREAD || !act_applies(act, dir))
		return -EINVAL;
	r = mark(sp, act, to, inode, fd, now_wall);
	if (r == 0 && acts[act].due != DUE_KEPT && to != SPOOL_HOLD)
		r = set_due(sp, act, inode, due);
	if (r == 0 && dir == SPOOL_ACTIVE)
		r = sync_marks(sp, inode, fd);
	if (r == 0 && to != dir)
		r = move_file(sp, dir, &to, inode, fd);
	if (r == 0)
		*ret_to = to;
	return r;
}

/* A hold of a message on hold is a new reason, or a new end. */
static bool
act_may_be_done(const struct act_plan *p, enum spool_dir dir)
{
	return act_applies(p->what, dir) &&
	    (p->what != ACT_HOLD || dir != SPOOL_HOLD ||
		(p->note != NULL && hold_note_replaces(p->note)));
}

int
act_do(const struct spool *sp, const struct act_plan *p, enum spool_dir dir,
    const struct queue_id *id, int fd, enum spool_dir *ret_to)
{
	const usec_t due =
	    p->due_wall > p->now_wall ? p->due_wall : p->now_wall;
	struct hold_note_before before;
	int r = act_may_be_done(p, dir) ? 0 : -EINVAL;

	if (r == 0 && p->note != NULL)
		r = hold_note_write(sp, id, p->note, &before);
	if (r < 0)
		return r;
	if (p->passes_rules && dir == SPOOL_HOLD &&
	    act_target(p->what, dir) == SPOOL_DEFERRED)
		r = reason_add_release(sp, id, p->now_wall);
	if (r == 0)
		r = act_move(sp, p->what, dir, id->inode, fd, due, ret_to);
	if (r < 0 && p->note != NULL)
		hold_note_undo(sp, id->inode, &before);
	/* A message that comes back to hold/ waits there for its operator. */
	if (r == 0 && p->what == ACT_UNDELETE && *ret_to == SPOOL_HOLD)
		hold_note_renew(sp, id, p->uid, p->now_wall);
	return r;
}

/* ---- to another queue ---- */

/* The place and the marks of a message settle its prepared messages, so that
 * comes before the move, and none is made meanwhile: the caller keeps the lock.
 */
static int
settle(const struct spool *sp, uint64_t inode, int fd)
{
	struct queue_file file;
	int r = prepared_lock(fd);

	if (r == 0)
		r = queue_file_read(fd, &file);
	if (r < 0)
		return r;
	return spool_settle_message(sp, fd, &file, inode, NULL, NULL) < 0
	    ? -EAGAIN
	    : 0;
}

int
act_spread(const struct spool *from, const struct spool *to, enum spool_dir dir,
    uint64_t inode, int fd)
{
	int r =
	    act_applies(ACT_SPREAD, dir) ? settle(from, inode, fd) : -EINVAL;

	return r == 0 ? spool_hand_over(from, to, dir, inode) : r;
}

/* ---- the end of the day in deleted/ ---- */

/* The end of the day is known until the file is gone. Then no other file gets
 * its inode while it is open, so what is cleared is this message's. */
static int
remove_deleted(const struct spool *sp, uint64_t inode)
{
	const struct spool_sys *sys = sp->sys;
	int r, fd = spool_open_name(sp, SPOOL_DELETED, inode, O_PATH);

	if (fd < 0)
		return fd;
	r = reason_clear(sp, SPOOL_BOUNCE, inode);
	if (r == 0)
		r = spool_remove(sp, SPOOL_DELETED, inode);
	if (r == 0)
		r = reason_clear(sp, SPOOL_DEFER, inode);
	sys->close(fd);
	return r;
}

/* The message may have come there again since the caller looked. */
static bool
ends_later(int fd, usec_t now_wall)
{
	struct stat st;

	return fstat(fd, &st) < 0 ||
	    (usec_t)st.st_mtim.tv_sec * USEC_PER_SEC > now_wall;
}

bool
act_day_may_be_over(usec_t end_wall, usec_t now_wall)
{
	return end_wall <= now_wall || end_wall > now_wall + ACT_DELETED_TIME;
}

int
act_end_day(const struct spool *sp, uint64_t inode, usec_t now_wall)
{
	struct stat st;
	int r = 0, fd;

	if (spool_stat(sp, SPOOL_DELETED, inode, &st) < 0)
		return 0;
	fd = reason_open(sp, SPOOL_DEFER, inode);
	/* A restore may lose the end of its day: a day from now, then. */
	if (fd < 0)
		return spool_set_due(sp, inode, now_wall + ACT_DELETED_TIME);
	if (!ends_later(fd, now_wall)) {
		r = remove_deleted(sp, inode);
		r = r < 0 ? r : 1;
	}
	sp->sys->close(fd);
	return r;
}
