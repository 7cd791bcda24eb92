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
	bool fell_back;      /* an address was connected to again, in clear */
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

/* sender.c: write the address that the relay gets instead of the sender into
 * out. 1; 0: no row of the map fits, or the address is too long; -ENOMEM. */
int session_rewrite_sender(const struct sender_map *map,
    const struct agent_delivery *delivery, char out[ADDRESS_MAX + 1]);

/* Forget that TLS failed, before the next address or next hop is tried. */
void session_forget_tls(struct session *s);
/* May the delivery go to a fallback? There must be one, no host may have got as
 * far as MAIL, and no host may lack the TLS that the next hop requires. */
bool session_may_fall_back(const struct session *s);
/* Go to the next fallback if session_may_fall_back(), and log that the server
 * `relay` is left for the reason s->why. False: the session stays as it is, or
 * no fallback can be used. */
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
