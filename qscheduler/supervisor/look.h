/* qscheduler/supervisor/look.h - what has to be asked of a disk, or written to
 * it, by a process that may wait for it: the loop does not.
 *
 * One at a time for each number, LOOKS_MAX young ones together. One that takes
 * longer than disk_time_limit is answered -ETIMEDOUT for; its number stays
 * taken until the disk lets go of it, and then the answer that it has comes,
 * late. So an answer of 0 or more, or another error, is always what is so. The
 * process has no lock of ours, and ends with us. */
#ifndef QSCHEDULER_SUPERVISOR_LOOK_H
#define QSCHEDULER_SUPERVISOR_LOOK_H

#include "qscheduler/queues/base.h"

#include <sys/queue.h>

/* One that has taken LOOK_YOUNG makes room for others: disks that hang do not
 * keep those that answer from being looked at. */
#define LOOKS_MAX  32
#define LOOK_YOUNG (1 * USEC_PER_SEC)

enum look_kind {
	LOOK_FACTS, /* facts, at the start */
	LOOK_CHECK, /* is its directory still what it was, and can it be
		     * written to? 1: but for the mark of a closed one, which
		     * was taken away */
	LOOK_MAIL,  /* facts.mail */
	LOOK_MAKE,  /* base_make(), unless it was made once and is lost */
	LOOK_SEAL,  /* base_seal() */
	LOOK_SWEEP, /* all that are not run, which of them have mail */
	LOOK_SAVE,  /* QUEUE_BASE/by-hand, as it should be now */
	LOOK_JUDGE, /* the operator's file; what is right becomes the
		     * configuration in force, and is in `more` */
	LOOK_NKINDS,
};

/* Numbers of looks that are not about one queue. */
#define LOOK_ALL     0 /* LOOK_SWEEP */
#define LOOK_BY_HAND (QUEUE_NUM_MAX + 1)
#define LOOK_CONF    (QUEUE_NUM_MAX + 2)

struct look_result {
	int r; /* of what was asked, or why it was not */
	struct queue_facts facts;
	bool mail[QUEUE_NUM_MAX + 1]; /* LOOK_SWEEP */
	char text[320];               /* words to a negative r */
};

struct super;
struct look;
LIST_HEAD(look_list, look);

/* `more` is what the process has added to the result, and may be taken. */
typedef void look_done(struct super *s, uint32_t number,
    const struct look_result *result, struct buf *more);
/* -EBUSY: one of this number runs; -EAGAIN: too many do; -errno: fork … */
int look_start(
    struct super *s, enum look_kind kind, uint32_t number, look_done *done);
bool look_runs(const struct super *s, uint32_t number);
/* End all; nothing is called any more. */
void looks_close(struct super *s);

/* ---- disk.c: in the process ---- */
/* at is shared with the supervisor: the number that is looked at now. */
int look_run(struct super *s, enum look_kind kind, uint32_t number,
    volatile uint32_t *at, struct look_result *out, struct buf *error,
    struct buf *more);
/* Tests set it: called in the process, before anything is asked. */
extern void (*look_seam)(enum look_kind kind, uint32_t number);

#endif
