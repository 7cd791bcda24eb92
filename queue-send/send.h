/* queue-send/send.h - the state of one queue-send, and who does what with it.
 *
 *	control     start, reload, flush, stop: the daemon's calls
 *	recover     at start: what a crash left in active/
 *	loop        the clocks, read in each callback; the call for a turn
 *	turn        bounded work of each kind, then the one timer
 *	links       the peers: frames in, agents that come and go
 *	offers      MESSAGE and GONE of todo-proc; CREDIT and PREPARE to it
 *	active      a message comes into the active queue
 *	share       no destination has more of it than its share
 *	claims      the destinations that a message still has
 *	recipients  its recipients are read in batches
 *	schedule    the scheduler and its parameters
 *	site_table  windows of destinations, shared with all queues
 *	watch       what it does, in the log
 *	dispatch    entries are handed to agents
 *	dead        entries for dead destinations are deferred
 *	results     RESULT and DONE: marks, reasons, log
 *	deaths      of agents: whose fault are they
 *	finish      a message leaves: removed, deferred, held, corrupt
 *	sync        its marks are on disk before it does
 *	evacuate    the queue ends: its mail goes to other queues
 *	deferred    the scan of deferred/, hold/, corrupt/
 *	publish     the page, load reports
 *
 * Decisions that need none of this are pure and apart: retry, due, admission,
 * health, ages, rate, jumps.
 *
 * Times: `now` is read once in each callback (send_read_clocks) and lies here.
 * Everything below is soft: what fails with one message is logged and that
 * message is put where the table of docs/QUEUE.md says.
 */
#ifndef QUEUE_SEND_SEND_H
#define QUEUE_SEND_SEND_H

#include "agent/agent.h"
#include "daemon/daemon.h"
#include "daemon/turn.h"
#include "ipc/page.h"
#include "queue-send/ages.h"
#include "queue-send/due.h"
#include "queue-send/health.h"
#include "queue-send/admission.h"
#include "queue-send/jumps.h"
#include "queue-send/message.h"
#include "queue-send/rate.h"
#include "queue-send/retry.h"
#include "queue-send/share.h"
#include "queue-send/watch.h"
#include "route/route.h"
#include "sched/sched.h"
#include "spool/spool.h"

struct agent_link;
struct event;
struct evacuation;
struct sync_pool;

#define SEND_LOCK "queue-send" /* in lock/, by daemon_take_queue() */

struct send_counters {
	uint64_t accepted;  /* messages from incoming */
	uint64_t finished;  /* messages that left for good */
	uint64_t delivered; /* recipients, as the rest */
	uint64_t deferred, failed, expired;
	uint64_t bytes_delivered;
};

/* What todo-proc last told (COUNTS). */
struct todo_counts {
	uint64_t rings, rings_bad, rings_stale, found_by_scan, lost_rings;
	uint64_t maildrop, incoming, corrupt;
	uint32_t scan_only;
};

/* A walk of one directory, a bounded number of steps a turn. */
struct walk {
	struct spool_scan scan;
	bool running, wanted;
	usec_t began_at, ended_at; /* the last one */
	uint64_t found;            /* so far */
	uint64_t count; /* by the last whole walk, and what we did since */
};

enum walk_kind {
	WALK_DEFERRED,
	WALK_ACTIVE,
	WALK_HOLD,
	WALK_CORRUPT,
	WALK_NKINDS,
};

struct publisher {
	struct queue_page *page; /* NULL: no page yet */
	int requests;            /* message queue of the supervisor, or -1 */
	usec_t published_at;
	usec_t reported_at; /* load */
	bool changed;
};

struct send_sites {
	struct shared *shared; /* the table; attached or not */
	struct event *wake;    /* somebody made room */
	bool lost;             /* the table is lost, and that was said */
	usec_t lost_told_at;   /* to the supervisor; log_due() */
	uint32_t counted;      /* the table that it was told of, if has_told */
	bool has_told;
	uint64_t told;  /* of its troubles, in the log */
	usec_t told_at; /* log_due() */
};

struct marks_sync {
	struct sync_pool *pool;
	struct event *done; /* a task is */
	unsigned threads;   /* 0, in unit tests: a task is done at once */
	uint32_t tasks;     /* for single messages, under way */
	uint32_t serial;    /* of the last task */
	uint32_t epoch;     /* of marks that are written now, from 1 */
	uint32_t synced;    /* marks up to this epoch are on disk */
	uint32_t whole;     /* up to here they will be; 0: no task for all */
	bool distrusted;    /* such a task has failed: it proves nothing */
	usec_t changed_at;  /* first change that none covers; 0: no change */
	usec_t not_before;  /* descriptors, memory or threads had run out */
};

TAILQ_HEAD(agent_links, agent_link);
RB_HEAD(delivery_tree, delivery);

struct send {
	struct daemon *d;    /* NULL in unit tests */
	uint32_t generation; /* of the link that came last */
	const struct conf *conf;
	struct event_base *base;
	struct turn turn;
	usec_t now, now_wall;
	struct jumps jumps;  /* of the wall clock */
	usec_t expire_after; /* monotonic: no message expires before */
	struct spool sp;
	int lock; /* SEND_LOCK */

	struct route_table *routes;
	struct send_sites sites;
	struct sched *sched;
	struct watch watch;
	struct retry_params retry;
	struct health health;
	struct marks_sync sync;

	struct messages messages;
	struct unrecorded_list unrecorded; /* results without their marks */
	usec_t record_at;                  /* when to try them again */
	usec_t finish_at; /* not before: nothing could be moved */
	usec_t stuck_at;  /* when to try again what could not */
	uint32_t active;  /* messages in the active queue */
	struct due_queue due;
	struct share share;
	struct walk walks[WALK_NKINDS];
	usec_t walk_at;   /* the next walk of everything */
	bool walk_flush;  /* what the walk finds is due */
	usec_t stray_at;  /* when to walk active/ again: some did not move */
	usec_t rescan_at; /* when to look for files of other queues */
	struct evacuation *evacuation; /* NULL: the queue keeps its mail */

	struct wire *todo;
	struct admission admission;
	bool parked_turn; /* what is asked for next: parked, or by its time */
	uint32_t credit;  /* given and not used */
	usec_t admission_blocked_until;
	bool want_scan;
	usec_t scan_at; /* not before */

	struct agent_links agents; /* all that live */
	struct agent_link *agent[AGENT_NPROGRAMS];
	struct delivery_tree deliveries;
	uint64_t last_delivery;
	uint32_t agent_deaths;
	uint64_t suspect;    /* the last one that was asked for (retry.h) */
	usec_t dispatch_at;  /* not before: descriptors had run out */
	bool starts_nothing; /* for now: schedule_pause() */
	struct queue_rcpt_cursor cursor; /* scratch: 16 KiB, one is enough */

	struct publisher pub;
	struct send_counters counters;
	struct todo_counts todo_counts;
	struct ages ages;
	struct rate rate_in, rate_out;

	bool stopping, hung_up;
	usec_t stop_at;
	usec_t said_offer, said_io, said_load, said_stray; /* log_due() */
};

/* Read the clocks; at the head of every callback. */
void send_read_clocks(struct send *s);
/* There is something to do: run a turn soon. */
void send_wake(struct send *s);
/* Is the mail of this queue being moved to others (evacuate.h)? */
static inline bool
send_is_evacuating(const struct send *s)
{
	return s->evacuation != NULL;
}

#endif
