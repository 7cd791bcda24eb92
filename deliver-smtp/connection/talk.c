#include "deliver-smtp/connection/connection.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"

/* The time from the start to the last reply to DATA, over all transactions. A
 * server that answers just within each time limit, or takes one recipient in
 * each transaction, would hold the connection without end. */
#define TALK_LIMIT    (3600 * USEC_PER_SEC)
/* The content may take its limit and one second for so many octets. */
#define DATA_RATE_MIN 500

struct talk {
	const struct talk_ops *ops;
	void *arg;
	struct stream *stream;
	struct event *timer;
	struct dialog dialog;
	uint32_t turn;           /* of the dialog, when the timer was set */
	usec_t deadline;         /* start and TALK_LIMIT */
	usec_t content_deadline; /* end of the time to send the content */
	usec_t handshaken_at;
	struct talk_task task; /* of the dialogue that goes on */
	struct content content;
	uint64_t measured;       /* octets of the chunk */
	void (*gone)(void *arg); /* talk_rest(); else NULL */
	void *gone_arg;
};

/* ---- the end ---- */

void
talk_free(struct talk **talk)
{
	struct talk *t = *talk;

	*talk = NULL;
	if (t == NULL)
		return;
	if (t->dialog.state == DIALOG_IDLE)
		dialog_part(&t->dialog);
	/* Closed now: the place of this delivery becomes free when its owner
	 * says so, and the connection must be gone by then. A server that
	 * refuses us, or was kept, gets its QUIT. */
	stream_close(&t->stream, &t->dialog.out);
	if (t->timer != NULL)
		event_free(t->timer);
	dialog_done(&t->dialog);
	content_done(&t->content);
	free(t);
}

void
talk_abandon(struct talk *t, const char *dsn, const char *text)
{
	dialog_abandon(&t->dialog, dsn, text);
}

enum dialog_state
talk_state(const struct talk *t)
{
	return t->dialog.state;
}

usec_t
talk_handshaken_at(const struct talk *t)
{
	return t->handshaken_at;
}

/* ---- going on ---- */

static void
set_timer(struct talk *t, usec_t now)
{
	const enum dialog_state state = t->dialog.state;
	const usec_t deadline =
	    state == DIALOG_CONTENT ? t->content_deadline : t->deadline;
	usec_t limit = t->task.limits[state];
	struct timeval tv;

	if (state <= DIALOG_CONTENT && now + limit > deadline)
		limit = deadline > now ? deadline - now : 0;
	tv = clock_timeval(limit);
	(void)evtimer_add(t->timer, &tv);
}

static void
abandon_content(struct talk *t, int error)
{
	dialog_abandon(&t->dialog, "4.3.0",
	    error == -ENOMEM ? "out of memory"
			     : "the queued message cannot be read");
}

/* From its first octet, to be measured or to be sent. */
static void
open_content(struct talk *t, uint64_t announced)
{
	int r = 0;

	if (!t->dialog.convert)
		content_begin(&t->content, &t->task.content);
	else
		r = content_convert(&t->content, &t->task.content);
	if (r == 0)
		r = content_rewrite(&t->content, t->task.rewrites);
	if (r < 0)
		abandon_content(t, r);
	if (t->dialog.chunked || t->dialog.state == DIALOG_COUNT)
		content_as_chunk(&t->content, announced);
}

static void
begin_content(struct talk *t, usec_t now)
{
	open_content(t, t->measured);
	t->content_deadline = now + t->task.limits[DIALOG_CONTENT] +
	    (usec_t)(t->task.content.len / DATA_RATE_MIN) * USEC_PER_SEC;
}

/* Reading has failed. With TLS the alert of the server may say why. */
static void
lose(struct talk *t, ssize_t error)
{
	if (error == -EPROTO && stream_tls(t->stream) != NULL)
		dialog_broken(&t->dialog, tls_why(stream_tls(t->stream)));
	else
		dialog_lost(&t->dialog, DIALOG_LOST_CLOSED);
}

/* We cannot send; perhaps the server has said why before it closed. */
static void
read_last_words(struct talk *t)
{
	char data[4096];
	ssize_t n = 0;

	while (t->dialog.state != DIALOG_CLOSED) {
		n = stream_read(t->stream, data, sizeof(data));
		if (n <= 0)
			break;
		dialog_feed(&t->dialog, data, (size_t)n);
	}
	lose(t, n);
}

