/* Files move in threads, and whatever meets a move that has not ended. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/operators/operators.h"
#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 2

static struct world w;

/* Moves wait here: of one file, or of each, at the first gate that fits. The
 * byte that lets one go is its error. */
static struct {
	int fd[2];
	uint64_t inode; /* 0: each */
} gates[THREADS];
static _Atomic bool closed;

static int
slow_renameat(int olddir, const char *old, int newdir, const char *name)
{
	const char *slash = strrchr(name, '/');
	const uint64_t inode =
	    strtoull(slash == NULL ? name : slash + 1, NULL, 10);
	char error = 0;
	int i;

	if (newdir != w.s.sp.dir[SPOOL_ACTIVE] &&
	    newdir != w.s.sp.dir[SPOOL_DEFERRED]) /* another queue takes it */
		return spool_sys_real.renameat(olddir, old, newdir, name);
	for (i = 0; closed && i < THREADS; i++)
		if (gates[i].inode == 0 || gates[i].inode == inode) {
			(void)!read(gates[i].fd[0], &error, 1);
			break;
		}
	errno = error;
	return error != 0 ? -1
			  : spool_sys_real.renameat(olddir, old, newdir, name);
}

static void
start(void)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		cr_assert_eq(pipe2(gates[i].fd, O_CLOEXEC), 0);
		gates[i].inode = 0;
	}
	closed = false;
	w.threads[DISK_MOVE] = THREADS;
	w.one_a_thread = true;
	world_start(&w, "error_interval = 1h\n");
	world_sys.renameat = slow_renameat;
}

static void
end(void)
{
	int i;

	for (i = 0; i < THREADS; i++)
		close(gates[i].fd[1]);
	world_end(&w);
	for (i = 0; i < THREADS; i++)
		close(gates[i].fd[0]);
}

TestSuite(moves, .init = start, .fini = end, .timeout = 60);

static uint32_t
under_way(void)
{
	const uint32_t *count = w.s.messages.count;

	return count[STATE_ENTERING_INCOMING] + count[STATE_ENTERING_DEFERRED] +
	    count[STATE_LEAVING];
}

/* Until as many are left, which are at a gate. */
static void
await(uint32_t left)
{
	struct pollfd p = { .fd = executor_fd(w.s.disk.executor, DISK_MOVE),
		.events = POLLIN };

	world_run(&w);
	while (under_way() > left) {
		cr_assert_eq(poll(&p, 1, 120000), 1, "a move does not end");
		world_run(&w);
	}
}

static void
let_go(int gate, int error)
{
	const char c = (char)error;

	cr_assert_eq(write(gates[gate].fd[1], &c, 1), 1);
}

/* A message that has come to active/. */
static uint64_t
enter(uint32_t rcpts)
{
	uint64_t inode = world_message(&w, "d", rcpts);

	await(0);
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	return inode;
}

/* One that is on its way there, at the gate. */
static uint64_t
begin_to_enter(void)
{
	uint64_t inode;

	closed = true;
	inode = world_message(&w, "d", 1);
	cr_assert_eq(w.s.messages.count[STATE_ENTERING_INCOMING], 1);
	return inode;
}

/* One that is on its way to deferred/. */
static uint64_t
begin_to_leave(void)
{
	uint64_t inode = enter(1);

	closed = true;
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	world_run(&w);
	cr_assert_eq(w.s.messages.count[STATE_LEAVING], 1);
	return inode;
}

/* mutation: common/daemon/executor.c: executor_do() does all in the loop. */
Test(moves, D41_deliveries_go_on_while_the_disk_moves_slowly)
{
	uint64_t coming, going;

	going = enter(1);
	enter(9);
	closed = true;
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 10);
	world_run(&w);
	cr_assert_eq(w.s.messages.count[STATE_LEAVING], 2);
	let_go(0, 0);
	let_go(0, 0);
	await(0);
	closed = false;
	enter(9);
	coming = begin_to_enter();
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 9);
	cr_expect_eq(world_where(&w, coming), SPOOL_INCOMING);
	cr_expect_eq(w.s.counters.accepted, 3, "it has not come yet");
	let_go(0, 0);
	await(0);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_where(&w, coming), SPOOL_NDIRS);
	cr_expect_eq(world_where(&w, going), SPOOL_DEFERRED);
	cr_expect_eq(w.s.due.count, 2);
}

/* mutation: queue-send/message/moves.c: end_move() takes the first message. */
Test(moves, D41_either_of_two_moves_may_end_first)
{
	uint64_t inode[THREADS];
	int first, i;

	for (first = 0; first < THREADS; first++) {
		closed = true;
		for (i = 0; i < THREADS; i++) {
			inode[i] = world_file(&w, "d", 1, 0);
			gates[i].inode = inode[i];
		}
		for (i = 0; i < THREADS; i++)
			world_offer(&w, SPOOL_INCOMING, inode[i]);
		world_run(&w);
		cr_assert_eq(under_way(), THREADS);
		let_go(first, 0);
		await(1);
		cr_expect_eq(world_where(&w, inode[first]), SPOOL_ACTIVE);
		cr_expect_eq(world_where(&w, inode[!first]), SPOOL_INCOMING);
		cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
		cr_expect_eq(world_where(&w, inode[first]), SPOOL_NDIRS);
		let_go(!first, 0);
		await(0);
		cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
		world_is_empty(&w);
	}
}

