/* Operators, a stop and the end of a queue, while the disk is slow. */
#include "tests/unit/queue-send/slow.h"

#include "queue-send/operators/own.h"
#include "queue-send/message/path.h"
#include "queue-send/evacuation/evacuation.h"
#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- operators ---- */

static void
put_act(int fd, enum spool_act act, const struct queue_id *id, uint64_t serial)
{
	const struct msg msg = { .type = MSG_ACT,
		.u.ACT = { serial, act, id->arrival_wall, id->nonce, id->queue,
		    id->inode } };

	world_send(fd, &msg);
}

static void
put_spread(int fd, const struct queue_id *id, uint64_t serial, uint32_t to)
{
	const struct msg msg = { .type = MSG_ACT_TO,
		.u.ACT_TO = { serial, id->arrival_wall, id->nonce, id->queue,
		    id->inode, to } };

	world_send(fd, &msg);
}

static void
send_act(int fd, enum spool_act act, const struct queue_id *id, uint64_t serial)
{
	put_act(fd, act, id, serial);
	world_run(&slow_w);
}

/* The serial that was answered; 0: none. */
static uint64_t
answered(int fd, int *ret_error)
{
	static struct chan_frame frame; /* large */

	world_run(&slow_w);
	if (chan_recv(fd, &frame) != 1)
		return 0;
	cr_assert_eq(frame.msg.type, MSG_ACTED);
	*ret_error = frame.msg.u.ACTED.error;
	return frame.msg.u.ACTED.serial;
}

static uint64_t
await_answer(int fd, int *ret_error)
{
	uint64_t serial = 0;
	int i;

	for (i = 0; i < 6000 && serial == 0; i++) {
		serial = answered(fd, ret_error);
		if (serial == 0)
			(void)usleep(10000);
	}
	return serial;
}

static int
new_operator(void)
{
	int fd;

	if (slow_w.s.operators == NULL)
		operators_init(&slow_w.s);
	fd = world_operator(&slow_w);
	world_run(&slow_w);
	return fd;
}

/* mutation: queue-send/operators/operators_acts.c: send_answers() sends what is
 * not known. */
Test(slow, D43_A3_answers_keep_their_order_and_other_acts_go_on)
{
	struct queue_id held, none, other;
	int fd, second, error = 1;

	slow_use_act_threads(2);
	fd = new_operator();
	second = new_operator();
	held = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	other = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	none = held;
	none.inode += 4711;
	slow_close();
	slow_came = 0;
	send_act(fd, ACT_DELETE, &held, 1);
	slow_await(1);
	slow_closed = false; /* for those that come now */
	send_act(fd, ACT_RELEASE, &none, 2);
	send_act(second, ACT_HOLD, &other, 7);
	cr_expect_eq(await_answer(second, &error), 7);
	cr_expect_eq(error, 0);
	cr_expect_eq(world_where(&slow_w, other.inode), SPOOL_HOLD);
	while (slow_w.s.acts.count > 1)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_expect_eq(answered(fd, &error), 0, "the first has not ended");
	slow_open(1);
	cr_expect_eq(await_answer(fd, &error), 1);
	cr_expect_eq(error, 0);
	cr_expect_eq(await_answer(fd, &error), 2);
	cr_expect_eq(error, -ENOENT);
	close(fd);
	close(second);
	operators_done(&slow_w.s);
}

/* A bounded number of one operator is under way, and all have their answers.
 * mutation: queue-send/operators/operators.c: operators_is_busy() knows no
 * bound, operators_go_on() calls nobody. */
