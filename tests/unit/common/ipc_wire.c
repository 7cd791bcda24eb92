#include "ipc/wire.h"
#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* What happened to one end. */
struct end {
	struct wire *wire;
	uint32_t frames, bad, closed, drained;
	uint32_t last;     /* value in the last FLUSH */
	bool in_order;     /* values were 0, 1, 2, … */
	uint32_t fds;      /* frames with a descriptor */
	uint32_t free_at;  /* free the wire at this frame */
	uint32_t pause_at; /* pause it at this frame */
	bool free_at_closed;
	bool free_at_drained;
	bool reply;
};

static struct event_base *base;
static struct end a, b;

static int
send_number(struct wire *w, uint32_t n, int fd)
{
	const struct msg msg = { .type = MSG_FLUSH, .u.FLUSH = { n } };

	return wire_send(w, &msg, fd);
}

static void
on_frame(void *arg, struct wire *w, struct chan_frame *frame)
{
	struct end *e = arg;

	if (frame->msg.type == MSG_FLUSH) {
		if (frame->msg.u.FLUSH.spare != e->frames)
			e->in_order = false;
		e->last = frame->msg.u.FLUSH.spare;
	}
	e->frames++;
	e->fds += frame->fd >= 0;
	if (e->reply)
		send_number(w, e->last, -1);
	if (e->frames == e->pause_at)
		wire_pause(w, true);
	if (e->frames == e->free_at)
		wire_free(&e->wire);
}

static void
on_bad(void *arg, struct wire *w UNUSED)
{
	struct end *e = arg;

	e->bad++;
	if (e->bad == e->free_at)
		wire_free(&e->wire);
}

static void
on_closed(void *arg, struct wire *w)
{
	struct end *e = arg;

	e->closed++;
	cr_expect_eq(send_number(w, 0, -1), -EPIPE);
	if (e->free_at_closed)
		wire_free(&e->wire);
}

static void
on_drained(void *arg, struct wire *w UNUSED)
{
	struct end *e = arg;

	e->drained++;
	if (e->free_at_drained)
		wire_free(&e->wire);
}

#define OPS(how)                                                   \
	{                                                          \
		.manner = (how), .frame = on_frame, .bad = on_bad, \
		.closed = on_closed, .drained = on_drained         \
	}
static const struct wire_ops ops = OPS(WIRE_AT_ONCE),
			     gathered = OPS(WIRE_GATHERED),
			     bundled = OPS(WIRE_BUNDLED);

static void
connect_ends(const struct wire_ops *of_a, const struct wire_ops *of_b)
{
	int s[2];

	wire_free(&a.wire);
	wire_free(&b.wire);
	a = b = (struct end){ .in_order = true };
	cr_assert_eq(chan_pair(s), 0);
	cr_assert_eq(wire_new(base, s[0], of_a, &a, &a.wire), 0);
	cr_assert_eq(wire_new(base, s[1], of_b, &b, &b.wire), 0);
}

static void
setup(void)
{
	base = event_base_new();
	cr_assert_not_null(base);
	connect_ends(&ops, &ops);
}

static void
teardown(void)
{
	wire_free(&a.wire);
	wire_free(&b.wire);
	event_base_free(base);
}

TestSuite(ipc_wire, .init = setup, .fini = teardown, .timeout = 60);

/* Only b is a wire, on s[1]; the test is the other end. */
static void
raw_peer(int s[2], const struct wire_ops *of_b)
{
	wire_free(&a.wire);
	wire_free(&b.wire);
	b = (struct end){ .in_order = true };
	cr_assert_eq(chan_pair(s), 0);
	cr_assert_eq(wire_new(base, s[1], of_b, &b, &b.wire), 0);
}

static void
turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

/* Until nothing happens any more. */
static void
turns(void)
{
	int i;

	for (i = 0; i < 2000; i++)
		turn();
}

