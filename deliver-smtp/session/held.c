#include "deliver-smtp/session/held.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
drop_result(struct held_result *r)
{
	free(r->relay);
	free(r->text);
	r->relay = r->text = NULL;
}

int
held_put(struct held *h, const struct agent_delivery *delivery, uint32_t place,
    const struct agent_report *report)
{
	struct held_result fresh = { .conn = report->conn,
		.xfer = report->xfer };

	if (h->results == NULL) {
		h->results = calloc(delivery->nrcpts, sizeof(*h->results));
		if (h->results == NULL)
			return -ENOMEM;
		h->count = delivery->nrcpts;
	}
	ASSERT(place < h->count && report->outcome == AGENT_DEFERRED);
	snprintf(fresh.dsn, sizeof(fresh.dsn), "%s", report->dsn);
	fresh.relay = strdup(report->relay);
	fresh.text = strdup(report->text);
	if (fresh.relay == NULL || fresh.text == NULL) {
		drop_result(&fresh);
		return -ENOMEM;
	}
	drop_result(&h->results[place]);
	h->results[place] = fresh;
	return 0;
}

void
held_report(const struct held *h, struct agent_delivery *delivery)
{
	uint32_t i;

	for (i = 0; i < h->count; i++) {
		const struct held_result *r = &h->results[i];
		const struct agent_report report = {
			.outcome = AGENT_DEFERRED,
			.dsn = r->dsn,
			.relay = r->relay,
			.text = r->text,
			.conn = r->conn,
			.xfer = r->xfer,
		};

		if (r->text != NULL && !delivery->rcpts[i].reported)
			agent_result(delivery, i, &report);
	}
}

const char *
held_reason(const struct held *h, const struct agent_delivery *delivery,
    const char **ret_dsn)
{
	uint32_t i;

	for (i = 0; i < h->count; i++)
		if (h->results[i].text != NULL &&
		    !delivery->rcpts[i].reported) {
			*ret_dsn = h->results[i].dsn;
			return h->results[i].text;
		}
	return NULL;
}

void
held_done(struct held *h)
{
	uint32_t i;

	for (i = 0; i < h->count; i++)
		drop_result(&h->results[i]);
	free(h->results);
	*h = (struct held){ 0 };
}
