/* What goes wrong under queue-send, by the rows of the catalogue. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/message/path.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(faults, .init = start, .fini = end, .timeout = 60);

static void
take(struct world_delivery *delivery)
{
	cr_assert(world_take(&w, delivery));
	close(delivery->fd);
}

static void
probe_now(void)
{
	w.s.health.probe_at = 0;
	w.s.record_at = 0;
	w.s.finish_at = w.s.stuck_at = 0;
	w.s.admission_blocked_until = 0;
	send_wake(&w.s);
	world_run(&w);
}

Test(faults, D3_no_recipient_fails_without_its_reason_on_disk)
{
	uint64_t inode = world_message(&w, "d", 1);
	struct world_delivery delivery;

	take(&delivery);
	world_fail(CALL_WRITE, ENOSPC, 1);
	world_result(&w, &delivery, 0, AGENT_FAILED);
	world_done(&w, &delivery);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_assert_str_eq(world_marks(&w, SPOOL_DEFERRED, inode), ".");
	cr_assert_eq(w.s.counters.failed, 0);
	cr_assert_not(w.s.health.read_only);
	world_message(&w, "d", 1);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1, "others go on");
}

Test(faults, D4_a_delivery_that_cannot_be_recorded_is_kept_in_memory)
{
	uint64_t inode = world_message(&w, "d", 1);
	struct world_delivery delivery;

	take(&delivery);
	world_fail(CALL_PWRITE, ENOSPC, 0);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_assert(w.s.health.read_only);
	cr_assert_eq(w.s.counters.delivered, 0, "not told before it is marked");
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	world_message(&w, "e", 1);
	cr_assert_not(world_take(&w, &delivery), "no delivery starts");
	probe_now();
	cr_assert(w.s.health.read_only);
	world_fail(CALL_NONE, 0, 0);
	probe_now();
	cr_assert_not(w.s.health.read_only);
	cr_assert_eq(w.s.counters.delivered, 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1, "and it goes on");
}

Test(faults, D7_one_failed_mark_stops_its_message_three_stop_all)
{
	uint64_t inode[4];
	struct world_delivery delivery[4];
	int i;

	for (i = 0; i < 4; i++)
		inode[i] = world_message(&w, "d", 1);
	for (i = 0; i < 4; i++)
		take(&delivery[i]);
	for (i = 0; i < 3; i++) {
		cr_assert_not(w.s.health.read_only, "%d", i);
		world_fail(CALL_PWRITE, EIO, 1);
		world_result(&w, &delivery[i], 0, AGENT_SENT);
		world_done(&w, &delivery[i]);
		world_run(&w);
		cr_assert_eq(world_where(&w, inode[i]), SPOOL_ACTIVE);
	}
	cr_assert(w.s.health.read_only);
	cr_assert_eq(w.s.health.errors, 3);
	/* What runs may end. */
	world_result(&w, &delivery[3], 0, AGENT_SENT);
	world_done(&w, &delivery[3]);
	world_run(&w);
	cr_assert_eq(w.s.counters.delivered, 1);
	probe_now();
	cr_assert_eq(w.s.counters.delivered, 4);
	for (i = 0; i < 4; i++)
		cr_assert_eq(world_where(&w, inode[i]), SPOOL_NDIRS);
}

Test(faults, D9_read_only_no_delivery_starts_and_it_recovers)
{
	uint64_t inode;
	struct world_delivery delivery;

	world_fail(CALL_OPEN, EROFS, 0);
	inode = world_message(&w, "d", 2);
	cr_assert_not(world_take(&w, &delivery));
	cr_assert(w.s.health.read_only);
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	probe_now();
	cr_assert(w.s.health.read_only);
	world_fail(CALL_NONE, 0, 0);
	probe_now();
	cr_assert_not(w.s.health.read_only);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 2);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
}

/* As D4: what was under way when the disk went is told once it can be written,
 * and delivered once. mutation: queue-send/message/results.c: record() tells
 * although the mark could not be written. */
