/* setqload/list.h - what holds, from the supervisor's page: what operators have
 * set, and what is not as usual. Pure; a page is foreign, texts are cleaned.
 * Soft: -ENOMEM. */
#ifndef SETQLOAD_LIST_H
#define SETQLOAD_LIST_H

#include "base/buf.h"
#include "ipc/page.h"

struct list_view {
	const struct sched_page *page;
	usec_t now_mono, now_wall;
};

/* Lines for people: a summary, the queues of which there is something to say,
 * the count that is held, the last change. */
int list_text(const struct list_view *view, struct buf *out);
/* An object a line: the instance, then each queue. Readers ignore members
 * that they do not know. */
int list_json(const struct list_view *view, struct buf *out);

#endif
