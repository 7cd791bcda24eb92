/* queue-send/backlog/backlog.h - messages that wait in deferred/, and the share
 * of the active queue that each destination may have (docs/QUEUE.md, "Shares").
 *
 *	due.c      deferred messages by the time at which they are due
 *	backlog.c  one destination: how many active messages it holds, and its
 *	           deferred messages that are parked until it holds fewer
 *	share.c    parks messages of a destination that has its share, and takes
 *	           them up again
 *	claims.c   the destinations that a message with several still has
 *	deferred.c the files in deferred/, by walks
 *	found.c    the files that these find elsewhere
 *	walk.c     reads the directories for these
 *
 * due.c is pure: no disk, no clock. Soft: a backlog that cannot be had for want
 * of memory bounds nothing; a message without a node is found by the next walk.
 */
#ifndef QUEUE_SEND_BACKLOG_BACKLOG_H
#define QUEUE_SEND_BACKLOG_BACKLOG_H

#include "ipc/msg.h"
#include "spool/spool.h"

#include <sys/queue.h>
#include <bsd/sys/tree.h>

struct message;
struct sched_entry;
struct send;
struct hold_note;

/* ---- due.c: a small node for each deferred message, so that a million fit
 * ----
 *
 * A node waits in a tree by due time: that of the current epoch, or one of the
 * epochs before it, whose nodes are due whatever the time. A flush begins the
 * next epoch, so it costs nothing per message. While nodes of all other epochs
 * wait it is put off until those of the oldest have been asked for. A node that
 * was asked for (PREPARE) is in a tree of its own kind, until it is put back or
 * its message is taken.
 *
 * A node may know the backlog of the one destination that its message is for.
 * A message that is due while that destination has its share is parked: its
 * node waits in the backlog, in the order of the times at which messages were
 * due, whatever happens to the clock or to a flush, until it is asked for.
 *
 * Nodes are keyed by inode. The code that removes a file drops its node, since
 * inode numbers are reused. */
#define DUE_DEATHS_MAX 7u
#define DUE_NUMBER_MAX 0x3fffffu /* of a backlog */
#define DUE_EPOCHS     4

struct due {
	RB_ENTRY(due) by_inode;
	RB_ENTRY(due) by_time; /* in a tree of the queue, or of its backlog */
	uint64_t inode;
	usec_t at_mono;
	uint32_t second;       /* for ages_remove(), 0: it is not counted */
	uint32_t backlog : 22; /* number of its backlog, 0: none is known */
	uint32_t deaths : 3;   /* of agents that had the message */
	uint32_t epoch : 2;    /* of the tree it is in */
	uint32_t asked : 1;
	uint32_t parked : 1;
	uint32_t owed : 1; /* the message was on hold, and has not been tried */
	uint32_t untouched : 1; /* parked before its first attempt, and no
				 * operator has acted on it since */
	uint32_t untried : 1;   /* no delivery was tried; due_set_untried() */
};
RB_HEAD(due_inodes, due);
RB_HEAD(due_times, due);

/* The nodes of one destination; embedded in struct parking. */
struct due_backlog {
	struct due_times waiting; /* parked */
	uint32_t number;          /* 0: not added */
	uint32_t nodes;           /* that know it, in whatever state */
	uint32_t nwaiting, nasked;
};

struct due_number {
	struct due_backlog *backlog; /* NULL: free */
	uint32_t next_free;
};

struct due_queue {
	struct due_inodes nodes;
	struct due_times times[DUE_EPOCHS], asking;
	struct due_number *numbers; /* of backlogs, from 1 on */
	uint32_t nnumbers, free_number;
	uint32_t epoch;   /* nodes of the others are due */
	bool flush_waits; /* for a tree */
	uint64_t count;   /* all nodes, asked and parked ones too */
	uint64_t asked, parked;
	uint64_t untried; /* nodes whose message was never tried */
};

void due_init(struct due_queue *q);
void due_done(struct due_queue *q);
struct due *due_find(const struct due_queue *q, uint64_t inode);
/* A new message, or a new time for one that is there. NULL: -ENOMEM. */
struct due *due_put(struct due_queue *q, uint64_t inode, usec_t at_mono);
/* Is it known that nothing of the message has been written? Not after
 * due_put(). A number without a node is fine, and is not known. */
