/* Slots: taken for other sites, and sets without one to spare. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>

#include "site_shared_scratch.h"

static struct site *
numbered(struct end *e, int i, usec_t now)
{
	char name[32];

	snprintf(name, sizeof(name), "host%d.example", i);
	return end_site(e, name, now);
}

static struct shared_figures
figures(struct end *e)
{
	struct shared_figures f;

	shared_figures(e->shared, &f);
	return f;
}

/* One set: what was learned goes, the least recently used first and the dead
 * last. */
Test(site_shared_slot, the_least_recently_used_goes_first)
{
	struct site_params p = plain;
	struct scratch t;
	struct site *s[SHARED_SET_SLOTS + 2];
	struct end e;
	int i;

	p.positive = (struct window_feedback){ 0.5, WINDOW_FIXED };
	scratch_begin(&t, SHARED_SET_SLOTS, 1);
	end_begin(&e, &t, 1, &p);
	for (i = 0; i < SHARED_SET_SLOTS; i++) {
		s[i] = numbered(&e, i, i);
		end_take(s[i], i);
		end_done(s[i], SITE_DELIVERED, i);
	}
	end_take(s[0], 100);
	end_done(s[0], SITE_FAILED, 100);
	end_take(s[0], 100);
	end_done(s[0], SITE_FAILED, 100);
	cr_expect_eq(figures(&e).evicted, 0);
	s[i] = numbered(&e, i, 200);
	end_take(s[i], 200);
	cr_expect_eq(figures(&e).evicted, 1);
	cr_expect_eq(site_state(s[0], 200), SITE_DEAD);
	cr_expect_eq(site_state(s[1], 200), SITE_ROOM);
	cr_expect(end_view(s[1]).success == 0, "it was forgotten");
	cr_expect_eq(site_state(s[2], 200), SITE_ROOM);
	cr_expect(end_view(s[2]).success == 0.5, "it was not");
	end_close(&e);
	scratch_end(&t);
}

/* Slots with places are nobody else's; who finds none is told when there is
 * one. */
Test(site_shared_slot, a_crowded_set)
{
	struct scratch t;
	struct site *s[SHARED_SET_SLOTS], *more;
	uint32_t told = 0;
	struct end e, other;
	struct pollfd p;
	int i;

	scratch_begin(&t, SHARED_SET_SLOTS, 2);
	end_begin(&e, &t, 1, &plain);
	end_begin(&other, &t, 2, &plain);
	for (i = 0; i < SHARED_SET_SLOTS; i++) {
		s[i] = numbered(&e, i, 0);
		end_take(s[i], 0);
	}
	more = numbered(&other, i, 0);
	*site_user(more) = &told;
	cr_expect_eq(site_state(more, 0), SITE_FULL);
	end_wait(more, 0);
	end_full(more, 0);
	cr_expect_gt(figures(&other).crowded, 0);
	end_work(&other, 0);
	cr_expect_eq(told, 0);
	end_done(s[7], SITE_AGENT_DIED, 0);
	p = (struct pollfd){ .fd = shared_wake_fd(other.shared),
		.events = POLLIN };
	cr_expect_eq(poll(&p, 1, 120000), 1);
	end_work(&other, 0);
	cr_expect_eq(told, 1);
	end_take(more, 0);
	cr_expect_eq(site_take(s[7], 0), SITE_FULL);
	(void)site_wait(s[7], true, 0);
	end_work(&e, 0);
	/* The slots of a queue that has ended are free. */
	*site_user(s[7]) = &told;
	end_die(&other);
	shared_forget(e.shared, 2, 1, 0);
	end_work(&e, 0);
	cr_expect_eq(told, 2);
	end_close(&e);
	scratch_end(&t);
}

/* A name that differs behind what a slot keeps of it is another site. */
Test(site_shared_slot, long_names)
{
	struct scratch t;
	char a[SITE_NAME_MAX + 1], b[SITE_NAME_MAX + 1];
	struct site *one, *two;
	struct end e;
	size_t i;

	for (i = 0; i < SITE_NAME_MAX; i++)
		a[i] = b[i] = 'x';
	a[i] = b[i] = '\0';
	b[i - 1] = 'y';
	scratch_begin(&t, SHARED_SET_SLOTS, 1);
	end_begin(&e, &t, 1, &plain);
	one = end_site(&e, a, 0);
	two = end_site(&e, b, 0);
	cr_expect_neq(one, two);
	end_take(one, 0);
	end_take(one, 0);
	end_full(one, 0);
	end_take(two, 0);
	end_close(&e);
	scratch_end(&t);
}

Test(site_shared_slot, names_compare_without_case_between_queues)
{
	struct scratch t;
	struct end a, b;
	struct site *one, *two;

	scratch_begin(&t, 1000, 2);
	end_begin(&a, &t, 1, &plain);
	end_begin(&b, &t, 2, &plain);
	one = end_site(&a, "MX.Example", 0);
	two = end_site(&b, "mx.eXample", 0);
	end_take(one, 0);
	end_take(one, 0);
	end_full(two, 0);
	cr_expect_str_eq(site_name(one), "MX.Example");
	cr_expect_str_eq(site_name(two), "mx.eXample");
	end_close(&a);
	end_close(&b);
	scratch_end(&t);
}

