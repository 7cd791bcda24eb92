/* queue-send/recipients.h - recipients are read in batches, and routed as they
 * are read: a message whose routing was corrected follows it.
 *
 * A batch is what of qmgr_message_recipient_limit is free, at least
 * qmgr_message_recipient_minimum; the next one is read when all that the
 * message has in memory has been dealt with. A message without a route for a
 * recipient defers it (4.3.5). */
#ifndef QUEUE_SEND_RECIPIENTS_H
#define QUEUE_SEND_RECIPIENTS_H

#include "queue-send/send.h"

usec_t recipients_work(struct send *s);
/* So many recipients of the message have been dealt with: go on with it, to
 * the next batch or out of the active queue. */
void recipients_settle(struct send *s, struct message *m, uint32_t count);
/* Read the record again that a handle of the entry stands for; the places of
 * an entry one after the other. 0 or -errno. */
int recipients_read(struct send *s, const struct message *m,
    const struct sched_entry *e, uint32_t place, struct queue_rcpt *ret_rcpt);

#endif
