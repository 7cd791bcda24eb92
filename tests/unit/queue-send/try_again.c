/* What a disk refused is tried again every error_interval, and at once by a
 * reload and by a flush. */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/world.h"

#include "queue-send/operators/own.h"
#include "queue-send/message/path.h"
#include "queue-send/backlog/backlog.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONF "error_interval = 1h\n"

static struct world w;

static void
start(void)
{
	world_start(&w, CONF);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(try_again, .init = start, .fini = end, .timeout = 60);

static void
reload(void)
{
	world_reload(&w, CONF);
}

static void
flush(void)
{
	w.daemon.state = &w.s;
	control_ops.flush(&w.daemon);
	world_run(&w);
}

/* What an operator does who has put a disk right. */
static void (*const orders[])(void) = { reload, flush };

static uint64_t
refuse_in(int error)
{
	uint64_t inode;

	world_fail(CALL_RENAME, error, 1);
	inode = world_message(&w, "d", 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	cr_assert_null(messages_find(&w.s.messages, inode));
	return inode;
}

/* todo-proc offers the file again when it is asked for a scan. */
static void
is_delivered(uint64_t inode, uint32_t scans)
{
	cr_assert_eq(w.scans, scans + 1);
	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}

Test(try_again, D55_a_refused_move_in_waits_for_the_interval)
{
	const uint64_t inode = refuse_in(EIO);
	const uint32_t scans = w.scans;

	cr_expect_gt(w.s.refused_at, w.s.now);
	cr_expect_leq(w.s.refused_at, w.s.now + w.conf.error_interval);
	world_run(&w);
	cr_expect_eq(w.scans, scans);
	w.s.refused_at = w.s.now;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(w.s.refused_at, USEC_NEVER);
	is_delivered(inode, scans);
}

Test(try_again, D55_an_order_ends_the_wait_of_a_refused_move_in)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(orders); i++) {
		const uint64_t inode = refuse_in(EIO);
		const uint32_t scans = w.scans;

		w.s.links->scan_at = 0;
		orders[i]();
		is_delivered(inode, scans);
	}
}

/* A deferred message that is due. */
Test(try_again, D55_a_refused_move_of_a_deferred_message)
{
	const uint64_t inode = world_message(&w, "d", 1);
	struct due *d;

	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	deferred_make_due(&w.s, inode, 0, false);
	send_wake(&w.s);
	world_run(&w);
	world_fail(CALL_RENAME, EIO, 1);
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	d = due_find(&w.s.due, inode);
	cr_assert_not_null(d);
	cr_expect_not(d->asked);
	cr_expect_eq(d->at_mono, w.s.now + w.conf.error_interval);
}

/* One file that is refused again and again holds up no other; three files are
 * a disk that fails. */
