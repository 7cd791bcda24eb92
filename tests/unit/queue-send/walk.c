/* Directories are read by a thread, and what it finds may have moved since. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define MANY 700 /* more than two parts */

static struct world w;
static int gate[2];

static _Atomic bool files, at_gate;
static unsigned opens; /* of files, by the loop */

/* Each directory that is opened takes a byte, or each file by a thread. */
static int
slow_openat(int dir, const char *name, int flags, mode_t mode)
{
	char c;

	opens += (flags & O_NOCTTY) != 0 && gettid() == getpid();
	if (files ? (flags & O_NOCTTY) != 0 && gettid() != getpid()
		  : (flags & O_TMPFILE) == O_DIRECTORY) {
		at_gate = true;
		(void)!read(gate[0], &c, 1);
	}
	return openat(dir, name, flags, mode);
}

static void
await_part(void)
{
	struct pollfd p = { .fd = executor_fd(w.s.disk.executor, DISK_WALK),
		.events = POLLIN };

	cr_assert_eq(poll(&p, 1, 120000), 1, "the thread reads nothing");
}

static bool
is_walking(void)
{
	int i;

	for (i = 0; i < WALK_NKINDS; i++)
		if (w.s.walks[i].running || w.s.walks[i].wanted)
			return true;
	return false;
}

static void
await_end(void)
{
	while (is_walking()) {
		if (w.s.reader.away)
			await_part();
		world_run(&w);
	}
}

static void
start(void)
{
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
	w.threads[DISK_WALK] = 1;
	world_start(&w, "");
	await_end();
	world_sys.openat = slow_openat;
}

static void
end(void)
{
	world_end(&w);
	close(gate[0]);
}

TestSuite(walk, .init = start, .fini = end, .timeout = 60);

static uint64_t
lay(enum spool_dir dir)
{
	uint64_t inode = world_file(&w, "x", 1, 0);

	cr_assert_eq(spool_move(&w.s.sp, SPOOL_INCOMING, dir, inode), 0);
	return inode;
}

static void
walk(enum walk_kind kind)
{
	w.s.walks[kind].wanted = true;
	send_wake(&w.s);
	world_run(&w);
}

/* mutation: queue-send/disk/walk.c: walk_next() reads in the loop. */
Test(walk, D25_nothing_waits_for_a_directory_that_is_read_slowly)
{
	uint64_t inode = lay(SPOOL_DEFERRED);

	walk(WALK_DEFERRED);
	cr_expect(w.s.reader.away);
	world_message(&w, "d", 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_null(due_find(&w.s.due, inode));
	close(gate[1]);
	await_end();
	cr_expect_not_null(due_find(&w.s.due, inode));
}

/* mutation: queue-send/backlog/deferred.c: the row of WALK_HOLD has no look;
 * found.c: found_held() looks once more. */
Test(walk, D43_files_of_a_walk_are_opened_by_the_thread_alone)
{
	uint64_t inode = lay(SPOOL_HOLD);

	files = true;
	walk(WALK_HOLD);
	while (!at_gate && is_walking())
		world_run(&w);
	cr_expect(at_gate);
	world_message(&w, "d", 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(w.s.walks[WALK_HOLD].found, 0);
	opens = 0;
	close(gate[1]);
	await_end();
	cr_expect_eq(opens, 0);
	cr_expect_eq(w.s.walks[WALK_HOLD].count, 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}

/* mutation: queue-send/disk/walk.c: read_part() has no end but that of a
 * part. */
Test(walk, D23_a_walk_goes_over_all_files_in_parts)
{
	int i;

	close(gate[1]);
	for (i = 0; i < MANY; i++)
		lay(SPOOL_DEFERRED);
	walk(WALK_DEFERRED);
	await_end();
	cr_expect_eq(w.s.due.count, MANY);
	cr_expect_eq(w.s.walks[WALK_DEFERRED].count, MANY);
	walk(WALK_DEFERRED);
	await_end();
	cr_expect_eq(w.s.due.count, MANY);
}

/* mutation: queue-send/backlog/deferred.c: ends_later() is false. */
Test(walk, D22_a_day_that_has_begun_anew_since_is_not_over)
{
	uint64_t inode = lay(SPOOL_DELETED);

	cr_assert_eq(spool_set_due(&w.s.sp, inode, 1), 0);
	walk(WALK_DELETED);
	close(gate[1]);
	await_part();
	cr_assert_eq(
	    spool_set_due(&w.s.sp, inode, w.s.now_wall + 1000000000), 0);
	await_end();
	cr_expect_eq(world_where(&w, inode), SPOOL_DELETED);
	cr_assert_eq(spool_set_due(&w.s.sp, inode, 1), 0);
	walk(WALK_DELETED);
	await_end();
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}

/* A message that was taken back keeps its reasons, and one that is gone gets
 * no due time.
 * mutation: queue-send/backlog/deferred.c: is_deleted() is true. */
Test(walk, D22_what_was_undeleted_since_keeps_what_is_its_own)
{
	const struct reason reason = {
		.dsn = "5.1.1",
		.relay = "none",
		.address = "r0@d0.test",
		.text = "no such user",
	};
	uint64_t inode = lay(SPOOL_DELETED), gone = lay(SPOOL_DELETED);

	cr_assert_eq(reason_add(&w.s.sp, SPOOL_BOUNCE, inode, &reason), 0);
	cr_assert_eq(spool_set_due(&w.s.sp, inode, 1), 0);
	walk(WALK_DELETED);
	close(gate[1]);
	await_part();
	cr_assert_eq(
	    spool_move(&w.s.sp, SPOOL_DELETED, SPOOL_DEFERRED, inode), 0);
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_DELETED, gone), 0);
	await_end();
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_str_neq(world_reason(&w, SPOOL_BOUNCE, inode, 0), "");
	cr_expect_eq(world_count(&w, SPOOL_DEFER), 1);
}

/* mutation: queue-send/backlog/deferred.c: found_active() takes what it has for
 * there.
 */
Test(walk, D22_what_has_gone_since_is_not_brought_back)
{
	uint64_t inode = lay(SPOOL_ACTIVE);

	walk(WALK_ACTIVE);
	close(gate[1]);
	await_part();
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_ACTIVE, inode), 0);
	await_end();
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0);
	cr_expect_eq(w.s.health.errors, 0);
}

