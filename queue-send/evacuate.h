/* queue-send/evacuate.h - this queue is to end: its mail goes to others
 * (HAND_OVER, docs/SUPERVISION.md, "The end of a queue").
 *
 *	begin   what was offered is dropped, in active/ what waits is put aside
 *	        (FATE_ASIDE) as soon as nothing of it runs; nothing new starts
 *	passes  over incoming/, deferred/, active/, hold/: each file that nobody
 *	        works on is moved to one of the targets, in turn
 *	end     an empty list: everything is looked for again, and delivered
 *
 * Not moved: what is delivered, what is not recorded yet, what its writer has
 * not committed, and of incoming/ anything while a drop is being copied, whose
 * copy must be found where it was made. A target that does not take files has
 * a pause of error_interval; when all are on other file systems the queue
 * delivers its mail itself, as before.
 */
#ifndef QUEUE_SEND_EVACUATE_H
#define QUEUE_SEND_EVACUATE_H

#include "queue-send/send.h"

/* So many of the list are open at once, ten descriptors each; the others when
 * one of these takes nothing. */
#define EVACUATE_OPEN 16

/* HAND_OVER: begin, with other targets, or the end. -EBADMSG. */
int evacuate_told(struct send *s, const struct msg *msg);
usec_t evacuate_work(struct send *s);
void evacuate_done(struct send *s);
/* What was left in incoming/ by the last whole pass. */
uint64_t evacuate_incoming(const struct send *s);

#endif
