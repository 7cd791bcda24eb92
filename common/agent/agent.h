/* agent/agent.h - the agent protocol, both ends (docs/IPC.md, link WORK).
 *
 * queue-send hands an entry to an agent with the content of the message, or, of
 * one that is larger than AGENT_WHOLE_MAX, with an open, read-only descriptor
 * of the queue file; the agent answers per recipient (RESULT), then DONE. An
 * agent that dies, or says something it may not say (a delivery that it does
 * not have, a recipient twice or out of range), loses the delivery: recipients
 * without a report are deferred.
 *
 * The agent's end: agent_new() on the wire that the supervisor passes; each
 * delivery goes to deliver(), which owns it until agent_done(). Frames of
 * queue-send are checked as if they came from a stranger: a frame that is not
 * right is dropped and answered with DONE for its delivery, and ends nothing.
 *
 * A link that is gone (queue-send ended, or our answers cannot be queued any
 * more) is told once, by orphaned(), from the event loop and never from inside
 * a call of this module. Deliveries stay their owner's until agent_done();
 * their reports go nowhere then.
 *
 * Soft: -errno. Panics: misuse only. Never logs.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "base/dsn.h"
#include "ipc/msg.h"
#include "ipc/trace.h"
#include "ipc/wire.h"

#include <bsd/sys/tree.h>

#define AGENT_RCPTS_MAX   100 /* of one delivery */
/* Content up to here travels in the frame, if the recipients leave the room. */
#define AGENT_WHOLE_MAX   32768
#define AGENT_ID_MAX      64   /* a queue id is shorter (spool/id.h) */
#define AGENT_NAME_MAX    64   /* of a transport */
#define AGENT_NEXTHOP_MAX 1024 /* of AGENT_ERROR it is a sentence */
#define AGENT_SITE_MAX    600  /* a destination; SITE_NAME_MAX is as much */
#define AGENT_DSN_MAX     16
#define AGENT_RELAY_MAX   320
#define AGENT_TEXT_MAX    4096

enum agent_outcome {
	AGENT_SENT,     /* delivered: dsn 2.x.x */
	AGENT_DEFERRED, /* temporary: dsn 4.x.x */
	AGENT_FAILED,   /* permanent: dsn 5.x.x */
	AGENT_NOUTCOMES,
};

/* Verdict of an ended delivery on its destination. */
enum agent_site {
	/* The server answered; or the agent had trouble of its own. */
	AGENT_SITE_TALKED,
	/* A connection or handshake failure (docs/WORDS.md). */
	AGENT_SITE_FAILED,
	/* The connection was lost, or timed out, in the middle of the session,
	 * and the server had refused nothing of this message. One message alone
	 * may be the cause, so one message alone is no failure. */
	AGENT_SITE_DOUBTED,
	AGENT_SITE_NENDS,
};

/* How far a delivery may have come that CANCEL ends. */
enum agent_stage {
	/* SMTP: before MAIL. Local: before the recipient's process. For a stop
	 * of the system. */
	AGENT_NOT_BEGUN,
	/* SMTP: before the end of the content was sent, so that no server can
	 * have accepted it. Local: as above. For an act of an operator. */
	AGENT_NOT_ACCEPTED,
	/* SMTP: before MAIL, and the site has failed. Local: never asked for.
	 * Mail for other sites waits for the slot. */
	AGENT_NOT_GREETED,
	AGENT_NSTAGES,
};

/* The reason of its recipients. */
#define AGENT_CANCELLED_DSN "4.3.2"
#define AGENT_STOPPED       "delivery interrupted: qscheduler was stopped"
const char *agent_cancelled(enum agent_stage stage);

struct agent_rcpt {
	uint32_t index; /* in the queue file */
	char *address;  /* no control characters, not empty */
	uint8_t notify; /* enum dsn_notify; 0: not given */
	char *orcpt;    /* xtext behind its type; NULL: not given */
	bool reported;
};

struct agent;

struct agent_delivery {
	struct agent *agent; /* NULL when that was freed before the delivery */
	uint64_t number;
	char *id;
	uint8_t kind; /* enum agent_kind of config/conf.h */
	char *transport, *nexthop, *sender;
	/* All of the content, which lives as long as the delivery; or NULL, and
	 * then it is to be read from the queue file, which is open read-only
	 * and closed by agent_done(). */
	const char *content;
	int fd;
	uint64_t content_off, content_len;
	uint32_t flags; /* enum queue_file_flags */
	bool may_keep;  /* the connection: agent_kept() */
	bool greeted;   /* agent_greeted() was called */
	/* An earlier delivery whose connection was kept, to be used; 0: none.
	 */
	uint64_t connection;
	/* The destination that the delivery has its place at: agent_elsewhere()
	 * where that is not the one of its MX hosts. NULL: it is right. */
	char *site;
	uint32_t nrcpts;
	struct agent_rcpt *rcpts;
	struct dsn_mail dsn; /* wishes of the sender */
	usec_t received_at;  /* monotonic */
	void *user;          /* the agent program's own */
	/* private to common/agent below */
	RB_ENTRY(agent_delivery) node;
	char *strings, *wishes;
};

