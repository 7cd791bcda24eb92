/* queue-inject/source.h - a message as it comes in on a descriptor, in pieces.
 *
 * Reading waits at most until a deadline, and ends when a signal asked to
 * stop. A mark can be set at any place; going back to it works while all that
 * came after it still fits in the buffer, so that a small message can be
 * written again, to another queue.
 *
 * With `dot`, a line that is a dot alone ends the message, and what follows
 * is not read as part of it.
 *
 * Soft: -errno of read(), -ETIMEDOUT, -ECANCELED after a signal.
 */
#ifndef QUEUE_INJECT_SOURCE_H
#define QUEUE_INJECT_SOURCE_H

#include "base/base.h"

#define SOURCE_BUFFER ((size_t)64 << 10)

struct source {
	int fd;
	bool dot;
	usec_t deadline_mono;
	int stop_fd; /* readable when a signal asks to stop, or -1 */
	/* private */
	size_t next, limit, len; /* of buf: handed out next, may be handed
				    out, holds */
	size_t mark;             /* in buf, unless lost */
	bool mark_lost;
	bool line_start; /* the byte at `limit` begins a line */
	bool eof;        /* nothing more comes, limit is the end */
	char *buf;
};

/* -ENOMEM. The descriptor stays the caller's. */
int source_init(
    struct source *s, int fd, bool dot, usec_t deadline_mono, int stop_fd);
void source_done(struct source *s);
/* 1: *ret_data is at least one byte, valid until the next call here; 0: the
 * end. Taken only by source_take(). */
int source_peek(struct source *s, const char **ret_data, size_t *ret_len);
void source_take(struct source *s, size_t len);

/* The next byte to be taken is where source_rewind() goes back to. */
void source_mark(struct source *s);
/* False: what came after the mark is gone. */
bool source_rewind(struct source *s);

#endif
