/* todo-proc/todo.h - the state of one todo-proc, and the source of each part:
 *
 *	control   start, reload, stop: the daemon's calls; the one timer
 *	offer     the link with queue-send
 *	scan      the directories are read
 *	prepared  messages of expansions that were interrupted
 *	watch     inotify on maildrop/
 *	bells     doorbells
 *	pickup    a drop is moved into incoming/
 *	examine   files are checked, counted, or moved to corrupt/
 *	waiting   the mail of each user, for the shares
 *	table     the counts of users, and the files that are counted
 *	walk      a directory is read, a part at a time
 *	todo      clocks, and the beginning of a turn
 *
 * A part calls only parts below it. pure.h has the parts without I/O;
 * pickup_task, examine_task and routing are what threads use.
 * Soft: -errno. Parts log what an operator must know.
 */
#ifndef TODO_PROC_TODO_H
#define TODO_PROC_TODO_H

#include "daemon/daemon.h"
#include "daemon/executor.h"
#include "daemon/turn.h"
#include "ipc/bell.h"
#include "ipc/wire.h"
#include "route/route.h"
#include "spool/spool.h"
#include "spool/sync_pool.h"
#include "spool/waiting.h"
#include "todo-proc/examine_task.h"
#include "todo-proc/pickup_task.h"
#include "todo-proc/pure.h"
#include "todo-proc/routing.h"

struct event;
struct todo;

/* A name that was found, and what came of the work on it. */
struct walk_found {
	int error; /* of a subdirectory that was not read: nothing else is set
		    */
	struct spool_item item;
	int result; /* of the work */
	union {
		struct picked picked;    /* maildrop/ */
		struct waiting_user one; /* the counts: what it adds */
	} u;
};

#define WALK_PART_MAX 200

struct walk_kind {
	enum spool_dir dir;
	bool with_stat;
	int most; /* names of a part */
	/* Done by the thread with each name; NULL: nothing. */
	void (*work)(const struct spool *sp, enum spool_dir dir,
	    struct walk_found *found);
	/* Done by the loop with each name, and each error. */
	void (*take)(struct todo *t, const struct walk_found *found);
};

struct walk_part;
struct walk {
	const struct walk_kind *kind;
	struct walk_part *part; /* NULL: not running */
	bool away, ready;
};

struct todo_counts {
	uint64_t rings, rings_bad, rings_stale, found_by_scan, lost_rings;
	uint64_t maildrop;  /* drops that wait */
	uint64_t incoming;  /* files that were not offered */
	uint64_t corrupt;   /* moved there */
	uint64_t scan_only; /* there is no message queue */
};

struct todo_scan {
	struct walk walk;
	bool wanted;
	usec_t started_at;
	usec_t not_before; /* so that scanning takes a small part of the time */
	usec_t due_at;     /* the next one, wanted or not */
	uint64_t seen;     /* files that wait */
};

/* Files under examination. */
#define EXAMINE_MAX 16
struct examination {
	struct examine_task t;         /* first */
	TAILQ_ENTRY(examination) link; /* in the order of their beginnings */
	struct inbox_file from;        /* of incoming/ */
	struct routing *routing;       /* of t */
	usec_t began_at;
	uint32_t era; /* of the link that asked for it */
	bool ended;
	void (*ended_with)(struct todo *t, struct examination *e);
};
TAILQ_HEAD(examination_list, examination);

struct examinations {
	struct examination_list list, idle;
	uint32_t count;              /* of list */
	uint32_t incoming, deferred; /* of the link that there is */
};

/* Deferred messages to be prepared, in the order of the requests. */
struct prepares {
	uint64_t inode[MSG_PREP_WINDOW];
	uint32_t first, count;
};

/* Rows of one size, open addressing. It grows: every user who has mail in the
 * queue has a row, and every file that is counted. The key of a file is made of
 * inode, uid and bytes: a file that is removed leaves its inode to the next
 * one. */
