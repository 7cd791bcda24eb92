/* qctl/show/qread.h - the face `qread`: messages with their channels, counts,
 * and the load of queues, in the form that scripts around qmail know.
 *
 * A recipient is local when an agent of this host serves its transport, as the
 * routing in force says now; of a message that was not in the active queue yet
 * (maildrop/, incoming/) the channel is `todo`.
 */
#ifndef QCTL_SHOW_QREAD_H
#define QCTL_SHOW_QREAD_H

#include "qctl/show/show.h"

int qread_text(struct worker *w, const struct message *m, const struct view *v);
/* The counts of a queue, for the parent's. */
void qread_send(struct worker *w);
/* A row that is none of qread_send() is passed over. */
void qread_take(const void *data, size_t len);

/* Counts. */
void qread_print(const struct options *o, struct buf *out);
/* Prints the table of queues: an exit code. */
int qread_queues(const struct options *o);
/* Rows of the table, those with the highest load first. */
struct sched_page;
struct queue_page;
void qread_table(struct sched_page *page,
    int (*read)(
	const char *instance, uint32_t queue, struct queue_page *ret_page),
    const char *instance, struct buf *out);

#endif
