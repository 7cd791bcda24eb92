/* todo-proc/examine_task.h - one queue file before it is offered: its kind and
 * owner, whether its writer is done, format, lengths, checksums; its recipients
 * are routed and counted. A damaged file is moved to corrupt/. A file that
 * cannot be read at the moment (EIO, no descriptors) stays in its place.
 *
 * Done by a thread: all that it needs is copied, but for the queue and the
 * routing. Never logs. */
#ifndef TODO_PROC_EXAMINE_TASK_H
#define TODO_PROC_EXAMINE_TASK_H

#include "base/header.h"
#include "spool/spool.h"
#include "spool/sync_pool.h"
#include "todo-proc/routing.h"

struct examine_task {
	struct sync_task task; /* first; its error, see below */
	const struct spool *sp;
	const struct routing *routing;
	enum spool_dir dir;
	uint64_t inode;
	bool in_memory; /* the spool */

	/* Done. */
	struct queue_file file;
	usec_t mtime_wall;
	uid_t owner;      /* of the file */
	uint32_t pending; /* recipients without a mark */
	struct buf sender, census, destinations;
	struct buf rcpts; /* as they stand in the file; empty: not few */
	char message_id[HEADER_MESSAGE_ID_MAX];
	uint32_t hops; /* Received fields of the header */
	bool content;  /* an agent of its transports is given the content */
	bool may_write;
	int fd;          /* for queue-send, or -1; see below */
	const char *why; /* of -EBADMSG and -EPERM */
	int moved;       /* to corrupt/: 0, -errno */

	struct queue_rcpt_cursor cursor; /* scratch */
};

/* The descriptor of a file of incoming/ goes along with its offer, unlocked, if
 * it may write marks. One rule says who needs none: a plain message for one
 * recipient that comes along, of an agent that is given no content, in a spool
 * in memory. Its file is neither read nor written again, but removed
 * (queue-send/message/removal.c).
 *
 * 0: what is done is filled. Else:
 * -EAGAIN            its writer is not done, examine it again soon
 * -ENOENT            it is not there
 * -EBADMSG, -EPERM   damaged, or no queue file
 * -errno             it cannot be read now; it stays in its place */
int examine_task_work(struct sync_task *task);
/* Frees what is done. */
void examine_task_drop(struct sync_task *task);

#endif
