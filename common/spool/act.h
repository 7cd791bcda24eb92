/* spool/act.h - what an operator does with a message, as one move on disk
 * (docs/QCTL.md, "Acts").
 *
 * Called by the one process that has the lock of the queue: queue-send, or qctl
 * while that does not run. The caller knows that nothing else is done with the
 * message, and where it lies.
 *
 * Soft: -errno.
 */
#ifndef SPOOL_ACT_H
#define SPOOL_ACT_H

#include "spool/hold_note.h"

/* Numbers are for ever: frames have them. */
enum spool_act {
	ACT_HOLD = 1,    /* to hold/, until it is released */
	ACT_RELEASE,     /* from hold/: due at once */
	ACT_REQUEUE,     /* from anywhere: due at once */
	ACT_DELETE,      /* to deleted/, for ACT_DELETED_TIME */
	ACT_UNDELETE,    /* from there to hold/ */
	ACT_RETRY,       /* of deferred/: due at once */
	ACT_EXPIRE,      /* given up: due at once, but on hold */
	ACT_EXPIRE_HELD, /* on hold, too: due at once */
	ACT_SPREAD,      /* of incoming/ and deferred/: to another queue */
	ACT_RELEASE_ALL, /* from hold/ and corrupt/: due at once */
	NACTS,
};

#define ACT_DELETED_TIME (24 * 3600 * USEC_PER_SEC)

/* "hold", "release" …; of a number that is no act "?". */
const char *act_name(unsigned act);
/* "held", "released" … */
const char *act_past(unsigned act);
/* May the act be done with a message that lies there? */
bool act_applies(enum spool_act act, enum spool_dir dir);
/* The directory that a message is in afterwards that lay in `dir`. */
enum spool_dir act_target(enum spool_act act, enum spool_dir dir);
/* Does the act mark a message as given up? */
static inline bool
act_gives_up(enum spool_act act)
{
	return act == ACT_EXPIRE || act == ACT_EXPIRE_HELD;
}

/* Where most messages are that the act is for. */
enum spool_dir act_source(enum spool_act act);
/* Opens the message with this id and tells where it lies: in `first`,
 * deferred/, incoming/, active/, hold/, deleted/ or corrupt/ (corrupt_id()).
 * The descriptor, for reading, with the shared lock of the file; in corrupt/
 * and of a damaged file in deleted/ without a lock. -ENOENT: there is none;
 * -EAGAIN: its writer has not committed it, or another process works on it. */
int act_find(const struct spool *sp, enum spool_dir first,
    const struct queue_id *id, enum spool_dir *ret_dir);
/* The mark of a message that is given up; the due time, or the end of a deleted
 * message; then one rename. A message that is released or retried is due at
 * now_wall, and one that is retried not later than it was. In active/
 * the marks that are in fd, and the reasons, are synced before it. A file in
 * corrupt/ is released by corrupt_release(), and fails as that does. A damaged
 * file that is undeleted goes back to corrupt/. *ret_to: where the file lies
 * then. */
int act_move(const struct spool *sp, enum spool_act act, enum spool_dir dir,
    uint64_t inode, int fd, usec_t now_wall, enum spool_dir *ret_to);
/* An act of an operator on a message that act_find() has found. */
struct act_plan {
	enum spool_act what;
	usec_t due_wall; /* of ACT_RELEASE and ACT_RETRY; a past time: now */
	usec_t now_wall;
	const struct hold_note *note; /* of ACT_HOLD; NULL: none */
	uid_t uid;
	bool
	    passes_rules; /* rules of hold pass by a message that is released */
};
/* The note of a hold, or the mark for the rules; then act_move(). The note goes
 * again when that fails. -EINVAL: the message lies elsewhere, or is on hold and
 * the note has neither a reason nor an end; and as act_move(). */
int act_do(const struct spool *sp, const struct act_plan *p, enum spool_dir dir,
    const struct queue_id *id, int fd, enum spool_dir *ret_to);
/* The day of a message in deleted/: may the day be over that ends then? The end
 * that a scan tells is the time of the file itself where defer/ has none, and
 * may lie further away than any end: act_end_day() looks. */
bool act_day_may_be_over(usec_t end_wall, usec_t now_wall);
/* Removes a message whose day is over, with its reasons. 1: removed; 0: it has
 * left, or its day goes on. A message whose end is lost gets a day from now. */
int act_end_day(const struct spool *sp, uint64_t inode, usec_t now_wall);
/* ACT_SPREAD: what is prepared of the message is settled, then it goes with its
 * reasons and due time (spool_hand_over()). fd is locked on the way. -EINVAL:
 * not out of this directory; -EAGAIN: it is being expanded or reported; and as
 * spool_hand_over(). */
int act_spread(const struct spool *from, const struct spool *to,
    enum spool_dir dir, uint64_t inode, int fd);

#endif
