/* The rate of reports to one address. */
#include "queue-send/state/pure.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define S   USEC_PER_SEC
#define NOW (1000000 * S)

static struct told_rate t;

static uint32_t
send_of(
    uint32_t uid, const char *address, uint32_t limit, uint32_t n, usec_t now)
{
	const struct told_to to = { uid, address };
	uint32_t sent = 0;

	for (; n > 0; n--)
		if (told_wait(&t, &to, limit, now) == 0) {
			told_count(&t, &to, limit, now);
			sent++;
		}
	return sent;
}

static uint32_t
send_all(const char *address, uint32_t limit, uint32_t n, usec_t now)
{
	return send_of(1000, address, limit, n, now);
}

/* mutation: queue-send/state/told.c: hash_of() leaves the uid out. */
Test(told, X28_mail_of_another_user_takes_no_report_away)
{
	uint32_t uid;

	cr_expect_eq(send_of(1001, "a@x", 10, 900, NOW), 10, "forged");
	cr_expect_eq(send_of(1000, "a@x", 10, 25, NOW), 10, "his own");
	cr_expect_eq(send_of(1001, "A@x", 10, 900, NOW), 0);
	/* More pairs than there is room for do not free one that is above. */
	for (uid = 2000; uid < 22000; uid++)
		cr_expect_eq(send_of(uid, "a@x", 10, 1, NOW), 1);
	cr_expect_eq(send_of(1001, "a@x", 10, 1, NOW), 0);
}

Test(told, C9_the_limit_at_once_and_then_by_the_hour)
{
	cr_expect_eq(send_all("a@x", 10, 25, NOW), 10);
	cr_expect_eq(send_all("A@X", 10, 25, NOW), 0, "the same address");
	cr_expect_eq(send_all("b@x", 10, 25, NOW), 10, "another one");
	cr_expect_eq(send_all("a@x", 10, 25, NOW + 360 * S), 1);
	cr_expect_eq(send_all("a@x", 10, 25, NOW + 3600 * S), 9);
	cr_expect_eq(send_all("a@x", 10, 25, NOW + 100000 * S), 10);
	cr_expect_eq(send_all("a@x", 0, 25, NOW), 25, "no limit");
}

/* Each of those that wait gets a time of its own. */
Test(told, C9_who_waits_longer_comes_first)
{
	const struct told_to to = { 1000, "a@x" };
	usec_t last = 0, wait;
	int i;

	cr_assert_eq(send_all("a@x", 10, 10, NOW), 10);
	for (i = 1; i <= 20; i++) {
		wait = told_wait(&t, &to, 10, NOW);
		cr_expect_eq(wait, i * 360 * S, "%d: %lld", i, (long long)wait);
		cr_expect_gt(wait, last);
		last = wait;
	}
}

Test(told, C9_what_is_not_made_does_not_count)
{
	const struct told_to to = { 1000, "a@x" };
	int i;

	for (i = 0; i < 50; i++) {
		cr_assert_eq(send_all("a@x", 10, 1, NOW), 1);
		told_take_back(&t, &to, 10);
	}
	cr_expect_eq(send_all("a@x", 10, 20, NOW), 10);
}

/* More addresses than there is room for: the busy one is not forgotten. */
Test(told, C9_many_addresses_do_not_free_one)
{
	char address[32];
	int i;

	cr_assert_eq(send_all("a@x", 10, 10, NOW), 10);
	for (i = 0; i < 20000; i++) {
		snprintf(address, sizeof(address), "u%d@x", i);
		cr_expect_eq(send_all(address, 10, 1, NOW), 1);
	}
	cr_expect_eq(send_all("a@x", 10, 1, NOW), 0);
}
