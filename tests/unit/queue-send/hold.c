/* Messages on hold with a note: by whom, why, until when. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/walks/walks.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/reason.h"

static struct world w;
static uint32_t running;
static struct hold_note_before before;

static void
start(void)
{
	world_start(&w,
	    "minimal_backoff_time = 1h\nmaximal_backoff_time = 1h\n"
	    "error_interval = 1h\n");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(hold, .init = start, .fini = end, .timeout = 60);

static void
hold_for(uint64_t inode, usec_t time)
{
	const struct queue_id id = world_id(&w, inode);
	struct hold_note note = { .uid = 7, .reason = "new\tdisk" };

	send_read_clocks(&w.s);
	note.since_wall = w.s.now_wall;
	note.until_wall = time == 0 ? 0 : w.s.now_wall + time;
	cr_assert_eq(world_hold(&w, &id, &note, &running), 0);
	world_run(&w);
}

static void
walk(void)
{
	deferred_walk(&w.s);
	send_wake(&w.s);
	world_run(&w);
}

static uint64_t
deferred_message(void)
{
	uint64_t inode = world_message(&w, "d", 2);

	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 2);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	return inode;
}

Test(hold, the_note_is_kept_with_the_reasons)
{
	uint64_t inode = deferred_message();
	struct queue_id id = world_id(&w, inode);
	struct hold_note note;

	cr_expect_eq(hold_note_read(&w.s.sp, &id, &note), -ENOENT);
	hold_for(inode, 0);
	world_again(&w);
	walk();
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD, "no end");
	cr_assert_eq(hold_note_read(&w.s.sp, &id, &note), 0);
	cr_expect_eq(note.uid, 7);
	cr_expect_eq(note.until_wall, 0);
	cr_expect_str_eq(note.reason, "new?disk");
	cr_expect_str_neq(world_reason(&w, SPOOL_DEFER, inode, 1), "");
	id.nonce ^= 1;
	cr_expect_eq(
	    hold_note_read(&w.s.sp, &id, &note), -ENOENT, "of another message");
}

/* mutation: acts_found_held() does not look at the time. */
Test(hold, D24_it_ends_at_its_time_after_a_restart_too)
{
	const struct hold_note past = { .uid = 7, .until_wall = USEC_PER_SEC };
	uint64_t over = deferred_message(), stays = deferred_message();
	struct queue_id id;

	hold_for(over, 3600 * USEC_PER_SEC);
	hold_for(stays, 3600 * USEC_PER_SEC);
	id = world_id(&w, over);
	cr_assert_eq(hold_note_write(&w.s.sp, &id, &past, &before), 0);
	world_again(&w);
	walk();
	cr_expect_eq(world_where(&w, over), SPOOL_DEFERRED);
	cr_expect_eq(world_where(&w, stays), SPOOL_HOLD);
	cr_expect_gt(w.s.hold_until, w.s.now_wall);
	cr_expect_leq(w.s.hold_until, w.s.now_wall + 3600 * USEC_PER_SEC);
}

