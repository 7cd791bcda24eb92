/* queue-send/share.h - a destination holds at most its share of the active
 * queue; what comes for it beyond that waits in deferred/ (docs/QUEUE.md,
 * "Shares").
 *
 * Each message of the active queue is held by one destination at most:
 * the only one that it has, or, of several, one that it still has recipients
 * for (claims.h says how that moves on).
 *
 * Lines with parked messages are ranked by what they hold, the least first, so
 * whether one of them may have a message more is one look at the first. Those
 * that are dead rest in between, so that their messages go on slowly: each is
 * deferred without an attempt, or given up when it is too old.
 *
 * Soft: a backlog that cannot be had for want of memory bounds nothing.
 */
#ifndef QUEUE_SEND_SHARE_H
#define QUEUE_SEND_SHARE_H

#include "ipc/msg.h"
#include "queue-send/backlog.h"

struct message;

struct share {
	struct backlog_names names;
	struct backlog_loads ranks;
	struct backlog_resting resting; /* all for the same time: in order */
	uint32_t generation;
	usec_t said; /* log_due() */
};

void share_init(struct send *s);
/* With no message left. */
void share_done(struct send *s);
/* Routes have changed. */
void share_reroute(struct send *s);
/* Destinations that were dead are open. */
void share_flush(struct send *s);

/* Is it a list of destinations as MESSAGE has it? */
bool share_names_are_right(const msg_blob *names);
/* An offered message whose destinations all have their share already: the
 * backlog to park it in. NULL: it may come. */
struct backlog *share_judge(struct send *s, const struct message *m);
/* A deferred message into the backlog, until its turn. */
void share_park(struct send *s, struct backlog *b, uint64_t inode);
/* An offered message comes into the active queue. */
void share_admit(struct send *s, struct message *m);
/* The message leaves. */
void share_leave(struct send *s, struct message *m);
/* The message was deferred: its node may know the backlog. */
void share_remember(struct send *s, const struct message *m, struct due *d);

/* A message that is due, and whose destination has its share or is dead. */
bool share_holds_back(struct send *s, struct due *d);
/* The next parked message whose turn it is, asked for; NULL: none. */
struct due *share_ask(struct send *s);
/* When share_ask() may have one though nothing happens. */
usec_t share_next(const struct send *s);
/* Its node was dropped, or is not asked for any more. */
void share_changed(struct send *s, struct backlog *b);
void share_all_changed(struct send *s);
struct backlog *share_backlog_of(const struct send *s, const struct due *d);

/* From now on the message is held by that backlog, or by none. */
void share_hold(struct send *s, struct message *m, struct backlog *b);

#endif
