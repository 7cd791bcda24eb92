/* deliver-smtp/session/log.h - lines of the log about one message
 * (qscheduler-log(5)). */
#ifndef DELIVER_SMTP_SESSION_LOG_H
#define DELIVER_SMTP_SESSION_LOG_H

#include "deliver-smtp/dialog/dialog.h"
#include "deliver-smtp/protection/tls.h"

/* A connection is secure, before a word of the message is said. */
void
log_secured(const char *id, const char *relay, const struct tls_facts *facts);
/* The message goes in the clear since TLS failed. */
void log_fall_back(const char *id, const struct verdict *why);
/* Log next-host: the delivery of nrcpts recipients leaves the host at relay for
 * the reason `text`, and goes on to the next host. */
void log_next_host(const char *id, const char *relay, uint32_t nrcpts,
    const char *dsn, const char *text);

#endif
