/* The end of a queue while the disk is slow: threads move its mail, and the
 * loop goes on. */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/slow.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/disk/act_task.h"
#include "queue-send/message/path.h"
#include "queue-send/evacuation/evacuation.h"
#include "spool/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
hand_over(const char *queues, uint32_t len)
{
	const struct msg told = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { queues, len } };

	send_read_clocks(&slow_w.s);
	cr_assert_eq(evacuate_told(&slow_w.s, &told), 0);
	world_run(&slow_w);
}

/* The first file waits at the gate. */
static void
begin_end(void)
{
	slow_close();
	slow_came = 0;
	hand_over("\2\0\0\0", 4);
	slow_await(1);
}

static void
keep(void)
{
	hand_over(NULL, 0);
}

static void
await_acts(void)
{
	while (slow_w.s.acts.count > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	world_run(&slow_w);
}

/* mutation: queue-send/disk/act_run.c: act_run() leaves nothing to a
 * thread. */
Test(slow, D43_deliveries_end_while_a_file_waits_to_be_moved)
{
	static const enum spool_dir dirs[] = { SPOOL_INCOMING, SPOOL_DEFERRED,
		SPOOL_HOLD };
	struct world_delivery delivery;
	uint64_t inodes[ARRAY_LEN(dirs)];
	uint64_t running;
	size_t i;

	/* The thread for marks would wait at the gate when that takes long. */
	slow_w.threads[DISK_RECORD] = 0;
	slow_use_act_threads(1);
	for (i = 0; i < ARRAY_LEN(dirs); i++)
		inodes[i] = slow_lay(dirs[i]);
	running = world_message(&slow_w, "e", 1);
	world_take_one(&slow_w, &delivery);
	begin_end();
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.counters.delivered, 1);
	for (i = 0; i < ARRAY_LEN(dirs); i++)
		cr_expect_eq(world_where(&slow_w, inodes[i]), dirs[i]);
	slow_open(1);
	await_acts();
	for (i = 0; i < ARRAY_LEN(dirs); i++)
		cr_expect_eq(world_where(&slow_w, inodes[i]), SPOOL_NDIRS);
	cr_expect_eq(world_where(&slow_w, running), SPOOL_NDIRS);
}

/* The supervisor would be told that nothing is left.
 * mutation: queue-send/evacuation/evacuate.c: pass() waits for no act. */
Test(slow, D43_a_pass_ends_when_its_files_have_moved)
{
	uint64_t inode;

	slow_use_act_threads(1);
	inode = slow_lay(SPOOL_HOLD);
	begin_end();
	cr_expect_not_null(slow_w.s.reader.part, "the pass has not ended");
	slow_open(1);
	await_acts();
	cr_expect_null(slow_w.s.reader.part);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
}

/* As many as may be are under way.
 * mutation: queue-send/evacuation/evacuate.c: pass() does not ask whether they
 * are full; take_found() has no file come again. */
Test(slow, D43_many_files_are_under_way_but_not_all)
{
	enum {
		N = ACTS_OWN_MAX + 30
	};
	uint64_t inodes[N];
	int i;

	slow_use_act_threads(2);
	for (i = 0; i < N; i++)
		inodes[i] = slow_lay(SPOOL_DEFERRED);
	begin_end();
	slow_await(2);
	world_run(&slow_w);
	cr_expect_eq(slow_w.s.acts.own, ACTS_OWN_MAX);
	slow_open(2);
	cr_expect(slow_pass_ends());
	for (i = 0; i < N; i++)
		cr_expect_eq(world_where(&slow_w, inodes[i]), SPOOL_NDIRS);
}

/* mutation: queue-send/evacuation/evacuate.c: handed_over() believes that the
 * evacuation is there; count_moved() tells nobody. */
Test(slow, D43_D22_the_end_is_over_while_a_file_moves)
{
	uint64_t inode;
	int fails;

	slow_use_act_threads(1);
	for (fails = 1; fails >= 0; fails--) {
		inode = slow_lay(SPOOL_INCOMING);
		begin_end();
		keep();
		cr_expect_not(send_is_evacuating(&slow_w.s));
		world_offer(&slow_w, SPOOL_INCOMING, inode);
		world_run(&slow_w);
		cr_expect_null(messages_find(&slow_w.s.messages, inode),
		    "an offer is passed over");
		slow_w.scans = 0;
		slow_w.s.links->scan_at = 0;
		if (fails)
			world_fail(CALL_RENAME, EIO, 1);
		slow_open(1);
		await_acts();
		cr_expect_eq(slow_w.scans, 1, "and asked for again");
		cr_expect_eq(world_where(&slow_w, inode),
		    fails ? SPOOL_INCOMING : SPOOL_NDIRS);
		world_fail(CALL_NONE, 0, 0);
		(void)world_clear_incoming(&slow_w, &inode);
	}
}