Test(faults, D6_D9_a_delivery_under_way_is_recorded_when_it_can_be)
{
	static const int errors[] = { EROFS, EDQUOT };
	struct world_delivery delivery, none;
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++) {
		inode = world_message(&w, "d", 1);
		take(&delivery);
		world_fail(CALL_PWRITE, errors[i], 0);
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_done(&w, &delivery);
		world_run(&w);
		cr_expect(w.s.health.read_only);
		cr_expect_eq(w.s.counters.delivered, i);
		cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
		cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), ".");
		world_message(&w, "e", 1);
		cr_expect_not(world_take(&w, &none), "nothing starts");
		world_fail(CALL_NONE, 0, 0);
		probe_now();
		cr_expect_eq(w.s.counters.delivered, i + 1);
		cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
		cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	}
}

/* mutation: queue-send/message/results.c: fail() fails although the reason is
 * not on disk. */
Test(faults, D6_no_quota_for_a_reason_fails_nobody)
{
	uint64_t inode = world_message(&w, "d", 1);
	struct world_delivery delivery;

	take(&delivery);
	world_fail(CALL_WRITE, EDQUOT, 1);
	world_result(&w, &delivery, 0, AGENT_FAILED);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(w.s.counters.failed, 0);
	cr_expect_not(w.s.health.read_only);
}

Test(faults, D2_what_cannot_be_moved_waits_where_it_is)
{
	static const int errors[] = { ENOSPC, EROFS, EIO };
	struct world_delivery delivery;
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++) {
		inode = world_message(&w, "d", 1);
		take(&delivery);
		world_fail(CALL_RENAME, errors[i], 1);
		world_result(&w, &delivery, 0, AGENT_DEFERRED);
		world_done(&w, &delivery);
		world_run(&w);
		cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
		probe_now();
		cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	}
	/* Into the active queue. */
	world_fail(CALL_RENAME, ENOSPC, 1);
	inode = world_message(&w, "d", 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	probe_now();
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
}

Test(faults, D8_one_that_cannot_be_moved_holds_up_no_other)
{
	uint64_t stuck = world_message(&w, "d", 1);
	uint64_t other = world_message(&w, "e", 1);

	world_fail(CALL_RENAME, EACCES, 1);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 2);
	world_run(&w);
	cr_expect_eq(world_where(&w, stuck), SPOOL_ACTIVE);
	cr_expect_eq(world_where(&w, other), SPOOL_DEFERRED);
	probe_now();
	cr_expect_eq(world_where(&w, stuck), SPOOL_DEFERRED);
	cr_expect_eq(w.s.active, 0);
}

Test(faults, D8_a_message_that_cannot_be_opened_is_deferred)
{
	uint64_t inode;

	world_fail(CALL_OPEN, EIO, 1);
	inode = world_message(&w, "d", 3);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_assert_str_eq(world_marks(&w, SPOOL_DEFERRED, inode), "...");
	cr_assert_eq(w.s.active, 0);
	cr_assert_eq(sched_figures(w.s.sched).recipients, 0);
	cr_assert_not(w.s.health.read_only);
	cr_assert_eq(w.s.due.count, 1);
}

static void
overwrite(enum spool_dir dir, uint64_t inode, off_t off, const char *data)
{
	int fd = spool_open_file(&w.s.sp, dir, inode, O_RDWR);

	cr_assert_geq(fd, 0);
	cr_assert_eq(
	    pwrite(fd, data, strlen(data), off), (ssize_t)strlen(data));
	close(fd);
}

Test(faults, D14_damage_after_the_check_goes_to_corrupt)
{
	uint64_t inode = world_file(&w, "d", 3, 0);
	uint64_t next;

	/* todo-proc saw it whole; the recipients are broken before we read. */
	world_offer(&w, SPOOL_INCOMING, inode);
	overwrite(SPOOL_INCOMING, inode,
	    16 + 5 + 4 + (off_t)strlen("s@here.test"), "XX");
	next = world_file(&w, "e", 1, 0);
	world_offer(&w, SPOOL_INCOMING, next);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_CORRUPT);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1, "its neighbour");
	cr_assert_eq(world_where(&w, next), SPOOL_NDIRS);
}

