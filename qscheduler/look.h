/* qscheduler/look.h - what has to be asked of a disk, asked by a process that
 * may wait for it: the loop does not (D25).
 *
 * One at a time for each number, LOOKS_MAX together. One that takes longer
 * than LOOK_LIMIT is answered -ETIMEDOUT for, and its number stays taken until
 * the disk lets go of it. It has no lock of ours, and ends with us. */
#ifndef QSCHEDULER_LOOK_H
#define QSCHEDULER_LOOK_H

#include "qscheduler/base.h"

#define LOOKS_MAX  32
#define LOOK_LIMIT (60 * USEC_PER_SEC)

enum look_kind {
	LOOK_CHECK, /* is its directory still what it was? 1: but for the mark
		     * of a closed one, which was taken away */
	LOOK_MAIL,  /* facts.mail */
	LOOK_MAKE,  /* base_make(), unless it was made once and is lost (D19) */
	LOOK_SEAL,  /* base_seal() */
	LOOK_SWEEP, /* number 0: all that are not run, which of them have mail
		     */
	LOOK_NKINDS,
};

struct look_result {
	int r; /* of what was asked, or why it was not */
	struct queue_facts facts;
	bool mail[QUEUE_NUM_MAX + 1]; /* LOOK_SWEEP */
	char text[160];               /* words to a negative r */
};

struct super;
typedef void
look_done(struct super *s, uint32_t queue, const struct look_result *result);
/* -EBUSY: one of this number runs; -EAGAIN: too many do; -errno: fork … */
int look_start(
    struct super *s, enum look_kind kind, uint32_t queue, look_done *done);
bool look_runs(const struct super *s, uint32_t queue);
/* End all; nothing is called any more. */
void looks_close(struct super *s);

#endif
