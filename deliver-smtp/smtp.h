/* deliver-smtp/smtp.h - the program: a daemon (daemon/daemon.h) whose
 * deliveries come over the link "queue-send" and run as sessions.
 *
 * Told to stop, it takes no more deliveries, lets sessions end within the
 * limit, and ends those that are left. Without queue-send no result can be
 * recorded any more: sessions are dropped at once, which makes no server take a
 * message that it would not have taken, and the program ends. */
#ifndef DELIVER_SMTP_SMTP_H
#define DELIVER_SMTP_SMTP_H

#include "daemon/agent.h"
#include "deliver-smtp/session.h"

struct smtp {
	struct daemon_agent link;
	struct session_context context;
};

extern const struct daemon_ops smtp_ops;

#endif