Test(ipc_wire, more_than_the_socket_holds_arrives_in_order)
{
	uint32_t n;

	for (n = 0; n < 20000; n++)
		cr_assert_eq(send_number(a.wire, n, -1), 0);
	cr_expect_gt(wire_queued(a.wire), 0);
	turns();
	cr_expect_eq(b.frames, 20000);
	cr_expect(b.in_order);
	cr_expect_eq(wire_queued(a.wire), 0);
	cr_expect_eq(a.drained, 1);
	cr_expect_eq(b.drained, 0);
}

/* Frames of one turn go together, in order; a pause in the middle of those that
 * one call received keeps the rest. */
Test(ipc_wire, gathered_frames_arrive_in_order)
{
	static const struct {
		const struct wire_ops *of_a, *of_b;
	} rows[] = { { &gathered, &ops }, { &gathered, &gathered },
		{ &bundled, &gathered }, { &bundled, &bundled } };
	uint32_t n;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		connect_ends(rows[i].of_a, rows[i].of_b);
		for (n = 0; n < 20000; n++)
			cr_assert_eq(send_number(a.wire, n, -1), 0);
		cr_expect_gt(wire_queued(a.wire), 0);
		b.pause_at = 5;
		turns();
		cr_expect_eq(b.frames, 5);
		wire_pause(b.wire, false);
		turns();
		cr_expect_eq(b.frames, 20000);
		cr_expect(b.in_order);
		cr_expect_eq(wire_queued(a.wire), 0);
	}
}

static struct chan_frame frame; /* large */

/* Room came before the loop knew of it. */
Test(ipc_wire, what_waits_is_not_overtaken)
{
	uint32_t sent = 0, got = 0;
	int s[2];

	raw_peer(s, &ops);
	while (wire_queued(b.wire) == 0)
		cr_assert_eq(send_number(b.wire, sent++, -1), 0);
	while (chan_recv(s[0], &frame) == 1)
		cr_assert_eq(frame.msg.u.FLUSH.spare, got++);
	cr_assert_eq(send_number(b.wire, sent++, -1), 0);
	turns();
	while (chan_recv(s[0], &frame) == 1)
		cr_assert_eq(frame.msg.u.FLUSH.spare, got++);
	cr_expect_eq(got, sent);
	close(s[0]);
}

/* A socket on which only sending fails: nothing would ever be heard of its
 * end. As many frames wait as are read in one turn. */
Test(ipc_wire, broken_for_sending_only)
{
	const struct msg msg = { .type = MSG_SCAN };
	int s[2], n;

	raw_peer(s, &ops);
	cr_assert_eq(shutdown(s[1], SHUT_WR), 0);
	for (n = 0; n < 64; n++)
		cr_assert_eq(chan_send(s[0], &msg, -1), 0);
	cr_expect_eq(send_number(b.wire, 0, -1), -EPIPE);
	turns();
	cr_expect_eq(b.frames, 64);
	cr_expect_eq(b.closed, 1);
	close(s[0]);
}

Test(ipc_wire, bounded_work_a_turn)
{
	uint32_t n;

	for (n = 0; n < 300; n++)
		cr_assert_eq(send_number(a.wire, n, -1), 0);
	turn();
	cr_expect_eq(b.frames, 64);
}

/* Descriptors wait as duplicates; those that nobody takes are closed. */
Test(ipc_wire, descriptors_wait_too_and_none_leaks)
{
	const unsigned before = unit_descriptors();
	static char large[40000];
	struct msg msg = { .type = MSG_STATUS };
	uint32_t n;
	int null;

	msg.u.STATUS.text = (struct msg_str){ large, sizeof(large) };
	memset(large, 'x', sizeof(large));
	for (n = 0; n < 50; n++) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		cr_assert_eq(wire_send(a.wire, &msg, null), 0);
		close(null);
	}
	cr_expect_gt(unit_descriptors(), before);
	turns();
	cr_expect_eq(b.frames, 50);
	cr_expect_eq(b.fds, 50);
	cr_expect_eq(unit_descriptors(), before);
	/* And when they never go out. */
	for (n = 0; n < 50; n++)
		cr_assert_eq(wire_send(a.wire, &msg, 0), 0);
	wire_free(&a.wire);
	wire_free(&b.wire);
	cr_expect_eq(unit_descriptors(), before - 2);
}

