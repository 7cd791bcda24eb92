/* A wire whose owner takes the frames when it wants them. */
#include "ipc/wire.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <unistd.h>

static struct event_base *base;

/* The owner of the wire, and what it has heard. */
static struct taker {
	struct wire *wire;
	uint32_t told;     /* that it is ready */
	uint32_t frames;   /* values were 0, 1, 2 … */
	uint32_t pause_at; /* these frames */
	bool goes_on;      /* at once */
	uint32_t free_at;
	uint32_t closed;
	bool free_at_closed;
} taker;

static void
on_ready(void *arg UNUSED, struct wire *w UNUSED)
{
	taker.told++;
}

static void
on_frame(void *arg UNUSED, struct wire *w, struct chan_frame *frame)
{
	cr_expect_eq(frame->msg.u.FLUSH.spare, taker.frames);
	taker.frames++;
	if (taker.frames == taker.pause_at)
		wire_pause(w, true);
	if (taker.frames == taker.pause_at && taker.goes_on)
		wire_pause(w, false);
	if (taker.frames == taker.free_at)
		wire_free(&taker.wire);
}

static void
on_closed(void *arg UNUSED, struct wire *w UNUSED)
{
	taker.closed++;
	if (taker.free_at_closed)
		wire_free(&taker.wire);
}

static const struct wire_ops ops = {
	.ready = on_ready,
	.frame = on_frame,
	.closed = on_closed,
};

static const struct wire_ops gathered = {
	.manner = WIRE_GATHERED,
	.ready = on_ready,
	.frame = on_frame,
	.closed = on_closed,
};

static void
turns(void)
{
	int i;

	for (i = 0; i < 20; i++)
		event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

static void
put(int peer, uint32_t number)
{
	const struct msg msg = { .type = MSG_FLUSH, .u.FLUSH = { number } };

	cr_assert_eq(chan_send(peer, &msg, -1), 0);
}

/* The other end, which has sent so many frames. */
static int
begin(bool gathers, uint32_t frames)
{
	uint32_t n;
	int s[2];

	base = event_base_new();
	cr_assert_not_null(base);
	cr_assert_eq(chan_pair(s), 0);
	taker = (struct taker){ 0 };
	cr_assert_eq(
	    wire_new(base, s[1], gathers ? &gathered : &ops, NULL, &taker.wire),
	    0);
	for (n = 0; n < frames; n++)
		put(s[0], n);
	turns();
	cr_expect_eq(taker.told, frames > 0);
	cr_expect_eq(taker.frames, 0, "none without being taken");
	return s[0];
}

static void
end(int peer)
{
	wire_free(&taker.wire);
	close(peer);
	event_base_free(base);
}

/* mutation: wire_take() does not listen again. */
Test(ipc_wire_take, A9_what_is_taken_comes_and_more_is_told)
{
	int i, peer;

	for (i = 0; i < 2; i++) {
		peer = begin(i == 1, 40);
		cr_expect(wire_take(taker.wire, 16));
		cr_expect_eq(taker.frames, 16);
		turns();
		cr_expect_eq(taker.told, 1, "once");
		taker.pause_at = 20;
		cr_expect(wire_take(taker.wire, 16));
		cr_expect_eq(taker.frames, 20, "paused by its callback");
		cr_expect(wire_take(taker.wire, 16));
		cr_expect_not(wire_take(taker.wire, 16));
		cr_expect_eq(taker.frames, 40);
		turns();
		cr_expect_eq(taker.told, 1);
		put(peer, 40);
		turns();
		cr_expect_eq(taker.told, 2);
		cr_expect_not(wire_take(taker.wire, 16));
		cr_expect_eq(taker.frames, 41);
		end(peer);
	}
}

/* A loop that listens for what nobody takes would turn without end.
 * mutation: common/ipc/wire.c: wire_take() leaves readable added. */
Test(ipc_wire_take, I9_a_callback_may_pause_and_go_on)
{
	const int peer = begin(true, 3);
	const int before =
	    event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED);

	taker.pause_at = 1;
	taker.goes_on = true;
	cr_expect(wire_take(taker.wire, 2));
	cr_expect_eq(
	    event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED), before);
	cr_expect_not(wire_take(taker.wire, 2));
	cr_expect_eq(taker.frames, 3);
	end(peer);
}

Test(ipc_wire_take, A9_the_end_is_told)
{
	int i, peer;

	for (i = 0; i < 2; i++) {
		peer = begin(i == 1, 3);
		close(peer);
		while (wire_take(taker.wire, 2))
			;
		turns();
		while (taker.closed == 0 && wire_take(taker.wire, 2))
			;
		cr_expect_eq(taker.frames, 3);
		cr_expect_eq(taker.closed, 1);
		cr_expect_not(wire_take(taker.wire, 2), "closed");
		end(-1);
	}
}

Test(ipc_wire_take, A9_a_callback_may_free_it)
{
	int i, peer;

	for (i = 0; i < 2; i++) {
		peer = begin(i == 1, 3);
		taker.free_at = 2;
		cr_expect_not(wire_take(taker.wire, 16));
		cr_expect_eq(taker.frames, 2);
		end(peer);
		peer = begin(i == 1, 0);
		close(peer);
		turns();
		cr_expect_eq(taker.told, 1);
		taker.free_at_closed = true;
		cr_expect_not(wire_take(taker.wire, 16));
		cr_expect_eq(taker.closed, 1);
		end(-1);
	}
}
