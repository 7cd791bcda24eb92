#include "smtp/server_parts.h"

#include <string.h>

void
smtp_server_init(struct smtp_server *s, const struct smtp_server_rules *rules)
{
	memset(s, 0, sizeof(*s));
	s->rules = *rules;
	s->state = rules->strict ? SMTP_AT_START : SMTP_AT_READY;
	smtp_server_reply(s, 220, NULL, "%.255s ESMTP qscheduler", rules->host);
}

void
smtp_server_written(struct smtp_server *s, size_t len)
{
	ASSERT(len <= s->out_len);
	s->out_len -= len;
	memmove(s->out, s->out + len, s->out_len);
}

void
smtp_server_shut(struct smtp_server *s, const char *dsn, const char *text)
{
	s->asked = SMTP_SERVER_WANT;
	if (s->state != SMTP_AT_CLOSED)
		smtp_server_reply(s, 421, dsn, "%s", text);
}

/* ---- answers of the owner ---- */

/* The state after a question: answered with 2yz or 3yz, refused. */
static const struct turn {
	enum smtp_server_state taken, refused;
} turns[] = {
	[SMTP_SERVER_MAIL] = { SMTP_AT_MAIL, SMTP_AT_READY },
	[SMTP_SERVER_RCPT] = { SMTP_AT_RCPT, SMTP_AT_MAIL },
	[SMTP_SERVER_DATA] = { SMTP_AT_CONTENT, SMTP_AT_READY },
	[SMTP_SERVER_END] = { SMTP_AT_READY, SMTP_AT_READY },
};

void
smtp_server_answer(
    struct smtp_server *s, unsigned code, const char *dsn, const char *fmt, ...)
{
	const enum smtp_server_event asked = s->asked;
	const bool taken = code < 400;
	va_list ap;

	ASSERT(asked != SMTP_SERVER_WANT);
	s->asked = SMTP_SERVER_WANT;
	s->rcpts += asked == SMTP_SERVER_RCPT && taken;
	s->refused_rcpts += asked == SMTP_SERVER_RCPT && !taken;
	s->state = taken ? turns[asked].taken : turns[asked].refused;
	/* Recipients that were taken before stay. */
	if (s->state == SMTP_AT_MAIL && s->rcpts > 0)
		s->state = SMTP_AT_RCPT;
	if (s->state == SMTP_AT_CONTENT)
		s->decode = (struct smtp_decode){ .bare_lf = !s->rules.strict };
	if (asked == SMTP_SERVER_END && taken)
		s->errors = 0;
	va_start(ap, fmt);
	smtp_server_vreply(s, code, dsn, fmt, ap);
	va_end(ap);
}

/* ---- octets ---- */

static enum smtp_server_event
feed_content(
    struct smtp_server *s, const char *data, size_t len, size_t *ret_used)
{
	if (s->decode.end)
		return s->asked = SMTP_SERVER_END;
	s->content_len = smtp_decode_feed(
	    &s->decode, data, len, s->content, sizeof(s->content), ret_used);
	if (s->content_len > 0)
		return SMTP_SERVER_CONTENT;
	return s->decode.end ? (s->asked = SMTP_SERVER_END) : SMTP_SERVER_WANT;
}

/* s->line is whole, with its LF gone. */
static enum smtp_server_event
end_line(struct smtp_server *s)
{
	const bool crlf = s->line_len > 0 && s->line[s->line_len - 1] == '\r';
	const bool too_long = s->line_too_long;
	enum smtp_server_event event = SMTP_SERVER_WANT;

	s->line_len -= crlf;
	s->line_too_long = false;
	if (too_long)
		smtp_server_reply(s, 500, "5.5.2",
		    "the command is longer than %d octets",
		    SMTP_SERVER_LINE_MAX);
	else if (s->rules.strict && !crlf)
		smtp_server_reply(
		    s, 500, "5.5.2", "the command does not end with CR and LF");
	else
		event = smtp_server_command(s);
	s->line_len = 0;
	return event;
}

/* Octets up to the end of a command, or all. */
static enum smtp_server_event
feed_line(struct smtp_server *s, const char *data, size_t len, size_t *ret_used)
{
	const char *lf = memchr(data, '\n', len);
	const size_t n = lf == NULL ? len : (size_t)(lf - data);
	/* The line has room for all but its LF. */
	const size_t room = SMTP_SERVER_LINE_MAX - 1 - s->line_len;

	*ret_used = n + (lf != NULL);
	s->line_too_long |= n > room;
	memcpy(s->line + s->line_len, data, n < room ? n : room);
	s->line_len += n < room ? n : room;
	return lf == NULL ? SMTP_SERVER_WANT : end_line(s);
}

/* Refusals since the last message are within the limit. */
static bool
is_patient(const struct smtp_server *s)
{
	return s->rules.error_max == 0 || s->errors <= s->rules.error_max;
}

enum smtp_server_event
smtp_server_feed(
    struct smtp_server *s, const char *data, size_t len, size_t *ret_used)
{
	enum smtp_server_event event = SMTP_SERVER_WANT;
	size_t used = 0, n;

	ASSERT(s->asked == SMTP_SERVER_WANT);
	*ret_used = 0;
	while (event == SMTP_SERVER_WANT) {
		if (s->state != SMTP_AT_CLOSED && !is_patient(s))
			smtp_server_shut(s, "4.7.0", "too many errors");
		if (s->state == SMTP_AT_CLOSED)
			return SMTP_SERVER_CLOSE;
		if (s->out_len > sizeof(s->out) - SMTP_SERVER_REPLY_MAX)
			return SMTP_SERVER_WRITE;
		if (used == len &&
		    !(s->state == SMTP_AT_CONTENT && s->decode.end))
			return SMTP_SERVER_WANT;
		n = 0;
		event = s->state == SMTP_AT_CONTENT
		    ? feed_content(s, data + used, len - used, &n)
		    : feed_line(s, data + used, len - used, &n);
		used += n;
		*ret_used = used;
		if (event == SMTP_SERVER_MAIL || event == SMTP_SERVER_RCPT ||
		    event == SMTP_SERVER_DATA)
			s->asked = event;
	}
	return event;
}
