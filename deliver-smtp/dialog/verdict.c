#include "deliver-smtp/dialog/dialog.h"

#include <stdarg.h>
#include <stdio.h>

void
verdict_done(struct verdict *v)
{
	buf_done(&v->text);
}

static void
take_code(struct verdict *v, const struct smtp_reply *reply)
{
	v->outcome = reply->code < 400 ? AGENT_SENT
	    : reply->code < 500        ? AGENT_DEFERRED
				       : AGENT_FAILED;
	v->final = false;
	smtp_reply_dsn(reply, v->dsn);
	buf_reset(&v->text);
}

void
verdict_accept(struct verdict *v, const struct smtp_reply *reply)
{
	take_code(v, reply);
	(void)smtp_reply_text(reply, VERDICT_TEXT_MAX, &v->text);
}

void
verdict_refuse(struct verdict *v, const struct smtp_reply *reply,
    const char *peer, const char *command)
{
	take_code(v, reply);
	(void)buf_printf(&v->text, "host %s said: ", peer);
	(void)smtp_reply_text(reply, VERDICT_TEXT_MAX, &v->text);
	(void)buf_printf(&v->text, " (in reply to %s)", command);
}

void
verdict_set(struct verdict *v, enum agent_outcome outcome, const char *dsn,
    const char *fmt, ...)
{
	va_list ap;

	v->outcome = outcome;
	v->final = false;
	snprintf(v->dsn, sizeof(v->dsn), "%s", dsn);
	buf_reset(&v->text);
	va_start(ap, fmt);
	(void)buf_vprintf(&v->text, fmt, ap);
	va_end(ap);
}

void
verdict_soften(struct verdict *v)
{
	if (v->outcome != AGENT_FAILED)
		return;
	v->outcome = AGENT_DEFERRED;
	v->dsn[0] = '4';
}
