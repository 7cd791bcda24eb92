/* log/log.h - one line an event, on standard error or to syslog.
 *
 * Text:  `ID: name=value, name=value (text)`, the shape that pflogsumm and
 *        its kin parse; without an id `name=value, … (text)`, or the text
 * alone. JSON:  one object a line: time, program, level, event, queue_id, the
 * fields by name (numbers as numbers), text. Names are stable;
 * qscheduler-log(5) has all of them. Text lines begin with `PROGRAM: ` or
 * `PROGRAM/PART: ` (syslog shows that itself), then `warning: ` or `error: `
 * for such; they carry no time, the supervisor of the process stamps them.
 * Where standard error is the journal (JOURNAL_STREAM names the descriptor),
 * each line begins with its priority, "<4>", which the journal removes.
 *
 * A line has at most LOG_LINE_MAX bytes, and is whole in one write. A log
 * reader that does not read never stops mail: the line is dropped and counted,
 * and the next line that fits says how many were lost. A program with a loop
 * gathers the lines of a turn and writes them together; a program that is
 * killed by SIGKILL, or by a fault of its own, may lose those of that turn. A
 * failed ASSERT loses none. Bytes from outside are cleaned here (base/text),
 * and in text a character that could end a field is written \xHH (log/parts.h),
 * so callers pass them unchanged.
 *
 * Only programs and common/daemon log; no other module of common/ does.
 * Message content and secrets are never passed in.
 */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include "base/base.h"

#define LOG_LINE_MAX \
	4000 /* below PIPE_BUF: lines of several processes never mix */

enum log_level {
	LOG_DEBUG_L,
	LOG_INFO_L,
	LOG_WARNING_L,
	LOG_ERROR_L
};
enum log_format {
	LOG_FORMAT_TEXT,
	LOG_FORMAT_JSON
};
enum log_target {
	LOG_TARGET_STDERR,
	LOG_TARGET_SYSLOG
};

enum log_kind {
	LOG_KIND_STR,  /* name=value */
	LOG_KIND_ADDR, /* name=<value>: an address */
	LOG_KIND_INT,  /* a signed number */
	LOG_KIND_TIME, /* usec_t, shown in seconds with one to three decimals */
	LOG_KIND_DECIMAL,  /* a number that the caller has written in digits */
	LOG_KIND_DECIMALS, /* such numbers, a/b/c; in JSON an object */
};

struct log_field {
	const char *name;
	enum log_kind kind;
	const char *str;
	int64_t num;
	const char *members; /* names of LOG_KIND_DECIMALS: "a/b/c" */
};

#define LOG_STR(n, s)  ((struct log_field){ n, LOG_KIND_STR, s, 0, NULL })
#define LOG_ADDR(n, s) ((struct log_field){ n, LOG_KIND_ADDR, s, 0, NULL })
#define LOG_INT(n, v) \
	((struct log_field){ n, LOG_KIND_INT, NULL, (int64_t)(v), NULL })
#define LOG_TIME(n, us) ((struct log_field){ n, LOG_KIND_TIME, NULL, us, NULL })
#define LOG_DECIMAL(n, s) \
	((struct log_field){ n, LOG_KIND_DECIMAL, s, 0, NULL })
#define LOG_DECIMALS(n, s, names) \
	((struct log_field){ n, LOG_KIND_DECIMALS, s, 0, names })

struct log_event {
	enum log_level level;
	const char *name; /* the event's stable name: "delivery", "removed" */
	const char *id;   /* queue id, or NULL */
	const char *part; /* text: shown behind the program, or NULL */
	const struct log_field *fields;
	size_t nfields;
	const char *text; /* free text, or NULL */
	bool plain;       /* text form: no parentheses around text */
};

/* Called once, at start. `program` is kept and shown; a suffix names the queue:
 * "queue-send/3". */
void log_open(const char *program, enum log_target target,
    enum log_format format, enum log_level least);
void log_write(const struct log_event *event);

/* From now on lines wait for log_flush(), which the loop calls before it waits;
 * off: each line is written at once. */
void log_gather(bool on);
/* Write the lines that wait. Also before a fork whose child may log. */
void log_flush(void);

/* Is a line of this level written at all? */
bool log_shows(enum log_level level);

/* A line of text alone, for people: object, reason, what happens next. Its
 * event is that of the source file, by the table of events.c. */
void log_text(enum log_level level, const char *file, const char *fmt, ...)
    PRINTF(3, 4);
#define log_debug(...)   log_text(LOG_DEBUG_L, __FILE__, __VA_ARGS__)
#define log_info(...)    log_text(LOG_INFO_L, __FILE__, __VA_ARGS__)
#define log_warning(...) log_text(LOG_WARNING_L, __FILE__, __VA_ARGS__)
#define log_error(...)   log_text(LOG_ERROR_L, __FILE__, __VA_ARGS__)

/* A line of text about one message, whose queue id is no part of the text. */
void log_message(enum log_level level, const char *event, const char *id,
    const char *fmt, ...) PRINTF(4, 5);

/* True when a message is to be logged now: at most once in `every` for each
 * `*last` (0 at first). */
bool log_due(usec_t now, usec_t every, usec_t *last);

/* `watch` gets each warning and error as well, as text without the name of the
 * program, also when the line could not be written. It may not log. NULL: none.
 */
void log_watch(void (*watch)(const char *text));

uint64_t log_dropped(void);

#endif
