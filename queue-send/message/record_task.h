/* queue-send/message/record_task.h - results of recipients, written by a thread
 * (docs/QUEUE.md, "Records"): the reason, then the mark.
 *
 *	record_task.c          the task, the order of its steps
 *	success.c              what is written of a recipient who has the mail
 *
 * A record is a copy, but for the descriptor of the file, which its message
 * keeps open until the record has ended. Soft: errors are fields of the
 * record; a mark is never written without its reason. */
#ifndef QUEUE_SEND_MESSAGE_RECORD_TASK_H
#define QUEUE_SEND_MESSAGE_RECORD_TASK_H

#include "agent/agent.h"
#include "queue-send/state/message.h"
#include "spool/queue_file.h"
#include "spool/spool.h"
#include "spool/sync_pool.h"

/* The result of one recipient. */
struct report {
	uint32_t index;
	uint64_t offset;
	const char *address;
	enum agent_outcome outcome;
	const char *dsn, *relay, *text;
	usec_t conn, xfer;
	usec_t selected_at;
	uint8_t kind; /* enum agent_kind of its transport */
	bool ours;    /* a failure of our own: never the end of the message */
	bool expired; /* failed because the message is too old */
	bool untried; /* the destination is dead */
	/* The server that has the message tells the sender of a success. */
	bool passed_on;
};

struct record {
	struct sync_task task;   /* first */
	struct message *message; /* the loop's: it lives until the record has
				    ended */

	/* To be done. */
	const struct spool *sp;
	struct report report; /* AGENT_SENT or AGENT_FAILED; its strings live
				 as long as the record */
	struct queue_file file;
	uint64_t inode;
	usec_t when_wall;
	int fd;             /* of the message; -1: it is opened, and closed */
	enum spool_dir dir; /* of the reason: SPOOL_BOUNCE or SPOOL_DEFER */
	bool begins;        /* the file is of another message, or of
			       another attempt */
	bool first;         /* no attempt was made before this one */
	bool locks;         /* an expansion may mark the recipient meanwhile */
	bool has_sender;    /* to be told of a success */
	bool unmarked;      /* the reason is all */

	/* Done. */
	uint32_t attempt; /* of a reason that begins defer/; else 0 */
	bool is_locked;   /* by an expansion: nothing was written */
	bool has_reason;  /* that was written; a retry writes the mark alone */
	bool succeeded;   /* the sender is to be told of it */
	int reason_error; /* of a failure, whose mark was not written, or of
			     the line of a success */
	int error;        /* of the mark */
};

void record_work(struct record *r);
/* A copy with its strings, whose task does record_work(); NULL: no memory. */
struct record *record_copy(
    const struct record *r, void (*ended)(void *send, struct sync_task *task));
/* The line of a record. */
int record_add_reason(const struct record *r);

/* ---- success.c: docs/REPORTS.md, "What the sender asks for" ---- */

/* Write the mark of a delivery, how it was dealt with included; before that the
 * line in bounce/, if a report is to tell. The file is open. */
int success_mark(struct record *r);

#endif
