/* The rate of reports to one address. */
#include "queue-send/pure/pure.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define S   USEC_PER_SEC
#define NOW (1000000 * S)

static struct told_rate t;

static uint32_t
send_all(const char *address, uint32_t limit, uint32_t n, usec_t now)
{
	uint32_t sent = 0;

	for (; n > 0; n--)
		if (told_wait(&t, address, limit, now) == 0) {
			told_count(&t, address, limit, now);
			sent++;
		}
	return sent;
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
	usec_t last = 0, wait;
	int i;

	cr_assert_eq(send_all("a@x", 10, 10, NOW), 10);
	for (i = 1; i <= 20; i++) {
		wait = told_wait(&t, "a@x", 10, NOW);
		cr_expect_eq(wait, i * 360 * S, "%d: %lld", i, (long long)wait);
		cr_expect_gt(wait, last);
		last = wait;
	}
}

Test(told, C9_what_is_not_made_does_not_count)
{
	int i;

	for (i = 0; i < 50; i++) {
		cr_assert_eq(send_all("a@x", 10, 1, NOW), 1);
		told_take_back(&t, "a@x", 10);
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
