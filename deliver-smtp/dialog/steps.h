/* deliver-smtp/dialog/steps.h - shared by the sources of the dialogue only.
 *
 *	dialog.c       calls the steps by its table of states
 *	ends.c         the ends of the connection
 *	states.c       the words for the states
 *	handshake.c    the steps before MAIL
 *	transaction.c  the steps from MAIL to the last reply
 *	command.c      the commands as octets
 *	screen.c       requests that a server cannot take
 */
#ifndef DELIVER_SMTP_DIALOG_STEPS_H
#define DELIVER_SMTP_DIALOG_STEPS_H

#include "deliver-smtp/dialog/dialog.h"

/* ---- commands: -ENOMEM; -EINVAL for an address that no command can carry ----
 */

struct command_mail {
	const char *sender;
	bool eight_bit, utf8; /* needed by the message */
	bool unsized;         /* the length on the wire is not known */
	uint64_t size;        /* on the wire, or at least so much */
	const struct dsn_mail *dsn;
};

/* With the parameters that the server offers and the message needs. */
int command_mail(struct buf *out, const struct command_mail *mail,
    const struct smtp_ehlo *offered);
int command_rcpt(struct buf *out, const struct agent_rcpt *rcpt,
    const struct smtp_ehlo *offered);

/* ---- refusals of our own, known from the offer of the server before a word
 * about the message is said: true, with the reason in *v ---- */

bool screen_message(const char *sender, uint64_t size, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v);
bool screen_recipient(const char *address, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v);

/* Does the server take octets above 127? SMTPUTF8 comes with 8BITMIME (RFC 6531
 * section 3.1). */
bool screen_takes_eight(const struct smtp_ehlo *offered);
/* The content, as far as it was looked through. */
bool screen_content(const struct dialog_task *task,
    const struct dialog_survey *survey, const struct smtp_ehlo *offered,
    struct verdict *v);

/* ---- steps ---- */

enum rcpt_state {
	RCPT_OPEN,  /* not spoken of, or not answered */
	RCPT_TAKEN, /* the server will take it */
	RCPT_HELD,  /* refused, held back until DATA is answered */
	RCPT_LATER, /* refused as too many: for the next transaction */
	RCPT_OVER,  /* reported */
};
struct dialog_rcpt {
	enum rcpt_state state;
	struct verdict verdict; /* RCPT_HELD */
};

/* Report one recipient; every recipient without a report; of these the ones
 * that the server has taken, or the others; the verdicts held back. */
void step_settle(struct dialog *d, uint32_t place, const struct verdict *v);
void step_settle_all(struct dialog *d, const struct verdict *v);
void step_settle_some(
    struct dialog *d, bool taken, bool others, const struct verdict *v);
void step_release_held(struct dialog *d);
/* Does a recipient have no report? */
bool step_is_left(const struct dialog *d);

/* Say a command that has no address; its line end is added. */
void step_say(struct dialog *d, const char *fmt, ...) PRINTF(2, 3);
/* Note the result of writing a command: short of memory the dialog ends. */
void step_said(struct dialog *d, int r);
/* The same of words that no trace may show but for a command's first two. */
void step_said_secret(struct dialog *d, int r);
void step_say_quit(struct dialog *d);
/* A transaction is over: the next one, or nothing is left to say for this task.
 * clean: the server knows of no transaction. */
void step_part(struct dialog *d, bool clean);
void step_begin_transaction(struct dialog *d);
/* The content, of so many octets, may begin. */
void step_begin_chunk(struct dialog *d, uint64_t size);
/* "MAIL FROM", for messages. */
const char *step_command(const struct dialog *d);

/* ---- ends ---- */

/* The fate of recipients when the connection ends in a state. */
enum step_fate {
	FATE_NEXT,    /* unreported: another address may do better */
	FATE_TLS,     /* the same, or this one without TLS */
	FATE_COMMAND, /* deferred */
	FATE_BODY,    /* deferred */
	FATE_UNKNOWN, /* deferred, and perhaps delivered */
	FATE_NOTHING, /* none is left, and nothing has failed */
};
enum step_fate step_fate(const struct dialog *d);
/* "sending MAIL FROM", for messages. */
const char *step_doing(const struct dialog *d);

/* The connection is of no use any more; d->end.why was set. */
void step_give_up(struct dialog *d);
/* Set d->end.why; and give up. */
void step_set_protocol_error(struct dialog *d, const char *what);
void step_protocol_error(struct dialog *d, const char *what);
/* The same, for a reply that cannot belong to its command, and for octets
 * before their turn. */
void step_refuse_mismatch(struct dialog *d, const char *what);
void step_refuse_early(struct dialog *d, const char *what);
/* The greeting or EHLO was refused, or 421 came before a transaction. */
void step_refuse_site(struct dialog *d, const struct smtp_reply *reply);
/* No transaction has begun here, and none will; d->end.why was set. */
void step_leave_site(struct dialog *d);
/* No mechanism of AUTH is left: every recipient gets d->refusal. */
void step_auth_end(struct dialog *d);
/* Does the reply speak of the connection? Then step_end_connection(). */
bool step_is_end(const struct dialog *d, const struct smtp_reply *reply);
void step_end_connection(struct dialog *d, const struct smtp_reply *reply);

/* ---- the ways of a dialogue ---- */

/* The server has taken all that comes before MAIL. */
void step_begin(struct dialog *d);

typedef void step_fn(struct dialog *d, const struct smtp_reply *reply);
/* The handshake's part of the table. */
step_fn step_greeting_ok, step_ehlo_ok, step_ehlo_refused, step_starttls_ok,
    step_auth_ok, step_auth_more, step_auth_refused;
/* The transaction's part. */
step_fn step_mail_ok, step_mail_refused, step_rcpt_ok, step_rcpt_refused,
    step_data_ok, step_data_refused, step_content_ok, step_content_refused,
    step_dot_ok, step_dot_refused, step_rset_refused;

#endif
