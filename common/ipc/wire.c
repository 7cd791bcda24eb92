#include "ipc/wire.h"

#include "base/io.h"
#include "ipc/outbox.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>

#define FRAMES_PER_TURN 64
/* The wait after an error that the socket does not report the end of: too many
 * descriptors in flight, no memory. */
#define RETRY_AFTER     (50 * USEC_PER_MSEC)

/* Datagrams that one call has received; their frames are given one by one. */
struct received {
	struct chan_frame *frames;
	unsigned room;          /* of frames, at most CHAN_MANY */
	int results[CHAN_MANY]; /* of the next frame of each */
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
	struct outbox out;
	struct many *many; /* NULL: one datagram a call, of one frame */
	bool giving;       /* a callback runs for a frame */
	bool due; /* the outbox is sent in this turn, or waits for room */
	bool paused;
	bool cannot_send; /* the peer is gone, or the socket broken */
	bool closed;
	bool *freed; /* set when the wire is freed during a callback */
};

static bool
gathers(const struct wire *w)
{
	return w->ops->manner != WIRE_AT_ONCE;
}

/* The socket stays open until the wire is freed: its number is no other file's
 * while an owner may remember the number. */
static void
report_closed(struct wire *w)
{
	event_del(w->readable);
	event_del(w->writable);
	event_del(w->retry);
	outbox_clear(&w->out);
	w->closed = true;
	w->ops->closed(w->arg, w);
}

/* Sending ends. Frames that the peer had sent are still read; the reader finds
 * the end and reports it. */
