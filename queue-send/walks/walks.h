/* queue-send/walks/walks.h - walks over the directories of the queue, and files
 * that these find. The loop looks whether memory knows a file; a thread moves
 * or removes it, as an act of the queue itself, and looks again whether it is
 * there. */
#ifndef QUEUE_SEND_WALKS_WALKS_H
#define QUEUE_SEND_WALKS_WALKS_H

#include "queue-send/disk/walk.h"

/* A bounded part of the walk that runs, or of the next one that is wanted
 * (deferred_walk()). The time to go on. */
usec_t walks_work(struct send *s);

/* A file of hold/ was found by the walk: it is released when its time is over.
 */
void acts_found_held(struct send *s, const struct walk_item *item);
/* When the next hold ends, hold/ is walked. */
usec_t acts_hold_work(struct send *s);

#endif
