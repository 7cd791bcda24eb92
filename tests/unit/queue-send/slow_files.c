/* What threads open and read in place of the loop, while the disk is slow:
 * files that have left the memory of the kernel. */
#include "tests/unit/queue-send/slow.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static void
forget_files(void)
{
	messages_close_resting(&slow_w.s.messages);
	slow_cold = true;
}

/* Two messages: the first runs alone, and the file of the second is fetched. */
static uint64_t
begin_fetch(struct world_delivery *first)
{
	uint64_t inode;

	world_message(&slow_w, "d", 1);
	world_take_one(&slow_w, first);
	slow_w.s.dispatch_at = USEC_NEVER;
	inode = world_message(&slow_w, "e", 1);
	forget_files();
	slow_close();
	slow_w.s.dispatch_at = 0;
	send_wake(&slow_w.s);
	world_run(&slow_w);
	cr_assert_eq(slow_w.s.fetches.tasks, 1);
	return inode;
}

/* mutation: queue-send/message/fetch.c: fetch_entry() is always false. */
Test(slow, D43_deliveries_go_on_while_a_file_is_opened_slowly)
{
	struct world_delivery first, delivery;

	begin_fetch(&first);
	cr_expect_not(world_take(&slow_w, &delivery));
	slow_cold = false;
	world_message(&slow_w, "f", 1);
	cr_assert(world_take(&slow_w, &delivery));
	cr_expect_str_eq(delivery.first, "r0@f0.test");
	slow_end(&delivery, AGENT_DEFERRED);
	slow_end(&first, AGENT_DEFERRED);
	slow_open(2); /* the reason, too */
	cr_assert(world_take(&slow_w, &delivery));
	cr_expect_str_eq(delivery.first, "r0@e0.test");
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.active, 0);
}

/* A message whose file rests, and has left the memory of the kernel. */
static void
begin_with_open_file(void)
{
	uint64_t inode;

	slow_w.s.dispatch_at = USEC_NEVER;
	inode = world_message(&slow_w, "d", 1);
	cr_assert_geq(messages_find(&slow_w.s.messages, inode)->fd, 0);
	slow_cold = true;
	slow_close();
}

static void
let_start(void)
{
	slow_w.s.dispatch_at = 0;
	send_wake(&slow_w.s);
	world_run(&slow_w);
}

/* Its thread has passed the gate with so many calls, an open and reads; the
 * loop has not heard of it. */
static void
await_first_fetch(int calls)
{
	struct pollfd fd = { .fd =
				 executor_fd(slow_w.s.disk.executor, DISK_READ),
		.events = POLLIN };
	int i;

	for (i = 0; i < calls; i++)
		cr_assert_eq(write(slow_gate[1], "", 1), 1);
	cr_assert_eq(poll(&fd, 1, 120000), 1, "the first is not heard of");
}

/* mutation: queue-send/message/fetch.c: fetch_entry() does not ask whether the
 * disk is slow. */
Test(slow, D43_a_file_that_is_open_is_read_by_a_thread_of_a_slow_disk)
{
	struct world_delivery delivery;

	begin_with_open_file();
	let_start();
	cr_expect_eq(slow_w.s.fetches.tasks, 1);
	cr_expect_not(world_take(&slow_w, &delivery));
	slow_cold = false;
	world_message(&slow_w, "e", 1);
	cr_assert(world_take(&slow_w, &delivery), "others start");
	cr_expect_str_eq(delivery.first, "r0@e0.test");
	slow_end(&delivery, AGENT_DEFERRED);
	slow_open(2); /* the reason, too */
	cr_assert(world_take(&slow_w, &delivery));
	cr_expect_str_eq(delivery.first, "r0@d0.test");
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.active, 0);
}

/* mutation: queue-send/message/fetch.c: work() leaves the descriptor to its
 * task.
 */
Test(
    slow, D43_a_file_that_is_closed_while_a_thread_reads_it_is_not_opened_again)
{
	struct world_delivery delivery;

	begin_with_open_file();
	let_start();
	cr_assert_eq(slow_w.s.fetches.tasks, 1);
	messages_close_resting(&slow_w.s.messages);
	(void)world_opens();
	slow_open(1);
	cr_assert(world_take(&slow_w, &delivery));
	cr_expect_eq(world_opens(), 0);
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.active, 0);
}

