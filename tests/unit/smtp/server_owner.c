#include "server_owner.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ALL                                                              \
	(SMTP_OFFER_PIPELINING | SMTP_OFFER_SIZE | SMTP_OFFER_8BITMIME | \
	    SMTP_OFFER_SMTPUTF8 | SMTP_OFFER_DSN |                       \
	    SMTP_OFFER_ENHANCEDSTATUSCODES)

const struct smtp_server_rules owner_strict = { .host = "mx.example",
	.offer = ALL,
	.size_max = 1000,
	.rcpt_max = 3,
	.strict = true };
const struct smtp_server_rules owner_local = {
	.host = "mx.example", .offer = ALL, .size_max = 1000, .rcpt_max = 3
};

/* ---- an owner that writes everything down ---- */

/* Recipients and senders with this word are refused. */
#define REFUSED "refused"

static void
answer_address(struct smtp_server *s, const struct smtp_server_address *a)
{
	if (strstr(a->text, REFUSED) != NULL)
		smtp_server_answer(s, 550, "5.1.1", "nobody: %s", a->text);
	else
		smtp_server_answer(s, 250, "2.1.0", "Ok");
}

static void
take_mail(struct smtp_server *s, struct buf *log)
{
	const struct smtp_server_mail *m = &s->mail;

	buf_printf(log, "{mail %s%s %llu%s %s %s}", m->address.text,
	    m->address.has_domain ? "" : "?", (unsigned long long)m->size,
	    m->utf8 ? " utf8" : "", dsn_ret_name(m->dsn.ret), m->dsn.envid);
	answer_address(s, &m->address);
}

static void
take_rcpt(struct smtp_server *s, struct buf *log)
{
	char notify[DSN_NOTIFY_MAX];

	dsn_notify_format(s->rcpt.dsn.notify, notify);
	buf_printf(log, "{rcpt %s%s %s %s}", s->rcpt.address.text,
	    s->rcpt.address.has_domain ? "" : "?", notify, s->rcpt.dsn.orcpt);
	answer_address(s, &s->rcpt.address);
}

static void
take_data(struct smtp_server *s, struct buf *log)
{
	buf_add_str(log, "{data}");
	if (strstr(s->mail.address.text, "nodata") != NULL)
		smtp_server_answer(s, 451, "4.3.0", "not now");
	else
		smtp_server_answer(s, 354, NULL, "go on");
}

static void
take_content(struct smtp_server *s, struct buf *log)
{
	cr_assert_gt(s->content_len, 0);
	cr_assert_leq(s->content_len, sizeof(s->content));
	buf_add(log, s->content, s->content_len);
}

static void
take_end(struct smtp_server *s, struct buf *log)
{
	buf_add_str(log, "{end}");
	if (strstr(s->mail.address.text, "noend") != NULL)
		smtp_server_answer(s, 452, "4.3.1", "full");
	else
		smtp_server_answer(s, 250, "2.0.0", "Ok: queued");
}

void
owner_write(struct smtp_server *s, struct buf *log)
{
	cr_assert_leq(s->out_len, sizeof(s->out));
	buf_add(log, s->out, s->out_len);
	smtp_server_written(s, s->out_len);
}

static void (*const takers[])(struct smtp_server *s, struct buf *log) = {
	[SMTP_SERVER_WANT] = owner_write,
	[SMTP_SERVER_WRITE] = owner_write,
	[SMTP_SERVER_MAIL] = take_mail,
	[SMTP_SERVER_RCPT] = take_rcpt,
	[SMTP_SERVER_DATA] = take_data,
	[SMTP_SERVER_CONTENT] = take_content,
	[SMTP_SERVER_END] = take_end,
	[SMTP_SERVER_CLOSE] = owner_write,
};

/* One slice, in memory of its own. False: the session has ended. */
bool
owner_feed(struct smtp_server *s, const char *data, size_t len, struct buf *log)
{
	char *slice = malloc(len + 1);
	enum smtp_server_event event;
	size_t at = 0, used;

	memcpy(slice, data, len);
	do {
		event = smtp_server_feed(s, slice + at, len - at, &used);
		cr_assert_leq(used, len - at);
		at += used;
		/* Replies first, as a client sees these. */
		owner_write(s, log);
		takers[event](s, log);
		owner_write(s, log);
	} while (event != SMTP_SERVER_WANT && event != SMTP_SERVER_CLOSE);
	cr_assert(event == SMTP_SERVER_CLOSE || at == len);
	free(slice);
	return event != SMTP_SERVER_CLOSE;
}

/* Everything that is said and asked, without the greeting. */
void
owner_converse(const struct smtp_server_rules *rules, const char *data,
    size_t len, size_t slice, struct buf *log)
{
	struct smtp_server *s = malloc(sizeof(*s));
	size_t at, n;

	smtp_server_init(s, rules);
	smtp_server_written(s, s->out_len);
	buf_reset(log);
	for (at = 0; at < len; at += n) {
		n = len - at < slice ? len - at : slice;
		if (!owner_feed(s, data + at, n, log)) {
			buf_add_str(log, "{close}");
			break;
		}
	}
	free(s);
}