Test(slow, D43_A9_an_operator_waits_for_answers)
{
	enum {
		N = 3 * ACTS_AT_ONCE
	};
	struct queue_id ids[N];
	int fd, error = 1;
	unsigned i;

	slow_use_act_threads(1);
	fd = new_operator();
	for (i = 0; i < N; i++)
		ids[i] = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	slow_close();
	slow_came = 0;
	for (i = 0; i < N; i++)
		send_act(fd, ACT_DELETE, &ids[i], 1 + i);
	slow_await(1);
	cr_expect_eq(slow_w.s.acts.count, ACTS_AT_ONCE);
	slow_open(1);
	for (i = 0; i < N; i++) {
		cr_assert_eq(await_answer(fd, &error), 1 + i);
		cr_expect_eq(error, 0);
	}
	cr_expect_eq(world_count(&slow_w, SPOOL_DELETED), N);
	close(fd);
	operators_done(&slow_w.s);
}

/* Frames that are answered at once take no place of an act that is under way.
 * mutation: queue-send/operators/operators.c: take_frame() holds up nothing. */
Test(slow, D43_A9_what_is_refused_at_once_takes_no_answer_of_another)
{
	enum {
		N = ACTS_AT_ONCE + 14
	};
	struct queue_id id;
	int fd, error = 1;
	unsigned i;

	slow_use_act_threads(1);
	fd = new_operator();
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	slow_close();
	slow_came = 0;
	put_act(fd, ACT_DELETE, &id, 1);
	id.inode = 0; /* is refused */
	for (i = 1; i < N; i++)
		put_act(fd, ACT_DELETE, &id, 1 + i);
	world_run(&slow_w);
	slow_await(1);
	cr_expect_eq(answered(fd, &error), 0);
	slow_open(1);
	cr_expect_eq(await_answer(fd, &error), 1);
	cr_expect_eq(error, 0);
	for (i = 1; i < N; i++) {
		cr_assert_eq(await_answer(fd, &error), 1 + i);
		cr_expect_eq(error, -EINVAL);
	}
	close(fd);
	operators_done(&slow_w.s);
}

/* One thread hangs with it, and no thread that acts.
 * mutation: queue-send/disk/other_queue.c: other_queue_get() looks for none;
 * queue-send/operators/spread.c: move_to_queue() waits for no queue. */
Test(slow, D43_P12_one_spread_opens_the_other_queue)
{
	struct world_delivery delivery;
	struct queue_id ids[6];
	int first, fd, error = 1;
	unsigned i, before;

	slow_use_act_threads(1);
	first = new_operator();
	ids[0] = world_id(&slow_w, world_message(&slow_w, "d", 1));
	world_take_one(&slow_w, &delivery);
	for (i = 1; i < ARRAY_LEN(ids); i++)
		ids[i] = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	before = unit_descriptors();
	fd = new_operator();
	slow_hang(3, 1);
	for (i = 0; i < 3; i++)
		put_spread(fd, &ids[i], 1 + i, 3);
	put_spread(first, &ids[3], 7, 3);
	slow_await(1);
	world_run(&slow_w);
	cr_expect_eq(atomic_load(&slow_came), 1);
	cr_expect_eq(slow_w.s.acts.nwaiting, 3);
	cr_expect_eq(await_answer(fd, &error), 1);
	cr_expect_eq(error, -EINVAL);
	put_act(fd, ACT_DELETE, &ids[4], 4);
	put_spread(fd, &ids[5], 5, 2);
	while (world_where(&slow_w, ids[4].inode) != SPOOL_DELETED ||
	    world_where(&slow_w, ids[5].inode) != SPOOL_NDIRS)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	slow_open(1);
	for (i = 2; i <= 5; i++) {
		cr_assert_eq(await_answer(fd, &error), i);
		cr_expect_eq(error, 0);
	}
	cr_expect_eq(await_answer(first, &error), 7);
	cr_expect_eq(error, 0);
	cr_expect_gt(unit_descriptors(), before + 2);
	close(fd);
	close(first);
	world_run(&slow_w);
	cr_expect_eq(unit_descriptors(), before - 2);
	operators_done(&slow_w.s);
	slow_end(&delivery, AGENT_SENT);
}

/* mutation: queue-send/disk/other_queue.c: other_queue_get() looks for none;
 * queue-send/operators/spread.c: spread_end() frees nothing. */
