#include "ipc/wire.h"

#include "base/io.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/queue.h>

#define FRAMES_PER_TURN 64
#define QUEUED_MAX      ((size_t)4 << 20)
/* The wait after an error that the socket does not report the end of: too many
 * descriptors in flight, no memory. */
#define RETRY_AFTER     (50 * USEC_PER_MSEC)

struct waiting {
	TAILQ_ENTRY(waiting) entry;
	size_t len;
	int fd; /* ours, or -1 */
	char frame[];
};

struct wire {
	int sock;
	const struct wire_ops *ops;
	void *arg;
	struct event *readable, *writable, *retry;
	TAILQ_HEAD(waiting_list, waiting) queue;
	size_t queued;
	bool paused;
	bool cannot_send; /* the peer is gone, or the socket broken */
	bool closed;
	bool *freed; /* set when the wire is freed during a callback */
};

static void
drop_first(struct wire *w)
{
	struct waiting *first = TAILQ_FIRST(&w->queue);

	TAILQ_REMOVE(&w->queue, first, entry);
	w->queued -= first->len;
	io_close(&first->fd);
	free(first);
}

static void
drop_queue(struct wire *w)
{
	while (!TAILQ_EMPTY(&w->queue))
		drop_first(w);
}

static void
shut(struct wire *w)
{
	event_del(w->readable);
	event_del(w->writable);
	event_del(w->retry);
	drop_queue(w);
	io_close(&w->sock);
	w->closed = true;
}

static void
report_closed(struct wire *w)
{
	shut(w);
	w->ops->closed(w->arg, w);
}

/* Sending ends. Frames that the peer had sent are still read; the reader finds
 * the end and reports it. */
static void
stop_sending(struct wire *w)
{
	w->cannot_send = true;
	drop_queue(w);
	event_del(w->writable);
	event_del(w->retry);
	if (!w->paused)
		event_active(w->readable, EV_READ, 0);
}

/* False: the wire was freed, or is paused. */
static bool
give_frame(struct wire *w, struct chan_frame *frame, int r)
{
	bool freed = false;

	w->freed = &freed;
	if (r == 1)
		w->ops->frame(w->arg, w, frame);
	else if (w->ops->bad != NULL)
		w->ops->bad(w->arg, w);
	io_close(&frame->fd);
	if (freed)
		return false;
	w->freed = NULL;
	return !w->paused && !w->closed;
}

/* True: there may be more. */
static bool
take_frames(struct wire *w, unsigned max)
{
	struct chan_frame frame;
	unsigned i;
	int r;

	for (i = 0; i < max; i++) {
		r = chan_recv(w->sock, &frame);
		if (r == -EAGAIN && !w->cannot_send)
			return false;
		if (r != 1 && r != -EBADMSG) {
			report_closed(w);
			return false;
		}
		if (!give_frame(w, &frame, r))
			return false;
	}
	return true;
}

static void
on_readable(int sock UNUSED, short what UNUSED, void *arg)
{
	struct wire *w = arg;

	if (!w->paused && take_frames(w, FRAMES_PER_TURN) && w->cannot_send)
		event_active(w->readable, EV_READ, 0);
}

void
wire_take_rest(struct wire *w, unsigned max)
{
	if (w->closed)
		return;
	wire_pause(w, false);
	(void)take_frames(w, max);
}

static bool
is_passing(int r)
{
	return r == -ETOOMANYREFS || r == -ENOBUFS || r == -ENOMEM;
}

static void
wait_to_send(struct wire *w, int r)
{
	const struct timeval after = { .tv_usec = RETRY_AFTER };

	if (is_passing(r))
		event_add(w->retry, &after);
	else
		event_add(w->writable, NULL);
}

static void
on_writable(int sock UNUSED, short what UNUSED, void *arg)
{
	struct wire *w = arg;
	struct waiting *first;
	int i, r = 0;

	for (i = 0; r == 0 && i < FRAMES_PER_TURN; i++) {
		first = TAILQ_FIRST(&w->queue);
		if (first == NULL)
			break;
		r = chan_send_frame(
		    w->sock, first->frame, first->len, first->fd);
		if (r == 0)
			drop_first(w);
	}
	if (r < 0 && r != -EAGAIN && !is_passing(r))
		stop_sending(w);
	else if (!TAILQ_EMPTY(&w->queue))
		wait_to_send(w, r);
	else if (w->ops->drained != NULL)
		w->ops->drained(w->arg, w);
}

int
wire_new(struct event_base *base, int sock, const struct wire_ops *ops,
    void *arg, struct wire **ret_wire)
{
	struct wire *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	w->sock = -1;
	w->ops = ops;
	w->arg = arg;
	TAILQ_INIT(&w->queue);
	w->readable =
	    event_new(base, sock, EV_READ | EV_PERSIST, on_readable, w);
	w->writable = event_new(base, sock, EV_WRITE, on_writable, w);
	w->retry = evtimer_new(base, on_writable, w);
	if (w->readable == NULL || w->writable == NULL || w->retry == NULL ||
	    event_add(w->readable, NULL) < 0) {
		wire_free(&w);
		return -ENOMEM;
	}
	w->sock = sock;
	*ret_wire = w;
	return 0;
}

void
wire_free(struct wire **wire)
{
	struct wire *w = *wire;

	if (w == NULL)
		return;
	*wire = NULL;
	if (w->freed != NULL)
		*w->freed = true;
	drop_queue(w);
	if (w->readable != NULL)
		event_free(w->readable);
	if (w->writable != NULL)
		event_free(w->writable);
	if (w->retry != NULL)
		event_free(w->retry);
	io_close(&w->sock);
	free(w);
}

static int
enqueue(struct wire *w, const struct buf *frame, int fd)
{
	struct waiting *last;
	int r;

	if (w->queued + frame->len > QUEUED_MAX)
		return -ENOBUFS;
	last = malloc(sizeof(*last) + frame->len);
	if (last == NULL)
		return -ENOMEM;
	last->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0 && last->fd < 0) {
		r = -errno;
		free(last);
		return r;
	}
	last->len = frame->len;
	memcpy(last->frame, frame->data, frame->len);
	TAILQ_INSERT_TAIL(&w->queue, last, entry);
	w->queued += last->len;
	return 0;
}

static int
send_or_enqueue(struct wire *w, const struct buf *frame, int fd)
{
	const bool first = TAILQ_EMPTY(&w->queue);
	int r = -EAGAIN, sent;

	if (first)
		r = chan_send_frame(w->sock, frame->data, frame->len, fd);
	if (r == 0)
		return 0;
	if (r != -EAGAIN && !is_passing(r)) {
		stop_sending(w);
		return r;
	}
	sent = r;
	r = enqueue(w, frame, fd);
	if (r == 0 && first)
		wait_to_send(w, sent);
	return r;
}

int
wire_send(struct wire *w, const struct msg *msg, int fd)
{
	struct buf frame = { 0 };
	int r;

	if (w->closed || w->cannot_send)
		return -EPIPE;
	r = msg_encode(msg, &frame);
	if (r == 0)
		r = send_or_enqueue(w, &frame, fd);
	buf_done(&frame);
	return r;
}

size_t
wire_queued(const struct wire *w)
{
	return w->queued;
}

void
wire_pause(struct wire *w, bool paused)
{
	if (w->closed || w->paused == paused)
		return;
	w->paused = paused;
	if (paused) {
		event_del(w->readable);
		return;
	}
	event_add(w->readable, NULL);
	if (w->cannot_send)
		event_active(w->readable, EV_READ, 0);
}
