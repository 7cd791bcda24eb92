/* qctl/task/task.h - the work of one command: what is asked for, what is known
 * of the instance, and the queues that there are. Every verb gets it.
 *
 *	task    complaints, output, the processes of queues
 *	queues  the queues that there are
 *	out     text that is put together
 */
#ifndef QCTL_TASK_TASK_H
#define QCTL_TASK_TASK_H

#include "config/conf.h"
#include "qctl/read/worker.h"
#include "qctl/task/options.h"
#include "qctl/task/out.h"

/* For the functions that show one message. The time of all ages is one. */
struct view {
	const struct options *options;
	usec_t now_wall;
	bool clean;          /* content is for a terminal */
	struct shape *rows;  /* of VERB_SHAPE */
	struct asker *asker; /* of VERB_EXPLAIN */
};

/* A message to act on, as the reader found it. */
struct target {
	struct queue_id id;
	uint32_t queue; /* where it lies */
	uint32_t dir;   /* enum spool_dir */
	uint32_t to;    /* of ACT_SPREAD: the other queue */
};

/* The targets of a queue, or its flaws, counted; a row of the process of a
 * queue.
 */
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

/* A line on standard error, behind the name of the command. */
void task_tell(const struct options *o, const char *fmt, ...) PRINTF(2, 3);
/* A complaint about the command; `code'. */
int task_complain(const struct options *o, int code, const char *text);
/* The same by an error: the text and the code of its row, else strerror() and
 * EX_OSERR. */
struct failure {
	int error, code;
	const char *text;
};
int task_fail(const struct options *o, const struct failure *rows, size_t count,
    int error);
/* A text to standard output, unless r, which is -errno then, says that there is
 * none: an exit code. The text is freed. */
int task_put(const struct options *o, int r, struct buf *text);

/* Finds the queues that there are: where the disk of QUEUE_BASE does not
 * answer, which is told, those that the supervisor knows. */
void queues_find(struct task *t);

/* A process for each queue of the task, which `silent' complains about when it
 * does not answer. The caller sets what else it needs. */
struct worker_job task_job(struct task *t,
    int (*run)(struct worker *w, void *task), const char *silent);
/* The worker_job.take_row of tallies; arg is the task. */
void task_take_tally(uint32_t queue, const void *data, size_t len, void *arg);

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

#endif
