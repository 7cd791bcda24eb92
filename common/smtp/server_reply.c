#include "smtp/server_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 500 /* of 512, RFC 5321 section 4.5.3.1.5 */

/* Invariant: smtp_server_feed() takes no command without room for a reply; an
 * answer of the owner is the only reply to its command. */
static void
put_line(struct smtp_server *s, unsigned code, char mark, const char *text)
{
	char *const out = s->out + s->out_len;
	size_t room = sizeof(s->out) - s->out_len, i;
	int n = snprintf(out, room, "%u%c%.*s\r\n", code, mark, TEXT_MAX, text);

	ASSERT(n > 0 && (size_t)n < room);
	for (i = 0; i < (size_t)n - 2; i++)
		if ((unsigned char)out[i] < 0x20 ||
		    (unsigned char)out[i] >= 0x7f)
			out[i] = '?';
	s->out_len += (size_t)n;
}

void
smtp_server_vreply(struct smtp_server *s, unsigned code, const char *dsn,
    const char *fmt, va_list ap)
{
	char text[TEXT_MAX + 1];
	int n = 0;

	if (dsn != NULL && s->rules.offer & SMTP_OFFER_ENHANCEDSTATUSCODES)
		n = snprintf(text, sizeof(text), "%s ", dsn);
	if (n >= 0 && (size_t)n < sizeof(text))
		vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	put_line(s, code, ' ', text);
	if (code >= 400 && s->errors < UINT32_MAX)
		s->errors++;
	if (code == 421)
		s->state = SMTP_AT_CLOSED;
}

enum smtp_server_event
smtp_server_reply(
    struct smtp_server *s, unsigned code, const char *dsn, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	smtp_server_vreply(s, code, dsn, fmt, ap);
	va_end(ap);
	return SMTP_SERVER_WANT;
}

static const struct {
	enum smtp_server_offer offer;
	const char *keyword;
} offers[] = {
	{ SMTP_OFFER_PIPELINING, "PIPELINING" },
	{ SMTP_OFFER_SIZE, "SIZE" },
	{ SMTP_OFFER_8BITMIME, "8BITMIME" },
	{ SMTP_OFFER_SMTPUTF8, "SMTPUTF8" },
	{ SMTP_OFFER_DSN, "DSN" },
	{ SMTP_OFFER_ENHANCEDSTATUSCODES, "ENHANCEDSTATUSCODES" },
};

enum smtp_server_event
smtp_server_reply_ehlo(struct smtp_server *s)
{
	char line[300];
	unsigned left = s->rules.offer;
	size_t i;

	snprintf(line, sizeof(line), "%.255s", s->rules.host);
	for (i = 0; i < ARRAY_LEN(offers); i++) {
		if ((left & offers[i].offer) == 0)
			continue;
		put_line(s, 250, '-', line);
		left &= ~(unsigned)offers[i].offer;
		if (offers[i].offer == SMTP_OFFER_SIZE && s->rules.size_max > 0)
			snprintf(line, sizeof(line), "SIZE %" PRIu64,
			    s->rules.size_max);
		else
			snprintf(line, sizeof(line), "%s", offers[i].keyword);
	}
	put_line(s, 250, ' ', line);
	return SMTP_SERVER_WANT;
}