static bool
flush(struct talk *t)
{
	int r = stream_flush(t->stream);

	if (r == -ENOMEM)
		dialog_abandon(&t->dialog, "4.3.0", "out of memory");
	else if (r < 0)
		read_last_words(t);
	return r == 1;
}

/* More of the message, when the last slice has gone; the rest of a long one in
 * further turns of the loop. */
static void
pump(struct talk *t)
{
	struct dialog *d = &t->dialog;

	if (d->state != DIALOG_CONTENT || !stream_is_drained(t->stream))
		return;
	if (!t->content.ended &&
	    content_add(&t->content, stream_out(t->stream)) < 0) {
		dialog_abandon(d, "4.3.0", "the queued message cannot be read");
		return;
	}
	if (!flush(t) || d->state != DIALOG_CONTENT)
		return;
	if (t->content.ended)
		dialog_content_sent(d);
	else if (stream_ask(t->stream) < 0)
		dialog_abandon(d, "4.3.0", "out of memory");
}

/* Look through the message, a slice in a turn of the loop. */
static void
survey(struct talk *t)
{
	struct dialog *d = &t->dialog;
	struct dialog_survey found;
	int r = 0;

	if (d->state != DIALOG_SURVEY)
		return;
	if (d->turn != t->turn) {
		content_begin(&t->content, &t->task.content);
		r = content_rewrite(&t->content, t->task.rewrites);
	}
	if (r == 0)
		r = content_survey(&t->content, d->whole);
	if (r == 1) {
		found = content_surveyed(&t->content);
		dialog_surveyed(d, &found);
	} else if (r == 0) {
		r = stream_ask(t->stream);
	}
	if (r < 0)
		abandon_content(t, r);
}

static bool
is_measuring(const struct dialog *d)
{
	return d->state == DIALOG_COUNT || d->state == DIALOG_MEASURE;
}

/* Another pass over the message, a slice in a turn of the loop. */
static void
measure(struct talk *t)
{
	struct dialog *d = &t->dialog;
	int r;

	if (!is_measuring(d))
		return;
	if (d->turn != t->turn)
		open_content(t, CONTENT_UNKNOWN);
	if (!is_measuring(d))
		return;
	r = content_measure(&t->content, &t->measured);
	if (r == 1)
		dialog_measured(d, t->measured);
	else if (r == 0)
		r = stream_ask(t->stream);
	if (r < 0)
		abandon_content(t, r);
}

static void
send_commands(struct talk *t)
{
	struct buf *out = &t->dialog.out;

	if (out->len == 0 || t->dialog.state == DIALOG_CLOSED)
		return;
	if (buf_add(stream_out(t->stream), out->data, out->len) < 0)
		dialog_abandon(&t->dialog, "4.3.0", "out of memory");
	buf_reset(out);
	t->dialog.told = 0;
	(void)flush(t);
}

/* The server said that TLS may begin, or it comes first. */
static void
begin_tls(struct talk *t)
{
	struct tls *tls = NULL;
	int r;

	if (t->dialog.state != DIALOG_TLS || stream_tls(t->stream) != NULL ||
	    !stream_is_drained(t->stream))
		return;
	r = tls_new(t->task.tls, &t->task.want, &tls);
	if (r == 0)
		r = stream_secure(t->stream, tls);
	if (r == -ENOMEM)
		dialog_abandon(&t->dialog, "4.3.0", "out of memory");
	else if (r < 0)
		dialog_insecure(&t->dialog, strerror(-r));
}

/* Do what the dialogue wants now, after each event. `progress`: octets of the
 * message have gone. The talk may be gone when it returns. */
static void
proceed(struct talk *t, bool progress)
{
	struct dialog *d = &t->dialog;
	usec_t now = clock_mono();

	if (d->handshaken && t->handshaken_at == 0) {
		t->handshaken_at = now;
		if (t->ops->greeted != NULL)
			t->ops->greeted(t->arg);
	}
	survey(t);
	measure(t);
	send_commands(t);
	if (d->turn != t->turn && d->state == DIALOG_CONTENT)
		begin_content(t, now);
	pump(t);
	begin_tls(t);
	/* A reply to octets that have not been sent is none; and nothing was
	 * asked that could follow the last one. */
	if (d->end.open &&
	    (!stream_is_drained(t->stream) || stream_has_more(t->stream)))
		d->end.open = false;
	if (d->state == DIALOG_CLOSED || d->state == DIALOG_IDLE) {
		(void)evtimer_del(t->timer);
		content_done(&t->content);
		t->ops->ended(t->arg, &d->end);
		return;
	}
	if (progress || d->turn != t->turn)
		set_timer(t, now);
	t->turn = d->turn;
}

