/* qctl/task/out.h - pieces of output, which the verbs put together in a buf. An
 * error stays in the buf; out_send() and task_put() return it, and empty the
 * text. */
#ifndef QCTL_TASK_OUT_H
#define QCTL_TASK_OUT_H

#include "base/buf.h"
#include "qctl/read/worker.h"

/* Text from outside, cleaned (text_clean()), of max bytes at most. */
void out_clean(struct buf *o, const char *s, size_t max);
/* "Sat, 22 Nov 2025 14:02:11 +0000 (in 5m)", "… (5m ago)". */
void out_time(struct buf *o, usec_t wall, usec_t now_wall);
/* A string of JSON, its text cleaned. */
void out_json(struct buf *o, const char *s, size_t len);
/* `, "NAME": "VALUE"'; nothing where value is NULL. */
void out_member(struct buf *o, const char *name, const char *value);
/* To the parent of a process of a queue. -errno. */
int out_send(struct buf *o, struct worker *w);

#endif
