/* deliver-smtp/session/session_inside.h - shared by session.c, next.c and
 * sender.c only.
 */
#ifndef DELIVER_SMTP_SESSION_SESSION_INSIDE_H
#define DELIVER_SMTP_SESSION_SESSION_INSIDE_H

#include "deliver-smtp/session/held.h"
#include "deliver-smtp/session/session.h"

struct session {
	TAILQ_ENTRY(session) entry;
	struct session_context *context;
	struct agent_delivery *delivery;
	struct settings settings;
	struct sender_map *rewrites;  /* for the header; NULL: none */
	char sender[ADDRESS_MAX + 1]; /* in its place; "": none */
	struct policy policy;
	struct reach reach;  /* under way, or */
	struct connection c; /* talk, peer and relay of the address */
	bool reached;        /* the current address was connected to */
	bool reused;         /* c was kept by an earlier delivery */
	bool lockstep;       /* pipelining went wrong in this session */
	bool in_clear;       /* TLS failed with the current address */
	bool fell_back;      /* to the clear: once for each address */
	uint64_t spare;      /* a kept connection that may be used; 0: none */
	uint32_t left;     /* recipients without a report when the talk began */
	uint32_t sessions; /* new connections that got past the handshake */
	bool talked; /* a host answered about the message, and has not failed */
	bool doubted;  /* a host is doubted (dialog.h) */
	bool insecure; /* a host lacks the TLS that its next hop requires */
	struct held held;
	struct verdict why; /* the last failure */
};

/* The last host, for the scheduler. */
enum session_result {
	SESSION_TALKED, /* the host talked to us, whatever it said */
	SESSION_FAILED,
	SESSION_DOUBTED,
	SESSION_OURS, /* our own trouble: says nothing of the site */
};

/* End the delivery. Recipients without a report have the result that is held
 * for them, else are deferred, and s->why says why; of our own trouble all of
 * them. */
void session_finish(struct session *s, enum session_result result);
/* The delivery is over for its owner. */
void session_leave(struct session *s);

/* Writes the other address of the sender into out. 1; 0: there is none, or the
 * address would be too long; -ENOMEM. */
int session_rewrite_sender(const struct sender_map *map,
    const struct agent_delivery *delivery, char out[ADDRESS_MAX + 1]);

/* The next address, or next hop, follows: TLS has not failed there. */
void session_forget_tls(struct session *s);
/* Is there a fallback, did no host get as far as MAIL, and did none lack the
 * TLS that is required? */
bool session_may_fall_back(const struct session *s);
/* Then go there, and tell the log of the server `relay`, which is left; s->why
 * says why. False: there is none, or none that can be used. */
bool session_fall_back(struct session *s, const char *relay);
/* Recipients without a report. */
uint32_t session_left(const struct session *s);
/* An event of the delivery with this server, for operators who follow it. */
void session_trace(struct session *s, const char *relay, const char *text);
/* Of struct dialog_task. */
void session_on_said(void *arg, unsigned code, const char *text, size_t len);
/* Of struct talk_ops. */
void session_on_report(void *arg, uint32_t place, const struct verdict *v);
void session_on_ended(void *arg, struct dialog_end *ended);

#endif
