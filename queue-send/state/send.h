/* queue-send/state/send.h - the state of one queue-send. Each floor has headers
 * of its own (queue-send/LAYERS), which say what each source does:
 *
 *	state       the state, one message, rules that need no disk
 *	disk        work that waits for the disk; files, directories, acts
 *	schedule    the scheduler, and the table of destinations
 *	backlog     messages that wait, and shares of the active queue
 *	rules       rules that put mail on hold
 *	reports     reports to senders
 *	message     a message on its way: in, read, recorded, out
 *	agents      todo-proc, and the agents that deliver
 *	operators   acts of operators on messages; why a message waits
 *	walks       files that the walks over directories find
 *	evacuation  the mail of a queue that ends
 *	control.h   start, reload, flush, stop; the turn of the loop; the page
 *
 * The state of a floor that other floors see by functions alone is in a header
 * own.h of that floor, and struct send has a pointer to it.
 *
 * `now` is read once in each callback, by send_read_clocks(). Everything below
 * is soft: a failure with one message is logged, and the message is put where
 * the table of docs/QUEUE.md says.
 */
#ifndef QUEUE_SEND_STATE_SEND_H
#define QUEUE_SEND_STATE_SEND_H

#include "agent/agent.h"
#include "daemon/daemon.h"
#include "daemon/turn.h"
#include "queue-send/state/due.h"
#include "queue-send/state/message.h"
#include "daemon/executor.h"
#include "queue-send/state/pure.h"
#include "route/route.h"
#include "sched/sched.h"
#include "spool/spool.h"

struct agent_link;
struct event;
struct evacuation;
struct links;
struct operators;
struct removal;
struct reports;
struct rules;
struct schedule;
struct share;
struct walk_part;

#define SEND_LOCK "queue-send" /* in lock/, by daemon_take_queue() */

struct send_counters {
	uint64_t accepted;  /* messages from incoming */
	uint64_t finished;  /* messages that left for good */
	uint64_t delivered; /* recipients, as the rest */
	uint64_t deferred, failed, expired;
	uint64_t bytes_delivered;
};

/* A walk of one directory, a bounded number of steps a turn; one at a time. */
struct walk {
	bool running, wanted;
	usec_t began_at, ended_at; /* the last one */
	uint64_t found;            /* so far */
	uint64_t count; /* by the last whole walk, and by moves since then */
};

/* Reads what is walked over. */
struct reader {
	struct walk_part *part; /* of the walk that runs */
	bool away;              /* the part is with the thread */
};

enum walk_kind {
	WALK_DEFERRED,
	WALK_ACTIVE,
	WALK_HOLD,
	WALK_CORRUPT,
	WALK_DELETED,
	WALK_BOUNCE,
	WALK_NKINDS,
};

struct publisher {
	struct queue_page *page; /* NULL: no page yet */
	int requests;            /* message queue of the supervisor, or -1 */
	pid_t self;
	usec_t published_at;
	usec_t changed_at;  /* since then; 0: not yet */
	usec_t reported_at; /* load */
	bool changed;
};

struct marks_sync {
	uint32_t tasks;    /* for single messages, under way */
	uint32_t epoch;    /* of marks that are written now, from 1 */
	uint32_t synced;   /* marks up to this epoch are on disk */
	uint32_t whole;    /* up to here they will be; 0: no task for all */
	bool distrusted;   /* such a task has failed: it proves nothing */
	usec_t changed_at; /* first change that none covers; 0: no change */
	usec_t not_before; /* descriptors, memory or threads had run out */
};

RB_HEAD(removal_tree, removal);

struct removals {
	uint32_t limit;           /* as many hold new messages back */
	uint32_t count;           /* all of them */
	uint32_t nwaiting;        /* of these: not begun */
	uint32_t nfailed;         /* of these: to be tried again */
	struct removal_tree tree; /* all of them */
	struct sync_tasks waiting;
	struct sync_tasks failed;
	usec_t again_at;   /* when to try those */
	usec_t since;      /* of the first that waits */
	usec_t delay;      /* of a few, for more to come */
	usec_t not_before; /* nothing could be removed */
};

struct fetch_wait;
STAILQ_HEAD(fetch_waits, fetch_wait);

struct fetches {
	uint32_t tasks;           /* under way */
	struct fetch_waits waits; /* entries of messages that are fetched */
};

/* Kinds of work that wait for the disk (disk/work.h). */
enum disk_kind {
	DISK_MOVE,
	DISK_REMOVE,
	DISK_RECORD, /* marks and reasons of results, in their order */
	DISK_MARK,   /* a mark alone, while the disk answers: by the loop */
	DISK_READ,   /* files of the active queue that are not in memory */
	DISK_ACT,    /* acts of operators */
	DISK_SYNC,
	DISK_WALK,   /* directories */
	DISK_REPORT, /* messages to senders */
	DISK_PROBE,  /* can a queue be written again? */
	DISK_ASK,    /* does the disk answer? */
	DISK_CLOCK,
	DISK_OPEN,  /* another queue, on a disk of its own */
	DISK_RULES, /* rules of hold, on the disk of QUEUE_BASE */
	DISK_NKINDS,
};

struct disk {
	struct executor *executor;
	struct executor_kind kinds[DISK_NKINDS]; /* set before disk_start() */
	usec_t looked;  /* the time (s->now) at which slow was found out */
	bool slow;      /* the disk answers slowly */
	usec_t slow_at; /* the time at which the loop waited; 0: never */
};

