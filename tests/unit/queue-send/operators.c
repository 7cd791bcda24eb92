/* The door of operators: places, idle connections, no descriptor left. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/operators/own.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

static struct world w;
static struct chan_frame frame; /* large */

static void
start(void)
{
	world_start(&w, "");
	operators_init(&w.s);
	cr_assert_not_null(w.s.operators);
}

static void
end(void)
{
	operators_done(&w.s);
	world_end(&w);
}

TestSuite(operators, .init = start, .fini = end, .timeout = 60);

static int
connect_to(void)
{
	int fd = world_operator(&w);

	world_run(&w);
	return fd;
}

/* What the peer was told: the error of ACTED; 1: nothing, 0: the end. */
static int
told(int fd)
{
	int r = chan_recv(fd, &frame);

	if (r == -EAGAIN)
		return 1;
	if (r == 0)
		return 0;
	cr_assert_eq(r, 1);
	cr_assert_eq(frame.msg.type, MSG_ACTED);
	cr_assert_eq(frame.msg.u.ACTED.serial, 0);
	return frame.msg.u.ACTED.error;
}

static void
fill(int fds[OPERATORS_MAX + 1])
{
	unsigned i;

	for (i = 0; i < OPERATORS_MAX + 1; i++) {
		fds[i] = connect_to();
		cr_assert_eq(told(fds[i]), 1);
	}
	cr_assert_eq(w.s.operators->count, OPERATORS_MAX + 1);
}

/* The user of this process has the last place, too. */
Test(operators, places_are_counted)
{
	int fds[OPERATORS_MAX + 1], more;

	fill(fds);
	more = connect_to();
	cr_assert_eq(told(more), -EUSERS);
	cr_assert_eq(told(more), 0);
	close(more);
	close(fds[3]);
	world_run(&w);
	more = connect_to();
	cr_assert_eq(told(more), 1);
}

Test(operators, an_idle_place_goes_to_the_next)
{
	int fds[OPERATORS_MAX + 1], more;
	struct operator* o;

	fill(fds);
	TAILQ_FOREACH (o, &w.s.operators->list, link)
		o->heard -= OPERATORS_IDLE / 2;
	more = connect_to();
	cr_assert_eq(told(more), -EUSERS, "none was silent for so long");
	close(more);
	TAILQ_FOREACH (o, &w.s.operators->list, link)
		o->heard -= OPERATORS_IDLE;
	o = TAILQ_FIRST(&w.s.operators->list);
	o->heard += 3 * OPERATORS_IDLE;
	more = connect_to();
	cr_assert_eq(told(more), 1);
	cr_assert_eq(told(fds[0]), 1, "the first was heard last");
	cr_assert_eq(told(fds[1]), -ETIME);
	cr_assert_eq(told(fds[1]), 0);
	cr_assert_eq(told(fds[2]), 1);
	cr_assert_eq(w.s.operators->count, OPERATORS_MAX + 1);
}

/* The kernel tells the user and the group of the moment of connect(). */
static int
connect_as_member(void)
{
	const gid_t group = 65533;
	int fd;

	w.s.operators->door.group = group;
	cr_assert_eq(fchmodat(w.s.sp.dir[SPOOL_LOCK], ".", 0711, 0), 0);
	cr_assert_eq(
	    fchmodat(w.s.sp.dir[SPOOL_LOCK], OPERATORS_SOCKET, 0666, 0), 0);
	cr_assert_eq(setegid(group), 0);
	cr_assert_eq(seteuid(65534), 0);
	fd = world_operator(&w);
	cr_assert_eq(seteuid(0), 0);
	cr_assert_eq(setegid(0), 0);
	world_run(&w);
	return fd;
}

Test(operators, X5_the_last_place_stays_for_root)
{
	int fds[OPERATORS_MAX + 1], member, root;
	struct operator* o;

	if (geteuid() != 0)
		cr_skip_test("only root can be another user for a while");
	fill(fds);
	TAILQ_FOREACH (o, &w.s.operators->list, link)
		o->heard -= 2 * OPERATORS_IDLE;
	member = connect_as_member();
	cr_assert_eq(told(member), 1);
	TAILQ_FOREACH (o, &w.s.operators->list, link)
		o->heard = w.s.now;
	root = connect_to();
	cr_assert_eq(told(root), 1);
	cr_assert_eq(w.s.operators->count, OPERATORS_MAX + 1);
}

/* As a connection of a user who may not act. */
static void be_asker(struct operator* o)
{
	if (o->may_act)
		w.s.operators->askers++;
	o->may_act = false;
}

static void
send_to_queue(int fd, const struct msg *msg)
{
	cr_assert_eq(chan_send(fd, msg, -1), 0);
	world_run(&w);
}