Test(try_again, D55_one_bad_file_is_no_bad_disk)
{
	const uint64_t bad = refuse_in(EIO);
	int i;

	for (i = 0; i < 5; i++) {
		world_fail(CALL_RENAME, EIO, 1);
		world_offer(&w, SPOOL_INCOMING, bad);
		world_run(&w);
		cr_assert_eq(world_where(&w, bad), SPOOL_INCOMING);
	}
	cr_expect_not(w.s.health.read_only);
	world_message(&w, "e", 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	refuse_in(EIO);
	refuse_in(EIO);
	cr_expect(w.s.health.read_only);
}

/* As each scan offers both. */
Test(try_again, D55_two_bad_files_that_alternate_are_no_bad_disk)
{
	const uint64_t bad[] = { refuse_in(EIO), refuse_in(EIO) };
	int i;

	for (i = 0; i < 12; i++) {
		world_fail(CALL_RENAME, EIO, 1);
		world_offer(&w, SPOOL_INCOMING, bad[i % 2]);
		world_run(&w);
		cr_assert_eq(world_where(&w, bad[i % 2]), SPOOL_INCOMING);
	}
	cr_expect_not(w.s.health.read_only);
	cr_expect_eq(w.s.health.errors, 2);
}

/* Inode numbers come again: a file that went in counts anew. */
Test(try_again, D55_a_file_that_was_moved_counts_anew)
{
	const uint64_t inode = refuse_in(EIO);

	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	deferred_make_due(&w.s, inode, 0, false);
	send_wake(&w.s);
	world_run(&w);
	world_fail(CALL_RENAME, EIO, 1);
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(w.s.health.errors, 2);
}

Test(try_again, D55_one_file_that_cannot_leave_is_no_bad_disk)
{
	const uint64_t bad = world_message(&w, "d", 1);
	int i;

	world_fail(CALL_RENAME, EACCES, 0);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	for (i = 0; i < 5; i++) {
		w.s.stuck_at = 0;
		send_wake(&w.s);
		world_run(&w);
		cr_assert_eq(world_where(&w, bad), SPOOL_ACTIVE);
		cr_assert_gt(w.s.stuck_at, w.s.now);
	}
	cr_expect_not(w.s.health.read_only);
}

/* No room, in and out; a message that alone cannot leave. */
Test(try_again, D55_an_order_ends_the_wait_of_moves)
{
	static const int errors[] = { ENOSPC, EACCES };
	size_t i, k;
	uint64_t in, out;

	for (i = 0; i < ARRAY_LEN(orders); i++)
		for (k = 0; k < ARRAY_LEN(errors); k++) {
			out = world_message(&w, "d", 1);
			world_fail(CALL_RENAME, errors[k], 1);
			cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
			world_run(&w);
			cr_assert_eq(world_where(&w, out), SPOOL_ACTIVE);
			orders[i]();
			cr_expect_eq(world_where(&w, out), SPOOL_DEFERRED);
		}
	for (i = 0; i < ARRAY_LEN(orders); i++) {
		world_fail(CALL_RENAME, ENOSPC, 1);
		in = world_message(&w, "e", 1);
		cr_assert_eq(world_where(&w, in), SPOOL_INCOMING);
		orders[i]();
		cr_expect_eq(world_where(&w, in), SPOOL_ACTIVE);
	}
}

/* Marks that could not be written, and removals. */
Test(try_again, D55_an_order_is_a_probe_of_a_read_only_queue)
{
	static const enum world_call calls[] = { CALL_PWRITE, CALL_UNLINK };
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(orders); i++)
		for (k = 0; k < ARRAY_LEN(calls); k++) {
			const uint64_t inode = world_message(&w, "@d.test", 2);

			world_fail(calls[k], EROFS, 0);
			cr_assert_geq(world_deliver(&w, AGENT_SENT), 1);
			world_run(&w);
			cr_assert(w.s.health.read_only);
			world_fail(CALL_NONE, 0, 0);
			orders[i]();
			cr_expect_not(w.s.health.read_only);
			cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
		}
}

/* A name in the place of the socket, as a disk that refuses it. */
static void
set_barred(bool barred)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/lock/" OPERATORS_SOCKET, w.s.sp.path);
	cr_assert_eq(barred ? mkdir(path, 0700) : rmdir(path), 0);
}

static void
is_open(bool open)
{
	cr_expect_eq(w.s.operators != NULL, open);
	cr_expect_eq(w.s.operators_at == USEC_NEVER, open);
}

Test(try_again, D54_the_socket_of_operators_is_tried_again)
{
	set_barred(true);
	operators_init(&w.s);
	is_open(false);
	cr_expect_gt(w.s.operators_at, w.s.now);
	cr_expect_leq(w.s.operators_at, w.s.now + w.conf.error_interval);
	w.s.operators_at = w.s.now;
	send_wake(&w.s);
	world_run(&w);
	is_open(false);
	cr_expect_gt(w.s.operators_at, w.s.now, "and waits again");
	set_barred(false);
	world_run(&w);
	is_open(false);
	w.s.operators_at = w.s.now;
	send_wake(&w.s);
	world_run(&w);
	is_open(true);
	operators_done(&w.s);
}

Test(try_again, D54_an_order_opens_the_socket_of_operators)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(orders); i++) {
		set_barred(true);
		operators_init(&w.s);
		is_open(false);
		orders[i]();
		is_open(false);
		set_barred(false);
		orders[i]();
		is_open(true);
		operators_done(&w.s);
	}
}
