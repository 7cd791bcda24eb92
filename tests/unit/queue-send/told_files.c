/* Messages of which todo-proc has told all that queue-send needs of the file:
 * where no inode number comes again it is opened for what must be read or
 * written in it alone. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "queue-send/operators/operators.h"

static struct world w;

static void
start(void)
{
	w = (struct world){ .tells = true, .in_memory = true };
	world_start(
	    &w, "minimal_backoff_time = 1h\nmaximal_backoff_time = 10h\n");
	(void)world_opens();
	(void)world_trace();
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(told_files, .init = start, .fini = end, .timeout = 60);

/* The opens of the test itself do not count. */
static uint64_t
begin(const char *format, uint32_t n)
{
	const uint64_t inode = world_file(&w, format, n, 0);

	world_offer(&w, SPOOL_INCOMING, inode);
	(void)world_trace();
	(void)world_opens();
	world_run(&w);
	return inode;
}

static void
make_lie(uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	int fd;

	spool_leaf(&w.s.sp, SPOOL_INCOMING, inode, leaf, sizeof(leaf));
	fd = openat(
	    w.s.sp.dir[SPOOL_INCOMING], leaf, O_WRONLY | O_CLOEXEC | O_TRUNC);
	cr_assert_geq(fd, 0);
	close(fd);
}

/* mutation: queue-send/message/active.c: no offer is known. */
Test(told_files, are_not_opened_to_begin)
{
	const uint64_t inode = begin("d", 1);
	struct world_delivery delivery;

	cr_expect_eq(world_opens(), 0);
	cr_assert(world_take(&w, &delivery));
	cr_expect_str_eq(delivery.first, "r0@d0.test");
	cr_expect_str_eq(delivery.sender, "s@here.test");
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	world_is_empty(&w);
}

/* mutation: queue-send/agents/dispatch.c: needs_file() knows no marks. */
Test(told_files, P12_that_cannot_be_marked_start_no_delivery)
{
	struct world_delivery delivery;
	int i;

	for (i = 0; i < 2; i++) {
		if (i == 1)
			w.dsn.ret = DSN_RET_HDRS;
		world_fail(CALL_OPEN, EMFILE, 0);
		begin("d", i == 0 ? 2 : 1);
		cr_expect_not(world_take(&w, &delivery), "%d", i);
		world_fail(CALL_NONE, 0, 0);
		w.s.dispatch_at = 0;
		send_wake(&w.s);
		world_run(&w);
		cr_expect_eq(world_deliver(&w, AGENT_SENT), i == 0 ? 2 : 1);
		world_is_empty(&w);
	}
}

/* mutation: queue-send/message/results.c: is_last() is false. */
Test(told_files, the_removal_of_a_message_is_its_last_mark)
{
	const uint64_t inode = begin("d", 1);
	struct world_delivery delivery;

	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS, "before DONE");
	cr_expect_str_eq(world_trace(), "ru", "moved, removed");
	cr_expect_eq(world_opens(), 0);
	cr_expect_eq(w.s.counters.delivered, 1);
	cr_expect_eq(w.s.active, 1);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.s.active, 0);
	cr_expect_eq(w.s.counters.finished, 1);
	cr_expect_str_eq(world_trace(), "");
	world_is_empty(&w);
}

/* mutation: queue-send/message/results.c: is_last() does not count. */
Test(told_files, others_are_marked_before_the_last)
{
	const uint64_t inode = begin("d", 3);
	struct world_delivery delivery[3];
	int i;

	for (i = 0; i < 3; i++)
		cr_assert(world_take(&w, &delivery[i]));
	(void)world_trace();
	for (i = 0; i < 2; i++) {
		world_result(&w, &delivery[i], 0, AGENT_SENT);
		world_done(&w, &delivery[i]);
	}
	world_run(&w);
	cr_expect_str_eq(world_trace(), "pp");
	cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), "DD.");
	world_again(&w);
	cr_expect_str_eq(world_marks(&w, SPOOL_INCOMING, inode), "DD.");
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1, "it was not the last");
	world_is_empty(&w);
}

