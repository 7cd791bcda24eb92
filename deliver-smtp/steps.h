/* deliver-smtp/steps.h - shared by the sources of the dialogue only.
 *
 *	dialog.c       calls the steps by its table of states
 *	transaction.c  the steps from MAIL to the last reply
 *	command.c      the commands as octets
 *	screen.c       requests that a server cannot take
 */
#ifndef DELIVER_SMTP_STEPS_H
#define DELIVER_SMTP_STEPS_H

#include "deliver-smtp/dialog.h"

/* ---- commands: -ENOMEM; -EINVAL for an address that no command can carry ----
 */

struct command_mail {
	const char *sender;
	bool eight_bit, utf8; /* needed by the message */
	uint64_t size;
};

int command_hello(struct buf *out, const char *verb, const char *helo);
/* With the parameters that the server offers and the message needs. */
int command_mail(struct buf *out, const struct command_mail *mail,
    const struct smtp_ehlo *offered);
int command_rcpt(struct buf *out, const char *address);
/* DATA, QUIT, the dot alone. */
int command_plain(struct buf *out, const char *line);

/* ---- refusals of our own, known from the offer of the server before a word
 * about the message is said: true, with the reason in *v ---- */

bool screen_message(const char *sender, uint64_t size, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v);
bool screen_recipient(const char *address, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v);

/* ---- steps ---- */

enum rcpt_state {
	RCPT_OPEN,  /* not spoken of, or not answered */
	RCPT_TAKEN, /* the server will take it */
	RCPT_HELD,  /* refused, held back until DATA is answered */
	RCPT_OVER,  /* reported */
};
struct dialog_rcpt {
	enum rcpt_state state;
	struct verdict verdict; /* RCPT_HELD */
};

/* Report one recipient; every recipient without a report; the verdicts held
 * back. */
void step_settle(struct dialog *d, uint32_t place, const struct verdict *v);
void step_settle_all(struct dialog *d, const struct verdict *v);
void step_release_held(struct dialog *d);
/* The first recipient at or behind `from` that has no report; nrcpts: none. */
uint32_t step_next_unsettled(const struct dialog *d, uint32_t from);

/* Note the result of writing a command: short of memory the dialog ends. */
void step_said(struct dialog *d, int r);
void step_say_quit(struct dialog *d);
/* Nothing is left to say for this task. clean: the server knows of no
 * transaction. */
void step_part(struct dialog *d, bool clean);
void step_begin_transaction(struct dialog *d);
/* "MAIL FROM", for messages. */
const char *step_command(const struct dialog *d);
void step_protocol_error(struct dialog *d, const char *what);

/* The transaction's half of the table. */
typedef void step_fn(struct dialog *d, const struct smtp_reply *reply);
step_fn step_mail_ok, step_mail_refused, step_rcpt_ok, step_rcpt_refused,
    step_data_ok, step_data_refused, step_content_ok, step_content_refused,
    step_dot_ok, step_dot_refused;

#endif
