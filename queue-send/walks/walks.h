/* queue-send/walks/walks.h - walks over the directories of the queue, and files
 * that these find.
 *
 *	walks.c    which directory is walked, and when
 *	found.c    files of active/, deleted/, hold/ and bounce/
 *	holds.c    messages on hold whose hold has an end
 */
#ifndef QUEUE_SEND_WALKS_WALKS_H
#define QUEUE_SEND_WALKS_WALKS_H

#include "queue-send/disk/walk.h"
#include "queue-send/state/send.h"

/* A bounded part of the walk that runs, or of the next one that is wanted
 * (deferred_walk()). The time to go on. */
usec_t walks_work(struct send *s);

/* ---- found.c: files that a walk has found ----
 *
 * The loop looks whether memory knows the file; a thread moves or removes it,
 * as an act of the queue itself, and looks again whether it is there. */
void found_active(struct send *s, const struct walk_item *item);
void found_deleted(struct send *s, const struct walk_item *item);
void found_held(struct send *s, const struct walk_item *item);
void found_reasons(struct send *s, const struct walk_item *item);
/* In the thread of the walk: what found_reasons() is to know. */
void look_at_reasons(const struct spool *sp, struct walk_item *item);

/* ---- holds.c: a hold with an end ---- */

/* A file of hold/ was found by the walk: it is released when its time is over.
 */
void acts_found_held(struct send *s, const struct walk_item *item);
/* In a thread: its id and its note. */
void acts_look_at_held(const struct spool *sp, struct walk_item *item);
/* When the next hold ends, hold/ is walked. */
usec_t acts_hold_work(struct send *s);

#endif
