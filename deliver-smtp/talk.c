#include "deliver-smtp/net.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/io.h"

/* From the connection to the reply to DATA, however many replies that takes;
 * a server that keeps just below each limit may not hold a place for ever. */
#define TALK_LIMIT    (3600 * USEC_PER_SEC)
/* The content may take its limit and one second for so many octets. */
#define DATA_RATE_MIN 500

struct talk {
	const struct talk_ops *ops;
	void *arg;
	struct bufferevent *bev;
	struct event *timer;
	struct dialog dialog;
	uint32_t turn; /* of the dialog, when the timer was set */
	usec_t limits[DIALOG_NSTATES];
	usec_t deadline; /* of this part of the dialogue */
	usec_t handshaken_at;
	uint64_t content_off;
	struct content content;
};

/* ---- the end ---- */

/* Octets that were sent have not all arrived. */
static bool
is_stuck(const struct talk *t, int sock)
{
	int unsent = 0;

	return evbuffer_get_length(bufferevent_get_output(t->bev)) > 0 ||
	    (ioctl(sock, SIOCOUTQ, &unsent) == 0 && unsent > 0);
}

/* A server that refuses us gets its QUIT, if the socket takes it. */
static void
send_last_words(const struct talk *t, int sock)
{
	const struct buf *out = &t->dialog.out;

	if (out->len > 0)
		(void)send(
		    sock, out->data, out->len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Closed now, not when libevent is done with its buffers: the place of this
 * delivery becomes free when its owner says so, and the connection must be gone
 * by then. An orderly end would wait behind octets that the server does not
 * read, so a connection that is stuck is reset. */
static void
hang_up(struct talk *t)
{
	const struct linger reset = { .l_onoff = 1 };
	int sock = bufferevent_getfd(t->bev);

	if (is_stuck(t, sock))
		(void)setsockopt(
		    sock, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	else
		send_last_words(t, sock);
	(void)bufferevent_disable(t->bev, EV_READ | EV_WRITE);
	(void)bufferevent_setfd(t->bev, -1);
	io_close(&sock);
	bufferevent_free(t->bev);
	t->bev = NULL;
}

void
talk_free(struct talk **talk)
{
	struct talk *t = *talk;

	*talk = NULL;
	if (t == NULL)
		return;
	if (t->bev != NULL)
		hang_up(t);
	if (t->timer != NULL)
		event_free(t->timer);
	dialog_done(&t->dialog);
	free(t);
}

void
talk_abandon(struct talk *t, const char *dsn, const char *text)
{
	dialog_abandon(&t->dialog, dsn, text);
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
	usec_t limit = t->limits[t->dialog.state];
	struct timeval tv;

	if (t->dialog.state <= DIALOG_CONTENT && now + limit > t->deadline)
		limit = t->deadline > now ? t->deadline - now : 0;
	tv = clock_timeval(limit);
	(void)evtimer_add(t->timer, &tv);
}

static void
begin_content(struct talk *t, usec_t now)
{
	const struct dialog_task *task = &t->dialog.task;

	content_begin(&t->content, t->content.data, t->content.fd,
	    t->content_off, task->size);
	t->deadline = now + t->limits[DIALOG_CONTENT] +
	    (usec_t)(task->size / DATA_RATE_MIN) * USEC_PER_SEC;
}

/* More of the message, when the last slice has gone. -errno: it cannot be
 * read. */
static int
pump(struct talk *t)
{
	struct evbuffer *out = bufferevent_get_output(t->bev);

	if (t->dialog.state != DIALOG_CONTENT || evbuffer_get_length(out) > 0)
		return 0;
	if (!t->content.ended)
		return content_add(&t->content, out);
	dialog_content_sent(&t->dialog);
	return 0;
}

static void
send_commands(struct talk *t)
{
	struct buf *out = &t->dialog.out;

	if (out->len == 0 || t->dialog.state == DIALOG_CLOSED)
		return;
	if (bufferevent_write(t->bev, out->data, out->len) < 0)
		dialog_abandon(&t->dialog, "4.3.0", "out of memory");
	buf_reset(out);
}

/* Do what the dialogue wants now, after each event. `progress`: octets of the
 * message have gone. The talk may be gone when it returns. */
static void
proceed(struct talk *t, bool progress)
{
	struct dialog *d = &t->dialog;
	usec_t now = clock_mono();

	if (d->handshaken && t->handshaken_at == 0)
		t->handshaken_at = now;
	send_commands(t);
	if (d->turn != t->turn && d->state == DIALOG_CONTENT)
		begin_content(t, now);
	if (pump(t) < 0)
		dialog_abandon(d, "4.3.0", "the queued message cannot be read");
	if (d->state == DIALOG_CLOSED) {
		(void)evtimer_del(t->timer);
		t->ops->ended(t->arg, &d->end);
		return;
	}
	if (progress || d->turn != t->turn)
		set_timer(t, now);
	t->turn = d->turn;
}

/* ---- events ---- */

static void
on_read(struct bufferevent *bev, void *arg)
{
	struct talk *t = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	char data[4096];
	int n;

	while (t->dialog.state != DIALOG_CLOSED &&
	    (n = evbuffer_remove(in, data, sizeof(data))) > 0)
		dialog_feed(&t->dialog, data, (size_t)n);
	proceed(t, false);
}

static void
on_written(struct bufferevent *bev UNUSED, void *arg)
{
	struct talk *t = arg;

	if (t->dialog.state == DIALOG_CONTENT)
		proceed(t, true);
}

/* We could not send; perhaps the server has said why before it closed. */
static void
read_last_words(struct talk *t)
{
	char data[4096];
	ssize_t n;

	while (t->dialog.state != DIALOG_CLOSED) {
		n = recv(bufferevent_getfd(t->bev), data, sizeof(data),
		    MSG_DONTWAIT);
		if (n <= 0)
			return;
		dialog_feed(&t->dialog, data, (size_t)n);
	}
}

static void
on_event(struct bufferevent *bev UNUSED, short what, void *arg)
{
	struct talk *t = arg;

	if (what & BEV_EVENT_WRITING)
		read_last_words(t);
	dialog_lost(&t->dialog, DIALOG_LOST_CLOSED);
	proceed(t, false);
}

static void
on_timer(evutil_socket_t sock UNUSED, short what UNUSED, void *arg)
{
	struct talk *t = arg;

	dialog_lost(&t->dialog, DIALOG_LOST_TIMEOUT);
	proceed(t, false);
}

/* ---- the start ---- */

static int
open_talk(struct talk *t, struct event_base *base, int sock,
    const struct talk_task *task)
{
	int r = dialog_init(&t->dialog, &task->dialog, t->ops->report, t->arg);

	t->bev = bufferevent_socket_new(base, sock, 0);
	if (t->bev == NULL) {
		io_close(&sock);
		return -ENOMEM;
	}
	t->timer = evtimer_new(base, on_timer, t);
	if (r < 0 || t->timer == NULL)
		return -ENOMEM;
	bufferevent_setcb(t->bev, on_read, on_written, on_event, t);
	return bufferevent_enable(t->bev, EV_READ | EV_WRITE) < 0 ? -ENOMEM : 0;
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
	t->ops = ops;
	t->arg = arg;
	memcpy(t->limits, task->limits, sizeof(t->limits));
	t->content.data = task->content;
	t->content.fd = task->fd;
	t->content_off = task->content_off;
	r = open_talk(t, base, sock, task);
	if (r < 0) {
		talk_free(&t);
		return r;
	}
	t->deadline = now + TALK_LIMIT;
	set_timer(t, now);
	*ret_talk = t;
	return 0;
}
