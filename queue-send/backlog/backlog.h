/* queue-send/backlog/backlog.h - messages that wait in deferred/, and the share
 * of the active queue that each destination may have (docs/QUEUE.md, "Shares").
 *
 *	backlog.c  one destination: how many active messages it holds, and its
 *	           deferred messages that are parked until it holds fewer; the
 *	           destinations that a message with several still has
 *	share.c    parks messages of a destination that has its share, and takes
 *	           them up again
 *	deferred.c the files in deferred/, and the walks that are wanted
 *
 * Soft: a backlog that cannot be had for want of memory bounds nothing; a
 * message without a node (state/due.h) is found by the next walk.
 */
#ifndef QUEUE_SEND_BACKLOG_BACKLOG_H
#define QUEUE_SEND_BACKLOG_BACKLOG_H

#include "ipc/msg.h"
#include "queue-send/state/send.h"
#include "spool/spool.h"

#include <sys/queue.h>
#include <bsd/sys/tree.h>

struct message;
struct sched_entry;
struct send;
struct hold_note;

/* ---- backlog.c ----
 *
 * A backlog lives while a message, a claim or a node refers to it: after each
 * of these has gone, backlog_put(). After a change of the routing table new
 * backlogs are of another generation, and messages that are parked in stale
 * ones are prepared again as fast as todo-proc can. */
enum backlog_state {
	BACKLOG_IDLE, /* nothing of it is parked */
	BACKLOG_RANKED,
	BACKLOG_RESTS,
};

struct backlog {
	RB_ENTRY(backlog) by_name;
	struct due_backlog due; /* deferred messages that know it */
	union {
		RB_ENTRY(backlog) by_load;
		TAILQ_ENTRY(backlog) resting;
	};
	usec_t ask_at; /* while it rests */
	uint32_t load; /* rank: held and asked for */
	enum backlog_state state;
	uint32_t held; /* active messages */
	uint32_t claims;
	uint32_t transport, generation;
	const char *name; /* as route_destination() makes it; in text */
	char text[];
};

struct backlog *
backlog_find(struct send *s, uint32_t transport, const char *name);
/* Found or made; NULL: -ENOMEM. */
struct backlog *
backlog_get(struct send *s, uint32_t transport, const char *name);
/* Free what nothing refers to. */
void backlog_put(struct send *s, struct backlog *b);
/* Each of them; visit may free the one that it is given. */
void
backlog_each(struct send *s, void (*visit)(struct send *s, struct backlog *b));
/* With nothing that refers to it but deferred messages. */
void backlog_free(struct send *s, struct backlog *b);

/* Is it of another routing table? */
bool backlog_is_stale(const struct send *s, const struct backlog *b);
/* Messages that it holds, and parked ones that are on their way. */
uint32_t backlog_load(const struct backlog *b);
/* Most messages that one destination may hold now: the part of the free places
 * that leaves a lone destination its share of the whole, and any number of
 * destinations never all of it. */
uint32_t backlog_limit(const struct send *s);
/* Does it hold as much as it may, or are others parked in it already? */
bool backlog_is_beyond(const struct send *s, const struct backlog *b);
/* Is the destination dead? Asks the table of destinations. */
bool backlog_is_dead(const struct send *s, const struct backlog *b);

/* ---- share.c ----
 *
 * Each message of the active queue is held by one destination at most: the only
 * one that it has, or, of several, one that it still has recipients for.
 *
 * Backlogs are ranked by load, the least first, so that the first one alone
 * says whether any may have a message more. Those of dead destinations rest in
 * between, so that their messages go on slowly: each is deferred without an
 * attempt, or given up when it is too old. */
/* 0 or -ENOMEM. */
int share_init(struct send *s);
/* With no message left. */
void share_done(struct send *s);
/* Routes have changed. */
void share_reroute(struct send *s);
/* Destinations that were dead are open. */
void share_flush(struct send *s);

/* Is it a list of destinations as MESSAGE has it? */
bool share_names_are_right(const msg_blob *names);
/* The backlog to park an offered message in, since all its destinations have
 * their share already; NULL: it may come. */
struct backlog *share_judge(struct send *s, const struct message *m);
/* Was the offered message asked for from a backlog, whose load it counts in? */
bool share_is_turn(struct send *s, const struct message *m);
/* Park a deferred message. */
void share_park(struct send *s, struct backlog *b, uint64_t inode);
/* An offered message comes into the active queue. */
void share_admit(struct send *s, struct message *m);
/* From now on the message is held by that backlog, or by none. */
void share_hold(struct send *s, struct message *m, struct backlog *b);
/* The message was deferred: its node may know the backlog. */
void share_remember(const struct message *m, struct due *d);

/* True: the message is due, its destination has its share or is dead, and it
 * was parked. */
bool share_holds_back(struct send *s, struct due *d);
/* The next parked message whose turn it is, asked for; NULL: none. */
struct due *share_ask(struct send *s);
/* due_unask(), with its backlog ranked anew. */
void share_unask(struct send *s, struct due *d, usec_t at);
/* When share_ask() may have one though nothing happens. */
usec_t share_next(const struct send *s);
/* A node of it was dropped, or is not asked for any more. */
void share_changed(struct send *s, struct backlog *b);
void share_all_changed(struct send *s);
struct backlog *share_backlog_of(const struct due *d);

/* ---- claims ----
 *
 * A message with several destinations has a claim for each that recipients in
 * memory are for; one with a single destination, which todo-proc named, has
 * none. The message is held by one of them until that is done with, then by
 * another one that has room. When all that are left have their share, and
 * nothing of the message is unread or runs, it leaves the active queue and is
 * parked: what could be delivered was. */
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
/* The recipients of the entry wait for another destination. 0, or -ENOMEM:
 * nothing has changed. */
int claims_move(struct send *s, struct message *m, const struct sched_entry *e,
    const char *destination);
/* After either: choose the holder. True: the message is to leave and be parked
 * in m->backlog. may_leave: nothing runs, nothing is unread. */
bool claims_settle(struct send *s, struct message *m, bool may_leave);
/* The message leaves the active queue: no claims, no holder. */
void claims_leave(struct send *s, struct message *m);

/* ---- deferred.c: deferred messages on disk ----
 *
 * The walk of deferred/ reads due times (mtime), a bounded number of files a
 * turn, and nothing waits for its end. hold/ and corrupt/ are walked to count
 * them, active/ to find files that are no message of ours. All are walked at
 * start, at a flush, and every hour, for what came there behind our back. */
void deferred_walk(struct send *s);
/* Files came to deferred/, hold/ and incoming/ from another queue; not at once
 * while the last walk was long. */
void deferred_rescan(struct send *s);
/* A file that the walk of hold/ had found is not there any more. */
void deferred_left_hold(struct send *s);
/* The queue ends: the walk that runs begins anew when that is over. */
void deferred_pause(struct send *s);
/* The message, just moved there, is due at. */
void deferred_add(struct send *s, const struct message *m, usec_t at_mono);
/* A message is on hold until then; 0: no end. */
void acts_hold_ends(struct send *s, usec_t until_wall);
/* The message waits there and is due at that time, or at once. Parked in its
 * backlog it would wait for its turn, which is not at once. */
void deferred_make_due(
    struct send *s, uint64_t inode, usec_t due_wall, bool was_held);
/* The message is not there any more. */
void deferred_forget(struct send *s, uint64_t inode);
/* Everything is due; files that the walk has not found yet, when it does. */
void deferred_flush(struct send *s);
void deferred_done(struct send *s);

#endif