/* mutation: queue-send/message/fetch.c: fetch_entry() asks of each file whether
 * it is in memory. */
Test(slow, D43_a_file_that_is_open_is_read_by_the_loop_of_another_disk)
{
	struct world_delivery delivery;

	slow_w.s.disk.slow_at = slow_w.s.disk.looked = 0;
	begin_with_open_file();
	let_start();
	cr_expect_eq(slow_w.s.fetches.tasks, 0);
	cr_assert(world_take(&slow_w, &delivery));
	slow_open(0);
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.active, 0);
}

/* mutation: queue-send/message/fetch.c: was_read_lately() goes by the
 * descriptor alone. */
Test(slow, D43_a_file_that_has_rested_is_read_by_a_thread)
{
	struct world_delivery delivery;

	slow_w.s.disk.slow_at = slow_w.s.disk.looked = 0;
	begin_with_open_file();
	messages_after(&slow_w.s.messages, 0)->rested_at -= USEC_PER_SEC;
	let_start();
	cr_expect_eq(slow_w.s.fetches.tasks, 1);
	cr_expect_not(world_take(&slow_w, &delivery));
	slow_open(1);
	cr_assert(world_take(&slow_w, &delivery));
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.active, 0);
}

/* mutation: queue-send/agents/offers.c: is_new() knows no fetch; dispatch.c,
 * start_late() starts at any time. */
Test(slow, D43_D22_what_meets_a_file_that_is_opened)
{
	struct world_delivery first, delivery;
	const uint64_t inode = begin_fetch(&first);
	const struct msg offer = { .type = MSG_MESSAGE,
		.u.MESSAGE = { .inode = inode,
		    .dir = SPOOL_INCOMING,
		    .arrival_wall = 4711,
		    .recipients = 1,
		    .pending = 1 } };
	uint32_t running;

	slow_w.credit--;
	world_send(slow_w.todo, &offer);
	world_run(&slow_w);
	cr_expect_eq(
	    slow_w.scans, 1, "another message: which of them lies there?");
	cr_expect_eq(world_act(&slow_w, ACT_HOLD, inode, &running), 0);
	cr_expect_eq(running, 1, "no delivery: no mark is on disk");
	slow_open(1);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_HOLD);
	cr_expect_not(world_take(&slow_w, &delivery));
	slow_end(&first, AGENT_SENT);
}

/* mutation: queue-send/message/fetch.c: fetch_done() leaves the entries. */
Test(slow, D43_an_end_while_a_file_is_opened)
{
	struct world_delivery first, delivery;
	const uint64_t inode = begin_fetch(&first);

	slow_w.s.stopping = true;
	slow_open(1);
	cr_expect_not(world_take(&slow_w, &delivery), "a stop starts nothing");
	slow_cold = false;
	world_again(&slow_w);
	world_offer_again(&slow_w, inode);
	cr_expect_eq(world_deliver(&slow_w, AGENT_SENT), 1);
}

/* mutation: queue-send/message/recipients.c: recipients_work() fetches nothing;
 * fetch.c, take() forgets the list. */
Test(slow, D43_further_recipients_are_read_by_a_thread)
{
	struct world_delivery delivery;
	uint64_t inode;
	uint32_t running;
	int hold;

	for (hold = 0; hold < 2; hold++) {
		slow_close();
		slow_cold = true;
		inode = world_message(&slow_w, "d", 30);
		cr_assert_eq(slow_w.s.messages.count[STATE_FETCHING], 1);
		slow_cold = false;
		world_message(&slow_w, "e", 1);
		if (hold == 1)
			cr_expect_eq(
			    world_act(&slow_w, ACT_HOLD, inode, &running), 0);
		cr_expect(world_take(&slow_w, &delivery), "others start");
		cr_expect_str_eq(delivery.first, "r0@e0.test");
		slow_open(1);
		slow_end(&delivery, AGENT_SENT);
		(void)world_deliver(&slow_w, AGENT_SENT);
		cr_expect_eq(world_where(&slow_w, inode),
		    hold == 1 ? SPOOL_HOLD : SPOOL_NDIRS);
	}
}