/* Another list meanwhile: the file goes where it was to go, and what the first
 * target says is not taken for a word of the second.
 * mutation: queue-send/evacuation/targets.c: targets_refused() takes any
 * target. */
Test(slow, D43_D2_a_target_of_the_list_before_is_full)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	uint64_t inode;

	slow_use_act_threads(1);
	cr_assert_eq(spool_create(slow_w.dir, 3, 5, &owner), 0);
	inode = slow_lay(SPOOL_DEFERRED);
	begin_end();
	hand_over("\3\0\0\0", 4);
	world_fail(CALL_RENAME, ENOSPC, 1);
	slow_open(1);
	cr_expect(slow_pass_ends());
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
}

/* The one that hangs has the first turn.
 * mutation: queue-send/disk/other_queue.h: one thread opens all. */
Test(slow, D43_a_pass_ends_while_a_target_is_opened)
{
	uint64_t inodes[2];
	size_t i;

	slow_use_act_threads(1);
	for (i = 0; i < ARRAY_LEN(inodes); i++)
		inodes[i] = slow_lay(SPOOL_DEFERRED);
	slow_hang(3, 1);
	hand_over("\2\0\0\0\3\0\0\0", 8);
	slow_await(1);
	cr_expect(slow_pass_ends());
	for (i = 0; i < ARRAY_LEN(inodes); i++)
		cr_expect_eq(world_where(&slow_w, inodes[i]), SPOOL_NDIRS);
	slow_open(1);
}

/* No file was given to the target, so none has to come back.
 * mutation: queue-send/evacuation/targets.c: targets_next() gives a file to one
 * that is being opened. */
Test(slow, D43_walks_go_on_behind_an_end_that_was_over_while_a_target_hangs)
{
	uint64_t inode;

	slow_use_act_threads(1);
	inode = slow_lay(SPOOL_DEFERRED);
	slow_hang(2, 1);
	hand_over("\2\0\0\0", 4);
	slow_await(1);
	cr_expect_eq(slow_w.s.acts.count, 0);
	keep();
	cr_expect(slow_pass_ends());
	cr_expect_not_null(due_find(&slow_w.s.due, inode), "a walk found it");
	cr_expect_eq(atomic_load(&slow_came), 1, "the target still hangs");
	slow_open(1);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DEFERRED);
}

/* A hung target of the list before holds up none of the next, and is not opened
 * a second time.
 * mutation: queue-send/disk/other_queue.c: other_queue_get() looks for none. */
Test(slow, D43_D31_another_list_while_a_target_hangs)
{
	struct other_queue *one, *again;
	uint64_t inode;

	slow_use_act_threads(1);
	inode = slow_lay(SPOOL_HOLD);
	slow_hang(3, 1);
	hand_over("\3\0\0\0", 4);
	slow_await(1);
	one = other_queue_get(&slow_w.s, 3);
	again = other_queue_get(&slow_w.s, 3);
	cr_expect_eq(one, again);
	other_queue_free(&one);
	other_queue_free(&again);
	hand_over("\3\0\0\0\2\0\0\0", 8);
	cr_expect(slow_pass_ends());
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
	cr_expect_eq(atomic_load(&slow_came), 1);
	slow_open(1);
}

/* The queue that is open would hang when it is opened a second time.
 * mutation: queue-send/evacuation/targets.c: add_target() keeps nothing. */
Test(slow, D43_D31_a_shorter_list_keeps_what_is_open)
{
	uint64_t first, second;

	slow_use_act_threads(1);
	first = slow_lay(SPOOL_DEFERRED);
	slow_hang(3, 1);
	hand_over("\2\0\0\0\3\0\0\0", 8);
	slow_await(1);
	cr_expect(slow_pass_ends());
	cr_assert_eq(world_where(&slow_w, first), SPOOL_NDIRS);
	second = slow_lay(SPOOL_DEFERRED);
	slow_hang(2, 1);
	hand_over("\2\0\0\0", 4);
	cr_expect(slow_pass_ends());
	cr_expect_eq(world_where(&slow_w, second), SPOOL_NDIRS);
	cr_expect_eq(atomic_load(&slow_came), 0);
	slow_open(1);
}

/* mutation: queue-send/disk/other_queue.h: eight threads open all. */
Test(slow, D43_D31_targets_that_hang_hold_up_none_of_the_next_list)
{
	enum {
		N = 12
	};
	char list[4 * N] = "";
	uint64_t inode;
	int i;

	slow_use_act_threads(1);
	inode = slow_lay(SPOOL_DEFERRED);
	for (i = 0; i < N; i++)
		list[4 * i] = (char)(3 + i);
	slow_hang(3, N);
	hand_over(list, sizeof(list));
	slow_await(N);
	hand_over("\2\0\0\0", 4);
	cr_expect(slow_pass_ends());
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
	slow_open(N);
}

