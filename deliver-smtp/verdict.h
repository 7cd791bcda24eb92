/* deliver-smtp/verdict.h - what a server's reply means for a recipient. */
#ifndef DELIVER_SMTP_VERDICT_H
#define DELIVER_SMTP_VERDICT_H

#include "agent/agent.h"
#include "smtp/smtp.h"

/* Text of a report, at most; what a server said in it is cleaned. */
#define VERDICT_TEXT_MAX 800

struct verdict {
	enum agent_outcome outcome;
	char dsn[SMTP_DSN_SIZE];
	struct buf text;
};

/* Short of memory the text is shorter, never the outcome wrong. */
void verdict_done(struct verdict *v);
/* A reply that means yes, in its own words. */
void verdict_accept(struct verdict *v, const struct smtp_reply *reply);
/* 4xx, 5xx: "host PEER said: REPLY (in reply to COMMAND)". */
void verdict_refuse(struct verdict *v, const struct smtp_reply *reply,
    const char *peer, const char *command);
/* One of our own, text by printf. */
void verdict_set(struct verdict *v, enum agent_outcome outcome, const char *dsn,
    const char *fmt, ...) PRINTF(4, 5);
/* The same, but the recipient may try again. */
void verdict_soften(struct verdict *v);

#endif
