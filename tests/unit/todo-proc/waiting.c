/* When the mail of users is counted. */
#include "tests/unit/todo-proc/world.h"

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

TestSuite(waiting, .init = start, .fini = end, .timeout = 60);

/* At this time; true: a walk has begun. */
static bool
walks_at(usec_t now)
{
	w.t.now = now;
	(void)waiting_work(&w.t);
	return w.t.waiting.began_at == now;
}

Test(waiting, X6_no_walk_begins_when_a_message_is_about_to_move)
{
	const usec_t now = 3600 * USEC_PER_SEC;

	w.t.waiting.wanted = false;
	w.t.waiting.seen = true;
	w.t.waiting.quiet_at = USEC_NEVER;
	w.t.now = now;
	waiting_changed(&w.t);
	cr_expect_not(walks_at(now));
	cr_expect_not(walks_at(now + WAITING_EVERY - 1));
	waiting_changed(&w.t); /* puts nothing off */
	cr_expect(walks_at(now + WAITING_EVERY));
}

Test(waiting, X6_a_walk_waits_for_the_share_of_the_last_one)
{
	const usec_t now = 3600 * USEC_PER_SEC;

	w.t.waiting.wanted = false;
	w.t.waiting.seen = true;
	w.t.waiting.quiet_at = USEC_NEVER;
	w.t.waiting.not_before = now + 50 * USEC_PER_SEC;
	w.t.now = now;
	waiting_changed(&w.t);
	cr_expect_not(walks_at(now + 50 * USEC_PER_SEC - 1));
	cr_expect(walks_at(now + 50 * USEC_PER_SEC));
}
