/* deliver-smtp/smtp.h - the program: a delivery agent (daemon/agent.h) whose
 * deliveries run as sessions.
 *
 *	smtp.c      the daemon: start, reload, stop
 *	lockdown.c  the rights that the process gives up at its start
 *	session.h   one delivery; connection.h: its sockets; dialog.h: its
 *	            words
 */
#ifndef DELIVER_SMTP_SMTP_H
#define DELIVER_SMTP_SMTP_H

#include "deliver-smtp/session/session.h"

/* The state is a struct session_context. */
extern const struct daemon_ops smtp_ops;

/* The agents of all queues run as one user, and a user may signal and slow down
 * its own processes. A filter of system calls, which cannot be taken off again,
 * refuses (EPERM) every call that would reach another process: signals by any
 * call, also signals that the kernel sends for a descriptor, tracing and its
 * kin, limits, priorities and processors of others; and running programs.
 * raise() and abort() of the process itself remain. The list names the calls
 * that are refused, not the allowed ones: a library that comes to use another
 * call goes on.
 *
 * For the rest of the life of this process. -errno when the kernel has no
 * filters, or does not let us have one. */
int lockdown_install(void);

#endif
