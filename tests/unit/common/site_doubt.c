/* Doubted ends: sessions that are lost in the middle, and whether they count
 * against the destination. */
#include <criterion/criterion.h>

#include "site_shared_scratch.h"

/* N44: however many of its deliveries end so, and however often the site opens
 * anew. */
Test(site_doubt, N44_one_message_kills_no_destination)
{
	struct fixture t;
	struct site *a;
	int i;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 0);
	for (i = 0; i < 1000; i++)
		doubt(a, 7, 0);
	cr_expect_eq(view(a).state, SITE_ROOM);
	cr_expect_eq(view(a).window, 2);
	cr_expect(view(a).fail_cohorts == 0);
	kill_at(a, 0);
	site_flush(t.shared, 0);
	for (i = 0; i < 1000; i++)
		doubt(a, 7, 0);
	cr_expect_eq(view(a).state, SITE_ROOM);
	site_close(a, 0);
	end(&t);
}

Test(site_doubt, two_messages_are_failures_of_the_site)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 0);
	doubt(a, 7, 0);
	doubt(a, 8, 0);
	deliver(a, SITE_DELIVERED, 0);
	doubt(a, 8, 0);
	doubt(a, 8, 0);
	cr_expect_eq(view(a).state, SITE_ROOM, "a success ends the doubt");
	doubt(a, 7, 0);
	cr_expect_eq(view(a).state, SITE_ROOM, "the window is 2");
	doubt(a, 9, 0);
	cr_expect_eq(view(a).state, SITE_DEAD);
	cr_expect_str_eq(view(a).why, "lost");
	site_close(a, 0);
	end(&t);
}

/* A site that is idle remembers the message. */
Test(site_doubt, a_doubt_is_not_forgotten_at_once)
{
	struct fixture t;
	struct site *a;

	begin(&t, &plain, &exact, 1);
	a = open_at(&t, "a", 0);
	doubt(a, 7, 0);
	site_close(a, 0);
	a = open_at(&t, "A", SEC);
	doubt(a, 8, SEC);
	cr_expect(view(a).fail_cohorts == 0.5);
	site_close(a, SEC);
	end(&t);
}

/* N44: a message of one queue, and what all queues learn. */
Test(site_doubt, N44_queues_tell_messages_apart)
{
	struct scratch t;
	struct end ends[2];
	struct site *sites[2];
	int i;

	scratch_begin(&t, SHARED_SET_SLOTS, 2);
	for (i = 0; i < 2; i++) {
		end_begin(&ends[i], &t, (uint32_t)i + 1, &plain);
		sites[i] = end_site(&ends[i], "a", 0);
	}
	for (i = 0; i < 100; i++) {
		end_take(sites[0], 0);
		end_doubt(sites[0], 7, 0);
	}
	end_take(sites[0], 0);
	cr_expect_eq(end_view(sites[0]).state, SITE_ROOM);
	cr_expect(end_view(sites[0]).fail_cohorts == 0);
	for (i = 0; i < 2; i++) {
		end_take(sites[1], 0);
		end_doubt(sites[1], 8, 0);
	}
	cr_expect_eq(end_view(sites[1]).state, SITE_DEAD);
	end_done(sites[0], SITE_AGENT_DIED, 0);
	for (i = 0; i < 2; i++)
		end_close(&ends[i]);
	scratch_end(&t);
}