Test(told_files, a_message_with_a_failure_is_marked)
{
	const uint64_t inode = begin("d", 2);
	struct world_delivery delivery[2];
	int i;

	for (i = 0; i < 2; i++)
		cr_assert(world_take(&w, &delivery[i]));
	world_result(&w, &delivery[0], 0, AGENT_FAILED);
	world_result(&w, &delivery[1], 0, AGENT_SENT);
	world_run(&w);
	cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), "FD");
	for (i = 0; i < 2; i++)
		world_done(&w, &delivery[i]);
	world_run(&w);
	cr_expect(world_has_report(&w, "r0@d0.test"));
}

/* mutation: queue-send/message/results.c: is_last() does not count. */
Test(told_files, a_message_of_which_some_is_deferred_is_marked)
{
	const uint64_t inode = begin("d", 2);
	struct world_delivery delivery[2];
	int i;

	for (i = 0; i < 2; i++)
		cr_assert(world_take(&w, &delivery[i]));
	world_result(&w, &delivery[0], 0, AGENT_DEFERRED);
	world_result(&w, &delivery[1], 0, AGENT_SENT);
	for (i = 0; i < 2; i++)
		world_done(&w, &delivery[i]);
	world_run(&w);
	cr_expect_str_eq(world_marks(&w, SPOOL_DEFERRED, inode), ".D");
}

/* mutation: queue-send/message/results.c: is_last() does not count the file. */
Test(told_files, an_offer_that_counts_too_few_loses_no_recipient)
{
	const uint64_t inode = world_file(&w, "d", 3, 0);
	const struct queue_id id = world_id(&w, inode);
	const struct msg offer = { .type = MSG_MESSAGE,
		.u.MESSAGE = { .inode = inode,
		    .dir = SPOOL_INCOMING,
		    .arrival_wall = id.arrival_wall,
		    .nonce = id.nonce,
		    .queue = id.queue,
		    .recipients = 1,
		    .pending = 1 } };
	struct world_delivery delivery;

	w.credit--;
	world_send(w.todo, &offer);
	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), "D..");
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 2);
	world_is_empty(&w);
}

Test(told_files, a_removal_that_did_not_happen_delivers_again)
{
	const uint64_t inode = begin("d", 1);
	struct world_delivery delivery;

	cr_assert(world_take(&w, &delivery));
	world_cut(1);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	world_again(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}

/* mutation: queue-send/message/removal.c: m->removed is set whatever r is. */
Test(told_files, D4_a_message_that_cannot_be_removed_is_marked)
{
	static const int errors[] = { EIO, EACCES, EROFS };
	struct world_delivery delivery;
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++) {
		inode = begin("d", 1);
		cr_assert(world_take(&w, &delivery));
		world_fail(CALL_UNLINK, errors[i], 1);
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_run(&w);
		cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), "D");
		world_done(&w, &delivery);
		world_run(&w);
		cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
		world_is_empty(&w);
	}
}

Test(told_files, I17_an_agent_that_dies_behind_its_last_result)
{
	struct world_delivery delivery;
	const uint64_t inode = begin("d", 1);

	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	world_link_agent(&w);
	world_run(&w);
	cr_expect_eq(w.s.active, 0);
	cr_expect_eq(w.s.counters.delivered, 1);
	cr_expect_eq(w.s.counters.finished, 1);
	cr_expect_null(due_find(&w.s.due, inode));
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
	world_is_empty(&w);
}

/* mutation: queue-send/operators/acts.c: m->removed is not looked at. */
Test(told_files, an_operator_comes_too_late_behind_the_last_result)
{
	const struct hold_note note = { .reason = "spam" };
	struct world_delivery delivery;
	const uint64_t inode = begin("d", 1);
	const struct queue_id id = world_id(&w, inode);
	uint32_t running;

	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	cr_expect_eq(world_hold(&w, &id, &note, &running), -ENOENT);
	cr_expect_eq(world_do(&w, ACT_DELETE, &id, 0, &running), -ENOENT);
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 0);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.s.active, 0);
	cr_expect_eq(w.s.counters.finished, 1);
	cr_expect_eq(world_count(&w, SPOOL_HOLD), 0);
	world_is_empty(&w);
}

