/* Files that rest: how many, how long, and what gives them back before. */
#include "tests/unit/queue-send/world.h"
#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the list ---- */

static struct messages ms;

static struct message *
add(uint64_t inode)
{
	const struct msg_MESSAGE frame = { .inode = inode };
	struct message *m = messages_add(&ms, &frame);

	cr_assert_not_null(m);
	m->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	cr_assert_geq(m->fd, 0);
	return m;
}

static void
begin(void)
{
	messages_init(&ms, 3);
}

static void
drop_all(void)
{
	struct message *m;

	while ((m = messages_first(&ms, STATE_OFFERED_DEFERRED)) != NULL)
		messages_drop(&ms, m);
	cr_expect_eq(ms.nresting, 0);
}

TestSuite(rest_list, .init = begin, .fini = drop_all, .timeout = 60);

Test(rest_list, as_many_as_the_limit_of_descriptors_leaves)
{
	static const struct {
		uint64_t descriptors;
		uint32_t want;
	} rows[] = { { 0, 16 }, { 64, 16 }, { 512, 16 }, { 1024, 256 },
		{ 4096, 1792 }, { 8704, 4096 }, { 65536, 4096 },
		{ UINT64_MAX, 4096 } };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(
		    messages_rest_max(rows[i].descriptors), rows[i].want);
}

/* mutation: queue-send/state/message.c: messages_rest() never closes; or closes
 * the last. */
Test(rest_list, P12_the_one_that_has_rested_longest_makes_room)
{
	struct message *m[5];
	uint64_t i;

	for (i = 0; i < 4; i++)
		m[i] = add(i + 1);
	messages_rest(&ms, m[1], 1);
	messages_rest(&ms, m[0], 2);
	messages_rest(&ms, m[1], 3); /* as before */
	messages_rest(&ms, m[2], 4);
	messages_rest(&ms, m[3], 5);
	cr_expect_eq(m[1]->fd, -1);
	cr_expect_geq(m[0]->fd, 0);
	messages_use(&ms, m[0]);
	m[4] = add(5);
	messages_rest(&ms, m[4], 6);
	for (i = 2; i < 5; i++)
		cr_expect_geq(m[i]->fd, 0, "one was in use again");
	messages_rest(&ms, m[0], 7);
	cr_expect_eq(m[2]->fd, -1);
	cr_expect_eq(ms.nresting, 3);
}

/* mutation: queue-send/state/message.c: messages_end_rest() waits for each its
 * time.
 */
Test(rest_list, D9_all_are_closed_when_the_queue_is_idle)
{
	struct message *a = add(1), *b = add(2);
	usec_t begun = 100 * USEC_PER_SEC;

	cr_expect_eq(messages_end_rest(&ms, begun), USEC_NEVER);
	messages_rest(&ms, a, begun);
	messages_rest(&ms, b, begun + USEC_PER_SEC / 2);
	begun += USEC_PER_SEC / 2;
	cr_expect_eq(messages_end_rest(&ms, begun + MESSAGES_REST_IDLE - 1),
	    begun + MESSAGES_REST_IDLE);
	cr_expect_geq(a->fd, 0);
	cr_expect_eq(
	    messages_end_rest(&ms, begun + MESSAGES_REST_IDLE), USEC_NEVER);
	cr_expect_eq(a->fd, -1);
	cr_expect_eq(b->fd, -1);
}

/* Others come and go.
 * mutation: queue-send/state/message.c: messages_end_rest() knows no
 * MESSAGES_REST_TIME, or no messages_rest() renews ms->rested_at. */
Test(rest_list, D9_each_is_closed_after_a_time)
{
	struct message *waits = add(1), *goes = add(2);
	const usec_t begun = 100 * USEC_PER_SEC;
	usec_t now;

	messages_rest(&ms, waits, begun);
	for (now = begun; now < begun + MESSAGES_REST_TIME;
	     now += MESSAGES_REST_IDLE / 2) {
		cr_expect_gt(messages_end_rest(&ms, now), now);
		cr_expect_geq(waits->fd, 0);
		messages_rest(&ms, goes, now);
		messages_use(&ms, goes);
	}
	messages_rest(&ms, goes, now);
	cr_expect_eq(messages_end_rest(&ms, now), now + MESSAGES_REST_IDLE);
	cr_expect_eq(waits->fd, -1);
	cr_expect_geq(goes->fd, 0);
}

/* ---- in a queue ---- */

static struct world w;
static unsigned before;

static void
start(void)
{
	w = (struct world){ .tells = true, .passes = true };
	world_start(&w, "initial_destination_concurrency = 1\n");
	before = unit_descriptors();
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(rest, .init = start, .fini = end, .timeout = 60);

static uint64_t
offer(const char *to)
{
	const uint64_t inode = world_file(&w, to, 1, 0);

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	(void)world_opens();
	return inode;
}

/* mutation: queue-send/control.c: send_init() asks for no limit. */
Test(rest, P12_no_more_than_the_limit_of_the_process_allows)
{
	struct rlimit limit, low;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = 612;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	world_again(&w);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(w.s.messages.rest_max, 50);
}

/* A delivery runs; a file that was closed and one that rests wait behind it. */
static void
begin_three(struct world_delivery *first, const struct message **ret_rests)
{
	offer("a@one.test");
	world_take_one(&w, first);
	offer("b@one.test");
	messages_close_resting(&w.s.messages);
	*ret_rests = messages_find(&w.s.messages, offer("c@smtp.test"));
	cr_assert_not_null(*ret_rests);
	cr_assert_geq((*ret_rests)->fd, 0);
	cr_assert_eq(unit_descriptors(), before + 2);
}

/* mutation: queue-send/disk/files.c: disk_open() tries once. */
Test(rest, P12_they_are_given_back_to_open_another)
{
	struct world_delivery delivery;
	const struct message *rests;

	begin_three(&delivery, &rests);
	world_fail(CALL_OPEN, EMFILE, 1);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	world_take_one(&w, &delivery);
	cr_expect_str_eq(delivery.first, "b@one.test");
	cr_expect_eq(rests->fd, -1);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(w.s.active, 1);
}

static void
let_start(void)
{
	w.s.dispatch_at = 0;
	send_wake(&w.s);
	world_run(&w);
}

/* Content of more than 32 KiB goes by a descriptor of its own.
 * mutation: queue-send/agents/dispatch.c: wait_with() closes none. */
Test(rest, P12_they_are_given_back_for_the_file_of_an_agent)
{
	static char large[AGENT_WHOLE_MAX + 2];
	struct world_delivery delivery;
	struct rlimit limit;
	uint64_t inode;

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 2] = '\n';
	w.content = large;
	w.s.dispatch_at = USEC_NEVER;
	inode = offer("r@local.test");
	offer("s@smtp.test"); /* without an agent */
	limit = world_starve();
	let_start();
	cr_expect_not(world_take(&w, &delivery));
	cr_expect_gt(w.s.dispatch_at, w.s.now);
	let_start();
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
}
