#include "deliver-smtp/session/log.h"

#include "log/log.h"

void
log_secured(const char *id, const char *relay, const struct tls_facts *facts)
{
	const struct log_field fields[] = {
		LOG_STR("relay", relay),
		LOG_STR("tls", facts->protocol),
		LOG_STR("cipher", facts->cipher),
		LOG_INT("bits", facts->bits),
		LOG_STR("verified", facts->verified ? "yes" : "no"),
		LOG_STR("resumed", facts->resumed ? "yes" : "no"),
	};

	const struct log_event event = {
		.level = LOG_INFO_L,
		.name = "tls",
		.id = id,
		.fields = fields,
		.nfields = ARRAY_LEN(fields),
	};

	log_write(&event);
}

void
log_fall_back(const char *id, const struct verdict *why)
{
	log_message(LOG_INFO_L, "tls", id, "%s: once more, in the clear",
	    buf_str(&why->text));
}

void
log_next_host(const char *id, const char *relay, uint32_t nrcpts,
    const char *dsn, const char *text)
{
	const struct log_field fields[] = {
		LOG_STR("relay", relay),
		LOG_INT("nrcpt", nrcpts),
		LOG_STR("dsn", dsn),
	};
	struct buf whole = { 0 };
	struct log_event event = {
		.level = LOG_INFO_L,
		.name = "next-host",
		.id = id,
		.fields = fields,
		.nfields = ARRAY_LEN(fields),
		.text = text,
	};

	if (buf_printf(&whole, "%s; the next host is tried", text) == 0)
		event.text = buf_str(&whole);
	log_write(&event);
	buf_done(&whole);
}