void due_set_untouched(struct due_queue *q, uint64_t inode, bool untouched);
bool due_is_untouched(const struct due_queue *q, uint64_t inode);
/* Count a node as never tried, or no longer. The mark lives as long as the
 * node, also through due_put(). */
void due_set_untried(struct due_queue *q, struct due *d, bool untried);
/* Drop it; a number without a node is fine. */
void due_drop(struct due_queue *q, uint64_t inode);
/* The node that is due first, marked as asked for; NULL: none is due. */
struct due *due_ask(struct due_queue *q, usec_t now);
/* The message is not to be had now: due again at. */
void due_unask(struct due_queue *q, struct due *d, usec_t at_mono);
/* The peer that was asked is gone: all nodes that were asked for are due again,
 * each at its own time if that is past. */
void due_unask_all(struct due_queue *q, usec_t now);
/* Of these, one whose answer has come: it counts as asked for until its message
 * is taken. */
void due_ask_again(struct due_queue *q, struct due *d);
/* Everything that waits is due. */
void due_flush(struct due_queue *q);

/* The backlog gets its number: 0, or -ENOMEM. */
int due_backlog_add(struct due_queue *q, struct due_backlog *b);
/* With no node that knows it. */
void due_backlog_drop(struct due_queue *q, struct due_backlog *b);
/* NULL: not known. */
struct due_backlog *
due_backlog_of(const struct due_queue *q, const struct due *d);
/* From now on the node knows this backlog, or none. Not while it is parked. */
void due_set_backlog(struct due_queue *q, struct due *d, struct due_backlog *b);
/* Into its backlog, wherever it was. */
void due_park(struct due_queue *q, struct due *d);
/* The first of a backlog, marked as asked for; NULL: none waits. */
struct due *due_ask_backlog(struct due_queue *q, struct due_backlog *b);
/* How many stand before a parked node in its backlog, counted up to most. */
uint32_t due_parked_before(const struct due_queue *q, const struct due *d,
    uint32_t most, bool *ret_more);
/* When the next node is due: a past time if one is; USEC_NEVER for none. */
usec_t due_next(const struct due_queue *q);

/* ---- backlog.c ----
 *
 * A backlog lives while a message, a claim or a node refers to it: after each
 * of these has gone, backlog_put(). After a change of the routing table new
 * backlogs are of another generation, and messages that are parked in stale
 * ones are prepared again as fast as todo-proc can. */
struct backlog {
	RB_ENTRY(backlog) by_name;
	struct parking *parking; /* NULL: no deferred message knows it */
	uint32_t held;           /* active messages */
	uint32_t claims;
	uint32_t transport, generation;
	char name[]; /* as route_destination() makes it */
};

enum parking_state {
	PARKING_IDLE, /* nothing of it is parked */
	PARKING_RANKED,
	PARKING_RESTS,
};

/* The deferred messages of a backlog. Apart, since most never have one. */
struct parking {
	struct backlog *backlog;
	struct due_backlog due;
	union {
		RB_ENTRY(parking) by_load;
		TAILQ_ENTRY(parking) resting;
	};
	usec_t ask_at; /* while it rests */
	uint32_t load; /* rank: held and asked for */
	enum parking_state state;
};
RB_HEAD(backlog_names, backlog);
RB_HEAD(parking_loads, parking);
TAILQ_HEAD(parking_resting, parking);

struct backlog *
backlog_find(const struct send *s, uint32_t transport, const char *name);
/* Found or made; NULL: -ENOMEM. */
struct backlog *
backlog_get(struct send *s, uint32_t transport, const char *name);
/* The same of its parking. */
struct parking *backlog_get_parking(struct send *s, struct backlog *b);
/* Free what nothing refers to. */
void backlog_put(struct send *s, struct backlog *b);
/* Each of them; visit may free the one that it is given. */
void
backlog_each(struct send *s, void (*visit)(struct send *s, struct backlog *b));
/* With nothing that refers to it but deferred messages. */
void backlog_free(struct send *s, struct backlog *b);
/* By destination, in any generation, as strcmp(). */
int
backlog_compare(const struct backlog *b, uint32_t transport, const char *name);

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
 * Parkings are ranked by load, the least first, so that the first one alone
 * says whether any may have a message more. Those of dead destinations rest in
 * between, so that their messages go on slowly: each is deferred without an
 * attempt, or given up when it is too old. */
