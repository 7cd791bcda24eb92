/* qctl/task/out.h - text that is put together piece by piece. The first error
 * stays, and later pieces are dropped; out_send() and task_put() return it, and
 * empty the text. {0} is an empty text; out_done() frees it. */
#ifndef QCTL_TASK_OUT_H
#define QCTL_TASK_OUT_H

#include "base/buf.h"
#include "qctl/read/worker.h"

struct out {
	struct buf text;
	int error; /* -errno; 0 */
};

void out_printf(struct out *o, const char *fmt, ...) PRINTF(2, 3);
void out_str(struct out *o, const char *s);
/* Text from outside, cleaned (text_clean()), of max bytes at most. */
void out_clean(struct out *o, const char *s, size_t max);
void out_clean_len(struct out *o, const char *s, size_t len, size_t max);
/* "Sat, 22 Nov 2025 14:02:11 +0000 (in 5m)", "… (5m ago)". */
void out_time(struct out *o, usec_t wall, usec_t now_wall);
void out_span(struct out *o, usec_t span);
/* A string of JSON, its text cleaned. */
void out_json(struct out *o, const char *s);
/* `, "NAME": "VALUE"'; nothing where value is NULL. */
void out_member(struct out *o, const char *name, const char *value);
/* The error of a piece that was put together apart is the text's. */
void out_take_error(struct out *o, const struct out *piece);
/* To the parent of a process of a queue. -errno. */
int out_send(struct out *o, struct worker *w);
void out_reset(struct out *o);
void out_done(struct out *o);

#endif
