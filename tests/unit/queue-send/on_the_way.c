/* A message on its way to the active queue, and the link that asked for it. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/peers/peers.h"

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

/* mutation: queue-send/peers/offers.c: unask_all() asks for none again. */
Test(on_the_way, D41_a_message_on_its_way_is_not_asked_for_again)
{
	const uint64_t inode = world_message(&w, "d", 1);
	struct message *m;

	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	w.s.admission_blocked_until = USEC_NEVER;
	world_offer_again(&w, inode);
	m = messages_find(&w.s.messages, inode);
	cr_assert_not_null(m);
	messages_put(&w.s.messages, m, LIST_ENTERING_DEFERRED);
	offers_drop(&w.s);
	cr_expect_eq(w.s.due.asked, 1);
	messages_put(&w.s.messages, m, LIST_OFFERED_DEFERRED);
	w.s.admission_blocked_until = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_is_empty(&w);
}
