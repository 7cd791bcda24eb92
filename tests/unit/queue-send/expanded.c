/* Messages that an agent expands: its marks, and its places in prepared/. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"
#include "spool/prepared.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static struct world w;

static void
start(void)
{
	world_start(&w, "error_interval = 1h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(expanded, .init = start, .fini = end, .timeout = 60);

static void
mark_done(uint64_t inode)
{
	struct queue_rcpt rcpt;
	struct queue_file file;
	int fd = spool_open_file(&w.s.sp, SPOOL_ACTIVE, inode, O_RDWR);

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(prepared_find_rcpt(fd, &file, 0, &rcpt), 0);
	cr_assert_eq(
	    queue_file_mark(w.s.sp.sys, fd, rcpt.offset, RCPT_DONE), 0);
	close(fd);
}

/* The child of an agent marks a recipient that it expanded, and may die before
 * it says so.
 * mutation: queue-send/message/results.c: is_marked_done() is always false. */
Test(expanded, D35_a_recipient_that_is_marked_done_never_fails)
{
	static const enum agent_outcome outcomes[] = { AGENT_FAILED,
		AGENT_DEFERRED };
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(outcomes); i++) {
		inode = world_file(&w, "d", 1, 6 * 86400);
		w.s.expire_after = 0;
		world_offer(&w, SPOOL_INCOMING, inode);
		world_run(&w);
		mark_done(inode);
		cr_assert_eq(world_deliver(&w, outcomes[i]), 1);
		cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS, "removed");
	}
	cr_expect_eq(w.s.counters.failed + w.s.counters.expired, 0);
	cr_expect_eq(w.s.counters.delivered, 2);
}

/* A child that was killed, and lives on in a call that nothing ends, has the
 * lock of its message.
 * mutation: queue-send/message/results.c: take_lock() takes none. */
Test(expanded, D35_what_a_child_may_still_mark_does_not_expire)
{
	uint64_t inode = world_file(&w, "d", 1, 6 * 86400);
	struct world_delivery delivery;
	struct report report = { .address = "r0@d0.test",
		.outcome = AGENT_DEFERRED,
		.dsn = "4.3.0",
		.relay = "none",
		.text = "took too long",
		.kind = AGENT_ALIAS };
	struct message *m;
	int child;

	w.s.expire_after = 0;
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	world_take_one(&w, &delivery);
	m = messages_find(&w.s.messages, inode);
	report.offset = m->file.rcpt_off;
	child = spool_open_file(&w.s.sp, SPOOL_ACTIVE, inode, O_RDWR);
	cr_assert_eq(prepared_lock(child), 0);
	results_apply(&w.s, m, &report);
	cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), ".");
	cr_expect_eq(m->deferred, 1);
	close(child);
	results_apply(&w.s, m, &report);
	cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), "F");
	/* The lock is free again. */
	child = spool_open_file(&w.s.sp, SPOOL_ACTIVE, inode, O_RDONLY);
	cr_expect_eq(prepared_lock(child), 0);
	close(child);
}

/* Nothing was written of a first result, and the next one finds no reason of
 * another message of the inode.
 * mutation: queue-send/message/record_task.c: record_work() clears nothing. */
