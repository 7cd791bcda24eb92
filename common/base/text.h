/* base/text.h - foreign bytes made fit to be shown: in log lines, reasons,
 * and terminals (faults A7, C4). */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/buf.h"

/* Append len bytes; control characters, DEL and bytes that are not part of
 * valid UTF-8 become `?`, at most max bytes are added, never half a
 * character. -ENOMEM. */
int text_clean(struct buf *out, const char *s, size_t len, size_t max);
/* Nothing in it would have to be changed. */
bool text_is_clean(const char *s, size_t len);

/* The same for what somebody typed, in a message: `s', with three dots for what
 * is longer than TEXT_QUOTE_MAX bytes. -ENOMEM. */
#define TEXT_QUOTE_MAX 48
int text_quote(struct buf *out, const char *s);

#endif