/* mutation: queue-send/operators/acts.c: act_on() asks for no move. */
Test(moves, D41_A3_an_act_waits_for_a_move)
{
	static const enum spool_act acts[] = { ACT_HOLD, ACT_DELETE,
		ACT_REQUEUE, ACT_RETRY };
	uint64_t (*const begin[])(void) = { begin_to_enter, begin_to_leave };
	uint32_t running;
	uint64_t inode;
	size_t i, j;

	for (i = 0; i < ARRAY_LEN(begin); i++) {
		inode = begin[i]();
		for (j = 0; j < ARRAY_LEN(acts); j++)
			cr_expect_eq(world_act(&w, acts[j], inode, &running),
			    -EAGAIN, "%zu, act %zu", i, j);
		let_go(0, 0);
		await(0);
		closed = false;
		cr_expect_eq(world_act(&w, ACT_HOLD, inode, &running), 0);
		(void)world_deliver(&w, AGENT_DEFERRED);
		await(0);
		cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
		cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
		cr_expect_null(due_find(&w.s.due, inode));
	}
}

/* mutation: queue-send/agents/offers.c: is_new() knows no moves. */
Test(moves, D41_D22_an_offer_that_meets_a_move)
{
	const uint64_t inode = begin_to_enter();
	struct msg other = { .type = MSG_MESSAGE,
		.u.MESSAGE = { .inode = inode,
		    .dir = SPOOL_INCOMING,
		    .arrival_wall = 4711,
		    .recipients = 1,
		    .pending = 1 } };

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_expect_eq(w.scans, 0, "the same message");
	w.credit--;
	world_send(w.todo, &other);
	world_run(&w);
	cr_expect_eq(w.scans, 1, "another one: which of them lies there?");
	let_go(0, 0);
	await(0);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}

/* mutation: queue-send/message/active.c: the file is read after the move. */
Test(moves, D41_D22_the_file_that_has_moved_is_another_message)
{
	const uint64_t inode = world_file(&w, "d", 1, 0);

	world_offer_stranger(&w, inode);
	await(0);
	await(0); /* back again */
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
	cr_expect_eq(w.s.active, 0);
	cr_expect_eq(w.scans, 1);
}

static const struct refusal {
	const char *name;
	int error;
	bool general;
} refusals[] = {
	{ "full", ENOSPC, true },
	{ "quota", EDQUOT, true },
	{ "read-only", EROFS, true },
	{ "broken", EIO, false },
};

/* mutation: queue-send/message/active.c: refused() forgets in any case. */
Test(moves, D41_D2_a_message_that_the_disk_keeps_out_comes_later)
{
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(refusals); i++) {
		inode = begin_to_enter();
		let_go(0, refusals[i].error);
		await(0);
		closed = false;
		cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
		cr_expect_eq(w.s.active, 0);
		cr_expect_eq(w.s.messages.count[STATE_OFFERED_INCOMING],
		    (uint32_t)refusals[i].general, "%s", refusals[i].name);
		if (!refusals[i].general)
			world_offer(&w, SPOOL_INCOMING, inode);
		w.s.health.read_only = false;
		w.s.admission_blocked_until = 0;
		send_wake(&w.s);
		await(0);
		cr_expect_eq(
		    world_deliver(&w, AGENT_SENT), 1, "%s", refusals[i].name);
		world_is_empty(&w);
	}
}

/* mutation: queue-send/message/finish.c: cannot_leave() forgets the message. */
Test(moves, D41_D2_a_message_that_the_disk_keeps_in_leaves_later)
{
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(refusals); i++) {
		inode = begin_to_leave();
		let_go(0, refusals[i].error);
		await(0);
		closed = false;
		cr_expect_eq(world_where(&w, inode), SPOOL_ACTIVE);
		cr_expect_null(due_find(&w.s.due, inode));
		cr_expect_eq(
		    w.s.messages.count[refusals[i].general ? STATE_FINISHED
							   : STATE_STUCK],
		    1, "%s", refusals[i].name);
		w.s.health.read_only = false;
		w.s.finish_at = w.s.stuck_at = 0;
		send_wake(&w.s);
		await(0);
		cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED, "%s",
		    refusals[i].name);
		cr_expect_not_null(due_find(&w.s.due, inode));
	}
}

/* ---- the end of a queue, and a stop ---- */

