/* queue-send/rate.h - events of the last minute. Pure. */
#ifndef QUEUE_SEND_RATE_H
#define QUEUE_SEND_RATE_H

#include "base/base.h"

#define RATE_SECONDS 60

struct rate {
	int64_t second; /* the newest slot */
	uint32_t events[RATE_SECONDS];
};

void rate_add(struct rate *r, usec_t now);
/* In 1/100 per second, over the last RATE_SECONDS. */
uint64_t rate_read(struct rate *r, usec_t now);

#endif
