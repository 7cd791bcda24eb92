/* queue-send/control.h - start, reload, flush and stop of queue-send. */
#ifndef QUEUE_SEND_CONTROL_H
#define QUEUE_SEND_CONTROL_H

#include "queue-send/send.h"

extern const struct daemon_ops control_ops;

/* The state on a spool that is open and ours (sp, lock, conf, base are set);
 * send_done() frees all of it but those. -errno. */
int send_init(struct send *s);
void send_done(struct send *s);
/* The end of a stop: all deliveries are over, or the time is. */
usec_t control_work(struct send *s);

#endif
