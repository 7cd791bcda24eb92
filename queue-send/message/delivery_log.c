#include "queue-send/message/path.h"

#include "base/num.h"
#include "log/log.h"

static char
digit(uint64_t value)
{
	return (char)('0' + value % 10);
}

size_t
delay_format(usec_t delay, char out[DELAY_SIZE])
{
	const uint64_t cs =
	    (uint64_t)(delay < 0 ? 0 : delay) / (USEC_PER_SEC / 100);
	size_t len;

	if (cs == 0 || cs >= 1000) /* from 10 s on whole seconds say enough */
		return num_format(cs / 100, out);
	out[0] = digit(cs / 100);
	out[1] = '.';
	out[2] = digit(cs / 10);
	out[3] = digit(cs);
	len = cs < 100 ? 4 : 3;
	out[len] = '\0';
	return len;
}

/* The parts of a delay, with a slash between two. */
static void
delays_format(const usec_t *parts, size_t n, char *out)
{
	size_t i;

	for (i = 0; i < n; i++) {
		out += delay_format(parts[i], out);
		*out++ = i + 1 < n ? '/' : '\0';
	}
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
	char sender[ADDRESS_MAX + 1] = "";
	usec_t in_queue = s->now - m->active_mono;
	usec_t total = s->now_wall - m->file.arrival_wall;
	const usec_t parts[] = { total - in_queue,
		r->selected_at - m->active_mono, r->conn, r->xfer };
	const bool verp = m->verp && sender_for(s, m, r->address, sender) == 0;
	char id[QUEUE_ID_SIZE], delay[DELAY_SIZE],
	    delays[ARRAY_LEN(parts) * DELAY_SIZE];
	const struct log_field fields[] = {
		LOG_ADDR("sender", sender), /* of a VERP message alone */
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
		.fields = fields + !verp,
		.nfields = ARRAY_LEN(fields) - !verp,
		.text = r->text,
	};

	message_id(m, id);
	delay_format(total, delay);
	delays_format(parts, ARRAY_LEN(parts), delays);
	log_write(&event);
}
