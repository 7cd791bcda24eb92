/* qctl/read/worker.h - a process for each queue reads it, so that a queue whose
 * disk does not answer stops no other: a process that hangs in the kernel is
 * left behind, and the command ends without it.
 *
 * A worker writes frames on a pipe; its parent reads the frames of all workers
 * as they come. A frame is one thing for the parent, or a part of it
 * (WORKER_PART): then the next frames are of the same worker until the rest has
 * come, so that texts of two queues never mix within a message.
 *
 * Ownership: a worker has no descriptor but its pipe, and standard ones on
 * /dev/null: one that is left behind holds open nobody's output.
 */
#ifndef QCTL_READ_WORKER_H
#define QCTL_READ_WORKER_H

#include "base/buf.h"

#define WORKER_FRAME_MAX (64 << 10)

enum worker_frame {
	WORKER_TEXT,   /* output: whole messages; empty: a sign of life */
	WORKER_PART,   /* output: the rest of this message follows */
	WORKER_NOTE,   /* a complaint about the queue */
	WORKER_ROW,    /* for the command */
	WORKER_DENIED, /* this user may not read the queue */
	WORKER_DONE,   /* the end; a worker that ends without it has died */
};

/* The worker's side. */
struct worker {
	int fd;
	uint32_t queue;
	struct buf out;           /* text not sent yet */
	uint64_t messages, bytes; /* in it */
	bool within;              /* a message that has begun */
	usec_t sent_mono;         /* of the last frame */
};

/* Text of a message; -ENOMEM. Sent when it is long enough. */
int worker_text(struct worker *w, const char *text, size_t len);
/* The message is whole: it counts in the totals. Sent at once when the last
 * frame is a moment ago. */
void worker_message(struct worker *w, uint64_t bytes);
/* A sign of life, when the last one is a while ago. */
void worker_step(struct worker *w);
void worker_note(struct worker *w, const char *fmt, ...) PRINTF(2, 3);
void worker_row(struct worker *w, const void *data, size_t len);
void worker_denied(struct worker *w);

struct worker_totals {
	uint64_t messages, bytes;
	/* Queues that did not answer, died, or had a complaint. */
	uint32_t silent, troubled;
	uint32_t denied;
};

struct worker_job {
	const char *program; /* in front of complaints */
	const uint32_t *queues;
	size_t nqueues;
	usec_t silence_limit;
	const char *silent; /* the complaint about a queue that is silent */
	/* In the worker; an exit code. */
	int (*run)(struct worker *w, void *arg);
	/* In the parent. Text goes to standard output, behind head, which is
	 * written before the first of it. */
	const char *head;
	void (*take_row)(
	    uint32_t queue, const void *data, size_t len, void *arg);
	void *arg;
	bool gentle;      /* other processes come first */
	const char *name; /* in complaints, for "queue N"; NULL */
};

/* Reads all queues. 0, also with silent or troubled ones; -EIO: standard output
 * cannot be written; other -errno: no worker could be started. */
int worker_run_all(const struct worker_job *job, struct worker_totals *totals);

/* ---- a frame on the pipe ---- */

struct frame_head {
	uint32_t type; /* enum worker_frame */
	uint32_t len;
	uint64_t messages, bytes; /* whole since the last frame */
};

/* The whole of a worker, from its start to its exit code. */
int worker_main(const struct worker_job *job, int fd, uint32_t queue);

#endif
