/* Descriptors that go along with frames. */
#include "ipc/wire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/mman.h>
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

static const struct wire_ops ops = { .frame = on_frame, .closed = on_closed };

static void
start(void)
{
	int s[2];

	base = event_base_new();
	cr_assert_not_null(base);
	cr_assert_eq(chan_pair(s), 0);
	cr_assert_eq(wire_new(base, s[0], &ops, NULL, &writer), 0);
	cr_assert_eq(wire_new(base, s[1], &ops, NULL, &reader), 0);
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

static int
count_open(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* No duplicate is made, and after a failure the descriptor is the caller's.
 * mutation: common/ipc/wire.c: enqueue() duplicates what was given. */
Test(ipc_wire_fds, that_are_given_are_the_wires)
{
	const struct msg msg = flush(1);
	const int before = count_open();
	int i, fd;

	for (i = 0; i < 2; i++) { /* sent at once; after the turn */
		fd = make(1);
		cr_assert_eq(wire_give(writer, &msg, &fd), 0);
		cr_expect_eq(fd, -1);
		cr_expect_eq(count_open(), before + i);
		turns();
		cr_expect_eq(descriptors, (uint32_t)i + 1);
		cr_expect_eq(count_open(), before);
		wire_gather(writer);
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
	cr_expect_eq(count_open(), before - 2);
}

/* Several in one call, each with its own.
 * mutation: common/ipc/chan.c: chan_send_many() attaches the first to each. */
Test(ipc_wire_fds, go_with_their_own_frames)
{
	uint32_t n;
	int fd;

	wire_gather(writer);
	wire_gather(reader);
	for (n = 0; n < 40; n++) {
		const struct msg msg = flush(n);

		fd = make(n);
		cr_assert_eq(wire_send(writer, &msg, n % 3 == 2 ? -1 : fd), 0);
		close(fd);
	}
	turns();
	cr_expect_eq(frames, 40);
	cr_expect_eq(descriptors, 27);
}
