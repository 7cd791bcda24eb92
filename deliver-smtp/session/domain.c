#include "deliver-smtp/session/session.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/domain.h"

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
		if (domain_is_same(
			address_domain(d->rcpts[i].address), d->nexthop))
			agent_result(d, i, &report);
		else
			all = false;
	}
	return all;
}
