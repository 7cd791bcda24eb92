/* qctl/show/show.h - what is shown of one message, and of many. The process of
 * a queue calls the functions of a message. -errno: of it, or -ENOMEM.
 *
 *	list, show         a row, or all, of a message
 *	explain.h          why a message waits
 *	shape              how much waits, by a key and by age
 *	qread.h            as programs around qmail read it
 *	sites.h, shares.h  destinations, users
 *	trace              dialogues with a destination
 */
#ifndef QCTL_SHOW_SHOW_H
#define QCTL_SHOW_SHOW_H

#include "qctl/read/message.h"
#include "qctl/task/task.h"

int list_text(struct worker *w, const struct message *m, const struct view *v);
int list_json(struct worker *w, const struct message *m, const struct view *v);
/* The line above the list. */
extern const char list_head[];
/* The line below it: the totals of all queues. */
void list_total(const struct worker_totals *t, struct buf *out);

int show_text(struct worker *w, const struct message *m, const struct view *v);

/* ---- shape.c ---- */

int
shape_count(struct worker *w, const struct message *m, const struct view *v);
/* -EINVAL: --by has no such key. */
int shape_find_key(const char *name, enum shape_by *ret_by);
/* Recipients or messages, by the key of --by and by age. -ENOMEM. */
struct shape *shape_new(void);
void shape_free(struct shape **s);
/* A row for each value of the key, for the parent's table. */
void shape_send(struct shape *s, struct worker *w);
/* -ENOMEM; what is no row of shape_send() is passed over. */
int shape_take(struct shape *s, const void *data, size_t len);
/* The table, or with --json an object for each row, the largest first. */
int shape_print(struct shape *s, const struct options *o, struct buf *out);

/* ---- trace.c ---- */

/* `qctl trace': an exit code. */
int trace_show(struct task *t);

#endif