/* mutation: slot_age() up to now, also while the site is open */
Test(site_shared_slot, what_is_learned_outlives_a_long_wait)
{
	struct site_params p = plain;
	struct scratch t;
	struct site *site;
	struct end e;

	p.positive = (struct window_feedback){ 1, WINDOW_FIXED };
	scratch_begin(&t, 64, 1);
	end_begin(&e, &t, 1, &p);
	site = end_site(&e, "a", 0);
	end_take(site, 0);
	end_done(site, SITE_DELIVERED, 0);
	cr_expect_eq(end_view(site).window, 3);
	/* The mail of an open destination waits for an agent. */
	cr_expect_eq(site_state(site, 3 * MAX), SITE_ROOM);
	cr_expect_eq(end_view(site).window, 3, "it was open");
	site_close(site, 3 * MAX);
	site = end_site(&e, "a", 5 * MAX);
	cr_expect_eq(site_state(site, 6 * MAX), SITE_ROOM);
	cr_expect_eq(end_view(site).window, 3, "idle for twice MAX");
	site_close(site, 6 * MAX);
	site = end_site(&e, "a", 8 * MAX + 1);
	cr_expect_eq(site_state(site, 8 * MAX + 1), SITE_ROOM);
	cr_expect_eq(end_view(site).window, 2, "idle for longer");
	end_close(&e);
	scratch_end(&t);
}

/* What one queue learns holds for all. */
Test(site_shared_slot, what_is_learned_is_common)
{
	struct site_params p = plain;
	struct scratch t;
	struct end a, b;
	struct site *one, *two;

	p.positive = (struct window_feedback){ 1, WINDOW_FIXED };
	scratch_begin(&t, 64, 2);
	end_begin(&a, &t, 1, &p);
	end_begin(&b, &t, 2, &p);
	one = end_site(&a, "a", 0);
	two = end_site(&b, "a", 0);
	end_take(one, 0);
	end_take(two, 0);
	end_done(one, SITE_DELIVERED, 0);
	(void)site_state(two, 0);
	cr_expect_eq(end_view(two).window, 3, "it was used by both");
	end_take(one, 0);
	end_take(one, 0);
	end_full(one, 0);
	end_done(one, SITE_FAILED, 0);
	end_done(one, SITE_FAILED, 0);
	end_take(one, 0);
	end_done(one, SITE_FAILED, 0);
	cr_expect_eq(site_state(two, 0), SITE_DEAD);
	/* It began before, and says that it lives. */
	end_done(two, SITE_DELIVERED, 1);
	cr_expect_eq(site_state(one, 1), SITE_ROOM);
	cr_expect_eq(end_view(one).window, 1);
	cr_expect_eq(end_view(one).deaths, 0);
	end_close(&a);
	end_close(&b);
	scratch_end(&t);
}

Test(site_shared_slot, a_flush_of_one_opens_for_all)
{
	struct scratch t;
	struct end a, b;
	struct site *one, *two;

	scratch_begin(&t, 64, 2);
	end_begin(&a, &t, 1, &plain);
	end_begin(&b, &t, 2, &plain);
	one = end_site(&a, "a", 0);
	two = end_site(&b, "a", 0);
	end_take(one, 0);
	end_take(one, 0);
	end_done(one, SITE_FAILED, 0);
	end_done(one, SITE_FAILED, 0);
	cr_expect_eq(site_state(two, MIN - 1), SITE_DEAD);
	site_flush(b.shared, 1);
	cr_expect_eq(site_state(one, 1), SITE_ROOM);
	cr_expect_eq(end_view(one).deaths, 1);
	end_close(&a);
	end_close(&b);
	scratch_end(&t);
}

/* A limit that was lowered while more is busy, in one of two at first. */
Test(site_shared_slot, new_parameters)
{
	struct site_params two[] = { plain, plain };
	static const char *const names[] = { "smtp", "lmtp" };
	struct shared_params p = { two, names, 2, exact };
	struct scratch t;
	struct end a, b;
	struct site *one, *other;

	two[0].initial_destination_concurrency = 9;
	scratch_begin(&t, 64, 2);
	end_begin(&a, &t, 1, &two[0]);
	end_begin(&b, &t, 2, &two[0]);
	one = end_site(&a, "a", 0);
	other = end_site(&b, "a", 0);
	end_take(one, 0);
	end_take(one, 0);
	end_take(other, 0);
	two[0].destination_concurrency_limit = 2;
	p.count = 1;
	cr_expect_lt(shared_configure(a.shared, &p), 0);
	p.count = 2;
	cr_expect_eq(shared_configure(a.shared, &p), 0);
	end_full(one, 0);
	cr_expect_eq(end_view(one).window, 2);
	cr_expect_eq(end_view(one).busy, 3, "what runs goes on");
	end_full(other, 0);
	end_done(one, SITE_AGENT_DIED, 0);
	end_full(other, 0);
	end_done(one, SITE_AGENT_DIED, 0);
	end_take(other, 0);
	two[0].destination_concurrency_limit = 0;
	cr_expect_eq(shared_configure(a.shared, &p), 0);
	end_full(one, 0);
	end_close(&a);
	end_close(&b);
	scratch_end(&t);
}
