#include "deliver-smtp/session/session.h"

#include <string.h>

/* A delivery of which something was reported goes on where it is. */
static bool
may_move(const struct agent_delivery *d)
{
	uint32_t i;

	if (d->site == NULL)
		return false;
	for (i = 0; i < d->nrcpts; i++)
		if (d->rcpts[i].reported)
			return false;
	return true;
}

bool
place_is_right(const struct agent_delivery *d, const struct policy *policy,
    const struct mx_set *set, bool loops, char out[MX_SITE_MAX + 1])
{
	if (!may_move(d))
		return true;
	if (policy->apart || mx_name(set, loops, out) < 0)
		out[0] = '\0';
	return out[0] == '\0' ? !mx_site_is(d->site)
			      : strcmp(out, d->site) == 0;
}

bool
place_is_shared(const struct agent_delivery *d)
{
	return may_move(d) && mx_site_is(d->site);
}
