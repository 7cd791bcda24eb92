/* todo-proc/pure.h - the parts of todo-proc that do no I/O and read no clock:
 *
 *	inbox.c    files of incoming/ that are to be examined
 *	offered.c  messages that were offered to queue-send a moment ago
 *	foreign.c  names that have been warned about
 *	census.c   recipients and destinations of one message
 */
#ifndef TODO_PROC_PURE_H
#define TODO_PROC_PURE_H

#include "config/conf.h"
#include "ipc/msg.h"

#include <bsd/sys/tree.h>

/* ---- inbox ----
 *
 * Orders of the same small nodes: `fresh`, which is new, and `ready`, found by
 * a scan, both by the mtime of the file, which is when it was written; and
 * `later`, by the time of the next examination. New and ready files take turns,
 * so that neither new mail nor old mail waits for the other. Of more than
 * INBOX_FEW ready files the oldest and the newest take turns: mail that came
 * just before this process began does not wait for all that lies there.
 *
 * A file whose bell was heard is new. Its mtime is not known before somebody
 * has looked, so it is `heard`, a few of them in the order of the rings; heard
 * and fresh files take turns.
 *
 * Bounded: ready keeps the INBOX_MAX oldest files that it was given, `newest`
 * the INBOX_NEWEST newest of the others. After ready has left a file out,
 * `more` is set: from then on only files older than its newest come in, so that
 * the order is kept, and the directory is scanned again when ready runs low. A
 * file that finds no room in fresh goes to ready. A node has at most 64 bytes,
 * an order at most 4 MiB. */

#define INBOX_MAX       65536
#define INBOX_NEWEST    1024
#define INBOX_FEW       512
#define INBOX_LOW       1024
#define INBOX_LATER_MAX 1024
#define INBOX_HEARD_MAX 64
#define INBOX_DROPS_MAX 256 /* no other drop is picked up before */
#define INBOX_WAIT_MIN  (100 * USEC_PER_MSEC)
#define INBOX_WAIT_MAX  (5 * USEC_PER_SEC)

struct inbox_file {
	RB_ENTRY(inbox_file) link;
	usec_t at; /* mtime_wall, in later a monotonic time */
	uint64_t inode;
	uint8_t tries; /* examinations that were too early */
	bool heard;
	bool drop; /* was picked up */
};
RB_HEAD(inbox_tree, inbox_file);

struct inbox {
	struct inbox_tree fresh, ready, newest, later;
	uint32_t nfresh, nready, nnewest, nlater;
	uint32_t ndrops; /* files that were picked up, in any of them */
	uint64_t heard[INBOX_HEARD_MAX]; /* inodes */
	uint32_t heard_first, nheard;
	bool more;
	bool turn;        /* the next one is from ready */
	bool newest_turn; /* the next ready one is the newest */
	bool heard_turn;  /* the next new one was heard */
};

void inbox_init(struct inbox *b);
void inbox_done(struct inbox *b);
/* 1: new; 0: known, or left out (see `more`); -ENOMEM, as left out. */
int inbox_add(struct inbox *b, uint64_t inode, usec_t mtime_wall);
/* inbox_add() of a file that is new; a ready file becomes fresh. */
int inbox_ring(struct inbox *b, uint64_t inode, usec_t mtime_wall);
/* The file, which was added, is a drop that was picked up. */
void inbox_note_drop(struct inbox *b, uint64_t inode, usec_t mtime_wall);
/* A bell named this inode. 1: new; 0: it was heard before; -ENOSPC. */
int inbox_hear(struct inbox *b, uint64_t inode);
/* Is there a file to take? fresh_only: ready files must wait. */
bool inbox_has(const struct inbox *b, bool fresh_only);
/* Take the file whose turn it is; false: there is none. */
bool inbox_take(struct inbox *b, bool fresh_only, struct inbox_file *ret);
/* The file is examined again after a while, twice as long each time, at least
 * `least`. A file that does not fit is left to the scan. */
void inbox_later(
    struct inbox *b, const struct inbox_file *c, usec_t now, usec_t least);
/* Files whose wait is over become fresh, as old as a file can be. The time of
 * the next one: USEC_NEVER for none. */
usec_t inbox_wake(struct inbox *b, usec_t now);
/* A scan of the whole directory begins: `more` is about this scan alone. */
void inbox_scan_begins(struct inbox *b);
/* Is it time to scan for the files that were left out? */
bool inbox_is_low(const struct inbox *b);

