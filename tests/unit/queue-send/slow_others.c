/* Other queues, to which an operator spreads mail, while their disks are slow.
 */
#include "tests/unit/queue-send/slow.h"

#include "queue-send/operators/operators.h"
#include "queue-send/message/path.h"
#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <unistd.h>

/* Out of this queue, or twenty seconds have passed. */
static void
await_moved(uint64_t inode)
{
	int i;

	for (i = 0; i < 2000 && world_where(&slow_w, inode) != SPOOL_NDIRS;
	     i++) {
		world_run(&slow_w);
		(void)usleep(10000);
	}
}

/* mutation: queue-send/disk/other_queue.h: eight threads open all. */
Test(slow, D43_D31_queues_that_hang_hold_up_no_other_one)
{
	enum {
		N = 12
	};
	struct queue_id id;
	uint64_t inode;
	uint32_t i;

	slow_use_act_threads(1);
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	inode = slow_lay(SPOOL_DEFERRED);
	slow_hang(3, N);
	for (i = 0; i < N; i++)
		cr_assert_eq(world_spread(&slow_w, &slow_spread, &id, 3 + i),
		    ACT_UNDER_WAY);
	slow_await(N);
	(void)slow_act(ACT_SPREAD, inode);
	await_moved(inode);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
	cr_expect_eq(slow_w.s.acts.nwaiting, N);
	slow_open(N);
	while (slow_w.s.acts.nwaiting + slow_w.s.acts.count > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	spread_end(&slow_w.s, &slow_spread);
}

/* Nothing of the message is decided before the queue is open.
 * mutation: queue-send/operators/spread.c: go_on() asks nothing again. */
Test(slow, D43_A3_a_message_is_free_while_its_spread_waits)
{
	uint64_t inode, other;
	uint32_t running;

	slow_use_act_threads(1);
	inode = slow_lay(SPOOL_DEFERRED);
	other = slow_lay(SPOOL_DEFERRED);
	slow_hang(2, 1);
	cr_expect_eq(slow_act(ACT_SPREAD, inode), ACT_UNDER_WAY);
	slow_await(1);
	(void)slow_act(ACT_DELETE, inode);
	while (slow_w.s.acts.count > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_expect_eq(world_answered(&running), 0);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DELETED);
	slow_w.s.acts.nwaiting += ACTS_MAX - 1;
	cr_expect_eq(slow_act(ACT_DELETE, other), -EAGAIN, "too many");
	slow_w.s.acts.nwaiting -= ACTS_MAX - 1;
	slow_open(1);
	cr_expect_eq(world_answered(&running), -EINVAL);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DELETED);
	spread_end(&slow_w.s, &slow_spread);
}

/* mutation: queue-send/disk/other_queue.c: fail() leaves it in the table. */
Test(slow, D19_a_queue_that_was_not_there_is_looked_for_again)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	struct queue_id id;

	slow_use_act_threads(1);
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	send_read_clocks(&slow_w.s);
	cr_expect_eq(world_spread(&slow_w, &slow_spread, &id, 9), -ESTALE);
	cr_assert_eq(spool_create(slow_w.dir, 9, 5, &owner), 0);
	cr_expect_eq(world_spread(&slow_w, &slow_spread, &id, 9), 0);
	spread_end(&slow_w.s, &slow_spread);
}

/* The loop ends before it hears of the opening.
 * mutation: queue-send/disk/other_queue.c: open_it() tells of no success. */
Test(slow, D43_P12_a_queue_that_is_opened_behind_the_end_is_closed)
{
	struct pollfd opened = { .events = POLLIN };
	struct queue_id id;
	unsigned before;

	slow_use_act_threads(1);
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	before = unit_descriptors();
	slow_hang(3, 1);
	cr_assert_eq(
	    world_spread(&slow_w, &slow_spread, &id, 3), ACT_UNDER_WAY);
	slow_await(1);
	cr_assert_eq(write(slow_gate[1], "", 1), 1);
	opened.fd = executor_fd(slow_w.s.disk.executor, DISK_OPEN);
	cr_assert_eq(poll(&opened, 1, -1), 1);
	spread_end(&slow_w.s, &slow_spread);
	slow_w.gated = false;
	world_again(&slow_w);
	cr_expect_eq(unit_descriptors(), before);
}
