/* The first attempt of a message: nothing is removed that was never made, and
 * reasons that another message of its inode has left never count. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "spool/reason.h"

static struct world w;

static void
start(void)
{
	world_start(&w,
	    "minimal_backoff_time = 1h\nmaximal_backoff_time = 10h\n"
	    "qmgr_message_active_limit = 20\n");
	world_link_todo(&w);
	world_link_agent(&w);
	world_run(&w);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(first, .init = start, .fini = end, .timeout = 60);

static void
leave_reasons(uint64_t inode)
{
	const struct reason old = { .index = 0,
		.dsn = "5.0.0",
		.relay = "none",
		.address = "old@other.test",
		.text = "of another message" };

	cr_assert_eq(reason_add(&w.s.sp, SPOOL_DEFER, inode, &old), 0);
	cr_assert_eq(reason_add(&w.s.sp, SPOOL_BOUNCE, inode, &old), 0);
}

/* mutation: queue-send/disk/files.c: reasons_may_exist() is true. */
Test(first, one_name_is_removed_for_a_message_that_was_delivered)
{
	uint64_t inode = world_file(&w, "d", 1, 0);

	world_offer(&w, SPOOL_INCOMING, inode);
	(void)world_trace();
	(void)world_opens();
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_str_eq(world_trace(), "rpu", "moved, marked, removed");
	cr_expect_eq(world_opens(), 1);
}

/* mutation: queue-send/message/reasons.c: write_here() does not look at
 * m->first.
 */
Test(first, D22_reasons_of_another_message_are_not_reported)
{
	uint64_t inode = world_file(&w, "d", 1, 0);

	leave_reasons(inode);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_FAILED), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_not_null(strstr(world_report(&w), "r0@d0.test"));
	cr_expect_null(strstr(world_report(&w), "old@other.test"));
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 0);
}

/* mutation: queue-send/message/finish.c: strange_reasons() finds none. */
Test(first, D22_reasons_of_another_message_do_not_go_along)
{
	uint64_t inode = world_file(&w, "d", 1, 0);

	leave_reasons(inode);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 0);
	cr_expect_null(strstr(
	    world_reason(&w, SPOOL_DEFER, inode, 0), "of another message"));
}

/* A message that came back from active/ has reasons of its own. */
/* mutation: queue-send/message/active.c: accepted_is_noted() is not asked. */
Test(first, D24_an_attempt_that_was_cut_is_no_first_one)
{
	struct world_delivery delivery;
	uint64_t inode = world_message(&w, "d", 2);

	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	world_run(&w);
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 1);
	world_again(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	world_link_todo(&w);
	world_link_agent(&w);
	world_run(&w);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_not(messages_find(&w.s.messages, inode)->first);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 2);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 0);
}

/* The second queue-send dies before it takes what the first one had begun, and
 * the third one knows nothing of it. */
/* mutation: queue-send/message/active.c: arrival_wall is not compared. */
Test(first, D24_an_attempt_before_two_deaths_is_no_first_one)
{
	struct world_delivery delivery;
	uint64_t inode = world_message(&w, "d", 2);

	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	world_run(&w);
	world_again(&w);
	world_again(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 2);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 0);
}

/* mutation: queue-send/operators/acts.c: prepare_note() does not begin
 * bounce/. */
Test(first, D24_an_act_in_the_first_attempt_stays_known)
{
	uint64_t inode = world_message(&w, "d", 1);
	struct world_delivery delivery;
	const struct message *m;
	struct queue_id id;
	uint32_t running;

	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	m = messages_find(&w.s.messages, inode);
	cr_assert(m != NULL && m->first);
	id = (struct queue_id){ m->file.arrival_wall, m->file.nonce,
		m->file.queue, inode };
	leave_reasons(inode);
	cr_expect_eq(world_do(&w, ACT_EXPIRE, &id, 0, &running), 0);
	cr_expect_eq(reason_marks(&w.s.sp, &id), REASON_GIVEN_UP);
	cr_expect_eq(world_reason(&w, SPOOL_BOUNCE, inode, 0)[0], '\0',
	    "another message's reason is in front of it");
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_null(strstr(world_report(&w), "old@other.test"));
}

