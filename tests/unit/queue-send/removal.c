/* What is done is removed behind everything else, once, and whatever happens
 * meanwhile. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/message/path.h"
#include "queue-send/evacuation/evacuation.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

static struct world w;

/* ---- a death at each step ---- */

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

TestSuite(removal, .init = start, .fini = end, .timeout = 120);

/* A message that ends in one of these ways, after an attempt of which it has
 * reasons in defer/, or without one. */
static const struct ending {
	const char *name;
	enum agent_outcome outcome;
	uint8_t notify;
	bool deferred_before;
	uint32_t reports;
} endings[] = {
	{ "delivered", AGENT_SENT, 0, false, 0 },
	{ "delivered, deferred before", AGENT_SENT, 0, true, 0 },
	{ "told", AGENT_SENT, DSN_SUCCESS, false, 1 },
	{ "told, deferred before", AGENT_SENT, DSN_SUCCESS, true, 1 },
	{ "failed", AGENT_FAILED, 0, false, 1 },
	{ "failed, deferred before", AGENT_FAILED, 0, true, 1 },
};

/* The message has its result, and its delivery is about to end. */
static uint64_t
bring_to_its_end(const struct ending *e, struct world_delivery *delivery)
{
	uint64_t inode;

	w.notify = e->notify;
	inode = world_message(&w, "d", 1);
	if (e->deferred_before) {
		cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
		world_offer_again(&w, inode);
	}
	world_take_one(&w, delivery);
	world_result(&w, delivery, 0, e->outcome);
	world_run(&w);
	return inode;
}

/* The calls up to `nth` are made, and none after. False: there are fewer. */
static bool
die_at(const struct ending *e, unsigned nth)
{
	struct world_delivery delivery;
	uint64_t inode = bring_to_its_end(e, &delivery), report;
	bool cut;

	world_cut(nth);
	world_done(&w, &delivery);
	world_run(&w);
	cut = world_was_cut();
	world_again(&w);
	world_settle(&w);
	world_offer_again(&w, inode);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0,
	    "%s, step %u: delivered again", e->name, nth);
	cr_expect_eq(world_clear_incoming(&w, &report), e->reports,
	    "%s, step %u: reports", e->name, nth);
	cr_expect_eq(
	    world_where(&w, inode), SPOOL_NDIRS, "%s, step %u", e->name, nth);
	world_is_empty(&w);
	return cut;
}

/* mutation: queue-send/message/removal.c: bounce/ goes first. */
Test(removal, D40_a_death_at_any_step_repeats_nothing)
{
	unsigned n;
	size_t i;

	for (i = 0; i < ARRAY_LEN(endings); i++) {
		for (n = 1; die_at(&endings[i], n); n++)
			;
		cr_expect_geq(n, 2u, "%s", endings[i].name);
	}
}

static void
probe(void)
{
	removal_probed(&w.s);
	send_wake(&w.s);
	world_run(&w);
}

/* mutation: queue-send/message/removal.c: failed() forgets the removal. */
Test(removal, D40_a_removal_that_fails_is_tried_again)
{
	static const int errors[] = { EIO, ENOSPC, EACCES };
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++) {
		world_fail(CALL_UNLINK, errors[i], 1);
		inode = world_message(&w, "d", 1);
		cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
		cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
		cr_expect_eq(w.s.active, 0, "it is done");
		cr_expect_eq(w.s.counters.finished, i + 1);
		cr_expect_eq(w.s.removals.nfailed, 1);
		cr_expect_eq(removal_to_do(&w.s), 0, "a stop does not wait");
		probe();
		cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
		cr_expect_eq(w.s.removals.count, 0);
	}
}

/* mutation: queue-send/message/removal.c: failed() does not set not_before. */
Test(removal, D40_a_disk_that_takes_nothing_has_a_pause)
{
	uint64_t other;

	world_fail(CALL_UNLINK, ENOSPC, 0);
	world_message(&w, "d", 1);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	(void)world_trace();
	other = world_message(&w, "e", 1);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_null(strchr(world_trace(), 'u'));
	world_fail(CALL_NONE, 0, 0);
	probe();
	cr_expect_eq(world_where(&w, other), SPOOL_NDIRS);
	cr_expect_eq(w.s.removals.count, 0);
}

/* mutation: queue-send/message/removal.c: ended() keeps what is gone;
 * remove_files() keeps its reasons. */
Test(removal, D18_a_file_that_was_removed_by_hand_meanwhile_is_gone)
{
	char leaf[SPOOL_PATH_MAX];
	uint64_t inode;

	world_fail(CALL_UNLINK, EIO, 1);
	inode = world_message(&w, "d", 1);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	spool_leaf(&w.s.sp, SPOOL_ACTIVE, inode, leaf, sizeof(leaf));
	cr_assert_eq(unlinkat(w.s.sp.dir[SPOOL_ACTIVE], leaf, 0), 0);
	cr_assert_eq(spool_set_due(&w.s.sp, inode, 1), 0);
	probe();
	cr_expect_eq(w.s.removals.count, 0);
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 0);
	world_is_empty(&w);
}