Test(operators, attack_5_an_asker_asks_and_does_not_act)
{
	static const struct msg acts[] = {
		{ .type = MSG_ACT, .u.ACT = { .serial = 7, .act = ACT_RETRY } },
		{ .type = MSG_ACT_AT },
		{ .type = MSG_ACT_HOLD_FOR },
		{ .type = MSG_ACT_TO },
		{ .type = MSG_ACT_CAME },
		{ .type = MSG_ACT_HOLD_RULE },
		{ .type = MSG_RULE_ADD },
		{ .type = MSG_RULE_DROP },
		{ .type = MSG_RULES_READ },
		{ .type = MSG_ACT_END },
	};
	const struct msg question = { .type = MSG_EXPLAIN,
		.u.EXPLAIN = { .serial = 3, .inode = 1 } };
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_LEN(acts); i++) {
		fd = connect_to();
		be_asker(TAILQ_FIRST(&w.s.operators->list));
		send_to_queue(fd, &question);
		do
			cr_assert_eq(chan_recv(fd, &frame), 1);
		while (frame.msg.type == MSG_EXPLAINED);
		cr_assert_eq(frame.msg.type, MSG_EXPLAINED_END);
		send_to_queue(fd, &acts[i]);
		cr_assert_eq(told(fd), -EPERM, "%zu", i);
		cr_assert_eq(told(fd), 0);
		close(fd);
		cr_assert_eq(w.s.operators->count, 0);
		cr_assert_eq(w.s.operators->askers, 0);
	}
}

/* mutation: send_answer() counts an answer, not its messages. */
Test(operators, retry_all_counts_the_messages)
{
	const struct msg retry = { .type = MSG_ACT,
		.u.ACT = { .serial = 7, .act = ACT_RETRY } };
	const struct msg end = { .type = MSG_ACT_END,
		.u.ACT_END = { .act = ACT_RETRY } };
	struct operator* o;
	int i, fd = connect_to();

	o = TAILQ_FIRST(&w.s.operators->list);
	send_to_queue(fd, &retry);
	cr_expect(o->answered, "none is a number, too");
	cr_expect_eq(o->done, 0);
	send_to_queue(fd, &end);
	cr_expect_not(o->answered);
	for (i = 0; i < 3; i++) {
		world_message(&w, "d", 1);
		cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	}
	send_to_queue(fd, &retry);
	cr_expect_eq(o->done, 3);
	send_to_queue(fd, &end);
	cr_expect_eq(o->done, 0);
}

Test(operators, X5_askers_leave_places_to_those_who_act)
{
	const struct caller asker = { .uid = 1 };
	struct operator* o;
	int ends[ASKERS_MAX][2];
	unsigned i;

	for (i = 0; i < ASKERS_MAX; i++) {
		cr_assert_eq(socketpair(AF_UNIX,
				 SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
				 0, ends[i]),
		    0);
		cr_assert(door_has_place(&w.s, &asker));
		cr_assert_eq(operators_welcome(&w.s, ends[i][0], &asker), 0);
	}
	cr_assert_not(door_has_place(&w.s, &asker));
	cr_assert_eq(told(connect_to()), 1, "one who may act has a place");
	TAILQ_FOREACH (o, &w.s.operators->list, link)
		o->heard -= 2 * OPERATORS_IDLE;
	TAILQ_LAST(&w.s.operators->list, operator_list)->heard -= 1;
	cr_assert(door_has_place(&w.s, &asker));
	cr_assert_eq(w.s.operators->askers, ASKERS_MAX - 1);
	cr_assert_eq(w.s.operators->count, ASKERS_MAX,
	    "of the silent an asker has gone, not the operator");
}

Test(operators, P12_without_a_descriptor_the_loop_waits)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct rlimit limit;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	usec_t before;

	snprintf(to.sun_path, sizeof(to.sun_path),
	    "/proc/self/fd/%d/" OPERATORS_SOCKET, w.s.sp.dir[SPOOL_LOCK]);
	cr_assert_eq(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	limit = world_starve();
	before = clock_mono();
	world_run(&w);
	cr_assert_eq(w.s.operators->count, 0);
	cr_assert_not(
	    event_pending(w.s.operators->door.listening, EV_READ, NULL));
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (w.s.operators->count == 0)
		event_base_loop(w.s.base, EVLOOP_ONCE);
	cr_assert_geq(clock_mono() - before, USEC_PER_SEC / 2);
	cr_assert_eq(told(fd), 1);
}

/* ---- their part of the loop's time ---- */

static struct queue_id
some_id(uint64_t inode)
{
	return (struct queue_id){
		.arrival_wall = 1, .nonce = 1, .queue = 1, .inode = inode
	};
}

