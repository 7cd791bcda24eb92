/* The files of a reload are on a disk that does not answer. */
#include "tests/unit/queue-send/slow.h"

#include <criterion/criterion.h>

static const struct route_table *routes;

static void
reload_waits(const char *conf)
{
	routes = slow_w.s.routes;
	slow_files = true;
	slow_came = 0;
	world_reload_begin(&slow_w, conf);
	slow_await(1);
}

/* mutation: common/daemon/reload.c: is_given_to_thread() says no. */
Test(slow, D43_mail_goes_on_while_a_reload_reads)
{
	struct world_delivery delivery;
	uint64_t inode;

	reload_waits("minimal_backoff_time = 7s\n");
	inode = world_message(&slow_w, "x", 1);
	world_take_one(&slow_w, &delivery);
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(world_where(&slow_w, inode), SPOOL_NDIRS);
	cr_expect_eq(slow_w.s.routes, routes);
	cr_expect_neq(slow_w.s.retry.minimal, 7 * USEC_PER_SEC);
	cr_expect(stop_is_over(&slow_w.s));
	slow_open(1);
	world_reload_end(&slow_w);
	cr_expect_neq(slow_w.s.routes, routes);
	cr_expect_eq(slow_w.s.retry.minimal, 7 * USEC_PER_SEC);
}

/* mutation: queue-send/control.c: take_routes() takes none. */
Test(slow, D43_P11_a_reload_without_its_routing_keeps_the_old_one)
{
	struct world_delivery delivery;

	reload_waits("alias_file = /\nminimal_backoff_time = 7s\n");
	slow_open(1);
	world_reload_end(&slow_w);
	cr_expect_eq(slow_w.s.routes, routes);
	cr_expect_eq(slow_w.s.retry.minimal, 7 * USEC_PER_SEC);
	(void)world_message(&slow_w, "x", 1);
	world_take_one(&slow_w, &delivery);
	slow_end(&delivery, AGENT_SENT);
}
