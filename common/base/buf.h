/* base/buf.h - a growing run of bytes, always followed by a NUL that is not
 * counted. {0} is an empty buffer. Failure: -ENOMEM, the content unchanged.
 * The first failure is kept, too: a text of many pieces is put together without
 * a look at each, and its error is checked once, behind the last piece.
 * The owner calls buf_done(); data moves when it grows. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/base.h"

#include <stdarg.h>

struct buf {
	char *data; /* NULL before the first addition */
	size_t len;
	size_t cap;
	int error; /* of the first addition since buf_reset() that failed; 0 */
};

int buf_reserve(struct buf *b, size_t more); /* room for `more` bytes */
int buf_add(struct buf *b, const void *data, size_t len);
/* A quoted-string of RFC 5322: in quotes, with a backslash before each quote
 * and backslash. */
int buf_add_quoted(struct buf *b, const char *s, size_t len);
int buf_add_str(struct buf *b, const char *s);
int buf_add_char(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) PRINTF(2, 0);
/* Keeps an error of what was meant for the buffer: r < 0 is -errno. */
void buf_note(struct buf *b, int r);
/* The content as a string; "" for an empty buffer. Lives until the next change.
 */
const char *buf_str(const struct buf *b);
void buf_reset(struct buf *b); /* empty, no error, memory kept */
void buf_done(struct buf *b);  /* the same, memory freed */
void buf_wipe(struct buf *b);  /* the same, of a secret */

#endif