static void
stop_sending(struct wire *w)
{
	w->cannot_send = true;
	outbox_clear(&w->out);
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

/* A pause would lose what is behind the frame of a datagram on the stack. */
static void
refuse_bundle(struct received *r)
{
	if (r->frames[0].left > 0 && r->results[0] == 1)
		r->results[0] = -EBADMSG;
	r->frames[0].left = 0;
}

/* Frames that were left come first. TAKEN_SOME: there are some. */
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
	if (n > 0 && r->room == 1)
		refuse_bundle(r);
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
	struct chan_frame *frame;
	int *result;

	while (taken == TAKEN_SOME && *left > 0 && r->next < r->count) {
		frame = &r->frames[r->next];
		result = &r->results[r->next];
		if (*result == 0)
			return TAKEN_END;
		--*left;
		taken = give_frame(w, frame, *result);
		*result = chan_next(frame);
		if (*result == 0)
			r->next++;
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

/* receives: more than was received before. */
static enum taken
take_frames(struct wire *w, unsigned max, bool receives)
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
		taken = receives || r->next < r->count ? take_some(w, r, &max)
						       : TAKEN_ALL;
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

/* Frames that were received and not given. */
static bool
has_received(const struct wire *w)
{
	return w->many != NULL &&
	    w->many->received.next < w->many->received.count;
}

/* An event that is activated runs before the loop polls again: a turn that
 * begins with frames of the turn before receives no more, so that others get
 * their turn whatever a peer sends. A wire that cannot send is read again
 * behind a poll: nothing tells of its end when its frames have been read. */
static void
read_frames(struct wire *w)
{
	const enum taken taken =
	    take_frames(w, FRAMES_PER_TURN, !has_received(w));

	if (taken != TAKEN_SOME && taken != TAKEN_ALL)
		return;
	if (has_received(w))
		event_active(w->readable, EV_READ, 0);
	else if (w->cannot_send)
		event_add(w->readable, &(struct timeval){ 0 });
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
	} else {
		read_frames(w);
	}
}

bool
wire_take(struct wire *w, unsigned max)
{
	enum taken taken;

	if (w->closed)
		return false;
	w->paused = false; /* for the frames of this call */
	taken = take_frames(w, max, true);
	if (taken == TAKEN_FREED || taken == TAKEN_END)
		return false;
	if (taken == TAKEN_ALL) {
		event_add(w->readable, NULL);
		return false;
	}
	event_del(w->readable); /* a callback may have resumed it */
	w->paused = true;
	return true;
}

void
wire_take_rest(struct wire *w, unsigned max)
{
	if (w->closed)
		return;
	wire_pause(w, false);
	(void)take_frames(w, max, true);
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

static void
on_writable(int sock UNUSED, short what UNUSED, void *arg)
{
	struct wire *w = arg;
	int r = outbox_send(&w->out, w->sock, FRAMES_PER_TURN);

	w->due = false;
	if (r < 0 && r != -EAGAIN && !is_passing(r))
		stop_sending(w);
	else if (!outbox_is_empty(&w->out))
		wait_to_send(w, r);
	else if (w->ops->drained != NULL)
		w->ops->drained(w->arg, w);
}

static int
make_events(struct wire *w, struct event_base *base, int sock)
{
	w->readable =
	    event_new(base, sock, EV_READ | EV_PERSIST, on_readable, w);
	w->writable = event_new(base, sock, EV_WRITE, on_writable, w);
	w->retry = evtimer_new(base, on_writable, w);
	if (w->readable == NULL || w->writable == NULL || w->retry == NULL)
		return -ENOMEM;
	return event_add(w->readable, NULL) < 0 ? -ENOMEM : 0;
}

/* Room for what one call receives. */
static int
make_room(struct wire *w)
{
	if (!gathers(w))
		return 0;
	w->many = malloc(sizeof(*w->many));
	if (w->many == NULL)
		return -ENOMEM;
	w->many->received = (struct received){
		.frames = w->many->frames,
		.room = CHAN_MANY,
	};
	return 0;
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
	outbox_init(&w->out, ops->manner == WIRE_BUNDLED);
	if (make_events(w, base, sock) < 0 || make_room(w) < 0) {
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
	if (gathers(w) && w->sock >= 0 && !w->cannot_send)
		(void)outbox_send(&w->out, w->sock, FRAMES_PER_TURN);
	free_many(w->many);
	outbox_clear(&w->out);
	if (w->readable != NULL)
		event_free(w->readable);
	if (w->writable != NULL)
		event_free(w->writable);
	if (w->retry != NULL)
		event_free(w->retry);
	io_close(&w->sock);
	free(w);
}

static bool
has_to_wait(int r)
{
	return r == -EAGAIN || is_passing(r);
}

static int
send_now(struct wire *w, const struct msg *msg, int fd)
{
	struct buf frame = { 0 };
	int r = msg_encode(msg, &frame);

	if (r == 0) {
		r = chan_send_frames(w->sock, frame.data, frame.len, fd);
		if (r < 0 && !has_to_wait(r))
			stop_sending(w);
	}
	buf_done(&frame);
	return r;
}

/* -EAGAIN: the frame has to wait behind others. */
static int
send_first(struct wire *w, const struct msg *msg, int fd)
{
	if (w->closed || w->cannot_send)
		return -EPIPE;
	return gathers(w) || w->due ? -EAGAIN : send_now(w, msg, fd);
}

/* why: the -errno of sending at once. Gathered frames go out before the loop
 * looks for the next events. */
static int
put(struct wire *w, const struct msg *msg, int *fd, int why)
{
	int r = outbox_put(&w->out, msg, fd);

	if (r < 0 || w->due)
		return r;
	if (!gathers(w)) {
		wait_to_send(w, why);
		return 0;
	}
	w->due = true;
	event_active(w->writable, EV_WRITE, 0);
	return 0;
}

int
wire_send(struct wire *w, const struct msg *msg, int fd)
{
	int own = -1, r = send_first(w, msg, fd);

	if (!has_to_wait(r))
		return r;
	if (fd >= 0 && (own = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0)
		return -errno;
	r = put(w, msg, &own, r);
	io_close(&own);
	return r;
}

int
wire_give(struct wire *w, const struct msg *msg, int *fd)
{
	int r = send_first(w, msg, *fd);

	if (has_to_wait(r))
		return put(w, msg, fd, r);
	if (r == 0)
		io_close(fd);
	return r;
}

size_t
wire_queued(const struct wire *w)
{
	return w->out.bytes;
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
	if (w->cannot_send || has_received(w))
		event_active(w->readable, EV_READ, 0);
}
