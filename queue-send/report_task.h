/* queue-send/report_task.h - one report, made in a thread (docs/REPORTS.md,
 * "Exactly once"): all that it needs is copied, but for the queue.
 *
 * Soft: -errno. Nothing is left of a report that failed but, after a crash, a
 * name in prepared/, which the message settles. */
#ifndef QUEUE_SEND_REPORT_TASK_H
#define QUEUE_SEND_REPORT_TASK_H

#include "base/address.h"
#include "config/conf.h"
#include "report/report.h"
#include "spool/accept.h"
#include "spool/sync_pool.h"

struct report_task {
	struct sync_task task; /* first: task.inode is the message's */

	/* To be done. */
	const struct spool *sp;
	struct queue_id id;        /* of the message */
	enum report_kind kind;     /* REPORT_FAILURE or REPORT_DOUBLE */
	struct accept_options opt; /* with the flags of the report */
	uint64_t size_limit;       /* of a content that is returned whole */
	usec_t now_wall;
	char sender[ADDRESS_MAX + 1];
	char to[ADDRESS_MAX + 1];
	char host[CONF_HOST_SIZE], domain[CONF_HOST_SIZE];

	/* Done. */
	uint32_t count; /* recipients in the report; 0: none was needed */
	struct queue_id made;
};

/* Make the report of the failures that no report has told, and settle reports
 * that were made before. -EAGAIN: the message is locked by a process that
 * settles it; -ENOENT: it is gone; -ESHUTDOWN: the queue is sealed. */
int report_task_work(struct sync_task *task);

#endif