struct table {
	char *rows; /* each begins with its key, 64 bits; 0: free */
	uint32_t places, count;
};

struct waiting {
	struct walk walk;
	uint32_t dir; /* the one that is walked */
	bool running, wanted;
	bool writing; /* a thread writes the file */
	bool seen;    /* the last walk found mail of a user with limits */
	bool publish; /* the counts differ from the file */
	bool short_of_memory; /* for the walk that is under way */
	uint64_t unpublished; /* bytes that came since the file was written */
	usec_t began_at, not_before, quiet_at, published_at;
	usec_t began_wall;    /* of the walk that is under way */
	usec_t walked_wall;   /* of the last one: its beginning */
	struct table counted; /* for the file */
	struct table fresh;   /* by the walk that is under way */
	struct table met;     /* files of this walk, or of the last one */
};

/* Causes whose messages have a rate limit of their own. */
#define TODO_CAUSES 134

struct todo {
	struct daemon *d; /* NULL in unit tests */
	const struct conf *conf;
	struct event_base *base;
	struct turn turn;
	usec_t now, now_wall;
	usec_t began_wall; /* of this process; a file written later is new */
	struct spool sp;
	bool in_memory; /* the spool */
	int lock;
	bool hung; /* at its end: a thread that uses the spool is left behind */
	struct routings routings;  /* the first is in force */
	struct executor *executor; /* threads that wait for the disk */
	unsigned threads;          /* of executor; 0: the loop waits */

	struct inbox inbox;
	struct offered offered;
	struct prepares prepares;
	struct examinations examine;
	struct todo_scan incoming, maildrop;
	struct walk prepared;
	struct waiting waiting;
	uint64_t left_out; /* files that the last scan saw and did not keep */
	struct foreign foreign;

	struct event *bell; /* on the message queue; or NULL */
	bool bell_deaf;     /* as many rings were taken as may be */
	bool bell_seldom;   /* the last look found one ring at most */
	uint32_t unlooked;  /* rings taken since */
	/* From then on nobody rings the one before it (ipc/bell.h). */
	usec_t bell_known_at;
	struct event *watch;
	bool unwatched; /* there is none, and that was said */
	struct wire *send;
	uint32_t credit;
	uint32_t era;  /* grows with each link */
	uint64_t read; /* bytes that this turn of the loop has read itself */
	bool leaving;  /* nothing begins */
	int status;    /* to leave with */
	usec_t leave_at;

	struct todo_counts counts, told;
	usec_t told_at;
	bool says;        /* a message goes to queue-send in this turn */
	bool drop_later;  /* this scan met a drop that is not settled */
	bool drop_came;   /* a drop came to incoming/ */
	usec_t drop_wait; /* until unsettled drops are tried again */
	usec_t said_io;   /* last log line about a disk error, for log_due() */
	usec_t said[TODO_CAUSES]; /* log_due() of each errno */
};

/* ---- todo ---- */

/* Read the clocks; at the head of every callback. */
void todo_tick(struct todo *t);
/* Run a turn soon. */
void todo_kick(struct todo *t);
/* A file of incoming/ was found. One that was written since this process began
 * is fresh, since its ring was lost or is still to come. As inbox_add(). */
int todo_found(struct todo *t, uint64_t inode, usec_t mtime_wall);
/* May this error be logged now? Each error once a minute, so that one that goes
 * on does not hide another. */
bool todo_say(struct todo *t, int error);
/* End the process when no task is under way, or soon. */
void todo_leave(struct todo *t, int status);

/* ---- walk ---- */

/* -ENOMEM. */
int walk_begin(struct todo *t, struct walk *w, const struct walk_kind *kind);
enum walk_state {
	WALK_READING, /* a part is being read, and a turn follows */
	WALK_MORE,    /* a part was taken */
	WALK_LAST,    /* the last part was taken; the caller calls walk_end() */
};
enum walk_state walk_take(struct todo *t, struct walk *w);
void walk_end(struct walk *w);