/* Again: the next pass, which moves what came there after the last one. */
static void
hand_over(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	const struct msg msg = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { "\2\0\0\0", 4 } };

	(void)spool_create(w.dir, 2, 3, &owner);
	cr_assert_eq(
	    control_ops.told(&(struct daemon){ .state = &w.s }, &msg), 0);
	world_run(&w);
}

/* mutation: queue-send/message/active.c: put_back() keeps it; entered() does
 * not put it aside. */
Test(moves, D41_a_queue_ends_while_files_move)
{
	static const int errors[] = { 0, ENOSPC, EIO };
	uint64_t (*const begin[])(void) = { begin_to_enter, begin_to_leave };
	uint64_t inode;
	size_t i, j;

	for (i = 0; i < ARRAY_LEN(begin); i++)
		for (j = 0; j < ARRAY_LEN(errors); j++) {
			inode = begin[i]();
			hand_over();
			cr_expect_neq(world_where(&w, inode), SPOOL_NDIRS,
			    "the pass leaves it");
			let_go(0, errors[j]);
			await(0);
			closed = false;
			w.s.health.read_only = false;
			w.s.finish_at = w.s.stuck_at = 0;
			hand_over();
			await(0);
			hand_over();
			cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS,
			    "%zu, error %d: it goes to the other queue", i,
			    errors[j]);
			cr_expect_eq(w.s.active, 0);
			cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
			cr_assert_eq(
			    control_ops.told(&(struct daemon){ .state = &w.s },
				&(struct msg){ .type = MSG_HAND_OVER }),
			    0);
			w.s.admission_blocked_until = 0;
			world_run(&w);
		}
}

/* mutation: queue-send/turn.c: stop_work() waits for no move. */
Test(moves, D41_a_stop_waits_for_moves)
{
	uint64_t (*const begin[])(void) = { begin_to_leave, begin_to_enter };
	size_t i;

	for (i = 0; i < ARRAY_LEN(begin); i++) {
		begin[i]();
		control_ops.stop(
		    &(struct daemon){ .state = &w.s }, 1000 * USEC_PER_SEC);
		world_run(&w);
		cr_expect_not(stop_is_over(&w.s), "%zu", i);
		let_go(0, 0);
		await(0);
		cr_expect(stop_is_over(&w.s), "%zu", i);
		closed = w.s.stopping = false;
		send_wake(&w.s);
		world_run(&w);
	}
}

/* A death while a file moves: it is in one of the two directories.
 * mutation: queue-send/message/move_task.c: the due time comes after the move.
 */
Test(moves, D41_D24_a_start_finds_what_a_move_has_left)
{
	static const int errors[] = { 0, EIO };
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++) {
		inode = begin_to_leave();
		let_go(0, errors[i]);
		await(0);
		closed = false;
		cr_expect_eq(world_where(&w, inode),
		    errors[i] == 0 ? SPOOL_DEFERRED : SPOOL_ACTIVE);
		world_again(&w);
		world_sys.renameat = slow_renameat;
		world_offer_again(&w, inode);
		await(0);
		cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
		world_is_empty(&w);
	}
}

/* ---- bounds ---- */

/* mutation: queue-send/message/finish.c: move_away() has no bound; moves.c:
 * nothing leaves STATE_UNMOVED. */
Test(moves, D41_many_leave_and_removals_pass_them)
{
	const uint32_t n = 70;
	struct world_delivery last;
	uint32_t i, most;

	enter(1);
	world_take_one(&w, &last);
	for (i = 0; i < n; i++)
		enter(1);
	closed = true;
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), n);
	world_run(&w);
	most = w.s.messages.count[STATE_LEAVING];
	cr_expect_lt(most, n);
	cr_expect_eq(w.s.messages.count[STATE_UNMOVED], n - most);
	world_result(&w, &last, 0, AGENT_SENT);
	world_done(&w, &last);
	world_run(&w);
	cr_expect_eq(w.s.counters.finished, 1);
	cr_expect_eq(w.s.removals.count, 0, "it is gone");
	closed = false;
	for (i = 0; i < THREADS; i++)
		let_go(0, 0);
	await(0);
	cr_expect_eq(w.s.due.count, n);
	cr_expect_eq(w.s.active, 0);
}

/* Messages on their way have a place.
 * mutation: queue-send/message/active.c: choose() counts the active queue. */
Test(moves, D41_no_more_come_than_there_is_room_for)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	struct conf conf = w.conf;
	size_t i;

	conf.sched.message_active_limit = 2;
	w.s.conf = &conf;
	closed = true;
	for (i = 0; i < ARRAY_LEN(names); i++)
		world_message(&w, names[i], 1);
	cr_expect_eq(under_way(), 2);
	cr_expect_eq(w.s.messages.count[STATE_OFFERED_INCOMING], 2);
	closed = false;
	let_go(0, 0);
	let_go(0, 0);
	await(0);
	cr_expect_eq(w.s.active, 2);
	w.s.conf = &w.conf;
	send_wake(&w.s);
	await(0);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 4);
	world_is_empty(&w);
}
