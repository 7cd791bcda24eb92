/* queue-send/operators/operators_door.h - where operators come in: the socket
 * operate in lock/, who may connect, how many, and for how long without a word.
 *
 *	operators_door.c   listens, asks the kernel who calls; admits or refuses
 *	operators.c        connections that were admitted, and their frames
 *	operators_rules.c  frames about rules of hold, answered by a thread
 *
 * A refusal is ACTED with serial 0: -EPERM, -EUSERS (no place), -ETIME (idle,
 * and the place was needed), -ENOMEM. Never waits, and never ends the process.
 */
#ifndef QUEUE_SEND_OPERATORS_OPERATORS_DOOR_H
#define QUEUE_SEND_OPERATORS_OPERATORS_DOOR_H

#include "ipc/wire.h"
#include "queue-send/operators/operators.h"

struct event;

/* One connection: one command of an operator. */
struct operator
{
	TAILQ_ENTRY(operator) link, in_line;
	bool waits; /* in the line: frames have come */
	struct send *send;
	struct wire *wire;
	uid_t uid;
	uint64_t number;        /* of all that came */
	bool may_act;           /* else it only asks */
	usec_t heard;           /* the last frame */
	uint64_t done, refused; /* since the last ACT_END */
	uint32_t act;           /* the last one */
	bool opened;            /* destinations, for ACT_RETRY */
	struct spread spread;   /* for ACT_SPREAD */
};

TAILQ_HEAD(operator_list, operator);

struct door {
	struct event *listening, *again;
	int fd;
	gid_t group;         /* (gid_t)-1: none */
	usec_t said_refused; /* log_due() */
	uint64_t unsaid;     /* refused since then */
	usec_t said_full;    /* log_due() */
};

struct operators {
	struct door door;
	uint32_t count, askers; /* of count, those that may not act */
	uint64_t last;          /* number of an operator */
	struct operator_list list;
	struct operator_list line; /* in the order in which they are served */
	struct event *idle;        /* the loop would sleep */
	struct quota quota;
	usec_t paid_at;  /* the loop's time is paid for up to here */
	usec_t began_at; /* with the one that is served */
};

/* -errno: there is no socket. */
int door_open(struct door *door, struct send *s);
void door_close(struct door *door, struct send *s);

/* A line in the log of an act that is not allowed, once a minute. */
void door_say_refused(struct door *door, usec_t now, uid_t uid);

/* A peer of the socket, by its credentials. */
struct caller {
	uid_t uid;
	bool may_act; /* else it only asks */
	bool owner;   /* root, or the user of this process */
};

/* The silent lose their places, when there is no other. */
bool door_has_place(struct send *s, const struct caller *who);
/* The socket is theirs; -ENOMEM: still the caller's. */
int operators_welcome(struct send *s, int fd, const struct caller *who);
/* Ends the connection that has been silent longest, if that is long enough;
 * askers: of those that may not act. */
bool operators_end_idle(struct send *s, bool askers);

/* ---- operators_rules.c: frames about rules of hold ---- */

void operators_rule_add(struct operator* o, const struct msg *msg);
void operators_rule_drop(struct operator* o, const struct msg *msg);
void operators_rules_read(struct operator* o, const struct msg *msg);

#endif
