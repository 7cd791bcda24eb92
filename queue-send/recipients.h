/* queue-send/recipients.h - recipients are read in batches, and routed as they
 * are read: a message whose routing was corrected follows it.
 *
 * How large a batch is, and when the next one is read, says the scheduler
 * (docs/SCHEDULING.md, section 6). One may span turns: nothing of it is
 * selected before its end. A recipient without a route is deferred (4.3.5). */
#ifndef QUEUE_SEND_RECIPIENTS_H
#define QUEUE_SEND_RECIPIENTS_H

#include "queue-send/send.h"

usec_t recipients_work(struct send *s);
/* Recipients of the message have been dealt with: out of the active queue with
 * it when nothing of it waits, runs or is unread. */
void recipients_settle(struct send *s, struct message *m);
/* Nothing more of it is to start here: out of the active queue with it, as
 * FATE_ASIDE, when what runs has ended. One that only waits for that is left as
 * it is. */
void recipients_put_aside(struct send *s, struct message *m);
/* Read the record again that a handle of the entry stands for; the places of
 * an entry one after the other. 0 or -errno. */
int recipients_read(struct send *s, const struct message *m,
    const struct sched_entry *e, uint32_t place, struct queue_rcpt *ret_rcpt);

#endif