/* One thread fetches both, and hangs with the second one: an open and a read
 * of the first one go on.
 * mutation: queue-send/message/fetch.c: fetch_init() with a share of 4. */
Test(slow, D43_a_file_that_is_there_waits_for_none_that_hangs)
{
	struct world_delivery delivery;

	slow_w.s.dispatch_at = USEC_NEVER;
	world_message(&slow_w, "d", 1);
	world_message(&slow_w, "e", 1);
	forget_files();
	slow_close();
	let_start();
	cr_assert_eq(slow_w.s.fetches.tasks, 2);
	await_first_fetch(2);
	world_run(&slow_w);
	cr_expect_eq(slow_w.s.fetches.tasks, 1);
	cr_assert(world_take(&slow_w, &delivery));
	cr_expect_str_eq(delivery.first, "r0@d0.test");
	slow_end(&delivery, AGENT_SENT);
	slow_open(2);
	cr_expect_eq(world_deliver(&slow_w, AGENT_SENT), 1);
}

/* mutation: queue-send/message/recipients.c: next_to_read() believes the room
 * that there was before the fetch. */
Test(slow, D43_batches_that_are_fetched_keep_the_limit_of_recipients)
{
	world_reload(&slow_w,
	    "qmgr_message_recipient_limit = 20\n"
	    "qmgr_message_recipient_minimum = 3\n"
	    "default_recipient_limit = 20\n");
	slow_close();
	slow_cold = true;
	world_message(&slow_w, "d", 30);
	world_message(&slow_w, "e", 30);
	cr_assert_eq(slow_w.s.messages.count[STATE_FETCHING], 2);
	slow_cold = false;
	slow_open(2);
	cr_expect_eq(slow_w.s.messages.count[STATE_FETCHING], 0);
	cr_expect_eq(sched_figures(slow_w.s.sched).recipients, 23);
}

/* mutation: queue-send/message/fetch.c: fetches_are_full() is never true. */
Test(slow, D43_a_bounded_number_of_files_is_fetched)
{
	slow_close();
	slow_cold = true;
	world_message(&slow_w, "d", 30);
	cr_assert_eq(slow_w.s.fetches.tasks, 1);
	slow_w.s.fetches.tasks += 63;
	world_message(&slow_w, "e", 30);
	cr_expect_eq(slow_w.s.messages.count[STATE_FETCHING], 1);
	slow_w.s.fetches.tasks -= 63;
	slow_cold = false;
	slow_open(1);
	cr_expect_eq(world_deliver(&slow_w, AGENT_SENT), 60);
}

/* One thread reads 16 KiB of a long message for its first delivery: an open and
 * two reads. Others whose part lies there go on, without a fetch of their own;
 * r1000, by name the fifth, lies elsewhere.
 * mutation: queue-send/message/fetch.c: covers() is always true, or never. */
Test(slow, D43_each_delivery_waits_for_its_own_part_of_the_file)
{
	static const char *const there[] = { "r0@d0.test", "r1@d1.test",
		"r10@d10.test", "r100@d100.test" };
	static struct world_delivery taken[64];
	size_t i, n = 0;

	slow_w.s.dispatch_at = USEC_NEVER;
	world_message(&slow_w, "d", 1100);
	forget_files();
	slow_close();
	let_start();
	cr_assert_eq(slow_w.s.fetches.tasks, 1);
	await_first_fetch(3);
	world_run(&slow_w);
	cr_expect_eq(slow_w.s.fetches.tasks, 1, "another part");
	while (n < ARRAY_LEN(taken) && world_take(&slow_w, &taken[n]))
		n++;
	cr_assert(n >= ARRAY_LEN(there) && n < ARRAY_LEN(taken), "%zu", n);
	for (i = 0; i < n; i++) {
		if (i < ARRAY_LEN(there))
			cr_expect_str_eq(taken[i].first, there[i]);
		else
			cr_expect_neq(strncmp(taken[i].first, "r100", 4), 0);
	}
	slow_open(1);
	for (i = 0; i < n; i++)
		slow_end(&taken[i], AGENT_SENT);
	cr_expect_eq(world_deliver(&slow_w, AGENT_SENT), 1100 - n);
	cr_expect_eq(slow_w.s.active, 0);
}
