/* Operators, a stop and the end of a queue, while the disk is slow. */
#include "tests/unit/queue-send/slow.h"

#include "queue-send/operators/operators_door.h"
#include "queue-send/road/road.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
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
put_spread(int fd, const struct queue_id *id, uint64_t serial)
{
	const struct msg msg = { .type = MSG_ACT_TO,
		.u.ACT_TO = { serial, id->arrival_wall, id->nonce, id->queue,
		    id->inode, 2 } };

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
 * mutation: queue-send/operators/operators_line.c: operators_is_busy() knows no
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

/* One of a batch that is refused does not let two spreads begin, of which each
 * would open the other queue.
 * mutation: queue-send/operators/operators_line.c: operators_go_on() does not
 * ask whether frames are held up. */
Test(slow, D43_P12_spreads_go_one_by_one)
{
	struct world_delivery delivery;
	struct queue_id ids[4];
	int first, fd, error = 1;
	unsigned i, before;

	slow_use_act_threads(2);
	first = new_operator();
	ids[0] = world_id(&slow_w, world_message(&slow_w, "d", 1));
	world_take_one(&slow_w, &delivery);
	for (i = 1; i < 4; i++)
		ids[i] = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	before = world_descriptors();
	fd = new_operator();
	slow_close();
	slow_came = 0;
	for (i = 0; i < 4; i++)
		put_spread(fd, &ids[i], 1 + i);
	world_run(&slow_w);
	slow_await(1);
	world_run(&slow_w);
	cr_expect_eq(slow_w.s.acts.count, 1);
	slow_open(1);
	for (i = 0; i < 4; i++) {
		cr_assert_eq(await_answer(fd, &error), 1 + i);
		cr_expect_eq(error, i == 0 ? -EINVAL : 0);
	}
	close(fd);
	world_run(&slow_w);
	cr_expect_eq(world_descriptors(), before);
	close(first);
	operators_done(&slow_w.s);
	slow_end(&delivery, AGENT_SENT);
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

/* mutation: queue-send/operators/operators_acts.c: answer_act() believes that
 * the connection is there. */
Test(slow, D43_A3_an_act_ends_without_its_operator)
{
	struct queue_id id;
	int fd;

	slow_use_act_threads(1);
	fd = new_operator();
	id = world_id(&slow_w, slow_lay(SPOOL_DEFERRED));
	slow_close();
	slow_came = 0;
	send_act(fd, ACT_DELETE, &id, 1);
	slow_await(1);
	close(fd);
	world_run(&slow_w);
	cr_expect_eq(slow_w.s.operators->count, 0);
	slow_open(1);
	cr_expect_eq(slow_w.s.acts.count, 0);
	cr_expect_eq(world_where(&slow_w, id.inode), SPOOL_DELETED);
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

/* A pass would miss a message that moves, and tell that the queue is empty.
 * mutation: queue-send/road/evacuate.c: evacuate_work() waits for no act. */
Test(slow, D43_A3_the_end_of_a_queue_waits_for_acts)
{
	static const char two[] = { 2, 0, 0, 0 };
	const struct msg told = { .type = MSG_HAND_OVER,
		.u.HAND_OVER.queues = { two, sizeof(two) } };
	const uint64_t inode = slow_lay(SPOOL_HOLD),
		       other = slow_lay(SPOOL_DEFERRED);
	uint32_t running;

	slow_use_act_threads(1);
	slow_act_waits(ACT_RELEASE, inode);
	cr_assert_eq(evacuate_told(&slow_w.s, &told), 0);
	world_run(&slow_w);
	cr_expect_eq(world_where(&slow_w, other), SPOOL_DEFERRED);
	slow_open(1);
	cr_expect_eq(world_answered(&running), 0);
	world_run(&slow_w);
	cr_expect_eq(world_where(&slow_w, other), SPOOL_NDIRS);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
}
