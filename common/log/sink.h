/* log/sink.h - where lines go; nothing here ever waits (P21). Private to
 * common/log.
 */
#ifndef LOG_SINK_H
#define LOG_SINK_H

#include "base/base.h"

#define LOG_SYSLOG_PATH "/dev/log"

struct log_sink {
	int fd;
	bool own;    /* fd was opened here */
	bool socket; /* can be told not to wait by each call */
	bool waits;  /* a write may wait: poll() first */
};

/* What standard error is, opened again where that gives a way to write without
 * waiting that does not change how others write to it. */
void log_sink_open(struct log_sink *sink, int fd);
/* One whole line, its newline in it, or nothing: false. */
bool log_sink_write(const struct log_sink *sink, const char *line, size_t len);

/* Connected or not: -1. */
int log_sink_syslog(const char *path);
/* As syslog(3) sends it, but for the waiting. Connects (again) when needed. */
bool log_sink_syslog_send(int *fd, const char *path, int priority,
    const char *program, const char *line, size_t len);

#endif
