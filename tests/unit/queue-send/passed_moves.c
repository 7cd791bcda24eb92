/* Files that came open with their offers, and that a thread moves. */
#include "tests/unit/queue-send/world.h"
#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static struct world w;

/* Each move to active/ waits here for a byte, which is its error. */
static int gate[2];

static int
slow_renameat(int olddir, const char *old, int newdir, const char *name)
{
	char error = 0;

	if (newdir == w.s.sp.dir[SPOOL_ACTIVE])
		(void)!read(gate[0], &error, 1);
	errno = error;
	return error != 0 ? -1
			  : spool_sys_real.renameat(olddir, old, newdir, name);
}

static void
start(void)
{
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	w = (struct world){
		.tells = true, .passes = true, .threads[DISK_MOVE] = 1
	};
	world_start(&w, "error_interval = 1h\n");
	world_sys.renameat = slow_renameat;
}

static void
end(void)
{
	close(gate[1]);
	world_end(&w);
	close(gate[0]);
}

TestSuite(passed_moves, .init = start, .fini = end, .timeout = 60);

static void
let_go(int error)
{
	const char c = (char)error;

	cr_assert_eq(write(gate[1], &c, 1), 1);
}

/* Until no move is under way. */
static void
await(void)
{
	const uint32_t *count = w.s.messages.count;
	struct pollfd p = { .fd = executor_fd(w.s.disk.executor, DISK_MOVE),
		.events = POLLIN };

	world_run(&w);
	while (count[STATE_ENTERING_INCOMING] + count[STATE_LEAVING] > 0) {
		cr_assert_eq(poll(&p, 1, 120000), 1, "a move does not end");
		world_run(&w);
	}
}

/* The loop closes no file of which a move is under way.
 * mutation: queue-send/message/active.c: the file of the offer goes on to rest.
 */
Test(passed_moves, a_file_that_came_with_the_offer_is_opened_by_nobody)
{
	uint64_t inode;

	inode = world_file(&w, "r@local.test", 1, 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	(void)world_opens();
	world_run(&w);
	cr_assert_eq(w.s.messages.count[STATE_ENTERING_INCOMING], 1);
	messages_close_resting(&w.s.messages);
	let_go(0);
	await();
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_opens(), 0);
	await();
	world_is_empty(&w);
}

/* mutation: queue-send/message/active.c: put_back() lets no file rest. */
Test(passed_moves, D2_a_file_that_came_with_the_offer_rests_when_the_move_fails)
{
	const unsigned before = unit_descriptors();
	uint64_t inode;

	inode = world_file(&w, "d", 1, 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(unit_descriptors(), before + 1);
	let_go(ENOSPC);
	await();
	cr_assert_eq(w.s.messages.count[STATE_OFFERED_INCOMING], 1);
	messages_close_resting(&w.s.messages);
	cr_expect_eq(unit_descriptors(), before);
	w.s.admission_blocked_until = 0;
	send_wake(&w.s);
	let_go(0);
	await();
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}
