/* todo-proc/todo.h - the state of one todo-proc, and who does what with it.
 *
 *	control   start, reload, stop: the daemon's calls; the one timer
 *	bells     doorbells in
 *	scan      incoming/ as a net, maildrop/
 *	watch     inotify on maildrop/
 *	pickup    a drop is moved into incoming/
 *	waiting   what of each user waits, for the shares at the door
 *	examine   one file: checked, counted, or moved to corrupt/
 *	hand      the link with queue-send: CREDIT, PREPARE and SCAN in,
 *	          MESSAGE, GONE and COUNTS out
 *
 * Pure and apart: backlog, handed, census, foreign.
 */
#ifndef TODO_PROC_TODO_H
#define TODO_PROC_TODO_H

#include "daemon/daemon.h"
#include "daemon/turn.h"
#include "ipc/bell.h"
#include "ipc/wire.h"
#include "route/route.h"
#include "spool/spool.h"
#include "spool/waiting.h"
#include "todo-proc/backlog.h"
#include "todo-proc/foreign.h"
#include "todo-proc/handed.h"

struct event;

struct todo_counts {
	uint64_t rings, rings_bad, rings_stale, found_by_scan, lost_rings;
	uint64_t maildrop;  /* drops that wait */
	uint64_t incoming;  /* files that were not handed over */
	uint64_t corrupt;   /* moved there */
	uint64_t scan_only; /* there is no message queue */
};

struct todo_scan {
	struct spool_scan walk;
	bool running, wanted;
	usec_t started_at;
	usec_t not_before; /* so that scanning takes a small part of the time */
	usec_t due_at;     /* the next one, wanted or not */
	uint64_t seen;     /* files that wait */
};

/* Deferred messages to be prepared, in the order that they were asked for. */
struct prepares {
	uint64_t inode[MSG_PREP_WINDOW];
	uint32_t first, count;
};

/* Users by uid + 1, open addressing: 0 is free. */
#define WAITING_PLACES 1024
struct waiting_table {
	struct waiting_user rows[WAITING_PLACES];
};

struct waiting {
	struct spool_scan walk;
	uint32_t dir; /* of those that are walked */
	bool running, wanted;
	bool seen;    /* the last walk found something of a user */
	bool publish; /* it differs from what was told */
	usec_t began_at, not_before, quiet_at, published_at;
	struct waiting_table counted; /* what is told */
	struct waiting_table fresh;   /* by the walk that is under way */
	struct waiting_table since;   /* came since it began */
};

/* Causes whose messages have a rate limit of their own. */
#define TODO_CAUSES 134

struct todo {
	struct daemon *d; /* NULL in unit tests */
	const struct conf *conf;
	struct event_base *base;
	struct turn turn;
	usec_t now, now_wall;
	usec_t began_wall; /* what was written before is backlog */
	struct spool sp;
	int lock;
	struct route_table *routes;

	struct backlog backlog;
	struct handed handed;
	struct prepares prepares;
	struct todo_scan incoming, maildrop;
	struct waiting waiting;
	uint64_t left_out; /* files that the last scan saw and did not keep */
	struct foreign foreign;

	struct event *bell; /* its descriptor is the message queue; or NULL */
	struct event *watch;
	struct wire *send;
	uint32_t credit;

	struct queue_rcpt_cursor cursor; /* scratch */
	struct todo_counts counts, told;
	usec_t told_at;
	bool drop_later;
	usec_t drop_wait; /* a drop was not settled: look again after this */
	usec_t said_io;   /* log_due() */
	usec_t said[TODO_CAUSES]; /* the same for each errno */
};

/* Read the clocks; at the head of every callback. */
void todo_tick(struct todo *t);
/* There is something to do: run a turn soon. */
void todo_kick(struct todo *t);
/* May this error be logged now? Once a minute each, so that one that goes on
 * does not hide another. */
bool todo_say(struct todo *t, int error);
usec_t todo_mtime(const struct stat *st);

#endif
