/* queue-send/rules/own.h - the state of this floor, which no other folder
 * includes. */
#ifndef QUEUE_SEND_RULES_OWN_H
#define QUEUE_SEND_RULES_OWN_H

#include "queue-send/rules/rules.h"
#include "spool/hold_rule.h"

struct rules {
	struct hold_rules force; /* in force */
	uint32_t tasks;          /* of operators, under way */
	usec_t began;
	bool known;         /* the first reading has ended, or lasted long */
	usec_t look_at;     /* the next time */
	usec_t looks_since; /* this one; 0: none is under way */
	int wrong;          /* -errno of the last reading */
	usec_t said;        /* log_due() */
};

#endif