/* Files whose move into active/ failed last: inode numbers, a ring. */
#define REFUSED_FILES 16
struct refused_files {
	uint64_t inode[REFUSED_FILES]; /* 0: none */
	uint32_t next;                 /* place of the next one */
};

/* Questions to the disk, which show that it is late. */
struct late {
	usec_t at;    /* the next question */
	usec_t began; /* the one that is under way */
	bool away;    /* one is under way */
	bool told;    /* that one has lasted, and the page is to say so */
};

struct other_queue;
LIST_HEAD(other_queue_list, other_queue);

struct act_task;
TAILQ_HEAD(act_tasks, act_task);

/* Acts on messages that threads do. */
struct acts {
	struct act_tasks list; /* under way */
	uint32_t count;
	uint32_t own;             /* of these: of the queue itself */
	struct quota quota;       /* time of the loop for operators */
	struct act_tasks waiting; /* for another queue to be open (spread.c) */
	uint32_t nwaiting;
};

RB_HEAD(accepted_tree, accepted_before);
TAILQ_HEAD(agent_links, agent_link);
struct send;

/* Calls of a lower floor to a higher one, set by control.c. */
struct send_ops {
	/* deliver-smtp tells a line of a trace. -EBADMSG. */
	int (*traced)(struct send *s, const struct msg_TRACE_LINE *line);
	void (*smtp_linked)(struct send *s);
};

struct send {
	const struct send_ops *ops;
	struct daemon *d;    /* NULL in unit tests */
	uint32_t generation; /* of the link that came last */
	const struct conf *conf;
	struct event_base *base;
	struct turn turn;
	const char *subuid_file; /* SUBUID_FILE; NULL: owners are not asked */
	usec_t now, now_wall;
	/* Older messages may have been tried before: by an earlier run, or
	 * here, and were given to another queue, which may give them back. */
	usec_t began_wall;
	struct jumps jumps;  /* of the wall clock */
	usec_t clock_at;     /* when to save them */
	bool clock_away;     /* a thread saves them */
	usec_t expire_after; /* monotonic: no message expires before */
	struct spool sp;
	bool in_memory; /* the spool: no inode number comes again */
	int lock;       /* SEND_LOCK */
	struct disk disk;
	bool stopping, hung_up;
	bool hung; /* at its end: a thread that uses the spool is left behind */
	usec_t stop_at;

	/* schedule.h */
	struct route_table *routes;
	struct shared *sites; /* the table of destinations; attached or not */
	struct sched *sched;
	struct schedule *schedule;

	/* message/path.h */
	struct messages messages;
	uint32_t active; /* messages in the active queue */
	struct retry_params retry;
	struct health health;
	struct marks_sync sync;
	struct removals removals;
	struct reports *reports;
	struct admission admission;
	usec_t admission_blocked_until;
	usec_t refused_at; /* when to ask for files whose move in failed */
	struct refused_files refused;
	struct queue_rcpt_cursor cursor; /* scratch: 16 KiB, one is enough */
	struct fetches fetches;
	uint32_t records; /* results that are being written */
	uint32_t reasons; /* number of records without a mark */
	bool probe_away;  /* a thread writes to a queue that cannot write */
	struct late late;
	struct sync_tasks unrecorded;  /* results without their marks */
	usec_t record_at;              /* when to try them again */
	usec_t finish_at;              /* not before: nothing could be moved */
	usec_t stuck_at;               /* when to try STATE_STUCK again */
	struct evacuation *evacuation; /* NULL: the queue keeps its mail */
	struct accepted_tree accepted; /* accepted.c */

	/* backlog/backlog.h */
	struct due_queue due;
	struct share *share; /* of the active queue */
	struct walk walks[WALK_NKINDS];
	struct reader reader;
	usec_t walk_at;    /* the next walk of everything */
	bool walk_flush;   /* files that the walk finds are due */
	usec_t hold_until; /* wall clock: the next end of a hold; 0: none */
	usec_t stray_at;   /* when to walk active/ again: some did not move */
	usec_t rescan_at;  /* when to look for files of other queues */

	/* agents/agents.h */
	struct links *links;
	bool want_scan;            /* of todo-proc */
	struct agent_links agents; /* all that live */
	struct agent_link *agent[AGENT_NPROGRAMS];
	usec_t dispatch_at; /* not before: descriptors had run out */

	/* control.h: the page */
	struct publisher pub;
	struct send_counters counters;
	struct msg_COUNTS todo_counts; /* the last of todo-proc */
	struct ages ages;
	struct rate rate_in, rate_out;

	struct operators *operators; /* operators.h; NULL: no socket */
	usec_t operators_at;         /* when to try to open the socket again */
	struct acts acts;
	/* Queues that messages of this one go to: open, or being opened. */
	struct other_queue_list others;

	struct rules *rules; /* of hold */

	usec_t said_offer, said_io, said_load, said_stray,
	    said_route; /* log_due() */
};

/* Read the clocks; at the head of every callback. */
void send_read_clocks(struct send *s);
/* Has the message been kept for longer than any mail, and tried for an hour
 * since the start? */
bool message_is_hopeless(const struct send *s, const struct message *m);
/* There is something to do: run a turn soon. */
void send_wake(struct send *s);
/* Is the mail of this queue being moved to others (evacuate.c)? */
static inline bool
send_is_evacuating(const struct send *s)
{
	return s->evacuation != NULL;
}

#endif
