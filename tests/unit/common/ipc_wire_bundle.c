/* Wires that put many frames into one datagram. */
#include "ipc/wire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

/* The reader: frames FLUSH 0, 1, 2, … */
static struct {
	uint32_t frames, bad, closed;
	bool in_order;
} got;
static struct event_base *base;
static struct wire *writer, *reader;

static void
on_frame(void *arg UNUSED, struct wire *w UNUSED, struct chan_frame *frame)
{
	if (frame->msg.type == MSG_FLUSH &&
	    frame->msg.u.FLUSH.spare != got.frames)
		got.in_order = false;
	got.frames++;
}

static void
on_bad(void *arg UNUSED, struct wire *w UNUSED)
{
	got.bad++;
}

static void
on_closed(void *arg UNUSED, struct wire *w UNUSED)
{
	got.closed++;
}

static const struct wire_ops at_once = {
	.frame = on_frame,
	.bad = on_bad,
	.closed = on_closed,
};

static const struct wire_ops bundled = {
	.manner = WIRE_BUNDLED,
	.frame = on_frame,
	.bad = on_bad,
	.closed = on_closed,
};

static void
start(void)
{
	base = event_base_new();
	cr_assert_not_null(base);
}

static void
end(void)
{
	wire_free(&writer);
	wire_free(&reader);
	event_base_free(base);
}

TestSuite(ipc_wire_bundle, .init = start, .fini = end, .timeout = 60);

/* A wire of that manner; the test is the other end. */
static int
connect_wire(const struct wire_ops *ops, struct wire **ret_wire)
{
	int s[2];

	wire_free(ret_wire);
	got.frames = got.bad = got.closed = 0;
	got.in_order = true;
	cr_assert_eq(chan_pair(s), 0);
	cr_assert_eq(wire_new(base, s[1], ops, NULL, ret_wire), 0);
	return s[0];
}

static void
connect_wires(void)
{
	int sock = connect_wire(&bundled, &writer);

	cr_assert_eq(wire_new(base, sock, &bundled, NULL, &reader), 0);
}