Test(ipc_wire, I17_a_peer_that_does_not_read_costs_bounded_memory)
{
	static char large[60000];
	struct msg msg = { .type = MSG_STATUS };
	int n, r = 0;

	memset(large, 'x', sizeof(large));
	msg.u.STATUS.text = (struct msg_str){ large, sizeof(large) };
	wire_pause(b.wire, true);
	for (n = 0; n < 1000 && r == 0; n++)
		r = wire_send(a.wire, &msg, -1);
	cr_expect_eq(r, -ENOBUFS);
	cr_expect_leq(wire_queued(a.wire), 4u << 20);
	turns();
	cr_expect_eq(b.frames, 0);
	wire_pause(b.wire, false);
	turns();
	cr_expect_eq(b.frames, (uint32_t)n - 1);
}

Test(ipc_wire, closed_is_told_once_after_the_last_words)
{
	send_number(a.wire, 0, -1);
	send_number(a.wire, 1, -1);
	wire_free(&a.wire);
	turns();
	cr_expect_eq(b.frames, 2);
	cr_expect_eq(b.closed, 1);
	cr_expect_eq(send_number(b.wire, 0, -1), -EPIPE);
}

/* No file that is opened before its owner forgets it gets its number. */
Test(ipc_wire, P25_the_number_is_taken_until_the_wire_is_freed)
{
	const unsigned before = unit_descriptors();

	wire_free(&a.wire);
	turns();
	cr_expect_eq(b.closed, 1);
	cr_expect_eq(unit_descriptors(), before - 1);
	wire_free(&b.wire);
	cr_expect_eq(unit_descriptors(), before - 2);
}

/* The sender finds out first: its peer's last words are read all the same. */
Test(ipc_wire, P1_a_failed_send_does_not_lose_what_was_received)
{
	send_number(a.wire, 0, -1);
	send_number(b.wire, 0, -1); /* unread: makes a reset */
	wire_free(&a.wire);
	cr_expect_eq(send_number(b.wire, 1, -1), -EPIPE);
	cr_expect_eq(send_number(b.wire, 2, -1), -EPIPE);
	cr_expect_eq(b.closed, 0, "never from within wire_send()");
	turns();
	cr_expect_eq(b.frames, 1);
	cr_expect_eq(b.closed, 1);
}

Test(ipc_wire, paused_wires_learn_of_the_end_when_they_go_on)
{
	wire_pause(b.wire, true);
	send_number(a.wire, 0, -1);
	wire_free(&a.wire);
	turns();
	cr_expect_eq(b.frames + b.closed, 0);
	cr_expect_eq(send_number(b.wire, 1, -1), -EPIPE);
	turns();
	cr_expect_eq(b.frames + b.closed, 0);
	wire_pause(b.wire, false);
	turns();
	cr_expect_eq(b.frames, 1);
	cr_expect_eq(b.closed, 1);
}

Test(ipc_wire, I18_bad_frames_are_told_and_the_next_is_read)
{
	int s[2];

	raw_peer(s, &ops);
	cr_assert_eq(write(s[0], "junk", 4), 4);
	cr_assert_eq(write(s[0], "\x0c\0\0\0\x04\0\0\0\0\0\0\0", 12), 12);
	turns();
	cr_expect_eq(b.bad, 1);
	cr_expect_eq(b.frames, 1);
	b.free_at = 2;
	cr_assert_eq(write(s[0], "junk", 4), 4);
	turns();
	cr_expect_null(b.wire);
	close(s[0]);
}

/* Those with descriptors too, and none leaks when the reader goes in between.
 */
