/* queue-send/disk/act_task.h - the part of an act that waits for the disk,
 * done by a thread (docs/QUEUE.md, "Acts of operators").
 *
 *	act_task.c    what is done on disk; all that it needs is copied
 *	act_run.c     which acts are under way
 *
 * operators/acts.c has the part before and after it, in memory; so have
 * operators/spread.c for a message that goes to another queue, and
 * evacuation/evacuate.c for all messages of a queue that ends.
 *
 * Soft: -errno as the error of the task; then the message is where it was. */
#ifndef QUEUE_SEND_DISK_ACT_TASK_H
#define QUEUE_SEND_DISK_ACT_TASK_H

#include "queue-send/disk/other_queue.h"
#include "queue-send/state/send.h"
#include "spool/act.h"
#include "spool/hold_note.h"
#include "spool/sync_pool.h"

struct spread;

/* By whom, and to whom the answer goes. */
struct act_asker {
	/* running: of a message in the active queue, which the act follows when
	 * its deliveries have ended: 1 and their number. */
	void (*answer)(struct send *s, const struct act_asker *by, int error,
	    uint32_t running);
	uint64_t operator; /* 0: none */
	uint32_t slot;     /* the asker's */
	uint32_t act;
	uid_t uid;
};

struct act_order {
	enum spool_act what;
	const struct queue_id *id;
	/* Of ACT_RELEASE and ACT_RETRY: the time when it is due; 0: at once. */
	usec_t due_wall;
	/* Of ACT_HOLD, on disk before the move; NULL: none. */
	const struct hold_note *note;
	uint32_t to; /* of ACT_SPREAD: the other queue, */
	/* which stays open with these of its operator; NULL: of an order that
	 * is given again, for this act alone. */
	struct spread *spread;
	bool again; /* the queue was gone, and is opened a second time */
	struct act_asker by;
};

#define ACT_UNDER_WAY 1 /* the answer comes by itself */

struct act_task {
	struct sync_task task; /* first */
	TAILQ_ENTRY(act_task) on;
	struct act_asker by;
	int (*work)(struct act_task *t); /* one of those below */
	/* In the loop: the act is done, or has failed. Returns what the asker
	 * is told, if there is one; ACT_UNDER_WAY: another act will. NULL:
	 * nothing follows. */
	int (*ended)(struct send *s, struct act_task *t, uint32_t *ret_running);
	bool offered; /* an offer was dropped: on failure it is made again */
	/* Meanwhile the loop passed over an offer of the file, or over it in
	 * hold/. */
	bool met_offered, met_held;

	/* To be done. */
	const struct spool *sp;
	struct queue_id id;
	enum spool_act what;
	usec_t due_wall, now_wall;
	bool has_note;
	struct hold_note note;
	bool passes_rules; /* of one that is released */

	/* Of a message in the active queue, which its results hold there. */
	struct message *message; /* the loop's */
	bool begins_defer, begins_bounce, first;
	bool marks;   /* a mark is written: of an expiry, or of ... */
	int decision; /* ... REASON_TO_HOLD, REASON_TO_DELETE; 0: undecided */

	/* Of one that goes to another queue. */
	struct other_queue *to; /* open */
	bool again;

	/* Done. */
	enum spool_dir dir;  /* where it lay; of an own act it is given */
	enum spool_dir went; /* where it lies after an act moved it */
	bool of_other;       /* the error is that of the other queue */
	bool done;           /* of an own act: the file has gone from there */
	usec_t changed_wall; /* of an own act that asks: the file's mtime */
	int fd;              /* of its file, still locked, or -1 */
	struct buf sender;   /* of a message in corrupt/; empty: none is told */
	uint32_t uid;        /* of its submitter */
};

/* NULL: no memory. */
struct act_task *act_task_new(struct send *s, const struct act_order *order,
    int (*work)(struct act_task *t));
/* A message that lies on disk: its note, its due time, its move. */
int act_task_file(struct act_task *t);
/* A message in the active queue: the note, or the mark of one that is given up.
 */
int act_task_note(struct act_task *t);
/* To another queue. */
int act_task_spread(struct act_task *t);

/* Of the queue itself: nobody asks, and its caller sees to it that no message
 * in memory has the inode and no other act is under way on it. NULL: no memory.
 */
struct act_task *act_task_own(struct send *s, enum spool_dir dir,
    uint64_t inode, int (*work)(struct act_task *t),
    int (*ended)(struct send *s, struct act_task *t, uint32_t *ret_running));
/* To another queue, whatever lies there. -EAGAIN: its writer has not committed
 * it, or it is being expanded. */
int act_task_hand_over(struct act_task *t);
/* A hold whose time is over. */
int act_task_release(struct act_task *t);
/* Reasons that a crash left without their message. */
int act_task_clear(struct act_task *t);

/* ---- act_run.c ---- */

#define ACTS_MAX     512 /* under way */
/* Of these, acts of the queue itself: an operator waits for no more of them. */
#define ACTS_OWN_MAX 64

void acts_init(struct send *s);
void acts_done(struct send *s);
/* The end of each act that a thread has done. */
void act_ended(void *send, struct sync_task *task);
bool acts_are_full(const struct send *s);

/* Nothing else is done with that message until the act has ended. */
bool act_is_under_way(const struct send *s, uint64_t inode);
/* The same: an offer of it, or its file in hold/, is passed over, and looked
 * for again after the act. */
bool act_meets_offer(struct send *s, uint64_t inode);
bool act_meets_held(struct send *s, uint64_t inode);

/* So many acts of the queue itself are under way that no other begins. */
bool acts_own_are_full(const struct send *s);

/* The task is with a thread, or done; the asker has its answer when it is done.
 * ACT_UNDER_WAY. */
int act_run(struct send *s, struct act_task *t);
/* act_task_own() and act_run(). Nothing is done without memory: the next walk,
 * or the next request, finds the file. */
void act_run_own(struct send *s, enum spool_dir dir, uint64_t inode,
    int (*work)(struct act_task *t),
    int (*ended)(struct send *s, struct act_task *t, uint32_t *ret_running));

#endif