Test(walk, D22_what_has_gone_since_is_asked_for_and_not_there)
{
	uint64_t inode = lay(SPOOL_DEFERRED);

	walk(WALK_DEFERRED);
	close(gate[1]);
	await_part();
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_DEFERRED, inode), 0);
	await_end();
	cr_expect_eq(w.s.due.asked, 1);
	world_send(w.todo,
	    &(struct msg){
		.type = MSG_GONE, .u.GONE = { .inode = inode, .error = -2 } });
	world_run(&w);
	cr_expect_eq(w.s.due.count, 0);
}

static void
hand_over(const char *queues, uint32_t len)
{
	struct daemon d = { .state = &w.s };
	const struct msg msg = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { queues, len } };

	cr_assert_eq(control_ops.told(&d, &msg), 0);
	world_run(&w);
}

/* The thread is with a part of a walk when the end of the queue begins and is
 * over: each time another walk begins behind it.
 * mutation: queue-send/disk/walk.c: ended() takes any part for its own;
 * queue-send/backlog/deferred.c: deferred_pause() wants nothing. */
Test(walk, D25_a_walk_goes_on_after_an_evacuation)
{
	uint64_t inode = lay(SPOOL_DEFERRED);

	walk(WALK_DEFERRED);
	hand_over("\2\0\0\0", 4);
	cr_expect(w.s.reader.away, "the pass waits behind the walk");
	hand_over(NULL, 0);
	cr_expect_null(due_find(&w.s.due, inode));
	cr_assert_eq(write(gate[1], "abc", 3), 3);
	await_part();
	world_run(&w);
	cr_expect(w.s.reader.away, "that was the part of another walk");
	close(gate[1]);
	await_end();
	cr_expect_not_null(due_find(&w.s.due, inode));
}

/* mutation: queue-send/evacuation/evacuate.c: pass() takes no end of a
 * directory for one that is being read. */
Test(walk, D43_nothing_waits_for_the_directories_of_a_queue_that_ends)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	struct world_delivery delivery;
	uint64_t inode = lay(SPOOL_HOLD);

	cr_assert_eq(spool_create(w.dir, 2, 5, &owner), 0);
	world_message(&w, "d", 1);
	world_take_one(&w, &delivery);
	hand_over("\2\0\0\0", 4);
	cr_expect(w.s.reader.away);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.s.counters.delivered, 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	close(gate[1]);
	while (world_where(&w, inode) == SPOOL_HOLD)
		event_base_loop(w.s.base, EVLOOP_ONCE);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}
