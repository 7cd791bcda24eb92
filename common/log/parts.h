/* log/parts.h - the parts below log.c, private to common/log:
 *
 *	line   an event as a line
 *	events the event of a line of text
 *	batch  lines that are written together
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

/* ---- batch: -ENOBUFS, -ENOMEM ----
 *
 * Lines in their order, each with its newline, or each a datagram without. */

#define LOG_BATCH_LINES 64
#define LOG_BATCH_BYTES 16384 /* more than one line */

struct log_batch {
	struct buf data;
	size_t count;
	size_t ends[LOG_BATCH_LINES]; /* in data */
};

/* -ENOBUFS: the batch is full. */
int log_batch_add(struct log_batch *b, const char *line, size_t len);
void log_batch_reset(struct log_batch *b);
/* Where line i begins in data; i may be count. */
size_t log_batch_start(const struct log_batch *b, size_t i);

/* ---- sink ----
 *
 * Nothing here waits for a reader. */

#define LOG_SYSLOG_PATH "/dev/log"

struct log_sink {
	int fd;
	bool own;    /* fd was opened here */
	bool socket; /* MSG_DONTWAIT works on it */
	bool waits;  /* a write may wait: poll() first */
	size_t most; /* bytes of several lines in one write; 0: a line each */
};

/* Opens the file behind fd again where a new description can be written without
 * waiting: setting O_NONBLOCK on fd itself would change it for other
 * processes. */
void log_sink_open(struct log_sink *sink, int fd);
/* Writes line i and those behind it, several at once where they stay whole. The
 * first line that is not written: a pipe is full, a part of the line did not
 * fit on the disk. The number of lines: all are. */
size_t log_sink_write(
    const struct log_sink *sink, const struct log_batch *b, size_t i);

/* True when fd is the stream that systemd connected to the journal: stream is
 * the value of JOURNAL_STREAM (systemd.exec(5)), "DEVICE:INODE", or NULL. */
bool log_sink_is_journal(int fd, const char *stream);

/* A connected descriptor, or -1. */
int log_sink_syslog(const char *path);
/* Adds the head that syslog(3) puts in front of a text. -ENOMEM. */
int log_sink_syslog_head(struct buf *out, int priority, const char *program);
/* Sends line i and those behind it, each in a datagram, without waiting; the
 * first line that is not sent. Connects (again) when needed. */
size_t
log_sink_syslog_send(int *fd, const char *path, struct log_batch *b, size_t i);

#endif
