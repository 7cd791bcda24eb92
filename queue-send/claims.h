/* queue-send/claims.h - which destinations a message of the active queue still
 * has recipients for, while it has several.
 *
 * Of a message with one destination, which todo-proc named, nothing is kept.
 * Any other has a claim for each destination that recipients in memory are for.
 * The message is held by one of them (share.h) until that is done with, then by
 * another one that has room. When all that are left have their share already,
 * and nothing of it is unread or runs, it leaves the active queue and is
 * parked: what can be delivered has been.
 */
#ifndef QUEUE_SEND_CLAIMS_H
#define QUEUE_SEND_CLAIMS_H

#include "queue-send/share.h"

struct sched_entry;

struct claim {
	RB_ENTRY(claim) link;
	struct backlog *backlog;
	uint32_t left; /* recipients in memory that are not dealt with */
};

/* A recipient was read; address: where the recipient is the destination, else
 * NULL. 0, or -ENOMEM. */
int claims_add(struct send *s, struct message *m, uint32_t transport,
    const char *nexthop, const char *address);
/* The recipients of the entry have been dealt with. */
void claims_end(struct send *s, struct message *m, const struct sched_entry *e);
/* After either: held by whom? True: it is to leave and be parked in m->backlog.
 * may_leave: nothing runs, nothing is unread. */
bool claims_settle(struct send *s, struct message *m, bool may_leave);
void claims_drop(struct send *s, struct message *m);

#endif
