/* queue-send/reports/own.h - the state of this floor, which no other folder
 * includes. */
#ifndef QUEUE_SEND_REPORTS_OWN_H
#define QUEUE_SEND_REPORTS_OWN_H

#include "queue-send/reports/reports.h"

struct reports {
	uint32_t tasks;        /* under way */
	bool warns;            /* of one message in corrupt/: its walk waits */
	usec_t not_before;     /* a lock was held, or something had run out */
	struct told_rate told; /* to whom, how many */
};

#endif
