#include "deliver-smtp/steps.h"

#include <inttypes.h>

#include "smtp/smtp.h"

static bool
screen_address(const char *address, const char *bad_dsn, const char *peer,
    const struct smtp_ehlo *offered, struct verdict *v)
{
	if (!smtp_path_is_fit(address))
		verdict_set(v, AGENT_FAILED, bad_dsn,
		    "<%s> cannot be sent in SMTP", address);
	else if (smtp_path_is_utf8(address) && !offered->utf8)
		verdict_set(v, AGENT_FAILED, "5.6.7",
		    "<%s> needs SMTPUTF8, which host %s does not offer",
		    address, peer);
	else
		return false;
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
