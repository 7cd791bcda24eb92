/* queue-send/backlog/own.h - the state of this floor, which no other folder
 * includes. */
#ifndef QUEUE_SEND_BACKLOG_OWN_H
#define QUEUE_SEND_BACKLOG_OWN_H

#include "queue-send/backlog/backlog.h"

RB_HEAD(backlog_names, backlog);
RB_HEAD(backlog_loads, backlog);
TAILQ_HEAD(backlog_resting, backlog);

/* Shares of the active queue (backlog/share.c). */
struct share {
	struct backlog_names names;
	struct backlog_loads ranks;
	struct backlog_resting resting; /* all for the same time: in order */
	uint32_t generation;
	usec_t said; /* log_due() */
};

#endif
