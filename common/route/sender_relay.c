#include "route/sender_relay.h"

#include <string.h>

#include "route/nexthop.h"

_Static_assert(NEXTHOP_TEXT_MAX <= SENDER_VALUE_MAX, "a next hop is a value");

static const char *
judge_nexthop(const char *text, char out[SENDER_VALUE_MAX + 1])
{
	struct nexthop hop;

	if (strcmp(text, "DUNNO") == 0)
		return NULL;
	if (nexthop_parse(text, 1, &hop) < 0 || hop.kind == NEXTHOP_UNIX)
		return nexthop_complaint(text);
	return nexthop_to_ascii(text, out) < 0 ? "the next hop is too long"
					       : NULL;
}

const struct sender_kind sender_relay_kind = {
	.form = "not `user@domain nexthop` or `@domain nexthop`",
	.judge = judge_nexthop,
};
