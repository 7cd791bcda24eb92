/* Places that are kept for an open connection between two deliveries. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "site_shared_scratch.h"

#define ENDS 4

static const struct site_params four = {
	.initial_destination_concurrency = 4,
	.destination_concurrency_limit = 4,
	.failed_cohort_limit = 1,
};

static struct scratch t;
static struct end ends[ENDS];
static struct site *sites[ENDS];

static void
set_up(void)
{
	uint32_t i;

	scratch_begin(&t, SHARED_SET_SLOTS, ENDS);
	for (i = 0; i < ENDS; i++) {
		end_begin(&ends[i], &t, i + 1, &four);
		sites[i] = end_site(&ends[i], "a.example", 0);
	}
}

static void
tear_down(void)
{
	uint32_t i;

	for (i = 0; i < ENDS; i++)
		end_close(&ends[i]);
	scratch_end(&t);
}

TestSuite(site_shared_kept, .init = set_up, .fini = tear_down, .timeout = 60);

static void
places(uint32_t who, uint32_t n)
{
	while (n-- > 0)
		end_take(sites[who], 0);
}

/* Deliveries that leave their connections open. */
static void
keep(uint32_t who, uint32_t n)
{
	while (n-- > 0) {
		shared_keep(sites[who]);
		end_done(sites[who], SITE_DELIVERED, 0);
	}
}

static void
give_back(uint32_t who)
{
	shared_keep_not(sites[who]);
	end_done(sites[who], SITE_AGENT_DIED, 0);
}

/* mutation: common/site/shared_access.c, shared_access_take() that counts a
 * kept place once more. */
Test(site_shared_kept, a_kept_place_is_taken_before_any_other)
{
	places(0, 4);
	keep(0, 4);
	end_full(sites[1], 0);
	places(0, 4);
	end_full(sites[0], 0);
	cr_expect_eq(end_view(sites[0]).busy, 4);
	end_done(sites[0], SITE_DELIVERED, 0);
	places(1, 1);
}

Test(site_shared_kept, it_is_no_delivery)
{
	places(0, 3);
	keep(0, 2);
	places(1, 1);
	cr_expect_eq(end_view(sites[0]).busy, 1);
	cr_expect_eq(end_view(sites[0]).state, SITE_ROOM);
	end_full(sites[1], 0);
	cr_expect_eq(end_view(sites[1]).busy, 4, "others may be");
}

/* A window grows with the deliveries that there are, not with connections.
 * mutation: common/site/shared_access.c, deliveries() that counts all. */
Test(site_shared_kept, a_window_does_not_grow_by_them)
{
	static const struct site_params grows = {
		.initial_destination_concurrency = 10,
		.destination_concurrency_limit = 20,
		.positive = { 1, WINDOW_FIXED },
		.failed_cohort_limit = 1,
	};
	struct site *site;
	struct end e;
	uint32_t i;

	end_close(&ends[3]);
	end_begin(&e, &t, 4, &grows);
	site = end_site(&e, "b.example", 0);
	for (i = 0; i < 10; i++)
		end_take(site, 0);
	for (i = 0; i < 9; i++) {
		shared_keep(site);
		end_done(site, SITE_AGENT_DIED, 0);
	}
	for (i = 0; i < 20; i++) { /* one at a time */
		shared_keep(site);
		end_done(site, SITE_DELIVERED, 0);
		end_take(site, 0);
	}
	cr_expect_eq(end_view(site).window, 11);
	end_close(&e);
	end_begin(&ends[3], &t, 4, &four);
}

Test(site_shared_kept, given_back_it_is_the_waiters)
{
	static uint32_t told;

	*site_user(sites[1]) = &told;
	places(0, 4);
	end_wait(sites[1], 0);
	keep(0, 4);
	end_work(&ends[1], 0);
	cr_expect_eq(told, 0);
	end_full(sites[1], 0);
	give_back(0);
	end_work(&ends[1], 0);
	cr_expect_eq(told, 1);
	places(1, 1);
	places(0, 3);
	end_full(sites[0], 0);
}

/* ---- who wants it ---- */

