/* queue-inject/submit.h - put messages into the queues of an instance, one
 * after the other; directories stay open and what is known of the queues is
 * kept for a moment, so that a message costs little beside its fsync.
 *
 *   submit_begin     choose a queue, open a file, put the Received field
 *   submit_added, submit_content …
 *   submit_sender, submit_rcpt …
 *   submit_commit    accepted, and the doorbell rung
 *   submit_abort     after any failure
 *
 * A queue that cannot be opened is passed over for the next one. Where this
 * process may not write to `incoming` the message goes through queue-drop,
 * which puts a Received field of its own (through_door.h; its errors, too).
 *
 * Soft: -errno of spool/accept.h; -EAGAIN: all queues are closing or disabled
 * (I13); -ENOENT: no queue directory. submit_reason() says which queue and
 * why. Never logs. The owner calls submit_free().
 */
#ifndef QUEUE_INJECT_SUBMIT_H
#define QUEUE_INJECT_SUBMIT_H

#include "config/conf.h"
#include "spool/accept.h"

#define SUBMIT_KNOWN (100 * USEC_PER_MSEC) /* facts are read again after it */

struct submit;

/* What stands in the Received field. */
struct submit_origin {
	uint32_t uid;
	const char *host;   /* of this system */
	const char *eol;    /* of the message: "\n" or "\r\n" */
	uint64_t announced; /* bytes that are to come; 0: unknown */
};

/* conf must live as long. -ENOMEM. */
int submit_new(const struct conf *conf, const struct spool_sys *sys,
    struct submit **ret_submit);
void submit_free(struct submit **submit);

int submit_begin(struct submit *s, const struct submit_origin *origin);
/* -EFBIG: with this it is more than message_size_limit. */
int submit_content(struct submit *s, const void *data, size_t len);
/* What is not the submitter's does not count. */
int submit_added(struct submit *s, const void *data, size_t len);
int submit_sender(struct submit *s, const char *address, size_t len);
int submit_rcpt(struct submit *s, const char *address, size_t len);
/* How long the message that was begun is to wait before it is accepted, since
 * new mail outruns the active queue of its queue: in_flow_delay, or 0. */
usec_t submit_pause(const struct submit *s);
int submit_commit(struct submit *s, struct queue_id *ret_id);
/* Nothing of the message stays. error: what a call above returned, noted
 * against the queue; 0: the message was refused, the queue is well. */
void submit_abort(struct submit *s, int error);

/* After submit_abort() with this error: begin the same message in another
 * queue, if that can help. An error that leaves it open whether the message
 * is on disk (EIO, D7) is the end. The error otherwise. */
int
submit_again(struct submit *s, int error, const struct submit_origin *origin);
/* Of the last failure: "queue3: No space left on device". */
const char *submit_reason(const struct submit *s);

#endif