/* A question about a message that is not there: three frames come back. */
static void
ask(int fd, uint64_t serial)
{
	const struct queue_id id = some_id(4711);
	const struct msg msg = { .type = MSG_EXPLAIN,
		.u.EXPLAIN = { .serial = serial,
		    .arrival_wall = id.arrival_wall,
		    .nonce = id.nonce,
		    .queue = id.queue,
		    .inode = id.inode } };

	cr_assert_eq(chan_send(fd, &msg, -1), 0);
}

/* Ends of answers that have come. */
static uint32_t
answers(int fd)
{
	uint32_t n = 0;

	while (chan_recv(fd, &frame) == 1)
		n += frame.msg.type == MSG_EXPLAINED_END;
	return n;
}

static struct event *other;
static int rounds;

static void
on_other(int fd UNUSED, short what UNUSED, void *arg UNUSED)
{
	send_wake(&w.s);
	if (--rounds > 0)
		event_active(other, EV_TIMEOUT, 0);
	else
		event_base_loopbreak(w.s.base);
}

/* A few rounds of the loop, and other work in each of them. */
static void
busy_rounds(void)
{
	other = event_new(w.s.base, -1, 0, on_other, NULL);
	rounds = 5;
	event_active(other, EV_TIMEOUT, 0);
	event_base_loop(w.s.base, EVLOOP_NONBLOCK);
	event_free(other);
}

/* Nothing is left to spend, and time brings nothing. */
static void
spend_all(void)
{
	quota_spend(&w.s.acts.quota, QUOTA_DEBT);
	w.s.acts.quota.at = clock_mono() + 3600 * USEC_PER_SEC;
}

#define ASKED 12

/* mutation: serve() does not ask for credit. */
Test(operators, A9_beside_other_work_they_wait_for_their_part)
{
	int i, fd = connect_to();

	for (i = 0; i < 200; i++) {
		spend_all();
		if (i == 0)
			ask(fd, 1);
		busy_rounds();
		cr_assert_eq(answers(fd), 0, "round %d", i);
	}
	quota_init(&w.s.acts.quota, clock_mono());
	busy_rounds();
	cr_expect_eq(answers(fd), 1);
}

/* mutation: on_idle() fills nothing. */
Test(operators, A9_a_loop_without_work_serves_them_all)
{
	int i, fd = connect_to();

	spend_all();
	for (i = 0; i < ASKED; i++)
		ask(fd, 1);
	world_run(&w);
	cr_expect_eq(answers(fd), ASKED);
}

/* Answers come to the one that asks once, whoever came first, when there is
 * credit for one request at a time. */
static void
one_beside_one_that_asks_on(bool first)
{
	int greedy = connect_to(), modest = connect_to();
	uint32_t i, served = 0;

	spend_all();
	if (first)
		ask(modest, 1);
	busy_rounds();
	for (i = 0; i < 100; i++)
		ask(greedy, 1);
	busy_rounds();
	if (!first)
		ask(modest, 1);
	busy_rounds();
	cr_assert_eq(answers(modest), 0);
	for (i = 0; i < 20 && served == 0; i++) {
		w.s.acts.quota.credit = 1;
		busy_rounds();
		served = answers(modest);
	}
	cr_expect_eq(served, 1);
	cr_expect_leq(i, 2u, "its turn came: %u", i);
	close(greedy);
	close(modest);
	world_run(&w);
}

/* mutation: join_line() puts one in front. */
Test(operators, A9_one_that_asks_on_and_on_does_not_keep_others_waiting)
{
	one_beside_one_that_asks_on(true);
	one_beside_one_that_asks_on(false);
}

Test(operators, A9_one_that_waits_in_line_is_not_idle)
{
	int fds[OPERATORS_MAX + 1], more;
	struct operator* o;

	fill(fds);
	spend_all();
	for (more = 0; more < OPERATORS_MAX + 1; more++)
		ask(fds[more], 1);
	busy_rounds();
	TAILQ_FOREACH (o, &w.s.operators->list, link) {
		cr_assert(o->waits);
		o->heard -= 2 * OPERATORS_IDLE;
	}
	cr_expect_not(operators_end_idle(&w.s, false));
	quota_init(&w.s.acts.quota, clock_mono());
	world_run(&w);
	cr_expect_eq(answers(fds[0]), 1);
}

/* One that goes while it waits leaves nothing behind. */
Test(operators, P12_one_that_ends_in_line_is_forgotten)
{
	int fd = connect_to();

	spend_all();
	ask(fd, 1);
	close(fd);
	busy_rounds();
	cr_assert_not(TAILQ_EMPTY(&w.s.operators->line));
	operators_done(&w.s);
	operators_init(&w.s);
	fd = connect_to();
	ask(fd, 1);
	close(fd);
	world_run(&w);
	cr_expect_eq(w.s.operators->count, 0);
	cr_expect(TAILQ_EMPTY(&w.s.operators->line));
}
