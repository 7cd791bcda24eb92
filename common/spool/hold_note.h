/* spool/hold_note.h - by whom a message is on hold, why, and until when: a line
 * of its own in defer/, written before the move to hold/ (docs/SPOOL.md).
 *
 * Soft: -errno.
 */
#ifndef SPOOL_HOLD_NOTE_H
#define SPOOL_HOLD_NOTE_H

#include "spool/spool.h"

#define HOLD_REASON_MAX 400

struct hold_note {
	uid_t uid;
	usec_t since_wall;
	usec_t until_wall;                /* 0: until it is released */
	uint32_t rule;                    /* that put it there; 0: none */
	char reason[HOLD_REASON_MAX + 1]; /* "": none was given */
};

/* Does it take the place of the note that a message on hold has? One of an
 * operator who gives a reason or an end does. */
static inline bool
hold_note_replaces(const struct hold_note *note)
{
	return note->rule == 0 &&
	    (note->reason[0] != '\0' || note->until_wall > 0);
}

/* The file in defer/ as it was: its time is when the message is due. */
struct hold_note_before {
	bool there;
	off_t size;
	struct timespec changed;
};

/* Not synced, as an act is. The reason is cleaned. Failure: the file is as it
 * was before. */
int hold_note_write(const struct spool *sp, const struct queue_id *id,
    const struct hold_note *note, struct hold_note_before *ret_before);
/* The message stays where it is: the note goes, as far as the disk lets it. */
void hold_note_undo(const struct spool *sp, uint64_t inode,
    const struct hold_note_before *before);
/* A message was moved to hold/ by another act than a hold: a time that an
 * earlier note has counts no more. */
void hold_note_renew(const struct spool *sp, const struct queue_id *id,
    uid_t uid, usec_t now_wall);
/* The last one of this message; -ENOENT: none. */
int hold_note_read(const struct spool *sp, const struct queue_id *id,
    struct hold_note *ret_note);

#endif
