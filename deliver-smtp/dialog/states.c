#include "deliver-smtp/dialog/steps.h"

/* clang-format off */
static const struct {
	const char *command; /* "in reply to …" */
	const char *doing;   /* "lost connection while …" */
	enum step_fate fate;
} states[DIALOG_NSTATES] = {
	[DIALOG_GREETING] = { "the greeting", "receiving the greeting",
	    FATE_NEXT },
	[DIALOG_EHLO] = { "EHLO", "performing the handshake",
	    FATE_NEXT },
	[DIALOG_HELO] = { "HELO", "performing the handshake",
	    FATE_NEXT },
	[DIALOG_STARTTLS] = { "STARTTLS", "sending STARTTLS",
	    FATE_TLS },
	[DIALOG_TLS] = { "nothing", "starting TLS",
	    FATE_TLS },
	[DIALOG_AUTH] = { "AUTH", "performing AUTH",
	    FATE_NEXT },
	[DIALOG_SURVEY] = { "EHLO", "looking through the message",
	    FATE_NEXT },
	[DIALOG_COUNT] = { "EHLO", "measuring the message",
	    FATE_NEXT },
	[DIALOG_MAIL] = { "MAIL FROM", "sending MAIL FROM",
	    FATE_COMMAND },
	[DIALOG_RCPT] = { "RCPT TO", "sending RCPT TO",
	    FATE_COMMAND },
	[DIALOG_DATA] = { "DATA", "sending DATA",
	    FATE_COMMAND },
	[DIALOG_MEASURE] = { "nothing", "measuring the message",
	    FATE_BODY },
	[DIALOG_CONTENT] = { "an unfinished message", "sending the message",
	    FATE_BODY },
	[DIALOG_DOT] = { "end of message", "sending end of message",
	    FATE_UNKNOWN },
	[DIALOG_ABORT] = { "end of an empty message", "sending an empty message",
	    FATE_BODY },
	[DIALOG_RSET] = { "RSET", "sending RSET",
	    FATE_NOTHING },
	[DIALOG_IDLE] = { "nothing", "waiting for more mail",
	    FATE_NOTHING },
	[DIALOG_QUIT] = { "QUIT", "sending QUIT",
	    FATE_NOTHING },
	[DIALOG_CLOSED] = { "nothing", "closing",
	    FATE_NOTHING },
};
/* clang-format on */

enum step_fate
step_fate(const struct dialog *d)
{
	return states[d->state].fate;
}

const char *
step_doing(const struct dialog *d)
{
	return states[d->state].doing;
}

const char *
step_command(const struct dialog *d)
{
	if (d->state == DIALOG_EHLO && d->task.lmtp)
		return "LHLO";
	return states[d->state].command;
}