/* A destination has 4 of 20 places: the fifth is parked. */
static uint64_t
park(void)
{
	uint64_t inode = 0;
	int i;

	w.tells = w.passes = true;
	for (i = 0; i < 5; i++)
		inode = world_message(&w, "a@d.test", 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	return inode;
}

static bool
is_first_now(uint64_t inode)
{
	const struct message *m;

	cr_expect_eq(world_deliver(&w, AGENT_SENT), 4);
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
	m = messages_find(&w.s.messages, inode);
	cr_assert_not_null(m);
	return m->first;
}

/* mutation: queue-send/message/active.c: parked() does not say that it is. */
Test(first, one_that_was_parked_before_it_is_in_its_first_attempt)
{
	const uint64_t inode = park();

	cr_expect(is_first_now(inode));
	(void)world_trace();
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_str_eq(world_trace(), "pu", "marked, removed");
}

/* A due time is written, and the message keeps its place in the backlog. */
/* mutation: queue-send/operators/acts.c: due_set_untouched() is not called. */
Test(first, D24_an_act_on_one_that_is_parked_is_found)
{
	const uint64_t inode = park();
	const struct queue_id id = world_id(&w, inode);
	uint32_t running;

	cr_expect_eq(world_do(&w, ACT_RETRY, &id,
			 w.s.now_wall + 1800 * USEC_PER_SEC, &running),
	    0);
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 1);
	cr_expect_not(is_first_now(inode));
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 0);
}

/* ---- given away, and back ---- */

static void
by_an_operator(uint64_t inode)
{
	const struct queue_id id = world_id(&w, inode);
	struct spread spread = { 0 };

	send_read_clocks(&w.s);
	cr_expect_eq(world_spread(&w, &spread, &id, 2), 0);
	spread_end(&w.s, &spread);
}

/* Which is taken back. */
static void
by_the_end_of_the_queue(uint64_t inode UNUSED)
{
	struct daemon d = { .state = &w.s };
	struct msg msg = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { "\2\0\0\0", 4 } };

	cr_expect_eq(control_ops.told(&d, &msg), 0);
	world_run(&w);
	msg.u.HAND_OVER.queues.len = 0;
	cr_expect_eq(control_ops.told(&d, &msg), 0);
	world_run(&w);
}

/* Queue 2 tries it, dies, and is evacuated. */
static void
try_there(uint64_t inode)
{
	struct world there = { 0 };

	cr_assert_eq(spool_open(&there.s.sp, &spool_sys_real, w.dir, 2), 0);
	cr_assert_eq(world_where(&there, inode), SPOOL_INCOMING);
	cr_assert_eq(reason_add(&there.s.sp, SPOOL_DEFER, inode,
			 &(struct reason){ .dsn = "4.0.0",
			     .relay = "none",
			     .address = "r0@d0.test",
			     .text = "there" }),
	    0);
	cr_assert_eq(
	    spool_hand_over(&there.s.sp, &w.s.sp, SPOOL_INCOMING, inode), 0);
	spool_close(&there.s.sp);
}

/* mutation: queue-send/operators/spread.c: forget() leaves s->began_wall;
 * queue-send/evacuation/evacuate.c: moved() does. */
Test(first, D24_an_attempt_of_another_queue_is_found)
{
	static void (*const give[])(
	    uint64_t inode) = { by_an_operator, by_the_end_of_the_queue };
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	uint64_t inode;
	size_t i;

	cr_assert_eq(spool_create(w.dir, 2, 1, &owner), 0);
	for (i = 0; i < ARRAY_LEN(give); i++) {
		world_again(&w);
		inode = world_file(&w, "d", 1, 0);
		give[i](inode);
		try_there(inode);
		world_offer(&w, SPOOL_INCOMING, inode);
		world_run(&w);
		cr_expect_eq(world_deliver(&w, AGENT_SENT), 1, "%zu", i);
		cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
		cr_expect_eq(world_count(&w, SPOOL_DEFER), 0, "%zu", i);
	}
}
