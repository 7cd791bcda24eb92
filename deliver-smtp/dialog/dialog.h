/* deliver-smtp/dialog/dialog.h - one SMTP or LMTP conversation as a state
 * machine, and the verdict that a server's reply is for a recipient.
 *
 *	dialog.c       the table of states
 *	states.c       the words for the states
 *	ends.c         the ends of the connection
 *	handshake.c    the greeting to the last word before MAIL
 *	transaction.c  MAIL to the last reply
 *	command.c, screen.c, verdict.c   its words (steps.h)
 *
 * Pure: octets of the server and events go in, commands come out in d->out, the
 * verdict of a recipient goes to the callback. No sockets, no clock. The caller
 * sends what is in d->out (and empties it), gives each state its time limit,
 * sends the content in DIALOG_CONTENT, and closes the connection in
 * DIALOG_CLOSED, where d->end says how it went.
 *
 * TLS is the caller's: in DIALOG_TLS, with nothing left in d->out, the caller
 * makes the connection secure and calls dialog_secured() or dialog_insecure().
 * Whatever was learned before is forgotten, and octets that came before their
 * turn end the dialogue: nobody may put words of an insecure conversation into
 * the secure one. With task.tls encrypt or verify nothing of the message, not
 * even its sender, is said in the clear.
 *
 * With task.credential AUTH comes before MAIL, never in the clear unless
 * task.auth_in_clear says so. A mechanism that is refused for good is followed
 * by the next one that both sides know. Whatever the server says, the secret is
 * in no verdict.
 *
 * With task.keep a transaction ends in DIALOG_IDLE, after RSET where the server
 * may think that it goes on; dialog_again() begins the next one. A connection
 * that turns out to be of no use before the first reply of a later transaction,
 * or by one that refuses, says nothing of the site or of the mail: end.stale
 * asks for a new one.
 *
 * With PIPELINING, MAIL, all RCPT and DATA go out together. The verdicts of
 * recipients are then held back until the reply to DATA shows that replies and
 * commands still match. A reply that cannot belong to its command proves that
 * they do not: then nothing was learned, and end.lockstep asks for a new
 * connection without pipelining. The end of the connection proves nothing, and
 * the verdicts stand; silence may be a missing reply, and defers all that were
 * held back.
 *
 * A server may take only so many recipients in one transaction ("452 4.5.3").
 * The others follow in further transactions over the same connection, and
 * end.batch is the number to send the next time. Each transaction but the last
 * one gives a result to at least one recipient, so there is an end to it.
 *
 * Content of 8 bit is looked through before MAIL where it matters, in
 * DIALOG_SURVEY: the caller reads it and says dialog_surveyed(). To a server
 * of 7 bit the caller then sends what the survey planned.
 *
 * The size on the wire is larger than in the queue: a line end has two octets
 * there (RFC 1870). Where that could decide whether the message fits, or is
 * cheap to find out, the caller measures the content in DIALOG_COUNT, before
 * MAIL, and says dialog_measured().
 *
 * With task.chunking, to a server that offers CHUNKING, the content goes by
 * BDAT (RFC 3030) as one chunk. The caller measures it in DIALOG_MEASURE, says
 * dialog_measured(), and sends exactly so many octets in DIALOG_CONTENT. No
 * reply to BDAT has a code of its own, as 354 is to DATA, so that a reply too
 * many would pass for the acceptance of a message: each command then waits for
 * its reply, and a reply that comes before the whole chunk has gone ends the
 * dialogue.
 *
 * Recipients are named by their place in task.rcpts; a recipient that is
 * reported there when the dialog begins is left out. The caller keeps the
 * task's strings while the dialog lives.
 */
#ifndef DELIVER_SMTP_DIALOG_DIALOG_H
#define DELIVER_SMTP_DIALOG_DIALOG_H

#include "agent/agent.h"
#include "config/conf.h"
#include "deliver-smtp/mime/mime.h"
#include "deliver-smtp/protection/auth.h"
#include "route/tls_policy.h"
#include "smtp/smtp.h"

/* ---- verdicts ---- */

/* Text of a report, at most; the words of a server in it are cleaned. */
#define VERDICT_TEXT_MAX 800

