/* SMTP on standard input and output: sendmail -bs. The machine of
 * smtp/server.h speaks, and each message goes the way of a message of the
 * sendmail face. */
#include "queue-inject/inject.h"

#include "base/clock.h"
#include "smtp/server.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_TIME_LIMIT (24 * 3600 * USEC_PER_SEC) /* the input of one */
#define OFFER                                                            \
	(SMTP_OFFER_PIPELINING | SMTP_OFFER_SIZE | SMTP_OFFER_8BITMIME | \
	    SMTP_OFFER_SMTPUTF8 | SMTP_OFFER_DSN |                       \
	    SMTP_OFFER_ENHANCEDSTATUSCODES)

struct dialogue {
	struct inject *inject;
	struct smtp_server server;
	struct source input; /* the octets of the client */
	const char *data;    /* octets of it that the server has not taken */
	size_t len;
	const char *content; /* of server.content, not taken yet */
	size_t content_len;
	bool content_ended;
	struct refusal fault; /* why the dialogue cannot go on */
};

/* ---- the two directions ---- */

static int
write_replies(struct dialogue *d)
{
	while (d->server.out_len > 0) {
		int r = source_wait(&d->input, STDOUT_FILENO, POLLOUT);
		ssize_t n;

		if (r < 0)
			return message_refuse_source(&d->fault, r);
		n = write(STDOUT_FILENO, d->server.out, d->server.out_len);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return refuse(&d->fault, REFUSAL_READ,
			    "standard output: %s", strerror(errno));
		smtp_server_written(&d->server, n > 0 ? (size_t)n : 0);
	}
	return 0;
}

/* 1: there is more input; 0: the input has ended between two messages. */
static int
read_input(struct dialogue *d)
{
	int r = source_peek(&d->input, &d->data, &d->len);

	if (r > 0)
		return r;
	d->len = 0;
	if (r < 0)
		return message_refuse_source(&d->fault, r);
	if (d->server.state == SMTP_AT_CONTENT)
		return refuse(&d->fault, REFUSAL_READ,
		    "the input ends inside of a message, which is not taken");
	return 0;
}

/* The next question of the server, or CLOSE at the end of the dialogue, also
 * when d->fault says why. */
static enum smtp_server_event
next_event(struct dialogue *d)
{
	enum smtp_server_event event;
	size_t used;
	int r = 0;

	do {
		event = smtp_server_feed(&d->server, d->data, d->len, &used);
		source_take(&d->input, used);
		d->data += used;
		d->len -= used;
		if (event != SMTP_SERVER_WANT && event != SMTP_SERVER_WRITE)
			return event;
		r = write_replies(d);
		if (r == 0)
			r = event == SMTP_SERVER_WRITE ? 1 : read_input(d);
	} while (r > 0);
	return SMTP_SERVER_CLOSE;
}

/* ---- answers ---- */

static int
answer_refusal(struct dialogue *d)
{
	struct refusal *why = &d->inject->why;
	const char *dsn;
	const unsigned code = refusal_reply(why->kind, &dsn);

	smtp_server_answer(&d->server, code, dsn, "%s", why->text);
	*why = (struct refusal){ 0 };
	return 0;
}

static int
answer_address(struct dialogue *d, int r, const char *dsn)
{
	if (r < 0)
		return answer_refusal(d);
	smtp_server_answer(&d->server, 250, dsn, "Ok");
	return 0;
}

/* ---- the envelope ---- */

/* The address with a domain. */
static int
qualify(struct dialogue *d, const struct smtp_server_address *address,
    struct buf *out)
{
	int r = buf_add_str(out, address->text);

	if (r == 0 && !address->has_domain && out->len > 0)
		r = buf_printf(out, "@%s", d->inject->identity.domain);
	if (r < 0)
		return refuse(&d->inject->why, REFUSAL_MEMORY, "out of memory");
	return 0;
}

/* Nothing of an earlier message stays. */
static void
begin_message(struct inject *inject)
{
	message_done(&inject->message);
	inject->message = (struct message){ 0 };
	envelope_done(&inject->envelope);
	inject->envelope = (struct envelope){
		.once = true,
		.rcpt_limit = inject->conf.message_recipient_limit,
	};
	inject->has_envelope = false;
}

static int
take_sender(struct dialogue *d)
{
	const struct smtp_server_mail *mail = &d->server.mail;
	struct inject *inject = d->inject;
	struct buf address = { 0 };
	int r;

	begin_message(inject);
	inject->announced = mail->size;
	inject->envelope.dsn = mail->dsn;
	r = qualify(d, &mail->address, &address);
	if (r == 0)
		r = envelope_set_sender(&inject->envelope, buf_str(&address),
		    address.len, &inject->why);
	buf_done(&address);
	return answer_address(d, r, "2.1.0");
}

