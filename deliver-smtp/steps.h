/* deliver-smtp/steps.h - what dialog.c (table, handshake, ends) and
 * transaction.c (MAIL to the last reply) share. For these two only. */
#ifndef DELIVER_SMTP_STEPS_H
#define DELIVER_SMTP_STEPS_H

#include "deliver-smtp/dialog.h"

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

/* Report one recipient; every one without a report; those held back. */
void step_settle(struct dialog *d, uint32_t place, const struct verdict *v);
void step_settle_all(struct dialog *d, const struct verdict *v);
void step_release_held(struct dialog *d);
/* The first recipient at or behind `from` that has no report; nrcpts: none. */
uint32_t step_next_unsettled(const struct dialog *d, uint32_t from);

/* Note the result of writing a command: short of memory the dialog ends. */
void step_said(struct dialog *d, int r);
void step_say_quit(struct dialog *d);
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
