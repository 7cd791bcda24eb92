/* log/sink.h - where lines go; nothing here ever waits (P21). Private to
 * common/log.
 */
#ifndef LOG_SINK_H
#define LOG_SINK_H

#include "base/base.h"

#define LOG_SYSLOG_PATH "/dev/log"

/* A descriptor of standard error that can be written without waiting and
 * without changing how others who have it write; fd itself where there is no
 * such way. */
int log_sink_stderr(int fd);
/* One whole line, its newline in it, or nothing: false. */
bool log_sink_write(int fd, const char *line, size_t len);

/* Connected or not: -1. */
int log_sink_syslog(const char *path);
/* As syslog(3) sends it, but for the waiting. Connects (again) when needed. */
bool log_sink_syslog_send(int *fd, const char *path, int priority,
    const char *program, const char *line, size_t len);

#endif
