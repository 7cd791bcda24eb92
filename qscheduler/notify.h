/* qscheduler/notify.h - what the service manager is told.
 *
 * systemd: datagrams to NOTIFY_SOCKET (sd_notify(3)), READY=1, STATUS=…,
 * RELOADING=1, STOPPING=1, WATCHDOG=1. s6: a newline on the descriptor of
 * --ready-fd, which is closed after it. With neither, nothing.
 *
 * Never fails and never blocks: a service manager that does not listen is no
 * reason not to move mail. */
#ifndef QSCHEDULER_NOTIFY_H
#define QSCHEDULER_NOTIFY_H

#include "base/base.h"

#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	int sock;     /* -1: no systemd */
	int ready_fd; /* -1: no s6 */
	bool watchdog;
	struct sockaddr_un to;
	socklen_t to_len;
};

/* Reads NOTIFY_SOCKET and WATCHDOG_USEC. */
void notify_init(struct notify *n, int ready_fd);
void notify_done(struct notify *n);
void notify_ready(struct notify *n, const char *status);
void notify_status(const struct notify *n, const char *status);
void notify_reloading(const struct notify *n, usec_t now);
void notify_stopping(const struct notify *n);
/* Once a second. */
void notify_alive(const struct notify *n);

#endif
