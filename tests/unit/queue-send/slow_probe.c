/* The probe of a queue that cannot write, while the disk is slow. */
#include "tests/unit/queue-send/slow.h"

#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>

/* The queue cannot write, and its probe waits at the gate. */
static void
begin_probe(struct world_delivery *delivery)
{
	slow_w.threads[DISK_RECORD] = 0;
	slow_w.threads[DISK_PROBE] = 2;
	world_again(&slow_w);
	world_message(&slow_w, "d", 1);
	world_take_one(&slow_w, delivery);
	disk_count_error(&slow_w.s, HEALTH_MARK, -ENOSPC);
	slow_w.s.health.probe_at = 0;
	slow_close();
	slow_came = 0;
	send_wake(&slow_w.s);
	slow_await(1);
}

static void
go_on(void)
{
	slow_open(1);
	while (slow_w.s.probe_away)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	world_run(&slow_w);
}

/* mutation: queue-send/message/probe.c: begin_probe() writes in the loop;
 * probe_work() begins a probe while one is away. */
Test(slow, D43_D9_deliveries_end_while_a_probe_waits_for_the_disk)
{
	struct world_delivery delivery;

	begin_probe(&delivery);
	slow_w.s.health.probe_at = 0;
	slow_end(&delivery, AGENT_SENT);
	cr_expect_eq(slow_w.s.counters.delivered, 1);
	cr_expect(slow_w.s.health.read_only);
	cr_expect_eq(slow_came, 1, "one is under way");
	go_on();
	cr_expect_not(slow_w.s.health.read_only);
	world_message(&slow_w, "e", 1);
	cr_expect_eq(world_deliver(&slow_w, AGENT_SENT), 1);
	world_is_empty(&slow_w);
}

/* mutation: queue-send/message/probe.c: ended() takes any probe for a good one.
 */
Test(slow, D43_D9_a_probe_that_fails_is_tried_again_later)
{
	struct world_delivery delivery;

	begin_probe(&delivery);
	world_fail(CALL_PWRITE, EROFS, 1);
	go_on();
	cr_expect(slow_w.s.health.read_only);
	cr_expect_eq(slow_w.s.health.error, -EROFS);
	cr_expect_gt(slow_w.s.health.probe_at, slow_w.s.now);
	slow_w.s.health.probe_at = 0;
	send_wake(&slow_w.s);
	world_run(&slow_w);
	while (slow_w.s.probe_away)
		event_base_loop(slow_w.s.base, EVLOOP_ONCE);
	cr_expect_not(slow_w.s.health.read_only);
	slow_end(&delivery, AGENT_SENT);
}
