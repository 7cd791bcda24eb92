/* queue-send/evacuation/evacuation.h - the mail of this queue goes to other
 * queues.
 *
 * HAND_OVER of the supervisor (docs/SUPERVISION.md, "The end of a queue"):
 *
 *	begin   offered messages are dropped; waiting messages of active/ are
 *	        put aside (FATE_ASIDE) as soon as nothing of them runs; nothing
 *	        new starts
 *	passes  over incoming/, deferred/, active/, hold/: each file that no
 *	        process works on is moved to one of the targets, in turn
 *	end     an empty list: everything is looked for again, and delivered
 *
 * Not moved: messages that are delivered or not recorded yet, files that their
 * writer has not committed, and of incoming/ anything while a drop is being
 * copied, whose copy must be found where it was made. A target that does not
 * take files has a pause of error_interval; when all are on other file systems
 * the queue delivers its mail itself, as before. */
#ifndef QUEUE_SEND_EVACUATION_EVACUATION_H
#define QUEUE_SEND_EVACUATION_EVACUATION_H

#include "queue-send/state/send.h"

/* So many targets are open at once, ten descriptors each; the others when one
 * of these takes nothing. */
#define EVACUATE_OPEN 16

/* HAND_OVER: begin, with other targets, or the end. -EBADMSG. */
int evacuate_told(struct send *s, const struct msg *msg);
usec_t evacuate_work(struct send *s);
void evacuate_done(struct send *s);
/* Targets that refused a file are tried now. */
void evacuate_try_again(struct send *s);
/* Files that the last whole pass left in incoming/. */
uint64_t evacuate_incoming(const struct send *s);

#endif
