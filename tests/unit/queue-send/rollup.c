/* Domains whose MX hosts make them one destination (docs/SITES.md). */
#include "queue-send/schedule/own.h"
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "queue-send/schedule/schedule.h"
#include "queue-send/backlog/backlog.h"

#define SHARED "mx:a.test+b.test"
#define CONF                                         \
	"smtp_initial_destination_concurrency = 2\n" \
	"smtp_destination_concurrency_limit = 2\n"   \
	"smtp_connection_cache_time_limit = 0\n"     \
	"default_delivery_slot_cost = 0\n"

static struct world w;

static void
start(void)
{
	world_start(&w, CONF);
	world_link_smtp(&w);
	world_run(&w);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(rollup, .init = start, .fini = end, .timeout = 60);

static void
say_elsewhere(
    const struct world_delivery *d, const char *site, uint32_t seconds)
{
	world_send(w.agent,
	    &(struct msg){ .type = MSG_ELSEWHERE,
		.u.ELSEWHERE = { .job = d->number,
		    .site = MSG_S(site),
		    .seconds = seconds } });
	world_run(&w);
}

/* The next delivery is for that next hop, and has its place there. */
static struct world_delivery
take(const char *nexthop, const char *site)
{
	struct world_delivery d;

	world_take_one(&w, &d);
	cr_assert(d.placed);
	cr_expect_str_eq(d.nexthop, nexthop);
	cr_expect_str_eq(w.site, site);
	return d;
}

static void
deliver(const struct world_delivery *d)
{
	uint32_t i;

	for (i = 0; i < d->nrcpts; i++)
		world_result(&w, d, i, AGENT_SENT);
	world_done(&w, d);
	world_run(&w);
}

static uint32_t
smtp(void)
{
	return (uint32_t)conf_transport_find(&w.conf, "smtp");
}

/* Messages of the active queue that count for the shared destination. */
static uint32_t
held(void)
{
	const struct backlog *b = backlog_find(&w.s, smtp(), SHARED);

	return b == NULL ? 0 : b->held;
}

/* mutation: replies_on_elsewhere() notes nothing. */
Test(rollup, N27_an_entry_goes_where_its_agent_says)
{
	struct world_delivery d;
	uint64_t inode = world_message(&w, "u@roll0.test", 1);

	d = take("roll0.test", "roll0.test");
	say_elsewhere(&d, SHARED, 60);
	cr_expect_eq(sched_figures(w.s.sched).destinations, 1);
	d = take("roll0.test", SHARED);
	cr_expect_eq(held(), 1);
	cr_expect_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), ".");
	cr_expect_eq(w.s.counters.deferred, 0);
	deliver(&d);
	cr_expect_eq(w.s.counters.delivered, 1);
	/* What comes later goes there at once. */
	world_message(&w, "v@ROLL0.test", 1);
	d = take("roll0.test", SHARED);
	/* Its hosts are not known any more: that is its own trouble. */
	say_elsewhere(&d, "", 0);
	d = take("roll0.test", "roll0.test");
	cr_expect_eq(held(), 0);
	deliver(&d);
	world_is_empty(&w);
}

/* mutation: sched_rcpt_add_shared() without its group. */
Test(rollup, N27_domains_share_a_window_and_no_delivery)
{
	static const char *const hops[] = { "roll0.test", "roll1.test",
		"roll2.test", "roll3.test" };
	struct world_delivery d[4];
	uint32_t i;

	for (i = 0; i < 4; i++)
		rollup_note(&w.s, smtp(), hops[i], SHARED, 60);
	world_message(&w, "roll", 4);
	for (i = 0; i < 2; i++)
		d[i] = take(hops[i], SHARED);
	cr_expect_not(world_take(&w, &d[2]), "the window has two places");
	deliver(&d[0]);
	d[2] = take(hops[2], SHARED);
	cr_expect_not(world_take(&w, &d[3]));
	deliver(&d[1]);
	d[3] = take(hops[3], SHARED);
	deliver(&d[2]);
	deliver(&d[3]);
	cr_expect_eq(w.s.counters.delivered, 4);
	world_is_empty(&w);
}