static int
take_rcpt(struct dialogue *d)
{
	const struct smtp_server_rcpt *rcpt = &d->server.rcpt;
	struct inject *inject = d->inject;
	struct buf address = { 0 };
	int r = qualify(d, &rcpt->address, &address);

	if (r == 0)
		r = envelope_add_rcpt_dsn(&inject->envelope, buf_str(&address),
		    address.len, &rcpt->dsn, &inject->why);
	buf_done(&address);
	return answer_address(d, r, "2.1.5");
}

/* ---- the message ---- */

/* Have some of it in d->content. 1; 0: it has ended; -1: the dialogue has. */
static int
next_content(struct dialogue *d)
{
	enum smtp_server_event event;

	if (d->content_len > 0)
		return 1;
	if (d->content_ended)
		return 0;
	event = next_event(d);
	if (event == SMTP_SERVER_CLOSE)
		return -1;
	d->content_ended = event == SMTP_SERVER_END;
	if (d->content_ended)
		return 0;
	d->content = d->server.content;
	d->content_len = d->server.content_len;
	return 1;
}

/* The bytes of inject->source. */
static ssize_t
read_content(void *arg, char *buf, size_t size)
{
	struct dialogue *d = arg;
	int r = next_content(d);

	if (r <= 0)
		return r < 0 ? -ECANCELED : 0;
	size = size < d->content_len ? size : d->content_len;
	memcpy(buf, d->content, size);
	d->content += size;
	d->content_len -= size;
	return (ssize_t)size;
}

/* A message that is refused while it comes is read to its end all the same. */
static int
pass_content(struct dialogue *d)
{
	int r;

	while ((r = next_content(d)) > 0)
		d->content_len = 0;
	return r;
}

static int
answer_message(struct dialogue *d, bool stored, const struct queue_id *id)
{
	char text[QUEUE_ID_SIZE];

	if (!stored)
		return answer_refusal(d);
	queue_id_format(id, text);
	smtp_server_answer(&d->server, 250, "2.0.0", "Ok: queued as %s", text);
	/* At once, whatever the client has sent behind the message. */
	return write_replies(d);
}

static int
take_message(struct dialogue *d)
{
	struct inject *inject = d->inject;
	struct queue_id id;
	bool stored;

	if (source_init(&inject->source, -1, false, 0, -1) < 0) {
		refuse(&inject->why, REFUSAL_MEMORY, "out of memory");
		return answer_refusal(d);
	}
	inject->source.read = read_content;
	inject->source.arg = d;
	d->content_ended = false;
	d->content_len = 0;
	smtp_server_answer(
	    &d->server, 354, NULL, "End data with <CR><LF>.<CR><LF>");
	stored = inject_store(inject, &id) == 0;
	source_done(&inject->source);
	if (pass_content(d) < 0)
		return -1;
	/* A signal while the queue let the message wait. */
	if (inject->why.kind == REFUSAL_STOPPED)
		d->fault = inject->why;
	d->input.deadline_mono = clock_mono() + MESSAGE_TIME_LIMIT;
	return answer_message(d, stored, &id);
}

/* ---- the dialogue ---- */

static int (*const takers[])(struct dialogue *d) = {
	[SMTP_SERVER_MAIL] = take_sender,
	[SMTP_SERVER_RCPT] = take_rcpt,
	[SMTP_SERVER_DATA] = take_message,
};

static void
converse(struct dialogue *d)
{
	enum smtp_server_event event;
	int r = 0;

	while (r == 0 && (event = next_event(d)) != SMTP_SERVER_CLOSE)
		r = takers[event](d);
}

/* Tell the client why, as far as it still listens. */
static int
end_dialogue(struct dialogue *d)
{
	const struct refusal why = d->fault;
	const char *dsn;

	if (why.kind != REFUSAL_NONE) {
		(void)refusal_reply(why.kind, &dsn);
		smtp_server_shut(&d->server, dsn, why.text);
	}
	(void)write_replies(d);
	d->inject->why = why.kind != REFUSAL_NONE ? why : d->fault;
	return d->inject->why.kind != REFUSAL_NONE ? -1 : 0;
}

int
dialogue_run(struct inject *inject)
{
	struct dialogue d = { .inject = inject, .data = "" };
	struct smtp_server_rules rules = {
		.host = inject->identity.host,
		.offer = OFFER,
		.size_max = inject->conf.message_size_limit,
		.rcpt_max = inject->conf.message_recipient_limit,
	};
	int r;

	if (inject_open(inject) < 0)
		return dialogue_turn_away(inject);
	if (source_init(&d.input, STDIN_FILENO, false, inject->deadline_mono,
		inject->stop_fd) < 0) {
		refuse(&inject->why, REFUSAL_MEMORY, "out of memory");
		return dialogue_turn_away(inject);
	}
	smtp_server_init(&d.server, &rules);
	converse(&d);
	r = end_dialogue(&d);
	source_done(&d.input);
	return r;
}

int
dialogue_turn_away(struct inject *inject)
{
	struct dialogue d = { .inject = inject,
		.server.rules.offer = OFFER,
		.input = { .deadline_mono = inject->deadline_mono,
		    .stop_fd = inject->stop_fd },
		.fault = inject->why };

	return end_dialogue(&d);
}