struct share {
	struct backlog_names names;
	struct parking_loads ranks;
	struct parking_resting resting; /* all for the same time: in order */
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
void share_remember(struct send *s, const struct message *m, struct due *d);

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
struct backlog *share_backlog_of(const struct send *s, const struct due *d);

/* ---- claims.c ----
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

/* ---- act_run.c: acts of operators that threads do ---- */

/* Nothing else is done with that message until the act has ended. */
bool act_is_under_way(const struct send *s, uint64_t inode);
/* The same: an offer of it, or its file in hold/, is passed over, and looked
 * for again after the act. */
bool act_meets_offer(struct send *s, uint64_t inode);
bool act_meets_held(struct send *s, uint64_t inode);

/* So many acts of the queue itself are under way that no other begins. */
bool acts_own_are_full(const struct send *s);

/* A file that a walk has found, as the one that read the directory saw it: it
 * may have changed since. */
struct walk_item {
	struct spool_item file;
	/* In hold/: */
	struct queue_id id;
	int note_error;    /* -errno of hold_note_read() */
	usec_t until_wall; /* of its note; 0: no end */
	/* In bounce/: */
	bool has_message; /* the queue has a file of that inode */
};

/* ---- holds.c: a hold with an end ---- */

/* A file of hold/ was found by the walk: it is released when its time is over.
 */
void acts_found_held(struct send *s, const struct walk_item *item);
/* In a thread: its id and its note. */
void acts_look_at_held(const struct spool *sp, struct walk_item *item);
/* A message is on hold until then; 0: no end. */
void acts_hold_ends(struct send *s, usec_t until_wall);
/* When the next hold ends, hold/ is walked. */
usec_t acts_hold_work(struct send *s);

/* ---- walk.c: reading directories ----
 *
 * A thread reads a part of a directory, with the times of its files, while the
 * loop does other things; then the loop deals with what was found. A file may
 * have moved by then, as it may between readdir() and anything else. On a file
 * system in memory, and when no thread can be had, the loop reads. */
struct walk_plan {
	enum spool_dir dir;
	bool with_stat;
	int most; /* items of a part, which are as many as a turn takes */
	/* The one that reads the directory looks at each file, and tells what
	 * the loop is to know of it; NULL: nothing. */
	void (*look)(const struct spool *sp, struct walk_item *item);
};
/* -ENOMEM. */
int walk_begin(struct send *s, const struct walk_plan *plan);
/* 1: the next item; 0: that was the last one; -EAGAIN: not yet, send_wake()
 * comes; another -errno: a part of the directory could not be read. */
int walk_next(struct send *s, const struct walk_item **ret_item);
/* The last item comes again. */
void walk_again(struct send *s);
/* Of a walk that has not begun, too. */
void walk_end(struct send *s);

/* ---- found.c: files that a walk has found ----
 *
 * The loop looks whether memory knows the file; a thread moves or removes it,
 * as an act of the queue itself, and looks again whether it is there. */
void found_active(struct send *s, const struct walk_item *item);
void found_deleted(struct send *s, const struct walk_item *item);
void found_held(struct send *s, const struct walk_item *item);
void found_reasons(struct send *s, const struct walk_item *item);
/* The file is gone from where it was. Its reasons go too, lest they meet the
 * next file of that inode, unless the file lies elsewhere in the queue. Those
 * for which there is no place among the acts the next message clears. */
void found_gone(struct send *s, uint64_t inode);
/* todo-proc cannot read a file of deferred/ (EIO), so it is never offered. When
 * it has not changed for longer than mail is kept it goes to corrupt/; without
 * a place among the acts when it is asked for again. */
void found_unreadable(struct send *s, uint64_t inode);
/* In the thread of the walk: what found_reasons() is to know. */
void look_at_reasons(const struct spool *sp, struct walk_item *item);

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
usec_t deferred_work(struct send *s);
/* A file that the walk of hold/ had found is not there any more. */
void deferred_left_hold(struct send *s);
/* The queue ends: the walk that runs begins anew when that is over. */
void deferred_pause(struct send *s);
/* The message, just moved there, is due at. */
void deferred_add(struct send *s, const struct message *m, usec_t at_mono);
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