/* ---- waiting ----
 *
 * The mail of each user that waits in this queue, for the shares at the door
 * and of expansions (spool/waiting.h): counted by walks over incoming/,
 * active/, deferred/ and hold/. A file counts for its owner; of a file that the
 * system owns the walk reads the trailer, which names the submitter. A drop
 * that is picked up, and a message of the system that is offered, are added at
 * once. So mail that comes is known within WAITING_TELL, large mail at once,
 * mail that goes by the next walk. A walk does not begin before WAITING_SHARE
 * times the duration of the last one has passed. Where no user has limits, one
 * walk in WAITING_SELDOM keeps the figures for `qctl shares'.
 *
 * A walk counts a file of a user with limits once: a file that moves from
 * incoming/ to deferred/ can be met in each directory, and may be told as new,
 * too, also behind the end of the walk. active/ is read again behind deferred/
 * for files that went back meanwhile. What queue-send says comes just before
 * such a move, so a walk that is wanted for that waits for WAITING_EVERY. */

#define WAITING_EVERY      USEC_PER_SEC
#define WAITING_SHARE      50
#define WAITING_TELL       (USEC_PER_SEC / 10)
/* So many bytes are told at once: a share of large messages is soon full. */
#define WAITING_TELL_BYTES (1u << 20)
#define WAITING_SELDOM     (600 * USEC_PER_SEC)

void waiting_init(struct todo *t);
void waiting_done(struct todo *t);
/* Write the counts a last time: they hold while the system is stopped. */
void waiting_leave(struct todo *t);
/* A drop of this user came to incoming/. */
void
waiting_picked_up(struct todo *t, uint64_t inode, uid_t uid, uint64_t bytes);
/* A message of incoming/ was examined, and is offered for the first time. */
void waiting_offered(struct todo *t, const struct examine_task *e);
/* queue-send works: files that were counted may have gone. */
void waiting_changed(struct todo *t);
usec_t waiting_work(struct todo *t);

/* ---- table ---- */

/* Drops all rows, and frees their memory. */
void table_clear(struct table *t);
/* Adds to the row of more->uid, which is made. -ENOMEM. */
int waiting_table_add(struct table *t, const struct waiting_user *more);
/* Copies the rows, t->count of them; their number. */
uint32_t waiting_table_rows(const struct table *t, struct waiting_user *out);
/* Is any user of the rows such a one? */
bool waiting_table_any(const struct table *t, const struct todo *todo,
    bool (*is)(const struct todo *todo, uid_t uid));
/* 1: the file is new; 0: the file was there; -ENOMEM. */
int waiting_met_add(
    struct table *t, uint64_t inode, const struct waiting_user *one);

/* ---- examine ----
 *
 * Files are examined by threads (examine_task.h), EXAMINE_MAX at a time. Those
 * of incoming/ end in the order in which they began, but for one that takes
 * EXAMINE_PATIENCE. Damaged files are logged and counted. */

#define EXAMINE_PATIENCE (100 * USEC_PER_MSEC)

void examine_init(struct todo *t);
void examine_done(struct todo *t);
bool examine_is_full(const struct todo *t);
/* Is this file of incoming/ under examination? */
bool examine_has(const struct todo *t, uint64_t inode);
/* from: a file of incoming/, NULL: deferred/. `ended` is called when it has,
 * maybe from here, with the error of the task. -ENOMEM. */
int examine_begin(struct todo *t, uint64_t inode, const struct inbox_file *from,
    void (*ended)(struct todo *t, struct examination *e));
/* Ends those whose turn it is. The time when the next one need not wait any
 * longer. */
usec_t examine_work(struct todo *t);
/* Say and count what was moved to corrupt/, with `moved` as the error of the
 * move. split is the subdirectory of a split directory. -EBADMSG, or -errno
 * when it could not be moved. */
struct corrupt {
	enum spool_dir dir;
	uint32_t split;
	const char *name, *why;
	int moved;
};
int examine_say_corrupt(struct todo *t, const struct corrupt *c);

