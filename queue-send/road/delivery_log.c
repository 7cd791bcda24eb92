#include "queue-send/road/road.h"

#include <stdio.h>

#include "log/log.h"

void
delay_format(usec_t delay, char out[DELAY_SIZE])
{
	usec_t cs = (delay < 0 ? 0 : delay) / (USEC_PER_SEC / 100);

	if (cs >= 1000) /* from 10 s on whole seconds say enough */
		snprintf(out, DELAY_SIZE, "%lld", (long long)(cs / 100));
	else if (cs >= 100)
		snprintf(out, DELAY_SIZE, "%lld.%lld", (long long)(cs / 100),
		    (long long)(cs % 100 / 10));
	else if (cs > 0)
		snprintf(out, DELAY_SIZE, "0.%02lld", (long long)cs);
	else
		snprintf(out, DELAY_SIZE, "0");
}

static const char *
status_of(const struct report *r)
{
	static const char *const names[AGENT_NOUTCOMES] = {
		[AGENT_SENT] = "sent",
		[AGENT_DEFERRED] = "deferred",
		[AGENT_FAILED] = "bounced",
	};

	return r->expired ? "expired" : names[r->outcome];
}

void
delivery_log(
    const struct send *s, const struct message *m, const struct report *r)
{
	usec_t in_queue = s->now - m->active_mono;
	usec_t total = s->now_wall - m->file.arrival_wall;
	char id[QUEUE_ID_SIZE], delay[DELAY_SIZE], part[4][DELAY_SIZE],
	    delays[4 * DELAY_SIZE];
	const struct log_field fields[] = {
		LOG_ADDR("to", r->address),
		LOG_STR("relay", r->relay),
		LOG_DECIMAL("delay", delay),
		LOG_DECIMALS("delays", delays, "before/active/connect/send"),
		LOG_STR("dsn", r->dsn),
		LOG_STR("status", status_of(r)),
	};
	const struct log_event event = {
		.level = LOG_INFO_L,
		.name = "delivery",
		.id = id,
		.fields = fields,
		.nfields = ARRAY_LEN(fields),
		.text = r->text,
	};

	message_id(m, id);
	delay_format(total, delay);
	delay_format(total - in_queue, part[0]);
	delay_format(r->selected_at - m->active_mono, part[1]);
	delay_format(r->conn, part[2]);
	delay_format(r->xfer, part[3]);
	snprintf(delays, sizeof(delays), "%s/%s/%s/%s", part[0], part[1],
	    part[2], part[3]);
	log_write(&event);
}
