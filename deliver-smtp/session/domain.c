#include "deliver-smtp/session/session.h"

#include <string.h>

#include "base/address.h"
#include "base/clock.h"

bool
domain_failed(struct agent_delivery *d, const char *dsn, const char *text)
{
	const struct agent_report report = {
		.outcome = AGENT_FAILED,
		.dsn = dsn,
		.relay = "none",
		.text = text,
		.conn = clock_mono() - d->received_at,
	};
	bool all = true;
	uint32_t i;

	for (i = 0; i < d->nrcpts; i++) {
		if (d->rcpts[i].reported)
			continue;
		if (strcasecmp(
			address_domain(d->rcpts[i].address), d->nexthop) == 0)
			agent_result(d, i, &report);
		else
			all = false;
	}
	return all;
}