/* mutation: rollup_elsewhere() is always NULL. */
Test(rollup, N27_what_waits_at_its_own_destination_follows)
{
	struct world_delivery d[3];
	uint32_t i;

	for (i = 0; i < 3; i++)
		world_message(&w, "u@roll0.test", 1);
	d[0] = take("roll0.test", "roll0.test");
	d[1] = take("roll0.test", "roll0.test");
	cr_assert_not(world_take(&w, &d[2]));
	say_elsewhere(&d[0], SHARED, 60);
	d[0] = take("roll0.test", SHARED);
	d[2] = take("roll0.test", SHARED);
	say_elsewhere(&d[1], SHARED, 60);
	deliver(&d[0]);
	deliver(&d[2]);
	d[1] = take("roll0.test", SHARED);
	deliver(&d[1]);
	world_is_empty(&w);
}

/* mutation: rollup_is_asked() without MOVES_MAX. */
Test(rollup, N27_an_entry_moves_three_times_at_most)
{
	static const char *const sites[] = { "mx:a.test", "mx:b.test",
		"mx:c.test" };
	struct world_delivery d;
	size_t i;

	world_message(&w, "u@roll0.test", 1);
	d = take("roll0.test", "roll0.test");
	for (i = 0; i < ARRAY_LEN(sites); i++) {
		say_elsewhere(&d, sites[i], 0);
		world_take_one(&w, &d);
		cr_expect_eq(d.placed, i + 1 < ARRAY_LEN(sites));
	}
	/* An entry that is not asked is at no destination of others. */
	cr_expect_null(backlog_find(&w.s, smtp(), sites[2]));
	cr_expect_not_null(backlog_find(&w.s, smtp(), "roll0.test"));
	cr_expect_str_eq(d.nexthop, "roll0.test");
	deliver(&d);
	world_is_empty(&w);
}

Test(rollup, N27_the_death_of_it_is_that_of_all_its_domains)
{
	struct world_delivery d;
	uint64_t inode;
	int i;

	rollup_note(&w.s, smtp(), "roll0.test", SHARED, 60);
	rollup_note(&w.s, smtp(), "roll1.test", SHARED, 60);
	for (i = 0; i < 2; i++) {
		world_message(&w, "u@roll0.test", 1);
		d = take("roll0.test", SHARED);
		world_site_failed(&w, &d);
		world_run(&w);
	}
	inode = world_message(&w, "u@roll1.test", 1);
	cr_expect_not(world_take(&w, &d));
	cr_expect_str_eq(world_reason(&w, SPOOL_DEFER, inode, 0),
	    "4.4.1 delivery temporarily suspended: no connection");
}

Test(rollup, N27_a_message_that_is_on_its_way_out_goes)
{
	struct world_delivery d;
	uint64_t inode = world_message(&w, "u@roll0.test", 1);
	uint32_t running;

	d = take("roll0.test", "roll0.test");
	cr_assert_eq(world_act(&w, ACT_HOLD, inode, &running), 0);
	say_elsewhere(&d, SHARED, 60);
	cr_expect_not(world_take(&w, &d));
	cr_expect_eq(world_where(&w, inode), SPOOL_HOLD);
}

/* mutation: queue-send/agents/delivery.c: may_move() is always true. */
Test(rollup, I18_answers_that_are_none_close_the_link)
{
	static const struct {
		const char *site;
		bool reported;
	} wrong[] = { { "roll1.test", false }, { "mx:a b", false },
		{ "mx:", false }, { "mx:A", false }, { "", false },
		{ SHARED, true } };
	struct world_delivery d;
	size_t i;

	for (i = 0; i < ARRAY_LEN(wrong); i++) {
		if (i > 0)
			start();
		world_message(&w, "u@roll0.test", 1);
		d = take("roll0.test", "roll0.test");
		if (wrong[i].reported)
			world_result(&w, &d, 0, AGENT_DEFERRED);
		say_elsewhere(&d, wrong[i].site, 60);
		cr_expect_null(
		    w.s.agent[AGENT_PROGRAM_SMTP], "%s", wrong[i].site);
		if (i + 1 < ARRAY_LEN(wrong))
			end();
	}
}

