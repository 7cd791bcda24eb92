/* A message on its way to the active queue, the link that asked for it, and
 * offers that meet. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/agents/agents.h"

#include <criterion/criterion.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(on_the_way, .init = start, .fini = end, .timeout = 60);

/* mutation: queue-send/agents/offers.c: unask_all() asks for none again. */
Test(on_the_way, D41_a_message_on_its_way_is_not_asked_for_again)
{
	const uint64_t inode = world_message(&w, "d", 1);
	struct message *m;

	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	w.s.admission_blocked_until = USEC_NEVER;
	world_offer_again(&w, inode);
	m = messages_find(&w.s.messages, inode);
	cr_assert_not_null(m);
	messages_put(&w.s.messages, m, STATE_ENTERING_DEFERRED);
	offers_drop(&w.s);
	cr_expect_eq(w.s.due.asked, 1);
	messages_put(&w.s.messages, m, STATE_OFFERED_DEFERRED);
	w.s.admission_blocked_until = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}

/* ---- offers that meet ---- */

/* 20 messages, of which one destination has 4: a fifth one is parked. */
static uint64_t
park_one(void)
{
	uint64_t inode;
	uint32_t i;

	world_end(&w);
	world_start(&w,
	    "qmgr_message_active_limit = 20\n"
	    "initial_destination_concurrency = 1\n");
	for (i = 0; i < 4; i++)
		world_message(&w, "a@slow.test", 1);
	inode = world_message(&w, "b@slow.test", 1);
	cr_assert_eq(w.s.due.parked, 1);
	return inode;
}

/* As if the message still lay in incoming/. */
static void
offer_as_new(uint64_t inode)
{
	const struct queue_id id = world_id(&w, inode);
	const struct msg offer = { .type = MSG_MESSAGE,
		.u.MESSAGE = { .inode = inode,
		    .dir = SPOOL_INCOMING,
		    .arrival_wall = id.arrival_wall,
		    .queue = id.queue,
		    .nonce = id.nonce,
		    .recipients = 1,
		    .pending = 1 } };

	w.credit--;
	world_send(w.todo, &offer);
	world_run(&w);
}

/* mutation: queue-send/message/active.c: refused() leaves it asked for. */
Test(on_the_way, what_an_offer_of_before_has_swallowed_is_asked_for_again)
{
	const uint64_t inode = park_one();

	w.s.admission_blocked_until = USEC_NEVER;
	offer_as_new(inode);
	cr_assert_eq(w.s.messages.count[STATE_OFFERED_INCOMING], 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 4);
	cr_assert_eq(w.nprepared, 1);
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
	cr_expect_eq(w.s.messages.count[STATE_OFFERED_DEFERRED], 0);
	w.s.admission_blocked_until = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(w.nprepared, 2);
	cr_assert_eq(w.s.due.asked, 1);
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(w.s.due.count, 0);
	world_is_empty(&w);
}

/* The name was that of another message when it moved.
 * mutation: queue-send/agents/offers.c: is_new() forgets the one that has come
 * with it. */
Test(on_the_way, D22_the_offer_of_a_file_that_goes_back_is_passed_over)
{
	const uint64_t offered = world_file(&w, "d", 1, 0);
	const uint64_t other = world_file(&w, "d", 1, 0);
	const struct message *m;

	w.s.finish_at = USEC_NEVER;
	world_offer_with(&w, offered, -1, other);
	world_run(&w);
	m = messages_find(&w.s.messages, other);
	cr_assert_not_null(m);
	cr_assert_eq(m->fate, FATE_REPLACED);
	offer_as_new(other);
	cr_expect_eq(messages_find(&w.s.messages, other), m);
	cr_expect_eq(w.scans, 1);
	w.s.finish_at = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_where(&w, other), SPOOL_INCOMING);
	world_offer(&w, SPOOL_INCOMING, other);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_expect_eq(world_where(&w, other), SPOOL_NDIRS);
}