Test(slow, D43_P12_spreads_share_the_other_queue_and_go_together)
{
	enum {
		N = 8
	};
	struct queue_id ids[N];
	unsigned i, open, before;
	int fd, error = 1;

	slow_use_act_threads(2);
	for (i = 0; i < N; i++)
		ids[i] = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	before = unit_descriptors();
	fd = new_operator();
	put_spread(fd, &ids[0], 1, 2);
	cr_assert_eq(await_answer(fd, &error), 1);
	cr_assert_eq(error, 0);
	open = unit_descriptors();
	slow_close();
	slow_came = 0;
	for (i = 1; i < N; i++)
		put_spread(fd, &ids[i], 1 + i, 2);
	world_run(&slow_w);
	slow_await(2);
	cr_expect_eq(slow_w.s.acts.count, N - 1);
	cr_expect_leq(unit_descriptors(), open + 2, "files of messages");
	slow_open(2);
	for (i = 1; i < N; i++) {
		cr_assert_eq(await_answer(fd, &error), 1 + i);
		cr_expect_eq(error, 0);
		cr_expect_eq(world_where(&slow_w, ids[i].inode), SPOOL_NDIRS);
	}
	close(fd);
	world_run(&slow_w);
	operators_done(&slow_w.s);
	cr_expect_eq(unit_descriptors(), before);
}

/* More of them have gone than places are there. The queue still hangs.
 * mutation: queue-send/operators/spread.c: is_nobodys() asks for no operator.
 */
Test(slow, D43_A9_spreads_of_an_operator_that_has_gone_leave_their_places)
{
	struct queue_id id, live;
	unsigned i, k;
	int fd;

	slow_use_act_threads(1);
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	live = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	slow_hang(3, 1);
	for (k = 0; k <= ACTS_MAX / (ACTS_AT_ONCE - 1); k++) {
		fd = new_operator();
		for (i = 1; i < ACTS_AT_ONCE; i++)
			put_spread(fd, &id, i, 3);
		while (slow_w.s.acts.nwaiting < ACTS_AT_ONCE - 1)
			event_base_loop(slow_w.s.base, EVLOOP_ONCE);
		close(fd);
		while (slow_w.s.operators->count > 0)
			event_base_loop(slow_w.s.base, EVLOOP_ONCE);
		world_run(&slow_w);
		cr_assert_eq(slow_w.s.acts.nwaiting, 0, "%u", k);
	}
	slow_await(1);
	cr_expect_neq(slow_act(ACT_DELETE, live.inode), -EAGAIN);
	while (slow_w.s.acts.count > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_expect_eq(world_where(&slow_w, live.inode), SPOOL_DELETED);
	cr_expect_eq(world_where(&slow_w, id.inode), SPOOL_DEFERRED);
	slow_open(1);
	cr_expect_eq(world_where(&slow_w, id.inode), SPOOL_DEFERRED);
	operators_done(&slow_w.s);
}

/* Of one that is held up nothing is read, not even its end.
 * mutation: queue-send/operators/operators.c: end_gone() ends nobody. */
Test(slow, D43_A9_an_operator_that_has_gone_leaves_its_place)
{
	struct queue_id ids[ACTS_AT_ONCE];
	int fd;
	unsigned i;

	slow_use_act_threads(1);
	fd = new_operator();
	for (i = 0; i < ACTS_AT_ONCE; i++)
		ids[i] = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	slow_close();
	slow_came = 0;
	for (i = 0; i < ACTS_AT_ONCE; i++)
		put_act(fd, ACT_DELETE, &ids[i], 1 + i);
	world_run(&slow_w);
	slow_await(1);
	cr_expect_not(operators_end_idle(&slow_w.s, false));
	close(fd);
	world_run(&slow_w);
	cr_expect_eq(slow_w.s.operators->count, 1);
	cr_expect(operators_end_idle(&slow_w.s, false));
	cr_expect_eq(slow_w.s.operators->count, 0);
	slow_open(1);
	while (slow_w.s.acts.count > 0)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_expect_eq(world_count(&slow_w, SPOOL_DELETED), ACTS_AT_ONCE);
	operators_done(&slow_w.s);
}

/* ---- ends ---- */

/* mutation: queue-send/turn.c: stop_is_over() counts no acts;
 * queue-send/operators/acts.c: acts_are_full() is not asked. */
Test(slow, D43_A3_a_stop_waits_for_acts_and_their_number_is_bounded)
{
	uint64_t inode, other;

	slow_use_act_threads(1);
	inode = slow_lay(SPOOL_DEFERRED);
	other = slow_lay(SPOOL_DEFERRED);
	slow_act_waits(ACT_DELETE, inode);
	slow_w.s.acts.count += ACTS_MAX - 1;
	cr_expect_eq(slow_act(ACT_DELETE, other), -EAGAIN);
	slow_w.s.acts.count -= ACTS_MAX - 1;
	control_ops.stop(
	    &(struct daemon){ .state = &slow_w.s }, 1000 * USEC_PER_SEC);
	world_run(&slow_w);
	cr_expect_not(stop_is_over(&slow_w.s));
	cr_expect_eq(slow_act(ACT_DELETE, other), -EBUSY);
	slow_open(1);
	cr_expect(stop_is_over(&slow_w.s));
	slow_w.s.stopping = false;
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_DELETED);
}

