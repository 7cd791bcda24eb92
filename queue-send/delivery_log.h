/* queue-send/delivery_log.h - the line of one delivery, as log readers of
 * other systems parse it:
 *
 *	ID: to=<r>, relay=…, delay=2.3, delays=a/b/c/d, dsn=2.0.0, status=sent
 *	(text)
 *
 * delays: before the active queue / in it / connecting / sending. */
#ifndef QUEUE_SEND_DELIVERY_LOG_H
#define QUEUE_SEND_DELIVERY_LOG_H

#include "queue-send/results.h"

void delivery_log(
    const struct send *s, const struct message *m, const struct report *r);

#define DELAY_SIZE 24
/* Seconds with at most two significant digits behind the point: "0", "0.02",
 * "1.5", "73". */
void delay_format(usec_t delay, char out[DELAY_SIZE]);

#endif
