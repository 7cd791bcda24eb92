/* P15, C7: a message that agents die of is put aside, and no other one. */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/world.h"

#include "base/io.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INNOCENT 12
#define ROUNDS   60

static void
flush(struct world *w)
{
	control_ops.flush(&(struct daemon){ .state = &w->s });
	world_run(w);
}

/* What was asked for since. */
static void
offer_asked(struct world *w, uint32_t *done)
{
	for (; *done < w->nprepared; ++*done)
		if (world_where(w, w->prepared[*done % 256]) == SPOOL_DEFERRED)
			world_offer(
			    w, SPOOL_DEFERRED, w->prepared[*done % 256]);
	world_run(w);
}

static bool
is_poison(const struct world_delivery *delivery)
{
	return strncmp(delivery->first, "bad", 3) == 0;
}

/* An agent that takes what there is, at most so many deliveries, and dies if
 * one of them is poison; the other deliveries end well, or with it. */
static void
live_or_die(struct world *w, uint32_t most, uint32_t *suspects)
{
	struct world_delivery deliveries[64];
	uint32_t n = 0, i;
	bool dies = false;

	*suspects = 0;
	while (n < most && world_take(w, &deliveries[n])) {
		close(deliveries[n].fd);
		dies |= is_poison(&deliveries[n++]);
	}
	if (dies) {
		struct message *m;

		TAILQ_FOREACH (m, &w->s.messages.list[STATE_ACTIVE], on)
			*suspects += m->deaths >= RETRY_SUSPECT_DEATHS;
		io_close(&w->agent);
		world_run(w);
		world_link_agent(w);
		world_run(w);
		return;
	}
	for (i = 0; i < n; i++) {
		world_result(w, &deliveries[i], 0, AGENT_SENT);
		world_done(w, &deliveries[i]);
	}
	world_run(w);
}

static void
check_poison(struct world *w, uint64_t inode)
{
	unsigned deaths = 0;
	int len = 0;

	cr_expect_eq(world_where(w, inode), SPOOL_HOLD);
	cr_expect_str_eq(world_marks(w, SPOOL_HOLD, inode), ".");
	/* Alone after three; what became due by itself may be beside it. */
	cr_expect_eq(
	    sscanf(world_reason(w, SPOOL_BOUNCE, inode, 0),
		"5.3.0 %u agents died while delivering it%n", &deaths, &len),
	    1);
	cr_expect_gt(len, 0);
	cr_expect(
	    deaths >= RETRY_POISON_DEATHS && deaths <= RETRY_POISON_BESIDE,
	    "%u", deaths);
	cr_expect_str_eq(world_reason(w, SPOOL_DEFER, inode, 0), "");
}

/* All in flight each time that the agent dies, so all are blamed at first. */
Test(poison, P15_C7_only_who_is_to_blame_is_put_aside)
{
	struct world w = { 0 };
	uint64_t bad[2], good[INNOCENT];
	uint32_t done = 0, deaths, suspects, i, round;

	world_start(&w, "");
	for (i = 0; i < INNOCENT; i++) {
		good[i] = world_message(&w, "good@x.test", 1);
		if (i == 3 || i == 7)
			bad[i / 4] = world_message(&w, "bad@x.test", 1);
	}
	for (round = 0; round < ROUNDS; round++) {
		live_or_die(&w, 64, &suspects);
		cr_expect_leq(suspects, 1, "suspects together");
		flush(&w);
		offer_asked(&w, &done);
	}
	for (i = 0; i < 2; i++)
		check_poison(&w, bad[i]);
	for (i = 0; i < INNOCENT; i++)
		cr_expect_eq(world_where(&w, good[i]), SPOOL_NDIRS);
	cr_expect_eq(w.s.counters.delivered, INNOCENT, "each once");
	deaths = w.s.links->agent_deaths;
	cr_expect_leq(deaths, 2 * RETRY_POISON_BESIDE, "%u", deaths);
	cr_expect_eq(w.s.active, 0);
	world_end(&w);
}

/* A list of many entries that goes on beside a message that kills agents: it
 * would be in flight whenever that one is. */
Test(poison, C7_a_large_message_beside_it_is_not_to_blame)
{
	struct world w = { 0 };
	uint64_t bad, list;
	uint32_t done = 0, suspects, round;

	world_start(&w, "");
	list = world_message(&w, "x", 200);
	bad = world_message(&w, "bad@x.test", 1);
	for (round = 0; round < 5 * ROUNDS; round++) {
		live_or_die(&w, 8, &suspects);
		if (round % 8 == 7) {
			flush(&w);
			offer_asked(&w, &done);
		}
	}
	check_poison(&w, bad);
	cr_expect_eq(world_where(&w, list), SPOOL_NDIRS);
	cr_expect_eq(w.s.counters.delivered, 200);
	world_end(&w);
}

Test(poison, P15_an_attempt_that_ends_otherwise_begins_the_count_anew)
{
	struct world w = { 0 };
	struct world_delivery delivery;
	uint64_t inode;
	uint32_t done = 0, round;

	world_start(&w, "");
	inode = world_message(&w, "bad@x.test", 1);
	for (round = 0; round < 9; round++) {
		cr_assert(world_take(&w, &delivery), "round %u", round);
		close(delivery.fd);
		if (round % 3 == 2) {
			world_result(&w, &delivery, 0, AGENT_DEFERRED);
			world_done(&w, &delivery);
		} else {
			io_close(&w.agent);
			world_run(&w);
			world_link_agent(&w);
		}
		world_run(&w);
		cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
		flush(&w);
		offer_asked(&w, &done);
	}
	world_end(&w);
}

/* The stop of everything ends agents, too. */
Test(poison, P3_agents_that_end_at_the_stop_blame_nobody)
{
	struct world w = { 0 };
	struct world_delivery delivery;
	uint64_t inode;
	uint32_t done = 0, round;

	world_start(&w, "");
	inode = world_message(&w, "bad@x.test", 1);
	for (round = 0; round < 2; round++) {
		cr_assert(world_take(&w, &delivery));
		close(delivery.fd);
		io_close(&w.agent);
		world_run(&w);
		world_link_agent(&w);
		flush(&w);
		offer_asked(&w, &done);
	}
	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	world_again(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
	cr_expect_str_eq(world_reason(&w, SPOOL_BOUNCE, inode, 0), "");
	world_end(&w);
}
