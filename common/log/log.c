#include "log/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/parts.h"

/* A line, and what syslog(3) has in front of one. */
#define LINE_ROOM (LOG_LINE_MAX + 160)
_Static_assert(LINE_ROOM < LOG_BATCH_BYTES, "an empty batch takes any line");

/* The log of this process: one, as there is one standard error. */
static struct {
	char program[64];
	enum log_target target;
	enum log_format format;
	enum log_level least;
	struct log_sink err;
	int syslog_fd;          /* -1 */
	struct buf line, text;  /* room to make a line in */
	struct log_batch batch; /* lines that are not yet written */
	struct log_batch note;  /* the line that tells of lost ones */
	bool gathers;
	uint64_t dropped;
	uint64_t told; /* of dropped */
	bool journal;  /* standard error is the journal of systemd */
	void (*watch)(const char *text);
} state = {
	.program = "qscheduler",
	.least = LOG_INFO_L,
	.err = { .fd = STDERR_FILENO, .waits = true },
	.syslog_fd = -1,
};

static const int priorities[] = {
	[LOG_DEBUG_L] = LOG_DEBUG,
	[LOG_INFO_L] = LOG_INFO,
	[LOG_WARNING_L] = LOG_WARNING,
	[LOG_ERROR_L] = LOG_ERR,
};

/* Text that begins with ALERT wants an operator now, whatever its level. */
static int
priority_of_event(const struct log_event *event)
{
	return event->text != NULL && strncmp(event->text, "ALERT", 5) == 0
	    ? LOG_ALERT
	    : priorities[event->level];
}

void
log_open(const char *program, enum log_target target, enum log_format format,
    enum log_level least)
{
	size_t len = strnlen(program, sizeof(state.program) - 1);

	log_flush(); /* lines are in the form of their target */
	memmove(state.program, program, len);
	state.program[len] = '\0';
	state.target = target;
	state.format = format;
	state.least = least;
	io_close(&state.syslog_fd);
	/* Memory for lines is allocated at the start: later there may be none.
	 */
	buf_reserve(&state.line, LINE_ROOM);
	buf_reserve(&state.text, LINE_ROOM);
	buf_reserve(&state.note.data, LINE_ROOM);
	buf_reserve(&state.batch.data, LOG_BATCH_BYTES);
	if (target == LOG_TARGET_SYSLOG)
		state.syslog_fd = log_sink_syslog(LOG_SYSLOG_PATH);
	else if (!state.err.own)
		/* The descriptor is kept: a process that has given up its
		 * privileges may not get it again. */
		log_sink_open(&state.err, STDERR_FILENO);
	state.journal = target == LOG_TARGET_STDERR &&
	    log_sink_is_journal(STDERR_FILENO, getenv("JOURNAL_STREAM"));
}

/* In the form of the target. */
static int
make_line(const struct log_event *event, struct buf *line)
{
	bool json = state.format == LOG_FORMAT_JSON;
	bool to_syslog = state.target == LOG_TARGET_SYSLOG;
	bool part = event->part != NULL && !json;
	struct buf *text = to_syslog ? &state.text : line;
	char with_part[sizeof(state.program) + 32];
	const char *program = part ? with_part : state.program;
	struct log_style style = {
		.program = to_syslog && !json ? NULL : program,
		.now_wall = json ? clock_wall() : 0,
	};

	if (part)
		snprintf(with_part, sizeof(with_part), "%s/%.30s",
		    state.program, event->part);
	buf_reset(line);
	buf_reset(text);
	/* The journal takes the priority off the line. */
	if (state.journal)
		buf_printf(text, "<%d>", priority_of_event(event));
	if ((json ? log_line_json : log_line_text)(text, event, &style) < 0)
		return text->error;
	if (to_syslog) {
		log_sink_syslog_head(line, priority_of_event(event), program);
		buf_add(line, text->data, text->len);
	} else
		buf_add_char(line, '\n');
	return line->error;
}