/* mutation: queue-send/disk/act_task.c: is_over() reads nothing. */
Test(hold, A3_a_hold_that_was_made_longer_since_the_walk_has_looked)
{
	uint64_t inode = deferred_message();
	struct walk_item item = { .file.inode = inode, .until_wall = 1 };

	item.id = world_id(&w, inode);
	hold_for(inode, 3600 * USEC_PER_SEC);
	acts_found_held(&w.s, &item);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	hold_for(inode, 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}

/* The note of the one before lies there still.
 * mutation: queue-send/disk/act_task.c: is_over() reads no trailer. */
Test(hold, D22_another_message_that_came_to_the_name_is_not_released)
{
	const struct hold_note past = { .uid = 7, .until_wall = USEC_PER_SEC };
	uint64_t inode = deferred_message();
	struct walk_item item = { .file.inode = inode, .until_wall = 1 };

	item.id = world_id(&w, inode);
	item.id.nonce ^= 1;
	cr_assert_eq(spool_move(&w.s.sp, SPOOL_DEFERRED, SPOOL_HOLD, inode), 0);
	cr_assert_eq(hold_note_write(&w.s.sp, &item.id, &past, &before), 0);
	acts_found_held(&w.s, &item);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}

/* As qctl requeue --failed has it while it writes marks. */
Test(hold, A3_what_an_operator_works_on_waits)
{
	const struct hold_note past = { .uid = 7, .until_wall = USEC_PER_SEC };
	uint64_t inode = deferred_message();
	const struct queue_id id = world_id(&w, inode);
	int fd;

	hold_for(inode, 3600 * USEC_PER_SEC);
	cr_assert_eq(hold_note_write(&w.s.sp, &id, &past, &before), 0);
	fd = spool_open_file(&w.s.sp, SPOOL_HOLD, inode, O_RDONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	world_again(&w);
	walk();
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_expect_gt(w.s.hold_until, w.s.now_wall, "looked for again");
	io_close(&fd);
	walk();
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_eq(w.s.walks[WALK_HOLD].count, 0);
}

/* Reasons of the attempt that goes on do not begin the file anew. */
Test(hold, what_is_in_delivery_keeps_its_note)
{
	struct world_delivery first;
	uint64_t inode = world_message(&w, "d", 1);
	struct queue_id id = world_id(&w, inode);
	struct hold_note note;

	cr_assert(world_take(&w, &first));
	hold_for(inode, 3600 * USEC_PER_SEC);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	world_result(&w, &first, 0, AGENT_DEFERRED);
	world_done(&w, &first);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
	cr_expect_eq(hold_note_read(&w.s.sp, &id, &note), 0);
}

/* The walk at that time did not find it in hold/. */
Test(hold, D24_a_delivery_may_outlast_the_time)
{
	struct world_delivery first;
	uint64_t other = deferred_message(), inode;

	hold_for(other, 3600 * USEC_PER_SEC);
	inode = world_message(&w, "d", 1);
	cr_assert(world_take(&w, &first));
	hold_for(inode, 1);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
	world_result(&w, &first, 0, AGENT_DEFERRED);
	world_done(&w, &first);
	world_run(&w);
	cr_expect_neq(world_where(&w, inode), SPOOL_HOLD);
	cr_expect_eq(world_where(&w, other), SPOOL_HOLD);
}

Test(hold, D6_without_a_note_nothing_is_held)
{
	uint64_t inode = deferred_message();
	const struct queue_id id = world_id(&w, inode);
	const struct hold_note note = { .uid = 7 };

	world_fail(CALL_WRITE, ENOSPC, 0);
	cr_expect_eq(world_hold(&w, &id, &note, &running), -ENOSPC);
	world_fail(CALL_WRITE, 0, 1);
	w.s.health.read_only = true;
	cr_expect_eq(world_hold(&w, &id, &note, &running), -EROFS);
	w.s.health.read_only = false;
	w.s.stopping = true;
	cr_expect_eq(world_hold(&w, &id, &note, &running), -EBUSY);
	w.s.stopping = false;
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
}

/* mutation: move() leaves the note. */
Test(hold, D7_a_hold_that_is_refused_leaves_the_due_time)
{
	uint64_t inode = deferred_message();
	const struct queue_id id = world_id(&w, inode);
	const struct hold_note note = { .uid = 7, .until_wall = USEC_PER_SEC };
	struct hold_note found;
	struct stat was, is;
	int fd;

	fd = reason_open(&w.s.sp, SPOOL_DEFER, inode);
	cr_assert_eq(fstat(fd, &was), 0);
	world_fail(CALL_RENAME, EIO, 1);
	cr_assert_eq(world_hold(&w, &id, &note, &running), -EIO);
	cr_assert_eq(fstat(fd, &is), 0);
	close(fd);
	cr_expect_eq(is.st_size, was.st_size);
	cr_expect_eq(is.st_mtim.tv_sec, was.st_mtim.tv_sec, "due as before");
	cr_expect_eq(is.st_mtim.tv_nsec, was.st_mtim.tv_nsec);
	cr_expect_eq(hold_note_read(&w.s.sp, &id, &found), -ENOENT);
	world_fail(CALL_WRITE, ENOSPC, 1);
	cr_assert_eq(world_hold(&w, &id, &note, &running), -ENOSPC);
	fd = reason_open(&w.s.sp, SPOOL_DEFER, inode);
	cr_assert_eq(fstat(fd, &is), 0);
	close(fd);
	cr_expect_eq(is.st_mtim.tv_sec, was.st_mtim.tv_sec, "due as before");
}

Test(hold, D7_a_new_message_that_is_not_held_has_no_file_of_reasons)
{
	uint64_t inode = world_file(&w, "d", 1, 0);
	const struct queue_id id = world_id(&w, inode);
	const struct hold_note note = { .uid = 7 };

	world_fail(CALL_RENAME, EIO, 1);
	cr_assert_eq(world_hold(&w, &id, &note, &running), -EIO);
	cr_expect_eq(reason_open(&w.s.sp, SPOOL_DEFER, inode), -ENOENT);
}