struct agent_ops {
	void (*deliver)(void *arg, struct agent_delivery *delivery);
	/* queue-send is gone: end what runs, then stop. */
	void (*orphaned)(void *arg);
	/* Optional: a frame was dropped, and why; for the log. */
	void (*bad)(void *arg, const char *what);
	/* Optional, without it no connection is kept: close the connection that
	 * this delivery had left open, and say agent_connection_closed(). One
	 * that is closed already is no matter. */
	void (*close)(void *arg, uint64_t connection);
	/* Optional: answers that had to wait have gone out. */
	void (*drained)(void *arg);
	/* Optional: end the delivery, if it has come no further than that; it
	 * may be done when this returns. */
	void (*cancel)(
	    void *arg, struct agent_delivery *delivery, enum agent_stage stage);
	/* Optional: an operator follows the dialogues with a destination, a
	 * pattern for text_matches(), for so many seconds; 0: no longer. Lines
	 * go out by agent_trace(). */
	void (*trace)(void *arg, uint64_t trace, const char *destination,
	    uint32_t seconds);
};

/* The socket is the agent's from here on; on failure it stays the caller's. */
int agent_new(struct event_base *base, int sock, const struct agent_ops *ops,
    void *arg, struct agent **ret_agent);
/* Tells queue-send which process this is, for people. */
void agent_introduce(struct agent *agent);
/* Deliveries that are not done stay, without an agent. Not from inside
 * deliver() or bad(). */
void agent_free(struct agent **agent);
/* Bytes of answers that wait for queue-send to take them. */
size_t agent_queued(const struct agent *agent);

/* Strings may hold anything: they are cleaned and cut to AGENT_…_MAX here. */
struct agent_report {
	enum agent_outcome outcome;
	const char *dsn;   /* "2.0.0" */
	const char *relay; /* "host[ip]:port", "local", … */
	const char *text;
	usec_t conn, xfer;
	/* The server has the wishes of the sender, and tells of a success. */
	bool passed_on;
};
/* One recipient, by its place in delivery->rcpts; reporting twice is a bug. */
void agent_result(struct agent_delivery *delivery, uint32_t place,
    const struct agent_report *report);
/* The same report for every recipient that has none. */
void agent_result_rest(
    struct agent_delivery *delivery, const struct agent_report *report);
/* Defer the recipients that have no report, and end the delivery: trouble of
 * the agent's own, which says nothing of the site. */
void
agent_defer(struct agent_delivery *delivery, const char *dsn, const char *text);
/* Ends and frees the delivery. AGENT_SITE_FAILED, AGENT_SITE_DOUBTED: dsn and
 * text say why. AGENT_SITE_TALKED with a dsn: trouble of the agent's own, which
 * says nothing of the site; without: "" for both. */
void agent_done(struct agent_delivery *delivery, enum agent_site site,
    const char *dsn, const char *text);

/* The server has greeted, and taken all that comes before MAIL: queue-send
 * gives it more slots. To be said of a connection that was kept, too; a second
 * call says nothing. */
void agent_greeted(struct agent_delivery *delivery);

/* In place of agent_done(), where the delivery has a site, nothing is reported
 * and nothing was connected to: for so many seconds its next hop is at that
 * destination; "": at its own. */
void agent_elsewhere(
    struct agent_delivery *delivery, const char *site, uint32_t seconds);

/* In place of agent_done(), where may_keep says so: the site answered, and the
 * connection of the delivery stays open under its number until a delivery
 * brings that number as `connection`, or agent_connection_closed() comes. */
void agent_kept(struct agent_delivery *delivery);
/* The connection is closed. Not for one that a delivery has brought. */
void agent_connection_closed(struct agent *agent, uint64_t connection);

/* One line of a dialogue for an operator. Text is cleaned and cut here. False:
 * the line is left out, because queue-send does not keep up; results come
 * first. */
struct agent_trace_line {
	enum trace_who who;
	const char *id, *relay; /* of the message, of the server */
	const char *text;
	size_t len;
};
bool agent_trace(struct agent *agent, uint64_t trace, usec_t at_wall,
    const struct agent_trace_line *line);

/* queue-send's end: the DELIVER frame. rcpts is filled with agent_rcpt_add().
 * -EINVAL, -EILSEQ, -ENAMETOOLONG: address_check(); -ENOMEM. */
int agent_rcpt_add(
    struct buf *rcpts, uint32_t index, const char *address, size_t len);

/* The same for a WISHES frame, a recipient after the other. -EBADRQC: no value
 * that RFC 3461 allows; -ENOMEM. */
int agent_wish_add(struct buf *wishes, const struct dsn_rcpt *dsn);

/* Judge a DELIVER frame and make the delivery of it; the descriptor is the
 * delivery's when 0 is returned. -EBADMSG with *ret_what, which names the
 * fault; -ENOMEM. agent_new() does this; apart for tests. */
int agent_delivery_new(const struct msg_DELIVER *frame, int fd,
    struct agent_delivery **ret_delivery, const char **ret_what);
/* The same of a frame that has the content. */
int agent_delivery_new_whole(const struct msg_DELIVER_WHOLE *frame,
    struct agent_delivery **ret_delivery, const char **ret_what);
/* Judge the WISHES frame of a delivery and put it in. -EBADMSG, -ENOMEM, with
 * *ret_what: the delivery is to be refused, since it would ask for reports that
 * nobody wants. */
int agent_delivery_wish(struct agent_delivery *delivery,
    const struct msg_WISHES *frame, const char **ret_what);
/* The site of its SITE frame. -EBADMSG: no name of one; -ENOMEM. */
int agent_delivery_place(struct agent_delivery *delivery, const char *site);
void agent_delivery_free(struct agent_delivery **delivery);

#endif
