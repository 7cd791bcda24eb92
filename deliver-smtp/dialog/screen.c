#include "deliver-smtp/dialog/steps.h"

#include <errno.h>
#include <inttypes.h>

#include "smtp/smtp.h"

static bool
screen_address(const char *address, const char *bad_dsn, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v)
{
	char ascii[ADDRESS_FOLDED_MAX + 1];
	const char *why = NULL;
	int r = 0;

	if (!offered->utf8 && smtp_path_is_utf8(address))
		r = smtp_path_to_ascii(address, ascii, &why);
	if (!smtp_path_is_fit(address))
		verdict_set(v, AGENT_FAILED, bad_dsn,
		    "<%s> cannot be sent in SMTP", address);
	else if (r != -EINVAL)
		return false;
	else if (why == NULL)
		verdict_set(v, AGENT_FAILED, "5.6.7",
		    "<%s> needs SMTPUTF8, which host %s does not offer",
		    address, peer);
	else
		verdict_set(v, AGENT_FAILED, bad_dsn,
		    "<%s> cannot be sent to host %s, which does not offer "
		    "SMTPUTF8: %s",
		    address, peer, why);
	return true;
}

bool
screen_message(const char *sender, uint64_t size, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v)
{
	if (offered->size_max == 0 || size <= offered->size_max)
		return screen_address(sender, "5.1.7", peer, offered, v);
	verdict_set(v, AGENT_FAILED, "5.3.4",
	    "the message has %" PRIu64 " octets, host %s takes %" PRIu64, size,
	    peer, offered->size_max);
	return true;
}

bool
screen_recipient(const char *address, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v)
{
	return screen_address(address, "5.1.3", peer, offered, v);
}

/* ---- content ---- */

bool
screen_takes_eight(const struct smtp_ehlo *offered)
{
	return offered->eight_bit || offered->utf8;
}

static bool
refuse(const struct dialog_task *t, const char *dsn, const char *what,
    const char *lacks, struct verdict *v)
{
	verdict_set(v, AGENT_FAILED, dsn,
	    "%s has octets above 127, and host %s does not offer %s", what,
	    t->peer, lacks);
	return true;
}

static bool
screen_plan(const struct dialog_task *t, const struct dialog_survey *survey,
    struct verdict *v)
{
	static const struct {
		const char *dsn, *what;
	} faults[] = {
		[MIME_FAULT_HEADER] = { "5.6.7",
		    "the header of a part of the message" },
		[MIME_FAULT_SIGNED] = { "5.6.3",
		    "a signed part, which a conversion would break," },
		[MIME_FAULT_MALFORMED] = { "5.6.3",
		    "a part of the message that cannot be converted" },
	};

	if (survey->fault == MIME_FINE)
		return false;
	return refuse(t, faults[survey->fault].dsn, faults[survey->fault].what,
	    "8BITMIME", v);
}

bool
screen_content(const struct dialog_task *t, const struct dialog_survey *survey,
    const struct smtp_ehlo *offered, struct verdict *v)
{
	if (!t->eight_bit || t->eight == CONF_EIGHT_AS_IS)
		return false;
	/* A header in UTF-8 asks for SMTPUTF8. Programs have sent such mail
	 * without it for longer than SMTPUTF8 exists, and servers take it. */
	if (screen_takes_eight(offered))
		return false;
	if (t->eight == CONF_EIGHT_REFUSE)
		return refuse(t, "5.6.3", "the message", "8BITMIME", v);
	if (survey->header)
		return refuse(
		    t, "5.6.7", "the header of the message", "8BITMIME", v);
	return screen_plan(t, survey, v);
}