/* As after a restore: a name in corrupt/ that is not the inode of its file. */
Test(faults, D14_a_name_that_corrupt_has_already_stops_nothing)
{
	uint64_t inode = world_file(&w, "d", 3, 0);
	char name[QUEUE_FILE_MAX];
	int fd;

	queue_file_name(inode, name);
	fd = openat(w.s.sp.dir[SPOOL_CORRUPT], name,
	    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	world_offer(&w, SPOOL_INCOMING, inode);
	overwrite(SPOOL_INCOMING, inode,
	    16 + 5 + 4 + (off_t)strlen("s@here.test"), "XX");
	world_run(&w);
	cr_assert_eq(w.s.active, 0);
	cr_assert_eq(w.s.health.errors, 0);
	cr_assert_eq(world_count(&w, SPOOL_CORRUPT), 2);
}

Test(faults, D18_a_file_that_vanishes_while_it_is_delivered)
{
	static const enum agent_outcome outcomes[] = { AGENT_SENT,
		AGENT_DEFERRED, AGENT_FAILED };
	struct world_delivery delivery;
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(outcomes); i++) {
		inode = world_message(&w, "d", 1);
		cr_assert(world_take(&w, &delivery));
		cr_assert_eq(spool_remove(&w.s.sp, SPOOL_ACTIVE, inode), 0);
		close(delivery.fd);
		world_result(&w, &delivery, 0, outcomes[i]);
		world_done(&w, &delivery);
		world_run(&w);
		cr_assert_eq(w.s.active, 0);
		cr_assert_eq(w.s.due.count, 0);
		cr_assert_eq(world_count(&w, SPOOL_DEFER), 0);
		cr_assert_eq(world_count(&w, SPOOL_BOUNCE), 0);
	}
	/* While it waits for its turn. */
	close(w.agent);
	w.agent = -1;
	inode = world_message(&w, "d", 1);
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_ACTIVE, inode), 0);
	world_link_agent(&w);
	world_run(&w);
	cr_assert_not(world_take(&w, &delivery));
	cr_assert_eq(w.s.active, 0);
	/* Before it came in. */
	inode = world_file(&w, "d", 1, 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_INCOMING, inode), 0);
	world_run(&w);
	cr_assert_eq(w.s.active, 0);
	cr_assert_null(messages_find(&w.s.messages, inode));
}

Test(faults, D18_reasons_stay_with_a_file_that_was_moved_by_hand)
{
	uint64_t inode = world_message(&w, "d", 2);
	struct world_delivery delivery;

	take(&delivery);
	world_result(&w, &delivery, 0, AGENT_FAILED);
	world_run(&w);
	cr_assert_eq(spool_move(&w.s.sp, SPOOL_ACTIVE, SPOOL_HOLD, inode), 0);
	world_done(&w, &delivery);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_assert_eq(w.s.active, 0);
	cr_assert_str_eq(
	    world_reason(&w, SPOOL_BOUNCE, inode, 0), "5.1.1 as told");
}

static void
offer_as(uint64_t inode, usec_t arrival, uint8_t nonce)
{
	world_send(w.todo,
	    &(struct msg){ .type = MSG_MESSAGE,
		.u.MESSAGE = {
		    .inode = inode,
		    .dir = SPOOL_INCOMING,
		    .arrival_wall = arrival,
		    .queue = 1,
		    .nonce = nonce,
		    .recipients = 1,
		    .pending = 1,
		    .sender = MSG_S(""),
		} });
	w.credit--;
	world_run(&w);
}

