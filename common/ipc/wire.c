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
	struct buf frame;
	int fd; /* ours, or -1 */
};

/* Frames that one call has received, and that are given one by one. */
struct received {
	struct chan_frame *frames;
	unsigned room; /* of frames, at most CHAN_MANY */
	int results[CHAN_MANY];
	int next, count;
	bool full; /* the call took as many as it could */
};

/* A megabyte: for the few wires that carry many frames. */
struct many {
	struct received received;
	struct chan_frame frames[CHAN_MANY];
};

struct wire {
	int sock;
	const struct wire_ops *ops;
	void *arg;
	struct event *readable, *writable, *retry;
	TAILQ_HEAD(waiting_list, waiting) queue;
	size_t queued;
	struct many *many; /* NULL: one frame a call */
	bool giving;       /* a callback runs for a frame */
	bool gathers;
	bool due; /* the queue is sent later in this turn, or waits for room */
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
	w->queued -= first->frame.len;
	io_close(&first->fd);
	buf_done(&first->frame);
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

enum taken {
	TAKEN_SOME, /* there may be more */
	TAKEN_ALL,
	TAKEN_STOP, /* the wire is paused, or closed */
	TAKEN_END,  /* end of file, or an error */
	TAKEN_FREED,
};

static enum taken
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
		return TAKEN_FREED;
	w->freed = NULL;
	return w->paused || w->closed ? TAKEN_STOP : TAKEN_SOME;
}

/* Frames that are left by a pause come first. TAKEN_SOME: there are some. */
static enum taken
receive(struct wire *w, struct received *r, unsigned max)
{
	int n;

	if (r->next < r->count)
		return TAKEN_SOME;
	r->next = r->count = 0;
	max = max < r->room ? max : r->room;
	n = chan_recv_many(w->sock, r->frames, r->results, max);
	if (n > 0)
		r->count = n;
	r->full = n > 0 && (unsigned)n >= r->room;
	if (n == -EAGAIN && !w->cannot_send)
		return TAKEN_ALL;
	return n > 0 ? TAKEN_SOME : TAKEN_END;
}

/* Give what one call receives, at most *left frames. */
static enum taken
take_some(struct wire *w, struct received *r, unsigned *left)
{
	enum taken taken = receive(w, r, *left);
	int at;

	while (taken == TAKEN_SOME && r->next < r->count) {
		at = r->next++;
		if (r->results[at] == 0)
			return TAKEN_END;
		--*left;
		taken = give_frame(w, &r->frames[at], r->results[at]);
	}
	/* The loop tells of what comes later, and of the end. */
	if (taken == TAKEN_SOME && !r->full && *left > 0 && !w->cannot_send)
		return TAKEN_ALL;
	return taken;
}

static void
free_many(struct many *many)
{
	struct received *r = many == NULL ? NULL : &many->received;

	while (r != NULL && r->next < r->count)
		io_close(&r->frames[r->next++].fd);
	free(many);
}

static enum taken
take_frames(struct wire *w, unsigned max)
{
	struct chan_frame frame;
	struct received one = { .frames = &frame, .room = 1 };
	struct many *many = w->many;
	struct received *r = many == NULL ? &one : &many->received;
	enum taken taken = TAKEN_SOME;

	if (w->giving) /* called by a callback of this wire */
		return TAKEN_STOP;
	w->giving = true;
	w->many = NULL; /* a callback may free the wire */
	while (taken == TAKEN_SOME && max > 0)
		taken = take_some(w, r, &max);
	if (taken == TAKEN_FREED) {
		free_many(many);
		return taken;
	}
	w->giving = false;
	w->many = many;
	if (taken == TAKEN_END)
		report_closed(w);
	return taken;
}

static void
on_readable(int sock UNUSED, short what UNUSED, void *arg)
{
	struct wire *w = arg;

	if (w->paused)
		return;
	if (w->ops->ready != NULL) {
		wire_pause(w, true);
		w->ops->ready(w->arg, w);
	} else if (take_frames(w, FRAMES_PER_TURN) == TAKEN_SOME &&
	    w->cannot_send)
		event_active(w->readable, EV_READ, 0);
}

bool
wire_take(struct wire *w, unsigned max)
{
	enum taken taken;

	if (w->closed)
		return false;
	w->paused = false; /* for the frames of this call */
	taken = take_frames(w, max);
	if (taken == TAKEN_FREED || taken == TAKEN_END)
		return false;
	if (taken == TAKEN_ALL) {
		event_add(w->readable, NULL);
		return false;
	}
	w->paused = true;
	return true;
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

	w->due = true;
	if (is_passing(r))
		event_add(w->retry, &after);
	else
		event_add(w->writable, NULL);
}

