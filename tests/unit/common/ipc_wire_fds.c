/* Descriptors that go along with frames. */
#include "ipc/wire.h"
#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct event_base *base;
static struct wire *writer, *reader;
static uint32_t frames, descriptors;

/* FLUSH n brings a descriptor of n bytes, but for each third. */
static void
on_frame(void *arg UNUSED, struct wire *w UNUSED, struct chan_frame *frame)
{
	const uint32_t n = frame->msg.u.FLUSH.spare;
	struct stat st;

	frames++;
	if (n % 3 == 2) {
		cr_expect_eq(frame->fd, -1);
		return;
	}
	cr_assert_geq(frame->fd, 0);
	cr_assert_eq(fstat(frame->fd, &st), 0);
	cr_expect_eq((uint32_t)st.st_size, n);
	descriptors++;
}

static void
on_closed(void *arg UNUSED, struct wire *w UNUSED)
{
}

static const struct wire_ops ops[] = {
	[WIRE_AT_ONCE] = { WIRE_AT_ONCE, .frame = on_frame,
	    .closed = on_closed },
	[WIRE_GATHERED] = { WIRE_GATHERED, .frame = on_frame,
	    .closed = on_closed },
	[WIRE_BUNDLED] = { WIRE_BUNDLED, .frame = on_frame,
	    .closed = on_closed },
};

static void
connect_ends(enum wire_manner manner)
{
	int s[2];

	wire_free(&writer);
	wire_free(&reader);
	cr_assert_eq(chan_pair(s), 0);
	cr_assert_eq(wire_new(base, s[0], &ops[manner], NULL, &writer), 0);
	cr_assert_eq(wire_new(base, s[1], &ops[manner], NULL, &reader), 0);
}

static void
start(void)
{
	base = event_base_new();
	cr_assert_not_null(base);
	connect_ends(WIRE_AT_ONCE);
}

static void
end(void)
{
	wire_free(&writer);
	wire_free(&reader);
	event_base_free(base);
}

TestSuite(ipc_wire_fds, .init = start, .fini = end, .timeout = 60);

static void
turns(void)
{
	int i;

	for (i = 0; i < 100; i++)
		event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

static int
make(uint32_t n)
{
	int fd = memfd_create("n", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, n), 0);
	return fd;
}

static struct msg
flush(uint32_t n)
{
	return (struct msg){ .type = MSG_FLUSH, .u.FLUSH = { n } };
}

/* No duplicate is made, and after a failure the descriptor is the caller's.
 * mutation: common/ipc/wire.c: enqueue() duplicates what was given. */
Test(ipc_wire_fds, that_are_given_are_the_wires)
{
	const struct msg msg = flush(1);
	const unsigned before = unit_descriptors();
	uint32_t i;
	int fd;

	for (i = 0; i < ARRAY_LEN(ops); i++) {
		connect_ends(i);
		fd = make(1);
		cr_assert_eq(wire_give(writer, &msg, &fd), 0);
		cr_expect_eq(fd, -1);
		cr_expect_eq(unit_descriptors(), before + (i != WIRE_AT_ONCE));
		turns();
		cr_expect_eq(descriptors, i + 1);
		cr_expect_eq(unit_descriptors(), before);
	}
	fd = make(1);
	cr_assert_eq(wire_give(writer, &msg, &fd), 0);
	wire_free(&reader);
	turns();
	fd = make(1);
	cr_expect_eq(wire_give(writer, &msg, &fd), -EPIPE);
	cr_expect_geq(fd, 0);
	close(fd);
	wire_free(&writer);
	cr_expect_eq(unit_descriptors(), before - 2);
}

/* Several in one call, each with its own.
 * mutation: common/ipc/chan.c: chan_send_many() attaches the first to each. */
Test(ipc_wire_fds, go_with_their_own_frames)
{
	uint32_t i, n;
	int fd;

	for (i = WIRE_GATHERED; i < ARRAY_LEN(ops); i++) {
		connect_ends(i);
		frames = descriptors = 0;
		for (n = 0; n < 40; n++) {
			const struct msg msg = flush(n);

			fd = make(n);
			cr_assert_eq(
			    wire_send(writer, &msg, n % 3 == 2 ? -1 : fd), 0);
			close(fd);
		}
		turns();
		cr_expect_eq(frames, 40);
		cr_expect_eq(descriptors, 27);
	}
}

/* A frame without a byte is the end; what comes behind it was received in the
 * same call.
 * mutation: common/ipc/chan.c: chan_recv_many() leaves what is behind the end.
 */
Test(ipc_wire_fds, P12_what_comes_behind_the_end_is_closed)
{
	const struct msg msg = flush(1);
	unsigned before;
	int s[2], i, fd = make(1);

	wire_free(&reader);
	turns();
	before = unit_descriptors();
	cr_assert_eq(chan_pair(s), 0);
	cr_assert_eq(
	    wire_new(base, s[1], &ops[WIRE_BUNDLED], NULL, &reader), 0);
	cr_assert_eq(send(s[0], "", 0, 0), 0);
	for (i = 0; i < 15; i++)
		cr_assert_eq(chan_send(s[0], &msg, fd), 0);
	turns();
	cr_expect_eq(frames, 0);
	wire_free(&reader);
	close(s[0]);
	cr_expect_eq(unit_descriptors(), before);
	close(fd);
}
