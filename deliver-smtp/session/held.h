/* deliver-smtp/session/held.h - results of recipients that one host has
 * deferred and another one may take in the same delivery. The later result
 * counts; what is left is reported when no host is left.
 */
#ifndef DELIVER_SMTP_SESSION_HELD_H
#define DELIVER_SMTP_SESSION_HELD_H

#include "agent/agent.h"

struct held_result {
	char dsn[AGENT_DSN_MAX + 1];
	char *relay, *text; /* NULL: no result */
	usec_t conn, xfer;
};

/* All zero: none is held. */
struct held {
	struct held_result *results; /* nrcpts of the delivery */
	uint32_t count;
};

/* A copy, in place of what was held for the recipient. -ENOMEM: that is not
 * changed. */
int held_put(struct held *h, const struct agent_delivery *delivery,
    uint32_t place, const struct agent_report *report);
/* Report to the delivery what is held for recipients without a report. */
void held_report(const struct held *h, struct agent_delivery *delivery);
/* The text held for the first recipient without a report, and its code; NULL:
 * there is none. */
const char *held_reason(const struct held *h,
    const struct agent_delivery *delivery, const char **ret_dsn);
void held_done(struct held *h);

#endif