/* ---- offered ----
 *
 * The last messages that were offered to queue-send and may still lie in
 * incoming/. queue-send gives no credit for more than OFFERED_MAX messages that
 * it has not moved to active/, so a message older than the last OFFERED_MAX has
 * been moved. Inode numbers are reused: the mtime tells a file from a later one
 * of the same inode. An entry is good for OFFERED_TIME, so that no error
 * elsewhere hides a message for longer. */

#define OFFERED_MAX  MSG_PREP_WINDOW
#define OFFERED_TIME (60 * USEC_PER_SEC)

struct offered {
	struct {
		uint64_t inode;
		usec_t mtime_wall;
		usec_t at;
	} last[OFFERED_MAX];
	uint32_t next;
};

void
offered_add(struct offered *o, uint64_t inode, usec_t mtime_wall, usec_t now);
bool offered_has(
    const struct offered *o, uint64_t inode, usec_t mtime_wall, usec_t now);
/* queue-send has put messages back, or has not got all of them. */
void offered_forget(struct offered *o);

/* ---- foreign ----
 *
 * Names in the directories that qscheduler did not make are ignored, with one
 * warning each. The last FOREIGN_MAX names are remembered by a hash, so a
 * directory with more of them warns again, at most FOREIGN_SAID times an hour.
 */

#define FOREIGN_MAX  256
#define FOREIGN_SAID 100

struct foreign {
	uint64_t last[FOREIGN_MAX];
	uint32_t next;
	uint32_t said; /* in this hour */
	int64_t hour;
};

/* Should this name be warned about now? where tells directories apart. */
bool
foreign_warn(struct foreign *f, uint32_t where, const char *name, usec_t now);

/* ---- census ----
 *
 * The number of recipients, destinations and entries of a message for each
 * transport, and the names of its destinations while they are few. Exact:
 * entries is the sum over destinations of
 * ceil(recipients / destination_recipient_limit), or, of a `single` message,
 * the number of its recipients.
 *
 * Destinations are told apart by 64 bits of a hash with a secret start, in an
 * open-addressed table of 16 bytes a place, at most CENSUS_PLACES of them:
 * 16 MiB for a message of any size, two places for each recipient of a small
 * one. A message with more destinations than fit is counted in several passes
 * over its recipients, each for its share of the hashes:
 *
 *	census_begin
 *	for each pass: for each pending recipient: census_add
 *	               census_pass_ends: another pass?
 *	census_rows, census_names, census_done
 */

#define CENSUS_PLACES (1u << 20)

/* The transports, as a census is told of them. */
struct census_limits {
	uint32_t ntransports;
	uint32_t limit[CONF_TRANSPORTS_MAX]; /* recipients of an entry */
};

struct census_row {
	uint32_t recipients, destinations, entries;
};

struct census_place {
	uint64_t hash; /* 0: free */
	uint64_t count;
};

struct census {
	struct census_place *places;
	uint32_t nplaces, used; /* nplaces is a power of two */
	uint32_t pass, passes;
	bool overflow; /* this pass did not fit */
	bool single;   /* an entry has one recipient, whatever the limit */
	struct census_limits limits;
	struct census_row rows[CONF_TRANSPORTS_MAX];
	struct buf names; /* the blob of MESSAGE */
	uint32_t nnames;
	bool unnamed; /* too many names, or no memory for them */
};

void census_limits(const struct conf *conf, struct census_limits *ret_limits);
/* For at most this number of recipients. -ENOMEM. */
int census_begin(
    struct census *c, const struct census_limits *limits, uint32_t recipients);
/* The bytes that census_begin() takes for them. */
size_t census_size(uint32_t recipients);
/* transport is below limits->ntransports; case does not count in nexthop and
 * the local part, as in common/sched. address NULL: the nexthop is the
 * destination, whatever the limit. */
void census_add(struct census *c, uint32_t transport, const char *nexthop,
    const char *address);
/* True: walk the recipients again. */
bool census_pass_ends(struct census *c);
/* The blob of MESSAGE: rows of transports with recipients. -ENOMEM. */
int census_rows(const struct census *c, struct buf *out);
/* The other blob: the names of all destinations, or nothing. It is moved. */
void census_names(struct census *c, struct buf *out);
void census_done(struct census *c);

#endif
