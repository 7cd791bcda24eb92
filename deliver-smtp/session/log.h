/* deliver-smtp/session/tls_log.h - lines of the event tls, of one message
 * (qscheduler-log(5)). */
#ifndef DELIVER_SMTP_SESSION_TLS_LOG_H
#define DELIVER_SMTP_SESSION_TLS_LOG_H

#include "deliver-smtp/dialog/dialog.h"
#include "deliver-smtp/protection/tls.h"

/* A connection is secure, before a word of the message is said. */
void
tls_log_begun(const char *id, const char *relay, const struct tls_facts *facts);
/* The message goes in the clear since TLS failed. */
void tls_log_fall_back(const char *id, const struct verdict *why);

#endif