struct verdict {
	enum agent_outcome outcome;
	char dsn[SMTP_DSN_SIZE];
	struct buf text;
	bool passed_on; /* the server tells the sender of a success (DSN) */
	/* Deferred, and no other host may be tried in this delivery: the server
	 * may have taken the message, or would be asked for the same user. */
	bool final;
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

/* ---- the dialogue ---- */

enum dialog_state { /* each waits for the reply that it names */
	DIALOG_GREETING,
	DIALOG_EHLO, /* EHLO or LHLO */
	DIALOG_HELO,
	DIALOG_STARTTLS,
	DIALOG_TLS,    /* nothing: the caller makes the connection secure */
	DIALOG_AUTH,   /* the reply that ends it, or asks for more */
	DIALOG_SURVEY, /* nothing: we look through the message */
	DIALOG_COUNT,  /* nothing: we measure the message, for SIZE */
	DIALOG_MAIL,
	DIALOG_RCPT,
	DIALOG_DATA,
	DIALOG_MEASURE, /* nothing: we measure the message, for BDAT */
	DIALOG_CONTENT, /* nothing: we send the message */
	DIALOG_DOT,   /* or the end of a chunk: one reply, of LMTP one for each
			 accepted recipient */
	DIALOG_ABORT, /* the reply to a dot alone: no recipient was accepted */
	DIALOG_RSET,  /* before it is idle */
	DIALOG_IDLE,  /* nothing: the connection is kept */
	DIALOG_QUIT,
	DIALOG_CLOSED,
	DIALOG_NSTATES,
};

enum dialog_lost {
	DIALOG_LOST_CLOSED, /* end of file or reset */
	DIALOG_LOST_TIMEOUT,
};

typedef void
dialog_report_fn(void *arg, uint32_t place, const struct verdict *verdict);

/* Words of the dialogue, for a trace: a reply with its code, or commands with
 * code 0. Secrets and the content are masked. */
typedef void
dialog_said_fn(void *arg, unsigned code, const char *text, size_t len);

struct dialog_task {
	bool lmtp;
	bool lockstep; /* no pipelining even when offered */
	bool keep;     /* leave the connection open behind it */
	enum tls_level tls;
	bool implicit;  /* TLS comes before the greeting */
	bool fall_back; /* when TLS fails a new connection may do without */
	const struct credential *credential; /* NULL: no AUTH */
	bool auth_in_clear;                  /* also without TLS */
	bool auth_soft;      /* a refusal of it for good defers, too */
	unsigned mechanisms; /* enum smtp_auth: those that may be used */
	const char *helo, *sender;
	const char *peer;      /* "host[ip]" */
	uint64_t size;         /* of the content, as it is in the queue */
	bool at_hand;          /* content in memory, cheap to measure */
	bool rewritten;        /* content may get longer or shorter */
	bool eight_bit;        /* the content has octets above 127 */
	struct dsn_mail dsn;   /* wishes of the sender */
	enum conf_eight eight; /* where 8BITMIME is not offered */
	bool chunking;         /* BDAT where it is offered */
	uint32_t ignored;      /* keywords of EHLO: smtp_keyword_find() */
	uint32_t batch; /* most recipients of a transaction; 0: any number */
	dialog_said_fn *said; /* NULL: nobody follows the dialogue */
	const struct agent_rcpt *rcpts;
	uint32_t nrcpts;
};

/* Findings of a survey of the content (mime.h). */
struct dialog_survey {
	enum mime_fault fault;
	bool eight, header, header_utf8;
};

struct dialog_end {
	/* A connection or handshake failure, to the reply to the first MAIL of
	 * the connection; `why` says it. */
	bool site_failed;
	/* A later end of the connection that nothing of this message explains;
	 * `why` says it. */
	bool site_doubted;
	/* The end came before a transaction: recipients are unreported, another
	 * address may do better. */
	bool try_next;
	/* The server answers, but the TLS that task.tls requires cannot be had
	 * from the server. With try_next. */
	bool insecure;
	/* Recipients are unreported: connect again, task.lockstep set. */
	bool lockstep;
	/* Recipients are unreported: TLS failed, connect again without it;
	 * `why` says it. Nothing was learned of the site. */
	bool in_clear;
	/* Recipients are unreported: the connection has carried a message, and
	 * is of no use any more. Nothing was learned of the site. */
	bool stale;
	/* The most recipients of a transaction that the server takes, as far as
	 * it is known: task.batch, or learned here; 0: any number. */
	uint32_t batch;
	bool open; /* DIALOG_IDLE */
	struct verdict why;
};

struct dialog {
	struct dialog_task task;
	enum dialog_state state;
	struct buf out; /* commands to be sent */
	size_t told;    /* octets of out that went to said() */
	bool whole;     /* DIALOG_SURVEY: of all, not of the header alone */
	bool chunked;   /* the content goes by BDAT: without a dot */
	bool convert;   /* DIALOG_MEASURE, DIALOG_CONTENT: by the plan of the
			   survey */
	struct dialog_end end;
	bool handshaken; /* the server has taken all that comes before MAIL */
	bool secure;     /* TLS protects what is said */
	/* Changes with each reply that was taken: begin the time limit anew. */
	uint32_t turn;
	uint32_t transactions; /* begun for this task */
	/* private below */
	dialog_report_fn *report;
	void *arg;
	struct smtp_reply_parser parser;
	struct smtp_ehlo ehlo;
	struct dialog_survey survey;
	bool surveyed;
	uint64_t size; /* on the wire if it is counted, else task.size */
	bool counted;
	struct auth auth;
	bool auth_refused;         /* a mechanism was, for good */
	struct dialog_rcpt *rcpts; /* task.nrcpts of them */
	uint32_t next; /* RCPT, DOT: the next reply is for this one */
	/* Of this transaction. */
	uint32_t until;    /* place behind its last recipient */
	uint32_t answered; /* replies to RCPT */
	uint32_t accepted;
	uint32_t put_off;       /* refused as too many, none accepted behind */
	uint32_t room;          /* replies to RCPT before the first of these */
	uint32_t batch;         /* end.batch at its begin */
	struct verdict refusal; /* of AUTH, later of MAIL */
	bool pipelined;         /* this transaction is */
	bool refused;           /* MAIL was: replies to RCPT do not count */
	bool early;             /* the reply was sent before its command */
	bool unanswered;    /* a further transaction, before the first reply */
	bool mail_answered; /* a MAIL of this connection */
	bool blamed; /* sender, recipients or content of this task: refused */
	bool no_memory;
};

/* -ENOMEM. */
int dialog_init(struct dialog *d, const struct dialog_task *task,
    dialog_report_fn *report, void *arg);
void dialog_done(struct dialog *d);

/* In DIALOG_IDLE: the next transaction. -ENOMEM: only dialog_done() is left. */
int dialog_again(struct dialog *d, const struct dialog_task *task,
    dialog_report_fn *report, void *arg);
/* In DIALOG_IDLE: we close it, after the QUIT in d->out. */
void dialog_part(struct dialog *d);

/* Octets from the server. */
void dialog_feed(struct dialog *d, const char *data, size_t len);
/* DIALOG_TLS: the connection is secure, with a server that is what was wanted;
 * or it cannot be made so, for this reason. */
void dialog_secured(struct dialog *d);
void dialog_insecure(struct dialog *d, const char *why);
/* DIALOG_SURVEY: it is over. */
void dialog_surveyed(struct dialog *d, const struct dialog_survey *survey);
/* DIALOG_COUNT, DIALOG_MEASURE: what will go over the wire, without dots that
 * are doubled, has so many octets. */
void dialog_measured(struct dialog *d, uint64_t size);
/* DIALOG_CONTENT: all of it, with the dot, has been sent. */
void dialog_content_sent(struct dialog *d);
/* The connection is gone, or the time limit of the state is over. After it the
 * dialog is DIALOG_CLOSED. */
void dialog_lost(struct dialog *d, enum dialog_lost why);
/* DIALOG_LOST_CLOSED by an error of TLS, of which this is the text. */
void dialog_broken(struct dialog *d, const char *error);
/* We end it: every recipient without a report is deferred with this one. In
 * DIALOG_DOT text gets a warning that the message may come twice. */
void dialog_abandon(struct dialog *d, const char *dsn, const char *text);

#endif
