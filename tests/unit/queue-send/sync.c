/* Marks are on disk before the move that makes them matter, and nothing waits
 * for the disk meanwhile. */
#include "tests/unit/queue-send/world.h"

#include "base/io.h"
#include "queue-send/message/path.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANY 160

static struct world w;

static void
start(void)
{
	world_start(&w, "mark_sync_interval = 1h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(sync, .init = start, .fini = end, .timeout = 60);

static void
take(struct world_delivery *delivery)
{
	cr_assert(world_take(&w, delivery));
	close(delivery->fd);
}

/* Two recipients, the first with this outcome and the second with that. */
static uint64_t
two(enum agent_outcome first, enum agent_outcome second)
{
	const enum agent_outcome outcomes[] = { first, second };
	uint64_t inode = world_message(&w, "d", 2);
	struct world_delivery delivery;
	int i;

	for (i = 0; i < 2; i++) {
		take(&delivery);
		if (i == 0)
			(void)world_trace();
		world_result(&w, &delivery, 0, outcomes[i]);
		world_done(&w, &delivery);
		world_run(&w);
	}
	return inode;
}

/* Is the last of these letters before the first of those? */
static bool
before(const char *trace, char these, char those)
{
	const char *last = strrchr(trace, these);
	const char *first = strchr(trace, those);

	return last != NULL && first != NULL && last < first;
}

/* mutation: queue-send/message/leave.c: needs_marks is false in each row of
 * leave[].
 */
Test(sync, D32_marks_are_synced_before_the_move_to_deferred)
{
	uint64_t inode = two(AGENT_SENT, AGENT_DEFERRED);
	const char *trace = world_trace();

	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect(before(trace, 'p', 'f'), "%s", trace);
	cr_expect(before(trace, 'f', 'r'), "%s", trace);
	cr_expect_null(strchr(trace, 's'), "%s", trace);
}

/* mutation: queue-send/message/sync.c: take_files() leaves the reasons out. */
Test(sync, D32_reasons_are_synced_with_the_marks_before_a_report)
{
	uint64_t inode = two(AGENT_SENT, AGENT_FAILED);
	const char *trace = world_trace();

	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
	/* Another message's reasons go; reasons and marks; the report, its
	 * commit, its move. */
	cr_expect_not_null(strstr(trace, "puapffafafr"), "%s", trace);
}

/* mutation: queue-send/message/sync.c: sync_is_wanting() looks at no epoch. */
Test(sync, D32_what_has_no_marks_and_what_is_removed_waits_for_no_sync)
{
	static const enum agent_outcome outcomes[] = { AGENT_SENT,
		AGENT_DEFERRED };
	struct world_delivery delivery;
	size_t i;

	for (i = 0; i < ARRAY_LEN(outcomes); i++) {
		world_message(&w, "d", 1);
		take(&delivery);
		(void)world_trace();
		world_result(&w, &delivery, 0, outcomes[i]);
		world_done(&w, &delivery);
		world_run(&w);
		cr_expect_null(strpbrk(world_trace(), "fs"), "%zu", i);
		cr_expect_eq(w.s.active, 0);
	}
}

/* mutation: queue-send/message/leave.c: [FATE_ASIDE] needs no marks. */
Test(sync, D32_what_is_put_aside_is_synced_too)
{
	static const enum message_fate fates[] = { FATE_POISON, FATE_ASIDE,
		FATE_UNREADABLE };
	static const enum spool_dir dirs[] = { SPOOL_HOLD, SPOOL_INCOMING,
		SPOOL_DEFERRED };
	struct world_delivery delivery;
	struct message *m;
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(fates); i++) {
		inode = world_message(&w, "d", 2);
		take(&delivery);
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_run(&w);
		(void)world_trace();
		m = messages_find(&w.s.messages, inode);
		message_decide(m, fates[i]);
		world_done(&w, &delivery);
		take(&delivery);
		world_done(&w, &delivery);
		world_run(&w);
		cr_expect_eq(world_where(&w, inode), dirs[i], "%zu", i);
		cr_expect(before(world_trace(), 'f', 'r'), "%zu", i);
	}
}

/* mutation: queue-send/message/sync.c: failed() puts the message back to
 * UNSYNCED.
 */
Test(sync, D7_a_sync_that_fails_is_not_tried_again_as_proof)
{
	uint64_t inode;
	const char *trace;

	world_fail(CALL_FSYNC, EIO, 1);
	inode = two(AGENT_SENT, AGENT_FAILED);
	trace = world_trace();
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(w.s.health.errors, 1);
	cr_expect_not(w.s.health.read_only);
	cr_expect_not_null(strchr(trace, 'f'));
	cr_expect_eq(strchr(trace, 'f'), strrchr(trace, 'f'), "%s", trace);
}

/* The interval has passed since the first change. */
static void
pass_interval(void)
{
	cr_assert_gt(w.s.sync.changed_at, 0);
	w.s.sync.changed_at -= w.conf.mark_sync_interval;
	send_wake(&w.s);
	world_run(&w);
}

/* mutation: queue-send/message/results.c: write_mark() tells nobody of the
 * mark.
 */
Test(sync, D32_marks_of_a_message_that_stays_are_synced_in_time)
{
	uint64_t inode = world_message(&w, "d", 2);
	struct world_delivery delivery[2];

	take(&delivery[0]);
	take(&delivery[1]);
	world_result(&w, &delivery[0], 0, AGENT_SENT);
	world_done(&w, &delivery[0]);
	world_run(&w);
	(void)world_trace();
	pass_interval();
	cr_expect_str_eq(world_trace(), "s");
	cr_expect_eq(w.s.sync.changed_at, 0);
	/* Nothing of its own is left to sync. */
	world_result(&w, &delivery[1], 0, AGENT_DEFERRED);
	world_done(&w, &delivery[1]);
	world_run(&w);
	cr_expect_null(strpbrk(world_trace(), "fs"));
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* mutation: queue-send/message/removal.c: ended() does not tell. */
Test(sync, D32_a_removal_is_synced_in_time)
{
	world_message(&w, "d", 1);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	(void)world_trace();
	pass_interval();
	cr_expect_str_eq(world_trace(), "s");
}

/* mutation: queue-send/message/sync.c: whole_is_done() sets distrusted nowhere.
 */
Test(sync, D7_after_a_failed_sync_of_the_whole_each_message_proves_its_own)
{
	uint64_t inode = world_message(&w, "d", 2);
	struct world_delivery delivery[2];
	int i;

	take(&delivery[0]);
	take(&delivery[1]);
	for (i = 0; i < 2; i++) { /* the second one says that all is well */
		world_fail(i == 0 ? CALL_SYNCFS : CALL_NONE, EIO, 1);
		if (i == 0)
			world_result(&w, &delivery[0], 0, AGENT_SENT);
		else
			sync_changed(&w.s);
		world_run(&w);
		pass_interval();
	}
	cr_expect_eq(w.s.health.errors, 1);
	(void)world_trace();
	world_done(&w, &delivery[0]);
	world_result(&w, &delivery[1], 0, AGENT_DEFERRED);
	world_done(&w, &delivery[1]);
	world_run(&w);
	cr_expect(before(world_trace(), 'f', 'r'));
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* ---- with threads ---- */

static int gate[2];

static int
slow_fsync(int fd)
{
	char c;

	(void)!read(gate[0], &c, 1);
	return fsync(fd);
}

static int
slow_syncfs(int fd)
{
	char c;

	(void)!read(gate[0], &c, 1);
	return syncfs(fd);
}

static void
start_threads(void)
{
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	w.threads[DISK_SYNC] = 1;
	world_start(&w, "mark_sync_interval = 1h\n");
	world_sys.fsync = slow_fsync;
	world_sys.syncfs = slow_syncfs;
}

static void
end_threads(void)
{
	close(gate[1]); /* and nobody waits any more */
	world_end(&w);
	close(gate[0]);
}

TestSuite(
    sync_threads, .init = start_threads, .fini = end_threads, .timeout = 60);

static void
await_done(void)
{
	struct pollfd p = { .fd = executor_fd(w.s.disk.executor, DISK_SYNC),
		.events = POLLIN };

	cr_assert_eq(poll(&p, 1, 120000), 1);
	world_run(&w);
}

static void
await_sync(void)
{
	cr_assert_gt(w.s.sync.tasks, 0);
	await_done();
}

/* mutation: queue-send/control.c: threads stays 0. */
Test(sync_threads, D32_nobody_waits_for_a_disk_that_syncs_slowly)
{
	uint64_t slow = two(AGENT_SENT, AGENT_DEFERRED);

	cr_assert_eq(world_where(&w, slow), SPOOL_ACTIVE);
	cr_assert_eq(messages_to_leave(&w.s.messages), 1, "a stop waits");
	world_message(&w, "e", 1);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_assert_eq(w.s.active, 1);
	cr_assert_eq(write(gate[1], "", 1), 1);
	await_sync();
	cr_assert_eq(world_where(&w, slow), SPOOL_DEFERRED);
	cr_assert_eq(messages_to_leave(&w.s.messages), 0);
}

/* The mark of the second delivery may be behind what the sync has written.
 * mutation: queue-send/message/sync.c: start_whole() takes the next epoch. */
Test(sync_threads, D32_a_sync_of_the_whole_proves_no_mark_made_meanwhile)
{
	const uint64_t inode = world_message(&w, "d", 3);
	struct world_delivery delivery[3];
	int i;

	for (i = 0; i < 3; i++)
		take(&delivery[i]);
	for (i = 0; i < 3; i++) {
		world_result(
		    &w, &delivery[i], 0, i < 2 ? AGENT_SENT : AGENT_DEFERRED);
		world_done(&w, &delivery[i]);
		world_run(&w);
		if (i == 0)
			pass_interval(); /* the sync begins */
		if (i == 1) {
			cr_assert_eq(write(gate[1], "", 1), 1);
			await_done();
		}
	}
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE, "not synced yet");
	cr_assert_eq(write(gate[1], "", 1), 1);
	await_sync();
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* mutation: queue-send/message/sync.c: whole_is_done() forgets changes. */
Test(sync_threads, D32_a_mark_made_during_a_sync_has_the_next_one)
{
	const uint64_t inode = world_message(&w, "d", 3);
	struct world_delivery delivery[2];
	int i;

	for (i = 0; i < 2; i++)
		take(&delivery[i]);
	for (i = 0; i < 2; i++) {
		world_result(&w, &delivery[i], 0, AGENT_SENT);
		world_run(&w);
		if (i == 0)
			pass_interval(); /* the sync begins */
	}
	cr_assert_eq(write(gate[1], "", 1), 1);
	await_done();
	pass_interval();
	cr_assert_eq(write(gate[1], "", 1), 1);
	await_done();
	cr_expect_not(
	    sync_is_wanting(&w.s, messages_find(&w.s.messages, inode)));
}

/* mutation: queue-send/message/sync.c: one_is_done() compares no serial. */
Test(sync_threads, D22_a_sync_that_ends_says_nothing_of_another_message)
{
	const struct msg_MESSAGE frame = {
		.inode = two(AGENT_SENT, AGENT_DEFERRED),
		.dir = SPOOL_INCOMING,
		.arrival_wall = 12345,
		.queue = 1,
		.nonce = 7,
		.recipients = 1,
		.pending = 1,
		.sender = MSG_S(""),
	};
	struct message *other;

	w.s.admission_blocked_until = USEC_NEVER; /* it stays offered */
	active_forget(&w.s, messages_find(&w.s.messages, frame.inode));
	other = messages_add(&w.s.messages, &frame);
	cr_assert_not_null(other);
	cr_assert_eq(write(gate[1], "", 1), 1);
	await_sync();
	cr_assert_eq(w.s.sync.tasks, 0);
	cr_assert_eq(other->state, STATE_OFFERED_INCOMING);
}

/* mutation: queue-send/message/sync.c: MANY is a million. */
Test(sync_threads, D32_many_that_leave_are_synced_at_once)
{
	struct world_delivery delivery[2];
	int i;

	for (i = 0; i < MANY; i++)
		world_message(&w, "d", 2);
	while (world_take(&w, &delivery[0])) {
		close(delivery[0].fd);
		world_result(&w, &delivery[0], 0,
		    strncmp(delivery[0].first, "r0", 2) == 0 ? AGENT_SENT
							     : AGENT_DEFERRED);
		world_done(&w, &delivery[0]);
		world_run(&w);
	}
	cr_expect_leq(w.s.sync.tasks, 64);
	close(gate[1]);
	gate[1] = -1;
	while (w.s.active > 0)
		await_sync();
	cr_expect_eq(world_count(&w, SPOOL_DEFERRED), MANY);
	cr_expect_gt(w.s.sync.synced, 0);
}
