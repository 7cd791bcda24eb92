/* qctl/show/qread.h - the face `qread`: messages with their channels, counts,
 * and the load of queues, in the form that scripts around qmail know.
 *
 * A recipient is local when an agent of this host serves its transport, as the
 * routing in force says now; of a message that was not in the active queue yet
 * (maildrop/, incoming/) the channel is `todo`.
 */
#ifndef QCTL_SHOW_QREAD_H
#define QCTL_SHOW_QREAD_H

#include "qctl/qctl.h"

/* Bits of options.qread. */
enum qread_wish {
	QREAD_LOCAL = 1,
	QREAD_REMOTE = 2,
	QREAD_TODO = 4,
	QREAD_COUNTS = 8,
	QREAD_SILENT = 16, /* counts alone */
	QREAD_QUEUES = 32, /* the load of queues */
};
#define QREAD_MESSAGES (QREAD_LOCAL | QREAD_REMOTE | QREAD_TODO)

/* The routing, for channels; one that cannot be read is told on standard error,
 * and all is remote. */
void qread_begin(const struct options *o);
void qread_end(void);

int qread_text(struct worker *w, const struct message *m, const struct view *v);
/* The counts of a queue, for the parent's. */
void qread_send(struct worker *w);
/* A row that is none of qread_send() is passed over. */
void qread_take(const void *data, size_t len);

/* Counts. */
int qread_print(const struct options *o, struct buf *out);
/* The table of queues; -ENOENT, -EACCES … of the page of the instance. */
int qread_queues(const struct options *o, struct buf *out);
/* Rows of the table, those with the highest load first. */
struct sched_page;
struct queue_page;
int qread_table(struct sched_page *page,
    int (*read)(
	const char *instance, uint32_t queue, struct queue_page *ret_page),
    const char *instance, struct buf *out);

#endif