static void
begin_stop(uint32_t queue UNUSED)
{
	control_ops.stop(
	    &(struct daemon){ .state = &slow_w.s }, 1000 * USEC_PER_SEC);
}

static void
begin_end(uint32_t queue)
{
	const char list[] = { (char)queue, 0, 0, 0 };
	const struct msg told = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { list, sizeof(list) } };

	cr_assert_eq(evacuate_told(&slow_w.s, &told), 0);
}

/* mutation: queue-send/operators/spread.c: must_wait() asks for neither. */
Test(slow, D43_A3_a_stop_and_an_end_wait_for_no_queue_that_is_opened)
{
	void (*const begin[])(uint32_t queue) = { begin_stop, begin_end };
	struct queue_id id;
	uint32_t running, i;

	slow_use_act_threads(1);
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	for (i = 0; i < ARRAY_LEN(begin); i++) {
		slow_hang(3 + i, 1);
		cr_assert_eq(world_spread(&slow_w, &slow_spread, &id, 3 + i),
		    ACT_UNDER_WAY);
		slow_await(1);
		begin[i](3 + i);
		world_run(&slow_w);
		cr_expect_eq(world_answered(&running), -EBUSY, "%u", i);
		cr_expect(stop_is_over(&slow_w.s));
		cr_expect_eq(atomic_load(&slow_came), 1);
		slow_w.s.stopping = false;
		slow_open(1);
	}
	spread_end(&slow_w.s, &slow_spread);
}

/* A pass would miss a message that moves, and tell that the queue is empty.
 * mutation: queue-send/evacuation/evacuate.c: evacuate_work() waits for no act.
 */
Test(slow, D43_A3_the_end_of_a_queue_waits_for_acts)
{
	const uint64_t inode = slow_lay(SPOOL_HOLD),
		       other = slow_lay(SPOOL_INCOMING);
	uint32_t running;

	slow_use_act_threads(1);
	slow_act_waits(ACT_RELEASE, inode);
	begin_end(2);
	world_run(&slow_w);
	cr_expect_null(slow_w.s.reader.part, "no pass has begun");
	cr_expect_eq(slow_w.s.acts.count, 1, "no file is on its way");
	cr_expect_eq(world_where(&slow_w, other), SPOOL_INCOMING);
	slow_open(1);
	cr_expect_eq(world_answered(&running), 0);
	cr_expect(slow_pass_ends());
	cr_expect_eq(world_where(&slow_w, other), SPOOL_NDIRS);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
}