Test(removal, D24_the_next_start_removes_what_was_left)
{
	uint64_t inode;

	world_fail(CALL_UNLINK, EIO, 0);
	inode = world_message(&w, "d", 1);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	world_again(&w);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
	world_is_empty(&w);
}

static int
openat_without_descriptors(int dir, const char *name, int flags, mode_t mode)
{
	if ((flags & O_PATH) != 0) {
		errno = EMFILE;
		return -1;
	}
	return openat(dir, name, flags, mode);
}

/* mutation: queue-send/disk/files.c: disk_removal_failed() counts each error.
 */
Test(removal, D40_a_shortage_of_descriptors_is_no_failure_of_the_disk)
{
	const struct spool_sys sys = world_sys;
	int i;

	for (i = 0; i < HEALTH_ERRORS + 1; i++) {
		uint64_t inode = world_message(&w, "d", 1);

		cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
		world_offer_again(&w, inode);
		world_sys.openat = openat_without_descriptors;
		cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
		world_sys.openat = sys.openat;
	}
	cr_expect_eq(w.s.removals.nfailed, (uint32_t)HEALTH_ERRORS + 1);
	cr_expect_not(w.s.health.read_only);
	probe();
	cr_expect_eq(w.s.removals.count, 0);
	world_is_empty(&w);
}

/* ---- with a thread ---- */

static int gate[2];
static atomic_int came; /* to the gate */

/* Each removal of a queue file takes a byte. */
static int
slow_unlinkat(int dir, const char *name, int flags)
{
	char c;

	came += dir == w.s.sp.dir[SPOOL_ACTIVE];
	if (dir == w.s.sp.dir[SPOOL_ACTIVE])
		(void)!read(gate[0], &c, 1);
	return unlinkat(dir, name, flags);
}

static void
start_thread(void)
{
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	w.threads[DISK_REMOVE] = 1;
	world_start(&w, "error_interval = 1h\n");
	world_sys.unlinkat = slow_unlinkat;
	w.s.removals.delay = 0;
}

static void
end_thread(void)
{
	if (gate[1] >= 0)
		close(gate[1]);
	world_end(&w);
	close(gate[0]);
}

TestSuite(
    removal_thread, .init = start_thread, .fini = end_thread, .timeout = 60);

static void
await_all(void)
{
	struct pollfd p = { .fd = executor_fd(w.s.disk.executor, DISK_REMOVE),
		.events = POLLIN };

	if (gate[1] >= 0)
		close(gate[1]);
	gate[1] = -1;
	while (w.s.removals.count > 0) {
		cr_assert_eq(poll(&p, 1, 120000), 1);
		world_run(&w);
	}
}

/* Its outcome, and the removal waits. */
static uint64_t
leave_one(enum agent_outcome outcome)
{
	uint64_t inode = world_message(&w, "d", 1);

	cr_assert_eq(world_deliver(&w, outcome), 1);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	cr_assert(removal_is_under_way(&w.s, inode));
	return inode;
}

/* mutation: queue-send/message/removal.c: start_first() puts nothing into the
 * pool. */
Test(removal_thread, D40_nothing_waits_for_a_disk_that_removes_slowly)
{
	struct queue_page page = { 0 };
	uint64_t inode[3];
	int i;

	for (i = 0; i < 3; i++) {
		inode[i] = leave_one(AGENT_SENT);
		cr_expect_eq(w.s.active, 0);
		cr_expect_eq(w.s.counters.finished, (uint64_t)i + 1);
	}
	publish_fill(&w.s, &page);
	cr_expect_eq(page.active, 3, "files in active/");
	cr_expect_eq(removal_to_do(&w.s), 3, "a stop waits");
	await_all();
	for (i = 0; i < 3; i++)
		cr_expect_eq(world_where(&w, inode[i]), SPOOL_NDIRS);
	cr_expect_eq(removal_to_do(&w.s), 0);
	world_is_empty(&w);
}

/* mutation: queue-send/message/active.c: choose() asks for no limit. */
Test(removal_thread, D40_too_many_hold_new_messages_back)
{
	uint64_t next;

	w.s.removals.limit = 2;
	leave_one(AGENT_SENT);
	leave_one(AGENT_SENT);
	next = world_message(&w, "d", 1);
	cr_expect_eq(world_where(&w, next), SPOOL_INCOMING);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
	await_all();
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
}

