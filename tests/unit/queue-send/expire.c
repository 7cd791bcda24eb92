/* Messages that an operator has given up. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "spool/reason.h"

static struct world w;

static void
start(void)
{
	world_start(&w,
	    "minimal_backoff_time = 1h\nmaximal_backoff_time = 10h\n"
	    "error_interval = 1h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(expire, .init = start, .fini = end, .timeout = 60);

static int
act(enum spool_act what, uint64_t inode)
{
	uint32_t running;

	return world_act(&w, what, inode, &running);
}

static void
again(uint64_t inode)
{
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
}

/* mutation: is_over() does not look at the mark. */
Test(expire, what_cannot_be_delivered_is_returned)
{
	uint64_t inode = world_message(&w, "d", 2);

	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 2);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(act(ACT_EXPIRE, inode), 0);
	cr_expect_eq(w.prepared[0], inode, "due at once");
	again(inode);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 2);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS, "returned");
	cr_expect_not_null(strstr(world_report(&w), "expired by an operator"));
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 0);
}

Test(expire, what_can_be_delivered_is)
{
	uint64_t inode = world_message(&w, "d", 2);

	world_deliver(&w, AGENT_DEFERRED);
	cr_expect_eq(act(ACT_EXPIRE, inode), 0);
	again(inode);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 2);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_str_eq(world_report(&w), "");
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 0);
}

/* mutation: act_on_active() does not keep the mark in memory. */
Test(expire, one_in_delivery_ends_with_its_attempt)
{
	struct world_delivery first;
	uint64_t inode = world_message(&w, "d", 1);

	cr_assert(world_take(&w, &first));
	cr_expect_eq(act(ACT_EXPIRE, inode), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	world_result(&w, &first, 0, AGENT_DEFERRED);
	world_done(&w, &first);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_not_null(strstr(world_report(&w), "expired by an operator"));
}

/* What was deferred before the act is not kept for the whole delay.
 * mutation: delay_of() does not look at the mark. */
Test(expire, what_was_deferred_before_is_tried_soon)
{
	struct world_delivery first, second;
	uint64_t inode = world_file(&w, "d", 2, 36000);
	struct due *d;

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert(world_take(&w, &first));
	cr_assert(world_take(&w, &second));
	world_result(&w, &first, 0, AGENT_DEFERRED);
	world_done(&w, &first);
	world_run(&w);
	cr_expect_eq(act(ACT_EXPIRE, inode), 0);
	world_result(&w, &second, 0, AGENT_SENT);
	world_done(&w, &second);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	d = due_find(&w.s.due, inode);
	cr_assert_not_null(d);
	cr_expect_leq(d->at_mono - w.s.now, 3600 * USEC_PER_SEC);
}

/* The mark is on disk. mutation: look_at_reasons() clears a file with a mark.
 */
Test(expire, D24_another_queue_send_knows_it)
{
	struct world_delivery first;
	uint64_t inode = world_message(&w, "d", 1);

	cr_assert(world_take(&w, &first));
	cr_expect_eq(act(ACT_EXPIRE, inode), 0);
	world_again(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	world_link_todo(&w);
	world_link_agent(&w);
	world_run(&w);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_not_null(strstr(world_report(&w), "expired by an operator"));
}

/* mutation: mark_of() does not compare the id. */
Test(expire, D22_the_mark_of_another_message_is_no_mark)
{
	uint64_t inode = world_file(&w, "d", 2, 0);
	struct queue_id id = world_id(&w, inode);

	id.nonce ^= 1;
	cr_assert_eq(reason_add_expiry(&w.s.sp, &id, w.s.now_wall), 0);
	cr_expect_eq(reason_marks(&w.s.sp, &id), REASON_GIVEN_UP);
	id.nonce ^= 1;
	cr_expect_eq(reason_marks(&w.s.sp, &id), 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 2);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 0, "cleared");
}

/* mutation: reason_marks() does not look at the mode. */
Test(expire, the_line_counts_with_its_bit)
{
	const struct reason reason = {
		.dsn = "5.1.1", .relay = "none", .address = "a", .text = "no"
	};
	uint64_t inode = world_file(&w, "d", 2, 0);
	struct queue_id id = world_id(&w, inode);
	char leaf[SPOOL_PATH_MAX];

	cr_expect_eq(reason_marks(&w.s.sp, &id), -ENOENT);
	cr_assert_eq(reason_add(&w.s.sp, SPOOL_BOUNCE, inode, &reason), 0);
	cr_expect_eq(reason_marks(&w.s.sp, &id), 0);
	cr_assert_eq(reason_add_expiry(&w.s.sp, &id, w.s.now_wall), 0);
	cr_assert_eq(reason_add(&w.s.sp, SPOOL_BOUNCE, inode, &reason), 0);
	cr_expect_eq(reason_marks(&w.s.sp, &id), REASON_GIVEN_UP);
	spool_leaf(&w.s.sp, SPOOL_BOUNCE, inode, leaf, sizeof(leaf));
	cr_assert_eq(fchmodat(w.s.sp.dir[SPOOL_BOUNCE], leaf, 0600, 0), 0);
	cr_expect_eq(reason_marks(&w.s.sp, &id), 0);
}

Test(expire, what_is_about_to_leave_is_asked_for_again)
{
	struct world_delivery first;
	uint64_t inode = world_message(&w, "d", 1);
	struct queue_id id = world_id(&w, inode);
	uint32_t running;

	cr_assert(world_take(&w, &first));
	world_fail(CALL_RENAME, EIO, 0);
	world_result(&w, &first, 0, AGENT_DEFERRED);
	world_done(&w, &first);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	cr_expect_eq(world_do(&w, ACT_EXPIRE, &id, 0, &running), -EAGAIN);
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 0);
	world_fail(CALL_RENAME, 0, 1);
}
