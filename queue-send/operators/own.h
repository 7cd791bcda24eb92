/* queue-send/operators/own.h - the state of this floor, which no other folder
 * includes. Operators come in by the socket operate in lock/: the door says
 * who may connect, how many, and for how long without a word.
 *
 *	operators_door.c   listens, asks the kernel who calls; admits or refuses
 *	operators.c        connections that were admitted, and their frames
 *	operators_acts.c   frames that act on messages, their answers, the log
 *	operators_trace.c  dialogues of deliver-smtp that operators follow
 *
 * A refusal is ACTED with serial 0: -EPERM, -EUSERS (no place), -ETIME (idle,
 * and the place was needed), -ENOMEM. Never waits, and never ends the process.
 */
#ifndef QUEUE_SEND_OPERATORS_OWN_H
#define QUEUE_SEND_OPERATORS_OWN_H

#include "ipc/wire.h"
#include "queue-send/operators/operators.h"

struct event;

#define ACTS_AT_ONCE 16 /* of one operator */

struct act_reply {
	uint64_t serial;
	int error;
	uint32_t running;
	uint64_t messages; /* that it is about, in the log */
	bool is_known;
};

/* The dialogues that an operator follows. */
struct operator_trace {
	usec_t until; /* end of the trace; 0: there is none */
	uint64_t serial;
	uint64_t left_out; /* lines that the operator did not read in time */
	char *destination; /* a pattern */
};

/* One connection: one command of an operator. */
struct operator
{
	TAILQ_ENTRY(operator) link, in_line;
	bool waits;   /* in the line: frames have come */
	bool held_up; /* by acts under way: no frame is taken before */
	/* Of acts that were asked for, in their order, from slot `first' on. */
	struct act_reply replies[ACTS_AT_ONCE];
	uint32_t first, nreplies;
	struct send *send;
	struct wire *wire;
	int sock; /* the wire's */
	uid_t uid;
	uint64_t number; /* of all that came */
	bool may_act;    /* else it only asks */
	usec_t heard;    /* the last frame */
	/* Messages since the last ACT_END; later: of done, those whose
	 * deliveries have to end first; again: messages whose last answer was
	 * -EAGAIN, which the command may repeat. */
	uint64_t done, refused, again, later;
	bool answered; /* since then */
	char *words;   /* of the command, for the log; NULL: not told */
	bool gone;     /* the connection has ended, and acts are under way */
	uint32_t act;  /* the last one */
	bool opened;   /* destinations, for ACT_RETRY */
	struct spread spread; /* for ACT_SPREAD */
	struct operator_trace trace;
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
	usec_t paid_at;            /* the loop's time is paid for up to here */
	usec_t began_at;           /* with the one that is served */
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
/* Ends the connection that has been silent longest, if that is long enough, or
 * one whose peer has gone while its acts are under way; askers: of those that
 * may not act. */
bool operators_end_idle(struct send *s, bool askers);

/* Some acts of an operator have ended. */
void operators_go_on(struct operator* o);
/* NULL: its connection has ended, and so have its acts. */
static inline struct
operator* operators_find(const struct send *s, uint64_t number)
{
	struct operators *all = s->operators;
	struct operator* o = all == NULL ? NULL : TAILQ_FIRST(&all->list);

	while (o != NULL && o->number != number)
		o = TAILQ_NEXT(o, link);
	return o;
}

/* ---- operators_acts.c: frames that act on messages ---- */

void operators_act(struct operator* o, const struct msg *msg);
void operators_act_at(struct operator* o, const struct msg *msg);
void operators_hold_for(struct operator* o, const struct msg *msg);
void operators_hold_rule(struct operator* o, const struct msg *msg);
void operators_act_to(struct operator* o, const struct msg *msg);
void operators_came(struct operator* o, const struct msg *msg);
void operators_act_end(struct operator* o, const struct msg *msg);
/* Frees an operator whose connection has ended, and logs the acts that no
 * ACT_END followed. Answers of acts that are under way go nowhere. */
void operators_free(struct operator* o);

/* About rules of hold; a thread answers. */

void operators_rule_add(struct operator* o, const struct msg *msg);
void operators_rule_drop(struct operator* o, const struct msg *msg);
void operators_rules_read(struct operator* o, const struct msg *msg);

/* ---- operators_trace.c: dialogues of deliver-smtp ---- */

#define TRACES_MAX 4 /* at a time */

/* TRACE_BEGIN. Refused by ACTED: -EINVAL: no destination, or no time; -EUSERS:
 * as many traces as may be are under way; -ENOMEM. */
void operators_trace(struct operator* o, const struct msg *msg);
/* The connection ends. */
void operators_trace_end(struct operator* o);

/* ---- explain.c: what a message waits for (docs/QCTL.md, "Why a message
 * waits") ----
 *
 * The answer is made of what is in memory: no file is read, and nothing
 * changes. The work is bounded for a message of any size, in a queue of any
 * length. */

#define EXPLAIN_GROUPS 32   /* EXPLAINED about recipients, at most */
#define EXPLAIN_STEPS  5000 /* of lists that are counted */

/* The answers to EXPLAIN and EXPLAIN_TO. A peer that does not take them gets
 * none. */
void
explain_message(struct send *s, struct wire *peer, const struct msg_EXPLAIN *f);
void explain_address(
    struct send *s, struct wire *peer, const struct msg_EXPLAIN_TO *f);

#endif