/* mutation: queue-send/disk/act_run.c: end() counts no own act. */
Test(slow, D43_a_stop_waits_for_the_file_that_moves)
{
	uint64_t inode, other;

	slow_use_act_threads(1);
	inode = slow_lay(SPOOL_DEFERRED);
	other = slow_lay(SPOOL_HOLD);
	begin_end();
	control_ops.stop(
	    &(struct daemon){ .state = &slow_w.s }, 1000 * USEC_PER_SEC);
	world_run(&slow_w);
	cr_expect_not(stop_is_over(&slow_w.s));
	slow_open(1);
	await_acts();
	cr_expect(stop_is_over(&slow_w.s));
	slow_w.s.stopping = false;
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
	cr_expect_eq(world_where(&slow_w, other), SPOOL_HOLD, "none begins");
}

/* A queue that gives a message away lends its reasons before the message.
 * mutation: common/spool/reason.c: reason_clear_lost() looks at no name. */
Test(slow, D22_reasons_that_another_queue_lends_stay_to_the_end_of_the_queue)
{
	static const enum spool_dir dirs[] = { SPOOL_DEFER, SPOOL_BOUNCE };
	const struct reason reason = { .dsn = "5.1.1",
		.relay = "none",
		.address = "a@d.test",
		.text = "no such user" };
	const struct spool *sp = &slow_w.s.sp;
	char leaf[SPOOL_PATH_MAX], other[128];
	size_t i;

	slow_use_act_threads(1);
	snprintf(other, sizeof(other), "%s/lent", slow_w.dir);
	for (i = 0; i < ARRAY_LEN(dirs); i++) {
		cr_assert_eq(reason_add(sp, SPOOL_DEFER, 4711, &reason), 0);
		cr_assert_eq(reason_add(sp, SPOOL_BOUNCE, 4711, &reason), 0);
		spool_leaf(sp, dirs[i], 4711, leaf, sizeof(leaf));
		cr_assert_eq(
		    linkat(sp->dir[dirs[i]], leaf, AT_FDCWD, other, 0), 0);
		hand_over("\2\0\0\0", 4);
		await_acts();
		cr_expect_eq(world_count(&slow_w, SPOOL_DEFER), 1, "%zu", i);
		cr_expect_eq(world_count(&slow_w, SPOOL_BOUNCE), 1, "%zu", i);
		keep();
		cr_assert_eq(unlink(other), 0);
		hand_over("\2\0\0\0", 4);
		await_acts();
		cr_expect_eq(world_count(&slow_w, SPOOL_DEFER), 0, "%zu", i);
		cr_expect_eq(world_count(&slow_w, SPOOL_BOUNCE), 0, "%zu", i);
		keep();
	}
}

static int open_error;

static int
openat_of_no_message(int dir, const char *name, int flags, mode_t mode)
{
	if ((flags & O_NOCTTY) == 0) /* as spool_open_file() does */
		return openat(dir, name, flags, mode);
	errno = open_error;
	return -1;
}

/* Its writer, or an expansion, may have it locked. One that nobody may open is
 * judged where it comes.
 * mutation: queue-send/disk/act_task.c: is_no_queue_file() believes any
 * error. */
Test(slow, D8_D16_a_file_that_cannot_be_opened_goes_to_no_other_queue)
{
	static const struct {
		int error;
		bool moves;
	} rows[] = { { EIO, false }, { ENOMEM, false }, { EMFILE, false },
		{ EACCES, true }, { ELOOP, true } };
	int (*const before)(int dir, const char *name, int flags, mode_t mode) =
	    world_sys.openat;
	uint64_t inode;
	size_t i;

	slow_use_act_threads(0);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		inode = slow_lay(SPOOL_HOLD);
		open_error = rows[i].error;
		world_sys.openat = openat_of_no_message;
		hand_over("\2\0\0\0", 4);
		cr_expect_eq(world_where(&slow_w, inode),
		    rows[i].moves ? SPOOL_NDIRS : SPOOL_HOLD, "%s",
		    strerror(rows[i].error));
		world_sys.openat = before;
		hand_over("\2\0\0\0", 4);
		cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
		keep();
	}
}

/* mutation: queue-send/message/finish.c: finish_one() forgets what stays at
 * once.
 */
Test(slow, D43_D22_a_message_that_stays_leaves_no_reasons_of_others)
{
	const struct reason reason = { .dsn = "4.1.1",
		.relay = "none",
		.address = "old@other.test",
		.text = "put by the test" };
	uint64_t inode;

	slow_w.threads[DISK_MOVE] = 1;
	world_again(&slow_w);
	slow_w.s.dispatch_at = USEC_NEVER;
	inode = world_message(&slow_w, "d", 1);
	while (slow_w.s.active == 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_assert_eq(reason_add(&slow_w.s.sp, SPOOL_DEFER, inode, &reason), 0);
	slow_removes = true;
	begin_end();
	cr_expect_eq(slow_w.s.messages.count[STATE_LEAVING], 1);
	slow_open(1);
	while (slow_w.s.active > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_expect_eq(world_count(&slow_w, SPOOL_DEFER), 0);
}