/* ---- pickup ---- */

/* A drop was picked up, or was not (pickup_task.h): counted and logged. 0,
 * -EAGAIN: its writer is not done; -EBADMSG: moved to corrupt/; -ENOENT; other
 * -errno: it waits. */
int pickup_ended(struct todo *t, const char *name, const struct picked *p);

/* ---- prepared ----
 *
 * Names in prepared/ that an expansion left when it was killed are settled by
 * their parents (spool/prepared.h), before each scan of incoming/, which then
 * finds what was moved there. An expansion that is under way keeps its names.
 */

void prepared_begin(struct todo *t);
void prepared_done(struct todo *t);
/* A bounded part. False: the walk has ended. */
bool prepared_work(struct todo *t, usec_t *ret_next);

/* ---- bells ----
 *
 * Doorbells are hints, never trusted. A bell names an inode, and only asks
 * whether such a file lies in incoming/. Bad bells (wrong length, a number out
 * of range) and stale ones (no such file, or known already) are counted and
 * dropped. A message queue that is full may have lost rings: that asks for a
 * scan.
 *
 * INBOX_HEARD_MAX rings are heard and not examined yet, at most. Others stay in
 * the message queue; when it is full submitters wait, so that new mail comes no
 * faster than it leaves incoming/ (docs/QUEUE.md, "The flow of new mail"). */

/* Takes the message queue that the supervisor passes. -errno. */
int bells_linked(void *todo, int fd);
void bells_done(struct todo *t);
/* Take the rings that may be heard. */
void bells_take(struct todo *t);
/* Wait for a ring while one more may be heard. */
void bells_listen(struct todo *t);
/* Are the fields in the range of an honest sender's? */
bool bell_is_right(const struct bell *bell);
/* One bell that was taken. */
void bells_rung(struct todo *t, const struct bell *bell);

/* ---- watch ----
 *
 * inotify on maildrop/: a drop is picked up at once, not at the next scan.
 * Without it (no instances left) the scan finds all drops, and tries again. */

void watch_init(struct todo *t);
void watch_done(struct todo *t);

/* ---- scan ----
 *
 * The directories are read: incoming/ as a net under the doorbells, maildrop/
 * for drops. At start, when queue-send asks, when rings may have been lost,
 * again after a scan that began while some could still ring the message queue
 * before this one, when the inbox runs low and had left files out, and every
 * scan_interval; some hundred names a turn. A scan does not begin before ten
 * times its own duration has passed, so it takes at most a tenth of the time;
 * but 10 s are enough.
 */

void scan_init(struct todo *t);
void scan_done(struct todo *t);
usec_t scan_incoming_work(struct todo *t);
usec_t scan_maildrop_work(struct todo *t);
/* A scan that began a moment ago may find a file older than those known: offer
 * no ready file yet. False at the latest SCAN_HOLD after its begin. */
#define SCAN_HOLD (USEC_PER_SEC / 2)
bool scan_holds(const struct todo *t);

/* ---- offer ----
 *
 * The link with queue-send (docs/QUEUE.md): messages of incoming/ are offered
 * against CREDIT, in order of arrival, those of deferred/ when PREPARE asks for
 * them; one and one in turn. The end of the link ends the process: the
 * supervisor starts it again with queue-send. */

/* -errno: the descriptor is still the caller's. */
int offer_linked(void *todo, int fd);
void offer_done(struct todo *t);
/* A frame of queue-send; -EBADMSG for a frame out of place. */
int offer_frame(struct todo *t, const struct msg *msg);
usec_t offer_work(struct todo *t);
/* COUNTS when they have changed: at most once a second alone, and twice a
 * second with a message. */
usec_t offer_counts_work(struct todo *t);

/* ---- control ---- */

extern const struct daemon_ops control_ops;

/* The state on a spool that is open (sp, conf, base are set). -errno. */
int todo_init(struct todo *t);
void todo_done(struct todo *t);

#endif