/* An operator puts the file back, and it comes again under its inode. What is
 * offered is not what is removed.
 * mutation: queue-send/message/active.c: choose() asks for no removal. */
Test(removal_thread, D22_no_message_is_taken_while_one_of_its_inode_is_removed)
{
	uint64_t inode = leave_one(AGENT_SENT), other;

	cr_assert_eq(
	    spool_move(&w.s.sp, SPOOL_ACTIVE, SPOOL_INCOMING, inode), 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	other = world_message(&w, "e", 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
	cr_expect_eq(world_where(&w, other), SPOOL_INCOMING);
	await_all();
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1, "only the other one");
	await_all();
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(world_where(&w, other), SPOOL_NDIRS);
	world_is_empty(&w);
}

/* mutation: queue-send/backlog/deferred.c: found_active() asks for no removal.
 */
Test(removal_thread, D40_a_walk_brings_nothing_back_that_is_removed)
{
	uint64_t inode = leave_one(AGENT_FAILED), report;

	deferred_walk(&w.s);
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	await_all();
	cr_expect_eq(world_clear_incoming(&w, &report), 1, "one report");
	world_is_empty(&w);
}

static void
hand_over(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	const struct msg msg = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { "\2\0\0\0", 4 } };

	cr_assert_eq(spool_create(w.dir, 2, 5, &owner), 0);
	cr_assert_eq(evacuate_told(&w.s, &msg), 0);
	world_run(&w);
}

/* mutation: queue-send/evacuation/evacuate.c: move_file() asks for no removal.
 */
Test(removal_thread, D40_what_is_removed_goes_to_no_other_queue)
{
	uint64_t inode = leave_one(AGENT_SENT);

	hand_over();
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	await_all();
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	world_is_empty(&w);
}

/* Somebody has removed the file; what lies in bounce/ is the removal's.
 * mutation: queue-send/walks/walks.c: found_reasons() asks for no removal;
 * queue-send/evacuation/evacuate.c: nor does clear_left_reasons(). */
Test(removal_thread, D40_reasons_of_what_is_removed_are_left_to_the_removal)
{
	uint64_t inode = leave_one(AGENT_FAILED);
	char leaf[SPOOL_PATH_MAX];

	while (came == 0) /* the thread has it open */
		(void)usleep(1000);
	spool_leaf(&w.s.sp, SPOOL_ACTIVE, inode, leaf, sizeof(leaf));
	cr_assert_eq(unlinkat(w.s.sp.dir[SPOOL_ACTIVE], leaf, 0), 0);
	deferred_walk(&w.s);
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 1, "a walk");
	hand_over();
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 1, "a pass");
	await_all();
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 0);
}

/* The last three calls of a reported message. */
static void
leaves_by(const char *want)
{
	struct world_delivery delivery;
	const char *trace;
	size_t n;

	bring_to_its_end(&endings[4], &delivery);
	world_done(&w, &delivery);
	(void)world_trace();
	world_run(&w);
	trace = world_trace();
	n = strlen(trace);
	cr_assert_geq(n, 3u);
	cr_expect_str_eq(trace + n - 3, want, "%s", trace);
}

/* A power cut may keep one of two removals, whichever came first.
 * mutation: remove_with_reasons() syncs nothing. */
Test(removal, D40_D36_a_reported_message_is_gone_from_disk_before_its_reasons)
{
	w.s.sp.keeps_order = true;
	leaves_by("ufu");
}

/* The sync of active/ alone may bring the file back in deferred/.
 * mutation: common/spool/spool.c: spool_sync_names() syncs the directory. */
Test(removal, D40_D36_btrfs_syncs_all_before_the_reasons_go)
{
	w.s.sp.keeps_order = false;
	leaves_by("usu");
}

/* mutation: remove_with_reasons() removes bounce/ whatever the sync says. */
Test(removal, D40_D36_btrfs_keeps_the_reasons_when_the_sync_fails)
{
	struct world_delivery delivery;
	const uint64_t inode = bring_to_its_end(&endings[4], &delivery);

	w.s.sp.keeps_order = false;
	world_fail(CALL_SYNCFS, EIO, 1);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_expect_eq(world_count(&w, SPOOL_BOUNCE), 1u);
}

/* mutation: queue-send/operators/acts.c: act_on() does not ask for removals. */
Test(removal, D40_a_message_that_is_done_is_no_operators)
{
	const uint64_t inode = world_message(&w, "d", 1);
	const struct queue_id id = world_id(&w, inode);
	uint32_t running;

	world_fail(CALL_UNLINK, EIO, 1);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	cr_expect_eq(world_do(&w, ACT_HOLD, &id, 0, &running), -ENOENT);
	cr_expect_eq(world_do(&w, ACT_DELETE, &id, 0, &running), -ENOENT);
	probe();
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}