/* Sends several frames: their number, or -errno. */
static int
send_some(struct wire *w)
{
	const struct waiting *f = TAILQ_FIRST(&w->queue);
	struct chan_out frames[CHAN_MANY];
	unsigned n = 0;

	for (; f != NULL && n < CHAN_MANY; f = TAILQ_NEXT(f, entry))
		frames[n++] = (struct chan_out){ &f->frame, f->fd };
	return chan_send_many(w->sock, frames, n);
}

static int
send_queue(struct wire *w)
{
	int sent = 0, r = 0;

	while (r >= 0 && sent < FRAMES_PER_TURN && !TAILQ_EMPTY(&w->queue)) {
		r = send_some(w);
		for (sent += r > 0 ? r : 0; r > 0; r--)
			drop_first(w);
	}
	return r;
}

static void
on_writable(int sock UNUSED, short what UNUSED, void *arg)
{
	struct wire *w = arg;
	int r = send_queue(w);

	w->due = false;
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
	if (w->gathers && w->sock >= 0 && !w->cannot_send)
		(void)send_queue(w);
	free_many(w->many);
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

/* A frame on its way, with the descriptor that goes along, or -1. */
struct out {
	struct buf frame;
	int fd;
	bool given; /* that is the wire's, unless the frame is not sent */
};

static int
enqueue(struct wire *w, struct out *o)
{
	struct buf *frame = &o->frame;
	struct waiting *last;
	int r;

	if (w->queued + frame->len > QUEUED_MAX)
		return -ENOBUFS;
	last = malloc(sizeof(*last));
	if (last == NULL)
		return -ENOMEM;
	last->fd = o->fd;
	if (o->fd >= 0 && !o->given)
		last->fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 3);
	if (o->fd >= 0 && last->fd < 0) {
		r = -errno;
		free(last);
		return r;
	}
	if (o->given)
		o->fd = -1;
	last->frame = *frame;
	*frame = (struct buf){ 0 };
	TAILQ_INSERT_TAIL(&w->queue, last, entry);
	w->queued += last->frame.len;
	return 0;
}

/* The queue goes out before the loop looks for the next events. */
static int
gather(struct wire *w, struct out *o)
{
	int r = enqueue(w, o);

	if (r == 0 && !w->due) {
		w->due = true;
		event_active(w->writable, EV_WRITE, 0);
	}
	return r;
}

static int
send_or_enqueue(struct wire *w, struct out *o)
{
	const bool first = TAILQ_EMPTY(&w->queue);
	int r = -EAGAIN, sent;

	if (first)
		r = chan_send_frame(
		    w->sock, o->frame.data, o->frame.len, o->fd);
	if (r == 0)
		return 0;
	if (r != -EAGAIN && !is_passing(r)) {
		stop_sending(w);
		return r;
	}
	sent = r;
	r = enqueue(w, o);
	if (r == 0 && first)
		wait_to_send(w, sent);
	return r;
}

static int
send_out(struct wire *w, const struct msg *msg, struct out *o)
{
	int r;

	if (w->closed || w->cannot_send)
		return -EPIPE;
	r = msg_encode(msg, &o->frame);
	if (r == 0)
		r = w->gathers ? gather(w, o) : send_or_enqueue(w, o);
	buf_done(&o->frame);
	return r;
}

int
wire_send(struct wire *w, const struct msg *msg, int fd)
{
	struct out o = { .fd = fd };

	return send_out(w, msg, &o);
}

int
wire_give(struct wire *w, const struct msg *msg, int *fd)
{
	struct out o = { .fd = *fd, .given = true };
	int r = send_out(w, msg, &o);

	*fd = o.fd;
	if (r == 0)
		io_close(fd);
	return r;
}

void
wire_gather(struct wire *w)
{
	struct many *many = w->gathers ? NULL : malloc(sizeof(*many));

	w->gathers = true;
	if (many == NULL)
		return;
	many->received = (struct received){
		.frames = many->frames,
		.room = CHAN_MANY,
	};
	w->many = many;
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
	if (w->cannot_send ||
	    (w->many != NULL &&
		w->many->received.next < w->many->received.count))
		event_active(w->readable, EV_READ, 0);
}
