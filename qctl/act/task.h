/* qctl/act/task.h - the work of one command: queues are read by a process each
 * (read.c), and for verbs that act the messages that were found are acted on by
 * a process for each queue (act.c), through its queue-send where that runs
 * (peer.c), else under the lock of the queue. */
#ifndef QCTL_ACT_TASK_H
#define QCTL_ACT_TASK_H

#include "config/conf.h"
#include "ipc/msg.h"
#include "qctl/qctl.h"
#include "spool/act.h"

/* A message to act on, as the reader found it. */
struct target {
	struct queue_id id;
	uint32_t queue; /* where it lies */
	uint32_t dir;   /* enum spool_dir */
	uint32_t to;    /* of ACT_SPREAD: the other queue */
};

/* The targets of a queue, counted; a row of the acting process. */
struct tally {
	uint64_t done, refused;
	uint64_t unknown; /* the connection ended without their answers */
	uint64_t marked;  /* of done: given up on hold, where they stay */
	uint64_t damaged; /* of done: undeleted, and in corrupt/ again */
	uint64_t later;   /* done when a delivery under way has ended */
	uint64_t gone;    /* delivered or removed before the act */
};

struct task {
	struct options options;
	struct view view;
	char **argv;             /* of the command */
	const struct conf *look; /* of queue-look, else NULL */
	char *base;              /* QUEUE_BASE */
	char *instance;
	uint32_t queues[QUEUE_NUM_MAX];
	int nqueues;      /* or -errno */
	bool base_silent; /* the disk of QUEUE_BASE does not answer */
	usec_t silence_limit;
	usec_t backoff_max; /* maximal_backoff_time */
	/* The longest that a delivery which cannot be ended may go on. */
	usec_t delivery_max;
	uint64_t active_limit; /* qmgr_message_active_limit */
	struct conf limits;    /* of users; nothing else is set in it */
	uid_t account;         /* of VERB_SHARES: this one, or USE_ALL */
	bool own_only;         /* the user is no reader: the own account */
	bool elsewhere; /* second round: ids in queues that they do not name */
	int error;      /* of a row */
	struct target *targets;
	size_t ntargets, targets_cap;
	struct target *gone; /* that were not where they were seen; seek.c */
	size_t ngone, gone_cap;
	/* Messages that were not found while a queue, or a file, could not be
	 * read. */
	uint64_t unfound;
	struct buf selection; /* the words, for the log */
	struct tally tally;
};

/* A complaint about the command; `code'. */
int task_complain(const struct options *o, int code, const char *text);
/* A text to standard output, unless r, which is -errno then, says that there is
 * none: an exit code. */
int task_put(const struct options *o, int r, const struct buf *text);

/* Finds the queues that there are: where the disk of QUEUE_BASE does not
 * answer, which is told, those that the supervisor knows. */
void queues_find(struct task *t);

/* Reads the queues that were found, and does what the verb says with their
 * messages: an exit code. */
int task_read_all(struct task *t);
/* Acts on the targets, after the count, or a question on a terminal: an exit
 * code. queues: all that there are. */
int task_act_all(struct task *t, const uint32_t *queues, size_t count);

/* A message that moved while its queue was read, and was found in two
 * directories, is one target: where it was found last. -ENOMEM. targets.c */
int task_unite_targets(struct task *t);

/* Appends to an array of targets. -ENOMEM. */
int targets_add(struct target **targets, size_t *count, size_t *cap,
    const struct target *target);

/* ---- seek.c: messages that were gone when they were to be acted on ---- */

/* The worker_job.take_row of an act: its tally, and messages that are gone. */
void seek_take_row(uint32_t queue, const void *data, size_t len, void *arg);
/* Looks for them by their ids in all queues. The targets of the task are those
 * that were found; the others are counted as gone, and named where an id was
 * given. *totals: what could not be looked at, or is missed. -errno. */
int seek_targets(struct task *t, const uint32_t *queues, size_t count,
    struct worker_totals *totals);

/* The worker_job.take_row of tallies; arg is the task. */
void task_take_tally(uint32_t queue, const void *data, size_t len, void *arg);

/* The worker_job.run of each kind. */
int task_read(struct worker *w, void *task);
int task_act(struct worker *w, void *task);
/* Only asks whether this user may act on messages of the queue: a frame
 * WORKER_DENIED, or none. */
int task_ask_right(struct worker *w, void *task);

/* All deferred mail of all queues: queue-send does that by itself. */
static inline bool
task_is_flush(const struct task *t)
{
	const struct select *s = &t->options.select;

	return t->options.act == ACT_RETRY && s->nids == 0 && s->keys == 0 &&
	    t->options.rate_count == 0;
}

/* Does it act on what a filter finds? */
static inline bool
task_is_bulk(const struct task *t)
{
	return t->options.act != 0 && t->options.select.nids == 0;
}

/* ---- pace.c: --rate ----
 *
 * Each message has a due time of its own, evenly from now on, which is on disk
 * before the command ends: nothing has to go on for it. */

/* "20/s", "100/m", "5/h", "20". -EINVAL. */
int pace_parse(const char *text, uint32_t *ret_count, usec_t *ret_unit);
/* The time that so many messages take. */
usec_t pace_span(const struct options *o, size_t count);
/* When the index-th of `own` messages of a queue is due, of `all`; 0: at once.
 */
usec_t pace_due(const struct task *t, size_t index, size_t own);

/* ---- peer.c: a connection to queue-send ---- */

struct peer {
	int fd;
	usec_t limit; /* of silence */
	/* Of acts: above 1 the message was refused with -EAGAIN, and is asked
	 * about again, so that queue-send counts it once. */
	uint64_t serial;
};

/* -ENOENT, -ECONNREFUSED: no queue-send has the queue. */
int peer_connect(struct peer *p, const struct spool *sp, usec_t limit);
void peer_close(struct peer *p);
/* Sends an act; the answers come in the same order. due_wall 0: at once.
 * -ETIMEDOUT, -EPIPE, or the reason of a refusal. */
int peer_send(struct peer *p, enum spool_act act, const struct queue_id *id,
    usec_t due_wall);
/* The same of ACT_HOLD, with a reason, and an end; 0: none. */
int peer_hold(struct peer *p, const struct queue_id *id, usec_t until_wall,
    const char *reason);
/* The same of ACT_SPREAD, to that queue. */
int peer_spread(struct peer *p, const struct queue_id *id, uint32_t to);
/* May this user act? -EPERM. Nothing is done that the queue does not do by
 * itself: the rules are read. */
int peer_may_act(struct peer *p);
/* To the queue-send of a queue that got files. */
int peer_came(struct peer *p);
/* The same by a rule, whose reason and end it has. */
int peer_hold_rule(struct peer *p, const struct queue_id *id, uint32_t rule);
/* 0: an answer. The connection is refused: -EPERM: this user may not act;
 * -EUSERS: no place; -ETIME: silent for too long. */
int peer_answer(struct peer *p, int *ret_error, uint32_t *ret_running);
/* Any frame out, any frame in; its descriptor is the caller's. */
int peer_put(struct peer *p, const struct msg *msg);
int peer_take(struct peer *p, struct chan_frame *frame);
/* For the log of queue-send. */
int peer_end(struct peer *p, enum spool_act act, const char *selection);

#endif
