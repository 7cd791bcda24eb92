#include "deliver-smtp/reach/reach.h"

/* The words of a verdict, before and behind the name of the next hop. */
static const struct {
	const char *dsn, *permanent, *before, *behind;
} verdicts[MX_NVERDICTS] = {
	[MX_NO_NAME] = { "4.4.4", "5.1.2", "name of host ", ": " },
	[MX_NO_MAIL] = { "4.4.4", "5.1.10", "domain ",
	    " takes no mail: its MX record is null" },
	[MX_NO_HOST] = { "4.4.4", "5.4.4", "no MX record of ",
	    " names a host" },
	[MX_NO_ADDRESS] = { "4.4.4", "5.4.4", "name of host ",
	    ": no address to connect to" },
	[MX_UNSURE] = { "4.4.3", NULL, "name of host ",
	    ": not all of its hosts could be looked up" },
	[MX_LOOP] = { "4.4.6", "5.4.6", "mail for ",
	    " loops back to this host" },
};

void
reason_set(const struct nexthop *hop, enum mx_verdict verdict, const char *text,
    struct reach_failure *failure)
{
	if (text == NULL)
		text = "Domain name not found";
	failure->permanent = verdicts[verdict].permanent;
	verdict_set(&failure->why, AGENT_DEFERRED, verdicts[verdict].dsn,
	    "%s%s%s%s", verdicts[verdict].before, hop->host,
	    verdicts[verdict].behind, verdict == MX_NO_NAME ? text : "");
}