Test(site_shared_kept, the_share_of_a_queue_is_its_own)
{
	places(0, 4);
	cr_expect_eq(shared_want(sites[0], 0, 0, 0), SHARED_WANT_NONE);
	end_wait(sites[1], 0);
	cr_expect_eq(shared_want(sites[0], 0, 0, 0), SHARED_WANT_NOW);
	cr_expect_eq(shared_want(sites[0], 0, SEC, SEC - 1), SHARED_WANT_IDLE);
	cr_expect_eq(shared_want(sites[0], 0, SEC, SEC), SHARED_WANT_NOW);
	cr_expect_eq(shared_want(sites[0], 1, 0, 0), SHARED_WANT_NONE,
	    "one is on its way to the one that waits");
	cr_expect_eq(
	    shared_want(sites[1], 0, 0, 0), SHARED_WANT_NONE, "it waits");
	keep(0, 1);
	give_back(0);
	places(1, 1);
	end_wait(sites[1], 0);
	cr_expect_eq(
	    shared_want(sites[0], 0, 0, 0), SHARED_WANT_NOW, "three of four");
	keep(0, 1);
	give_back(0);
	places(1, 1);
	end_wait(sites[1], 0);
	cr_expect_eq(shared_want(sites[0], 0, 0, 0), SHARED_WANT_IDLE);
	end_wait(sites[2], 0);
	cr_expect_eq(
	    shared_want(sites[0], 0, 0, 0), SHARED_WANT_NOW, "2 of 4 / 3");
}

Test(site_shared_kept, a_dead_site_has_no_use_for_it)
{
	uint32_t i;

	places(0, 3);
	keep(0, 1);
	for (i = 0; i < 2; i++)
		end_done(sites[0], SITE_FAILED, 0);
	for (i = 0; i < 2; i++) {
		places(1, 1);
		end_done(sites[1], SITE_FAILED, 0);
	}
	cr_expect_eq(site_take(sites[0], 0), SITE_DEAD);
	cr_expect_eq(shared_want(sites[0], 0, 0, 0), SHARED_WANT_NOW);
	give_back(0);
}

Test(site_shared_kept, a_smaller_window_has_no_room_for_it)
{
	static const char *const names[] = { "smtp", "lmtp" };
	struct site_params small[] = { four, four };
	const struct shared_params p = {
		.sites = small,
		.names = names,
		.count = 2,
		.backoff = exact,
	};

	small[0].initial_destination_concurrency = 1;
	small[0].destination_concurrency_limit = 1;
	places(0, 4);
	keep(0, 4);
	cr_assert_eq(shared_configure(ends[0].shared, &p), 0);
	end_full(sites[0], 0);
	cr_expect_eq(shared_want(sites[0], 0, 0, 0), SHARED_WANT_NOW);
	give_back(0);
	give_back(0);
	give_back(0);
	end_take(sites[0], 0); /* the last one fits */
	end_full(sites[0], 0);
}

/* ---- ends of processes ---- */

Test(site_shared_kept, P1_the_places_of_the_dead_stay_until_they_are_forgotten)
{
	places(0, 4);
	keep(0, 3);
	end_die(&ends[0]);
	end_full(sites[1], 0);
	shared_forget(ends[1].shared, 1, 1, 0);
	places(1, 4);
	end_begin(&ends[0], &t, 1, &four);
}

Test(site_shared_kept, a_new_table_counts_them)
{
	struct shared_id old;
	int fd;
	uint32_t i;

	places(0, 3);
	keep(0, 2);
	cr_assert_eq(shared_identify(t.fd, &old), 0);
	cr_assert_eq(
	    shared_renew(t.name,
		&(struct shared_shape){
		    .slots = SHARED_SET_SLOTS, .members = ENDS },
		&(struct shared_owner){ (uid_t)-1, (gid_t)-1 }, &old, &fd),
	    0);
	for (i = 0; i < ENDS; i++)
		cr_assert_eq(shared_attach(ends[i].shared, fd, i + 1, 1, 0), 0);
	cr_assert_eq(shared_open_up(fd), 0);
	places(1, 1);
	end_full(sites[1], 0);
	places(0, 2);
	end_full(sites[0], 0);
	close(fd);
}