Test(faults, D22_the_same_inode_is_another_message)
{
	struct world_delivery delivery;
	uint64_t inode;

	/* An offer whose file is by now another message: given back. */
	inode = world_file(&w, "d", 1, 0);
	offer_as(inode, 12345, 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	cr_assert_eq(w.scans, 1);
	cr_assert_eq(w.s.active, 0);
	/* The same message twice: once. */
	world_offer(&w, SPOOL_INCOMING, inode);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert_eq(w.s.active, 1);
	take(&delivery);
	cr_assert_not(world_take(&w, &delivery));
	/* Another one of an inode that is in use: cannot be. */
	offer_as(inode, 99, 9);
	cr_assert_eq(w.s.active, 1);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_assert_eq(w.s.counters.delivered, 1);
}

/* mutation: queue-send/agents/offers.c: is_new() without nunrecorded. */
Test(faults, D22_a_message_with_results_to_record_is_not_given_up)
{
	const struct report report = { .address = "r0@d0.test",
		.outcome = AGENT_SENT,
		.dsn = "2.0.0",
		.relay = "none",
		.text = "" };
	struct message *m;
	uint64_t inode;

	close(w.agent);
	w.agent = -1;
	inode = world_message(&w, "d", 1);
	m = messages_find(&w.s.messages, inode);
	cr_assert_not_null(m);
	world_fail(CALL_PWRITE, EIO, 1);
	results_apply(&w.s, m, &report);
	cr_assert_eq(m->nunrecorded, 1);
	messages_close_resting(&w.s.messages);
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_ACTIVE, inode), 0);
	offer_as(inode, 777, 7);
	cr_assert_eq(messages_find(&w.s.messages, inode), m);
	cr_expect_eq(w.scans, 1, "the other one is found later");
	probe_now();
	cr_expect_eq(w.s.counters.delivered, 1);
	cr_expect(STAILQ_EMPTY(&w.s.unrecorded));
}

Test(faults, D22_a_waiting_message_gives_way_to_the_new_one)
{
	uint64_t inode;
	const struct message *m;
	char id[2][QUEUE_ID_SIZE];
	struct world_delivery delivery;

	close(w.agent);
	w.agent = -1;
	inode = world_message(&w, "d", 1);
	message_id(messages_find(&w.s.messages, inode), id[0]);
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_ACTIVE, inode), 0);
	/* The next file gets the number on file systems that reuse them; where
	 * not, the offer alone says so. */
	if (world_file(&w, "e", 1, 0) != inode) {
		offer_as(inode, 777, 7);
		cr_assert_eq(w.s.active, 0);
		return;
	}
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	m = messages_find(&w.s.messages, inode);
	cr_assert_not_null(m);
	message_id(m, id[1]);
	cr_assert_str_neq(id[0], id[1]);
	cr_assert_eq(w.s.active, 1);
	world_link_agent(&w);
	world_run(&w);
	take(&delivery);
	cr_assert_str_eq(delivery.first, "r0@e0.test");
}

/* Nothing else would look at it before the next start. */
Test(faults, D24_what_could_not_be_moved_back_at_start_is_tried_again)
{
	uint64_t stray = world_file(&w, "d", 1, 0);
	uint64_t ours = world_message(&w, "e", 1);
	struct world_delivery delivery;

	take(&delivery);
	cr_assert_eq(
	    spool_move(&w.s.sp, SPOOL_INCOMING, SPOOL_ACTIVE, stray), 0);
	world_fail(CALL_RENAME, EROFS, 0);
	deferred_walk(&w.s);
	send_wake(&w.s);
	world_run(&w);
	cr_assert_eq(world_where(&w, stray), SPOOL_ACTIVE);
	world_fail(CALL_NONE, 0, 0);
	w.s.stray_at = 0;
	w.scans = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_assert_eq(world_where(&w, stray), SPOOL_INCOMING);
	cr_assert_eq(w.scans, 1, "todo-proc is asked to look");
	cr_assert_eq(world_where(&w, ours), SPOOL_ACTIVE);
}