static void
turns(void)
{
	int i;

	for (i = 0; i < 100; i++)
		event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

static void
send_number(uint32_t n, int fd)
{
	const struct msg msg = { .type = MSG_FLUSH, .u.FLUSH = { n } };

	cr_assert_eq(wire_send(writer, &msg, fd), 0);
}

static int
receive(int sock, char *data, size_t room)
{
	return (int)recv(sock, data, room, MSG_DONTWAIT);
}

/* Frames of a turn share a datagram up to a bound; one with a descriptor begins
 * another.
 * mutation: common/ipc/outbox.c: outbox_put() looks at no descriptor, or at no
 * bound. */
Test(ipc_wire_bundle, bundled_frames_share_a_datagram)
{
	static char large[60000], data[MSG_FRAME_MAX];
	const struct msg status = { .type = MSG_STATUS,
		.u.STATUS = { .text = { large, sizeof(large) } } };
	const int sock = connect_wire(&bundled, &writer);
	uint32_t n;

	memset(large, 'x', sizeof(large));
	for (n = 0; n < 10; n++)
		send_number(n, n == 4 ? 0 : -1);
	cr_assert_eq(wire_send(writer, &status, -1), 0);
	for (n = 0; n < 2000; n++)
		send_number(n, -1);
	turns();
	cr_expect_eq(receive(sock, data, sizeof(data)), 4 * 12);
	cr_expect_eq(receive(sock, data, sizeof(data)), 6 * 12 + 12 + 60000);
	cr_expect_eq(receive(sock, data, sizeof(data)), 1366 * 12);
	cr_expect_eq(receive(sock, data, sizeof(data)), 634 * 12);
	cr_expect_eq(receive(sock, data, sizeof(data)), -1);
	close(sock);
}

/* A receiver has room for the largest frame behind others. */
Test(ipc_wire_bundle, the_largest_frame_may_stand_behind_others)
{
	static char large[MSG_FRAME_MAX - 12];
	uint32_t n;
	const struct msg status = { .type = MSG_STATUS,
		.u.STATUS = { .text = { large, sizeof(large) } } };

	connect_wires();
	memset(large, 'x', sizeof(large));
	for (n = 0; n < 1365; n++)
		send_number(n, -1);
	cr_assert_eq(wire_send(writer, &status, -1), 0);
	turns();
	cr_expect_eq(got.frames, 1366);
	cr_expect_eq(got.bad, 0);
}

/* What one call has received and a turn has not given comes with the next turn,
 * though nothing more comes on the socket.
 * mutation: on_readable() does not look for it. */
Test(ipc_wire_bundle, what_is_left_of_a_datagram_comes_in_the_next_turn)
{
	uint32_t n;

	connect_wires();
	for (n = 0; n < 200; n++)
		send_number(n, -1);
	turns();
	cr_expect_eq(got.frames, 200);
	cr_expect(got.in_order);
}

/* The loop polls before more is received than one call had, whatever comes.
 * mutation: common/ipc/wire.c: read_frames() always receives. */
Test(ipc_wire_bundle, a_flood_leaves_others_their_turn)
{
	enum {
		FRAMES = 65, /* no multiple of which is a turn */
		DATAGRAMS = 2 * CHAN_MANY
	};
	static char data[FRAMES * 12];
	const int sock = connect_wire(&bundled, &reader);
	int i;

	for (i = 0; i < FRAMES; i++)
		memcpy(data + i * 12, "\x0c\0\0\0\x04\0\0\0\0\0\0\0", 12);
	for (i = 0; i < DATAGRAMS; i++)
		cr_assert_eq(write(sock, data, sizeof(data)), sizeof(data));
	event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
	cr_expect_eq(got.frames, CHAN_MANY * FRAMES);
	turns();
	cr_expect_eq(got.frames, DATAGRAMS * FRAMES);
	close(sock);
}

/* The same of a peer that reads nothing any more, whose end is looked for.
 * mutation: common/ipc/wire.c: read_frames() activates the event. */
Test(ipc_wire_bundle, I17_a_flood_of_a_peer_that_does_not_read)
{
	const struct msg msg = { .type = MSG_SCAN };
	const int sock = connect_wire(&at_once, &reader);
	int n;

	cr_assert_eq(shutdown(sock, SHUT_RD), 0);
	for (n = 0; n < 130; n++)
		cr_assert_eq(chan_send(sock, &msg, -1), 0);
	cr_expect_eq(wire_send(reader, &msg, -1), -EPIPE);
	event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
	cr_expect_eq(got.frames, 64);
	event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
	cr_expect_eq(got.frames, 128);
	turns();
	cr_expect_eq(got.frames, 130);
	cr_expect_eq(got.closed, 1);
	close(sock);
}

/* A bad frame takes with it what is behind it in its datagram, and nothing
 * else; a wire that does not gather takes no bundle. */
Test(ipc_wire_bundle, I18_a_bad_frame_ends_its_datagram)
{
	static const struct {
		const char *data;
		size_t len;
		uint32_t frames, bad;
	} rows[] = {
#define FRAME "\x0c\0\0\0\x04\0\0\0\0\0\0\0"
		{ FRAME FRAME, 24, 2, 0 },
		{ FRAME "junk", 16, 1, 1 },
		{ FRAME "\0\0\0\0" FRAME, 28, 1, 1 },
		{ FRAME "\x05\0\0\0" FRAME, 28, 1, 1 },
		{ FRAME "\x0d\0\0\0\x04\0\0\0\0\0\0\0", 24, 1, 1 },
		{ "\xff\xff\xff\xff" FRAME, 16, 0, 1 },
		{ FRAME FRAME "\x0c", 25, 2, 1 },
	};
	size_t i;
	int sock;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		sock = connect_wire(&bundled, &reader);
		cr_assert_eq(write(sock, rows[i].data, rows[i].len),
		    (ssize_t)rows[i].len);
		cr_assert_eq(write(sock, FRAME, 12), 12);
		turns();
		cr_expect_eq(got.frames, rows[i].frames + 1, "row %zu", i);
		cr_expect_eq(got.bad, rows[i].bad, "row %zu", i);
		close(sock);
	}
	sock = connect_wire(&at_once, &reader);
	cr_assert_eq(write(sock, FRAME FRAME, 24), 24);
	cr_assert_eq(write(sock, FRAME, 12), 12);
	turns();
	cr_expect_eq(got.frames, 1);
	cr_expect_eq(got.bad, 1);
	close(sock);
}

Test(ipc_wire_bundle, frames_go_out_before_the_end)
{
	connect_wires();
	send_number(0, -1);
	send_number(1, -1);
	wire_free(&writer);
	turns();
	cr_expect_eq(got.frames, 2);
}

/* All zero under a sanitizer. */
static size_t
memory(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}

Test(ipc_wire_bundle, I17_a_wire_that_does_not_gather_takes_little_memory)
{
	const size_t before = memory();

	close(connect_wire(&at_once, &reader));
	cr_expect_lt(memory(), before + 8192);
}
