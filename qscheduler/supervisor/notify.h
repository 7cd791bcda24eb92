/* qscheduler/supervisor/notify.h - what the service manager is told.
 *
 * systemd: datagrams to NOTIFY_SOCKET (sd_notify(3)), READY=1, STATUS=…,
 * RELOADING=1, STOPPING=1, EXTEND_TIMEOUT_USEC=…, WATCHDOG=1. s6: a newline
 * on the descriptor of --ready-fd, which is closed after it. With neither,
 * nothing.
 *
 * Never fails and never blocks: a service manager that does not listen is no
 * reason not to move mail. */
#ifndef QSCHEDULER_SUPERVISOR_NOTIFY_H
#define QSCHEDULER_SUPERVISOR_NOTIFY_H

#include "base/base.h"

#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	int sock;                     /* -1: no systemd */
	int ready_fd;                 /* -1: no s6 */
	usec_t alive_every, alive_at; /* USEC_NEVER: nobody watches */
	struct sockaddr_un to;
	socklen_t to_len;
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. */
void notify_init(struct notify *n, int ready_fd);
void notify_done(struct notify *n);
void notify_ready(struct notify *n, const char *status);
void notify_status(const struct notify *n, const char *status);
void notify_reloading(const struct notify *n, usec_t now);
/* The stop may take so long, whatever the manager has been told before. */
void notify_stopping(const struct notify *n, usec_t limit);
/* Once a second: says so four times in the time of the watchdog. */
void notify_alive(struct notify *n, usec_t now);

#endif
