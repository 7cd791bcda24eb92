/* Rows of destinations. */
#include "qctl/show/sites.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND USEC_PER_SEC

static const struct sites_now now = { 1000 * SECOND, 1700000060 * SECOND };
static struct buf out;

static void
in_utc(void)
{
	setenv("TZ", "UTC0", 1);
	tzset();
}

static void
end(void)
{
	buf_done(&out);
}

TestSuite(sites, .init = in_utc, .fini = end);

static struct shared_seen
seen(enum site_state state, uint32_t waiting, uint32_t busy)
{
	return (struct shared_seen){ .name = "smtp/x\033.example",
		.view = { .state = state,
		    .window = 5,
		    .busy = busy,
		    .deaths = 2,
		    .dead_since = 940 * SECOND,
		    .dead_until = 1300 * SECOND },
		.why = "4.4.1 no \"way\"\033[2J",
		.waiting = waiting };
}

Test(sites, A7_rows)
{
	const struct shared_seen full = seen(SITE_FULL, 3, 5),
				 dead = seen(SITE_DEAD, 0, 0);

	sites_row(&out, &full, now);
	cr_assert_eq(out.error, 0);
	cr_expect_str_eq(
	    buf_str(&out), "full        5     5        3  smtp/x?.example\n");
	buf_reset(&out);
	sites_row(&out, &dead, now);
	cr_assert_eq(out.error, 0);
	cr_expect_str_eq(buf_str(&out),
	    "dead        5     0        0  smtp/x?.example: since Tue, 14 Nov "
	    "2023 22:13:20 +0000 (60s ago), until Tue, 14 Nov 2023 22:19:20 "
	    "+0000 (in 5m): 4.4.1 no \"way\"?[2J\n");
	buf_reset(&out);
	sites_object(&out, &dead, now);
	cr_assert_eq(out.error, 0);
	cr_expect_str_eq(buf_str(&out),
	    "{\"transport\": \"smtp\", \"destination\": \"x?.example\", "
	    "\"state\": \"dead\", \"window\": 5, \"busy\": 0, "
	    "\"waiting_queues\": 0, \"deaths\": 2, \"dead_since\": "
	    "1700000000, \"dead_until\": 1700000360, \"reason\": "
	    "\"4.4.1 no \\\"way\\\"?[2J\"}\n");
}

Test(sites, order_of_the_top)
{
	const struct shared_seen rows[] = {
		seen(SITE_DEAD, 0, 0),
		seen(SITE_FULL, 3, 5),
		seen(SITE_FULL, 2, 9),
		seen(SITE_ROOM, 0, 4),
		seen(SITE_ROOM, 0, 1),
	};
	size_t i;

	for (i = 0; i + 1 < ARRAY_LEN(rows); i++) {
		cr_expect_lt(sites_compare(&rows[i], &rows[i + 1]), 0);
		cr_expect_gt(sites_compare(&rows[i + 1], &rows[i]), 0);
		cr_expect_eq(sites_compare(&rows[i], &rows[i]), 0);
	}
}
