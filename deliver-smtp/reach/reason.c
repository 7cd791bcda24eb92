#include "deliver-smtp/reach/reach.h"

#include <stdio.h>

/* The codes and words of each verdict; the name of the next hop stands between
 * `before` and `behind`. */
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
	    " loops back to this host: " },
};

/* Say which host of the set is this host. A host that is ours by its name was
 * not looked up and has no address. */
static void
add_own_host(
    const struct nexthop *hop, const struct mx_set *set, struct buf *text)
{
	const uint32_t limit = mx_limit(set, true);
	const struct mx_host *h = set->hosts, *end = h + set->nhosts;
	char peer[NEXTHOP_PEER_MAX], relay[NEXTHOP_PEER_MAX];

	snprintf(peer, sizeof(peer), "%s", set->own);
	while (h < end && !(h->ours && h->preference == limit))
		h++;
	if (h < end)
		nexthop_peer(hop, h->name, &h->own.any, peer, relay);
	(void)buf_printf(text,
	    "%s%s is this host; mydestination or routing_file must say where "
	    "the mail goes",
	    set->listed ? "the best MX host " : "", peer);
}

void
reason_set(const struct nexthop *hop, const struct mx_set *set,
    enum mx_verdict verdict, const char *text, struct reach_failure *failure)
{
	if (text == NULL)
		text = "Domain name not found";
	failure->permanent = verdicts[verdict].permanent;
	verdict_set(&failure->why, AGENT_DEFERRED, verdicts[verdict].dsn,
	    "%s%s%s%s", verdicts[verdict].before, hop->host,
	    verdicts[verdict].behind, verdict == MX_NO_NAME ? text : "");
	if (verdict == MX_LOOP)
		add_own_host(hop, set, &failure->why.text);
}
