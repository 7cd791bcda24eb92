/* log/parts.h - the parts below log.c, private to common/log:
 *
 *	line   an event as a line
 *	events the event of a line of text
 *	sink   the descriptor that lines are written to
 */
#ifndef LOG_PARTS_H
#define LOG_PARTS_H

#include "base/buf.h"
#include "log/log.h"

/* ---- line: -ENOMEM ----
 *
 * Does no I/O. A line has no newline and leaves room for one within
 * LOG_LINE_MAX. A line that is longer is cut at a character and, in JSON,
 * marked by `truncated`; it stays well-formed.
 *
 * In text a value cannot end its field: blanks, `"`, parentheses, `,`, `;`,
 * `<`, `>` and the backslash stand in it as \xHH, two hexadecimal digits. */

struct log_style {
	const char *program; /* text: NULL where the reader shows it itself */
	usec_t now_wall;     /* JSON only: the reader of text adds it */
};

int log_line_text(struct buf *out, const struct log_event *event,
    const struct log_style *style);
int log_line_json(struct buf *out, const struct log_event *event,
    const struct log_style *style);

/* ---- events: a const table ----
 *
 * Lines of text are of the event that their source file has in the table;
 * "note" for a file without a row, which lint refuses. Several files share an
 * event where an operator cannot tell them apart. */

const char *log_topic(const char *file);

/* ---- sink: false and -1 for failures ----
 *
 * Nothing here waits for a reader. */

#define LOG_SYSLOG_PATH "/dev/log"

struct log_sink {
	int fd;
	bool own;    /* fd was opened here */
	bool socket; /* MSG_DONTWAIT works on it */
	bool waits;  /* a write may wait: poll() first */
};

/* Opens the file behind fd again where a new description can be written without
 * waiting: setting O_NONBLOCK on fd itself would change it for other
 * processes. */
void log_sink_open(struct log_sink *sink, int fd);
/* One whole line, its newline in it, or nothing: false. */
bool log_sink_write(const struct log_sink *sink, const char *line, size_t len);

/* A connected descriptor, or -1. */
int log_sink_syslog(const char *path);
/* Sends what syslog(3) sends, without waiting. Connects (again) when needed. */
bool log_sink_syslog_send(int *fd, const char *path, int priority,
    const char *program, const char *line, size_t len);

#endif
