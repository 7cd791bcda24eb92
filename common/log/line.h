/* log/line.h - an event as a line, pure. Private to common/log.
 *
 * The line has no newline and leaves room for one within LOG_LINE_MAX. What
 * does not fit is cut at a character and, in JSON, told by `truncated`; the
 * line stays well-formed. Failure: -ENOMEM.
 *
 * In text a value cannot end its field: blanks, `"`, parentheses, `,`, `;`,
 * `<`, `>` and the backslash stand in it as \xHH, two hexadecimal digits.
 */
#ifndef LOG_LINE_H
#define LOG_LINE_H

#include "base/buf.h"
#include "log/log.h"

struct log_style {
	const char *program; /* text: NULL where the reader shows it itself */
	usec_t now_wall;     /* JSON only: who reads text stamps it */
};

int log_line_text(struct buf *out, const struct log_event *event,
    const struct log_style *style);
int log_line_json(struct buf *out, const struct log_event *event,
    const struct log_style *style);

#endif