Test(expanded, D35_a_result_that_is_not_written_begins_the_reasons_all_the_same)
{
	const struct reason others = { .dsn = "5.1.1",
		.relay = "none",
		.address = "other@q.test",
		.text = "of another message" };
	const uint64_t inode = world_file(&w, "d", 1, 0);
	struct report report = { .address = "r0@d0.test",
		.outcome = AGENT_DEFERRED,
		.dsn = "4.3.0",
		.relay = "none",
		.text = "took too long",
		.kind = AGENT_ALIAS };
	struct world_delivery delivery;
	struct message *m;
	int child;

	cr_assert_eq(reason_add(&w.s.sp, SPOOL_BOUNCE, inode, &others), 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	world_take_one(&w, &delivery);
	m = messages_find(&w.s.messages, inode);
	cr_assert(m->first);
	m->expires = true;
	report.offset = m->file.rcpt_off;
	child = spool_open_file(&w.s.sp, SPOOL_ACTIVE, inode, O_RDWR);
	cr_assert_eq(prepared_lock(child), 0);
	results_apply(&w.s, m, &report);
	cr_expect_eq(m->deferred, 1);
	close(child);
	cr_expect_str_eq(world_reason(&w, SPOOL_BOUNCE, inode, 0), "");
}

/* Deferred for its agent's death, with the mark of the expansion: nothing is
 * left to do at the next attempt. */
Test(expanded, D35_a_mark_that_nobody_reported_is_found_at_the_next_attempt)
{
	uint64_t inode = world_message(&w, "d", 1);

	mark_done(inode);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_str_eq(world_marks(&w, SPOOL_DEFERRED, inode), "D");
	deferred_flush(&w.s);
	send_wake(&w.s);
	world_run(&w);
	cr_assert_eq(w.nprepared, 1);
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS, "removed");
}

static void
prepare(const struct queue_file *parent, uint64_t inode)
{
	const struct prepared p = { .parent = {
					.arrival_wall = parent->arrival_wall,
					.nonce = parent->nonce,
					.queue = parent->queue,
					.inode = inode } };
	char name[PREPARED_NAME_MAX];
	struct accept_options opt = { .dir = SPOOL_PREPARED, .name = name };
	struct queue_id id;
	struct accept a;

	prepared_name(&p, name);
	cr_assert_eq(accept_begin(&a, &w.s.sp, &opt, clock_wall(), 0), 0);
	cr_assert_eq(queue_file_add_sender(&a.writer, "", 0), 0);
	cr_assert_eq(queue_file_add_rcpt(&a.writer, "a", 1), 0);
	cr_assert_eq(accept_commit(&a, &id), 0);
	accept_end(&a);
}

static void
hand_over(void)
{
	struct daemon d = { .state = &w.s };
	const struct msg msg = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { "\2\0\0\0", 4 } };

	cr_expect_eq(control_ops.told(&d, &msg), 0);
	world_run(&w);
}

/* mutation: queue-send/evacuation/evacuate.c: take_file() does not settle, or
 * not lock. */
Test(expanded, D35_what_is_prepared_is_settled_before_its_parent_moves)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	struct queue_file file;
	uint64_t inode;
	int fd;

	cr_assert_eq(spool_create(w.dir, 2, 5, &owner), 0);
	inode = world_file(&w, "x", 2, 0);
	fd = spool_open_file(&w.s.sp, SPOOL_INCOMING, inode, O_RDONLY);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	prepare(&file, inode);
	cr_assert_eq(prepared_lock(fd), 0);
	hand_over();
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING, "expanded");
	cr_expect_eq(world_count(&w, SPOOL_PREPARED), 1);
	close(fd);
	hand_over();
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS, "moved");
	cr_expect_eq(world_count(&w, SPOOL_PREPARED), 0, "was pending");
}

/* mutation: replies_on_result() asks for no scan. */
Test(expanded, what_an_agent_expanded_is_looked_for)
{
	char path[128], conf[256];
	struct world_delivery delivery;
	uint32_t scans;
	FILE *f;

	snprintf(path, sizeof(path), "%s/aliases", w.dir);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs("team@a.test: bob@b.test\n", f);
	cr_assert_eq(fclose(f), 0);
	snprintf(conf, sizeof(conf), "alias_file = %s\n", path);
	world_reload(&w, conf);
	world_message(&w, "team@a.test", 1);
	scans = w.scans;
	cr_assert(world_take(&w, &delivery));
	cr_assert_str_eq(delivery.nexthop, "team@a.test");
	close(delivery.fd);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.scans, scans + 1);
}