/* ---- events ---- */

static void
on_readable(void *arg)
{
	struct talk *t = arg;
	char data[4096];
	ssize_t n;

	if (t->gone != NULL) {
		/* TLS has words of its own, which are no content. */
		if (stream_tls(t->stream) == NULL ||
		    stream_read(t->stream, data, sizeof(data)) != 0)
			t->gone(t->gone_arg);
		return;
	}
	n = stream_read(t->stream, data, sizeof(data));
	if (n > 0)
		dialog_feed(&t->dialog, data, (size_t)n);
	else if (n < 0)
		lose(t, n);
	proceed(t, false);
}

static void
on_written(void *arg, int error)
{
	struct talk *t = arg;

	if (t->gone != NULL) { /* no dialogue waits for it any more */
		if (error < 0)
			t->gone(t->gone_arg);
		return;
	}
	if (error < 0)
		read_last_words(t);
	proceed(t, t->dialog.state == DIALOG_CONTENT);
}

static void
on_secured(void *arg, int error)
{
	struct talk *t = arg;
	const struct tls *tls = stream_tls(t->stream);
	struct tls_facts facts;

	if (error == 0) {
		tls_tell(tls, &facts);
		t->ops->secured(t->arg, &facts);
		dialog_secured(&t->dialog);
	} else {
		dialog_insecure(&t->dialog,
		    error == -EPROTO      ? tls_why(tls)
			: error == -EPIPE ? "the server closed the connection"
					  : strerror(-error));
	}
	proceed(t, false);
}

static const struct stream_ops stream_ops = {
	.readable = on_readable,
	.written = on_written,
	.secured = on_secured,
};

static void
on_timer(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct talk *t = arg;

	if (t->gone != NULL) {
		t->gone(t->gone_arg);
		return;
	}
	dialog_lost(&t->dialog, DIALOG_LOST_TIMEOUT);
	proceed(t, false);
}

/* ---- the start ---- */

static int
open_talk(struct talk *t, struct event_base *base, int sock,
    const struct talk_task *task)
{
	int r = dialog_init(&t->dialog, &task->dialog, t->ops->report, t->arg);

	t->timer = evtimer_new(base, on_timer, t);
	if (r < 0 || t->timer == NULL) {
		io_close(&sock);
		return -ENOMEM;
	}
	return stream_new(base, sock, &stream_ops, t, &t->stream);
}

int
talk_start(struct event_base *base, int sock, const struct talk_task *task,
    const struct talk_ops *ops, void *arg, struct talk **ret_talk)
{
	struct talk *t = calloc(1, sizeof(*t));
	usec_t now = clock_mono();
	int r;

	if (t == NULL) {
		io_close(&sock);
		return -ENOMEM;
	}
	t->task = *task;
	t->ops = ops;
	t->arg = arg;
	r = open_talk(t, base, sock, task);
	if (r < 0) {
		talk_free(&t);
		return r;
	}
	t->deadline = now + TALK_LIMIT;
	set_timer(t, now);
	*ret_talk = t;
	/* TLS that comes first is begun by the loop. */
	return t->dialog.state == DIALOG_TLS ? stream_ask(t->stream) : 0;
}

/* ---- kept ---- */

void
talk_rest(struct talk *t, usec_t limit, void (*gone)(void *arg), void *arg)
{
	const struct timeval tv = clock_timeval(limit);

	t->gone = gone;
	t->gone_arg = arg;
	t->dialog.task.said = NULL; /* the argument may end now */
	(void)evtimer_add(t->timer, &tv);
}

int
talk_again(struct talk *t, const struct talk_task *task,
    const struct talk_ops *ops, void *arg)
{
	usec_t now = clock_mono();
	int r;

	t->gone = NULL;
	t->task = *task;
	t->ops = ops;
	t->arg = arg;
	r = dialog_again(&t->dialog, &task->dialog, ops->report, arg);
	if (r < 0)
		return r;
	t->handshaken_at = 0; /* greeted() comes for each dialogue */
	t->deadline = now + TALK_LIMIT;
	t->turn = t->dialog.turn - 1;
	proceed(t, false);
	return 0;
}