Test(ipc_wire, gathered_descriptors_do_not_leak)
{
	uint32_t n;
	unsigned before;

	connect_ends(&bundled, &gathered);
	before = unit_descriptors();
	for (n = 0; n < 10; n++)
		send_number(a.wire, n, n % 3 == 0 ? 0 : -1);
	b.free_at = 5;
	turns();
	cr_expect_eq(b.frames, 5);
	cr_expect_eq(b.fds, 2);
	wire_free(&a.wire);
	cr_expect_eq(unit_descriptors(), before - 2);
}

/* Freed in each callback, with more to come (ASan watches). */
Test(ipc_wire, callbacks_may_free_the_wire)
{
	uint32_t n;

	b.free_at = 3;
	a.free_at_closed = true;
	for (n = 0; n < 10; n++)
		send_number(a.wire, n, -1);
	turns();
	cr_expect_eq(b.frames, 3);
	cr_expect_null(b.wire);
	cr_expect_eq(a.closed, 1);
	cr_expect_null(a.wire);
}

Test(ipc_wire, drained_may_free_the_wire)
{
	uint32_t n;

	a.free_at_drained = true;
	for (n = 0; wire_queued(a.wire) == 0; n++)
		cr_assert_eq(send_number(a.wire, n, -1), 0);
	turns();
	cr_expect_eq(b.frames, n);
	cr_expect_null(a.wire);
	cr_expect_eq(b.closed, 1);
}

Test(ipc_wire, paused_within_a_turn)
{
	uint32_t n;

	b.pause_at = 5;
	for (n = 0; n < 10; n++)
		send_number(a.wire, n, -1);
	turns();
	cr_expect_eq(b.frames, 5);
	wire_pause(b.wire, false);
	turns();
	cr_expect_eq(b.frames, 10);
	cr_expect(b.in_order);
}

Test(ipc_wire, both_ways_at_once)
{
	uint32_t n;

	b.reply = true;
	for (n = 0; n < 5000; n++)
		cr_assert_eq(send_number(a.wire, n, -1), 0);
	turns();
	cr_expect_eq(a.frames, 5000);
	cr_expect(a.in_order);
}

Test(ipc_wire, too_large_is_refused_and_the_wire_lives)
{
	static char large[MSG_FRAME_MAX];
	struct msg msg = { .type = MSG_STATUS };

	memset(large, 'x', sizeof(large));
	msg.u.STATUS.text = (struct msg_str){ large, sizeof(large) };
	cr_expect_eq(wire_send(a.wire, &msg, -1), -EMSGSIZE);
	cr_expect_eq(send_number(a.wire, 0, -1), 0);
	turns();
	cr_expect_eq(b.frames, 1);
}

/* Paused or not, without a turn of the loop; no more than is wanted. */
Test(ipc_wire, what_a_peer_that_has_ended_had_sent_is_taken)
{
	static const struct {
		bool paused;
		uint32_t sent, free_at, want, closed;
	} rows[] = {
		{ false, 3, 0, 3, 1 },
		{ true, 3, 0, 3, 1 },
		{ true, 0, 0, 0, 1 },
		{ true, 20, 0, 10, 0 },
		{ false, 3, 2, 2, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t n;
		int s[2];

		raw_peer(s, &ops);
		b = (struct end){ .wire = b.wire,
			.in_order = true,
			.free_at = rows[i].free_at,
			.free_at_closed = true };
		wire_pause(b.wire, rows[i].paused);
		for (n = 0; n < rows[i].sent; n++) {
			const struct msg msg = { .type = MSG_FLUSH,
				.u.FLUSH = { n } };

			cr_assert_eq(chan_send(s[0], &msg, -1), 0);
		}
		close(s[0]);
		wire_take_rest(b.wire, 10);
		cr_expect_eq(b.frames, rows[i].want, "row %zu", i);
		cr_expect_eq(b.closed, rows[i].closed, "row %zu", i);
		cr_expect(b.in_order);
	}
}