/* mutation: queue-send/schedule/rollup.c, rollup_is_shared() without kind. */
Test(rollup, N27_names_that_look_like_those_of_shared_destinations)
{
	static const struct {
		const char *transport, *destination;
		size_t nexthop_at;
		bool want;
	} cases[] = { { "smtp", SHARED, 0, true },
		{ "smtp", "mx:a.test+7:0123456789abcdef", 0, true },
		{ "smtp", "mx:25", 0, false }, { "smtp", "mx.test", 0, false },
		{ "smtp", "mx:a@a.test", 5, false },
		{ "local", "mx:a", 0, false }, { "pipe", "mx:a", 0, false } };
	struct sched_entry e = { .nrcpts = 1 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		e.transport =
		    (uint32_t)conf_transport_find(&w.conf, cases[i].transport);
		e.destination = cases[i].destination;
		e.nexthop = cases[i].destination + cases[i].nexthop_at;
		cr_expect_eq(rollup_is_shared(&w.s, &e), cases[i].want, "%s/%s",
		    cases[i].transport, cases[i].destination);
	}
}

Test(rollup, N27_a_mailbox_with_such_a_name_gets_its_mail)
{
	struct world_delivery d;

	end();
	world_start(&w, CONF);
	world_link_agent(&w);
	world_run(&w);
	world_message(&w, "mx:a@local.test", 1);
	world_take_one(&w, &d);
	deliver(&d);
	cr_expect_eq(w.s.counters.delivered, 1);
	world_is_empty(&w);
}

/* mutation: queue-send/schedule/rollup.c, is_domain() without relayhost. */
Test(rollup, next_hops_that_are_not_asked_for)
{
	static const struct {
		const char *hop;
		bool want;
	} cases[] = { { "a.test", true }, { "A.test", true },
		{ "[a.test]", false }, { "a.test:25", false },
		{ "192.0.2.1", false }, { "[192.0.2.1]", false },
		{ "2001:db8::1", false }, { "mailhub", false },
		{ "relay.test", false } };
	struct sched_entry e = { .transport = smtp(),
		.destination = "own.test" };
	size_t i;

	world_reload(&w, CONF "relayhost = Relay.test\n");
	for (i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(rollup_is_asked(&w.s, &e, cases[i].hop),
		    cases[i].want, "%s", cases[i].hop);
	world_reload(&w, CONF "smtp_destination_mx_rollup = no\n");
	cr_expect_not(rollup_is_asked(&w.s, &e, "a.test"));
	world_reload(&w, CONF "smtp_destination_recipient_limit = 1\n");
	cr_expect_not(rollup_is_asked(&w.s, &e, "a.test"));
}

/* mutation: queue-send/schedule/rollup.c, rollup_note() without ROLLED_MAX. */
Test(rollup, N27_what_is_known_has_bounds)
{
	const struct rolled *x;
	char hop[32];
	uint32_t i;

	rollup_note(&w.s, smtp(), "used.test", SHARED, 60);
	for (i = 0; i < 70000; i++) {
		snprintf(hop, sizeof(hop), "h%u.test", i);
		rollup_note(&w.s, smtp(), hop, SHARED, 60);
		if (i % 1000 == 0)
			cr_assert_not_null(
			    rollup_find(&w.s, smtp(), "used.test"));
	}
	cr_expect_eq(w.s.schedule->rollup.count, 65536);
	cr_expect_null(rollup_find(&w.s, smtp(), "h0.test"));
	x = rollup_find(&w.s, smtp(), "H69999.test");
	cr_assert_not_null(x);
	cr_expect_str_eq(x->site, SHARED);
	w.s.now += 60 * USEC_PER_SEC;
	cr_expect_null(rollup_find(&w.s, smtp(), "h69999.test"));
	cr_expect_eq(w.s.schedule->rollup.count, 65535);
}