/* The first line from i on that is not written. */
static size_t
write_batch(struct log_batch *b, size_t i)
{
	return state.target == LOG_TARGET_SYSLOG
	    ? log_sink_syslog_send(&state.syslog_fd, LOG_SYSLOG_PATH, b, i)
	    : log_sink_write(&state.err, b, i);
}

/* A line with the number of lost lines comes before the next line that fits. */
static bool
tell_dropped(void)
{
	uint64_t lost = state.dropped - state.told;
	struct log_field field = LOG_INT("lines", lost);
	struct log_event event = {
		.level = LOG_WARNING_L,
		.name = "log-dropped",
		.fields = &field,
		.nfields = 1,
		.text = "lost: the reader of the log did not keep up",
	};

	if (lost == 0)
		return true;
	log_batch_reset(&state.note);
	if (make_line(&event, &state.line) < 0 ||
	    log_batch_add(&state.note, state.line.data, state.line.len) < 0 ||
	    write_batch(&state.note, 0) == 0)
		return false;
	state.told += lost;
	return true;
}

void
log_flush(void)
{
	struct log_batch *b = &state.batch;
	int saved = errno;
	size_t i = 0;

	while (i < b->count) {
		if (tell_dropped())
			i = write_batch(b, i);
		if (i < b->count) {
			state.dropped++;
			i++;
		}
	}
	log_batch_reset(b);
	errno = saved;
}

void
log_gather(bool on)
{
	state.gathers = on;
	if (!on)
		log_flush();
}

/* False: there is no memory for the line. */
static bool
add_line(const struct log_event *event)
{
	if (state.batch.count == LOG_BATCH_LINES ||
	    state.batch.data.len + LINE_ROOM > LOG_BATCH_BYTES)
		log_flush();
	return make_line(event, &state.line) == 0 &&
	    log_batch_add(&state.batch, state.line.data, state.line.len) == 0;
}

static void
show_watcher(const struct log_event *event)
{
	const struct log_style style = { .program = NULL };

	if (state.watch == NULL || event->level < LOG_WARNING_L)
		return;
	buf_reset(&state.line);
	if (log_line_text(&state.line, event, &style) == 0)
		state.watch(buf_str(&state.line));
}

void
log_watch(void (*watch)(const char *text))
{
	state.watch = watch;
}

void
log_write(const struct log_event *event)
{
	int saved = errno;

	if (event->level < state.least)
		return;
	if (!add_line(event))
		state.dropped++;
	if (!state.gathers)
		log_flush();
	show_watcher(event);
	errno = saved;
}

bool
log_shows(enum log_level level)
{
	return level >= state.least;
}

PRINTF(4, 0)
static void
write_text(enum log_level level, const char *name, const char *id,
    const char *fmt, va_list ap)
{
	char text[LOG_LINE_MAX];
	const struct log_event event = {
		.level = level,
		.name = name,
		.id = id,
		.text = text,
		.plain = true,
	};

	vsnprintf(text, sizeof(text), fmt, ap);
	log_write(&event);
}

void
log_text(enum log_level level, const char *file, const char *fmt, ...)
{
	va_list ap;

	if (!log_shows(level))
		return;
	va_start(ap, fmt);
	write_text(level, log_topic(file), NULL, fmt, ap);
	va_end(ap);
}

void
log_message(enum log_level level, const char *event, const char *id,
    const char *fmt, ...)
{
	va_list ap;

	if (!log_shows(level))
		return;
	va_start(ap, fmt);
	write_text(level, event, id, fmt, ap);
	va_end(ap);
}

bool
log_due(usec_t now, usec_t every, usec_t *last)
{
	if (*last != 0 && now - *last < every)
		return false;
	*last = now == 0 ? 1 : now;
	return true;
}

uint64_t
log_dropped(void)
{
	return state.dropped;
}
