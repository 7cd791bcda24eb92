/* queue-send/message/move_task.h - one move of the file of a message, made in a
 * thread (docs/QUEUE.md, "Moves"): all that it needs is copied, but for the
 * queue.
 *
 * Soft: -errno as the error of the task; then the file lies where it lay. */
#ifndef QUEUE_SEND_MESSAGE_MOVE_TASK_H
#define QUEUE_SEND_MESSAGE_MOVE_TASK_H

#include "spool/hold_note.h"
#include "spool/spool.h"
#include "spool/sync_pool.h"

enum move_due {
	MOVE_WITHOUT_DUE,
	MOVE_DUE_TRIED,  /* the file moves without it, too */
	MOVE_DUE_NEEDED, /* or nothing moves */
};

struct move_task {
	struct sync_task task; /* first: task.inode is the message's */

	/* To be done, in this order. */
	const struct spool *sp;
	struct queue_id id;
	unsigned clear; /* SPOOL_DIR_BIT() of reasons that are not its own */
	bool stays;     /* that is all: nothing moves */
	bool has_note;  /* of a hold, without which nothing moves */
	struct hold_note note;
	enum move_due due;
	usec_t due_wall;
	enum spool_dir from, to;
	unsigned clear_after; /* the same, when it has moved */
	bool look;            /* are there marks in bounce/? */
	bool clear_unmarked;  /* without one these are another message's */
	bool open; /* for reading and for marks, and read into memory */

	/* Done. */
	int note_error; /* and of the task */
	int due_error;  /* of one that was tried */
	int marks;      /* reason_marks() */
	int fd;         /* open, the taker's or move_task_drop()'s; or -errno */
};

int move_task_work(struct sync_task *task);
/* Close and free what nobody has taken. */
void move_task_drop(struct sync_task *task);

#endif
