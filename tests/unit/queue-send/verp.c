/* A sender of its own for each recipient (docs/DELIVERY.md, "VERP"). */
#include "tests/unit/queue-send/world.h"

#include "spool/reason.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "error_interval = 1h\n");
	w.sender = "list-@site.test-@[]";
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(verp, .init = start, .fini = end, .timeout = 120);

/* "u0@here.test": "list-u0=here.test@site.test" */
static void
expect_sender(const struct world_delivery *d)
{
	char want[ADDRESS_MAX + 1];

	snprintf(want, sizeof(want), "list-%.*s=%s@site.test",
	    (int)address_local_len(d->first), d->first,
	    address_domain(d->first));
	cr_expect_str_eq(d->sender, want);
}

Test(verp, C14_a_delivery_has_one_recipient_and_its_sender)
{
	uint64_t inode = world_message(&w, "@here.test", 5);
	struct world_delivery d;
	uint32_t n = 0;

	world_run(&w);
	while (world_take(&w, &d)) {
		cr_expect_eq(d.nrcpts, 1);
		expect_sender(&d);
		world_result(&w, &d, 0, AGENT_SENT);
		world_done(&w, &d);
		world_run(&w);
		n++;
	}
	cr_expect_eq(n, 5);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	world_is_empty(&w);
}

Test(verp, an_ordinary_sender_still_has_them_together)
{
	struct world_delivery d;

	w.sender = NULL;
	world_message(&w, "@here.test", 5);
	world_take_one(&w, &d);
	cr_expect_eq(d.nrcpts, 5);
	cr_expect_str_eq(d.sender, "s@here.test");
}

/* The sender of the second message would have 513 octets. */
Test(verp, C14_a_sender_that_would_be_too_long_fails_its_recipient)
{
	char sender[ADDRESS_MAX + 1];

	memset(sender, 'l', ADDRESS_MAX);
	memcpy(sender + 501, "@s-@[]", 7);
	w.sender = sender;
	world_message(&w, "u@h.test", 1); /* 501 + "u=h.test" + "@s" */
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 1);
	world_message(&w, "uuu@h.test", 1);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), 0);
	world_run(&w);
	cr_expect_not_null(strstr(world_report(&w), "5.1.7"));
}