/* mutation: queue-send/message/removal.c: removal_in_place_of_mark() knows no
 * threads. */
Test(told_files, where_removals_run_behind_each_recipient_is_marked)
{
	const uint64_t inode = begin("d", 1);
	struct world_delivery delivery;

	w.s.in_memory = false;
	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), "D");
	world_done(&w, &delivery);
	world_run(&w);
	world_is_empty(&w);
}

/* The message that was offered is gone, and another one has its inode.
 * mutation: queue-send/message/active.c: `known' says nothing of the memory.
 */
Test(told_files, D22_are_looked_at_where_an_inode_number_may_come_again)
{
	const uint64_t offered = world_file(&w, "d", 1, 0);
	const uint64_t other = world_file(&w, "d", 1, 0);

	w.s.in_memory = false;
	world_offer_with(&w, offered, -1, other);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
	cr_expect_eq(world_where(&w, other), SPOOL_INCOMING);
	cr_expect_eq(w.scans, 1);
	world_offer(&w, SPOOL_INCOMING, other);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_where(&w, other), SPOOL_NDIRS);
}

/* mutation: queue-send/message/active.c: `known' says nothing of the first. */
Test(told_files, are_looked_at_again_when_they_came_back)
{
	uint64_t inode = begin("d", 1);

	cr_expect_eq(world_opens(), 0);
	world_again(&w); /* it dies */
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
	world_offer(&w, SPOOL_INCOMING, inode);
	(void)world_opens();
	world_run(&w);
	cr_expect_eq(world_opens(), 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}

/* mutation: queue-send/agents/dispatch.c: needs_file() knows no content. */
Test(told_files, are_opened_for_the_content)
{
	struct world_delivery delivery;

	w.content = "Subject: x\n\nwhat it says\n";
	begin("r@local.test", 1);
	cr_expect_eq(world_opens(), 1);
	cr_assert(world_take(&w, &delivery));
	cr_expect_not_null(memmem(
	    delivery.content.data, delivery.content.len, "what it says", 12));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	world_is_empty(&w);
}

Test(told_files, wishes_of_the_sender_go_to_the_agent)
{
	struct world_delivery delivery;

	world_link_smtp(&w);
	w.notify = DSN_FAILURE;
	w.orcpt = "rfc822;r@smtp.test";
	begin("r@smtp.test", 1);
	cr_assert(world_take(&w, &delivery));
	cr_expect_eq(w.wishes.number, delivery.number);
	cr_expect_eq(w.wishes.notify, DSN_FAILURE);
	cr_expect_str_eq(w.wishes.orcpt, "rfc822;r@smtp.test");
}

Test(told_files, that_are_deferred_are_read_in_the_next_attempt)
{
	const uint64_t inode = begin("d", 2);
	struct world_delivery delivery;

	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}

/* The delivery runs without an open file. mutation: queue-send/agents/offers.c:
 * is_new() knows no deliveries. */
Test(told_files, D22_another_message_of_the_inode_waits_for_the_delivery)
{
	const uint64_t inode = begin("d", 1);

	world_offer_stranger(&w, inode);
	world_run(&w);
	cr_expect_eq(w.scans, 1);
	cr_expect_eq(w.s.active, 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}

/* Damage that comes after the examination is found by who reads. */
Test(told_files, that_became_damaged_are_found_out_with_the_content)
{
	const uint64_t inode = world_file(&w, "r@local.test", 1, 0);

	world_offer(&w, SPOOL_INCOMING, inode);
	make_lie(inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
	cr_expect_eq(w.s.active, 0);
}

/* mutation: queue-send/state/message.c: the limit of all recipients is not
 * there. */
Test(told_files, D23_recipients_in_memory_are_bounded)
{
	uint64_t inode;

	w.s.messages.rcpts = MESSAGES_RCPTS_MAX;
	inode = begin("d", 1);
	cr_expect_eq(w.s.messages.rcpts, MESSAGES_RCPTS_MAX);
	cr_expect_eq(world_opens(), 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	w.s.messages.rcpts = 0;
	inode = begin("d", 1);
	cr_expect_gt(w.s.messages.rcpts, 0);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(w.s.messages.rcpts, 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}
