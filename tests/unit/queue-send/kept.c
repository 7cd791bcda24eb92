/* Connections that are used for more than one delivery: which entry gets which,
 * and what has its place (docs/SITES.md). */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "queue-send/agents/agents.h"
#include "queue-send/schedule/schedule.h"
#include "site/shared.h"

#define LIMIT 4
#define CONF                                         \
	"smtp_initial_destination_concurrency = 4\n" \
	"smtp_destination_concurrency_limit = 4\n"   \
	"smtp_destination_recipient_limit = 2\n"     \
	"default_destination_recipient_limit = 2\n"  \
	"default_delivery_slot_cost = 0\n"

static struct world w;
static struct shared *other;
static struct site *place; /* of the other queue */
static char name[64];
static int segment;

/* Another queue at the destination of x@smtp.test. */
static void
start_other(void)
{
	struct site_params sites[CONF_TRANSPORTS_MAX];
	const char *names[CONF_TRANSPORTS_MAX];
	struct shared_params p = { .sites = sites,
		.names = names,
		.count = w.conf.ntransports,
		.backoff = w.conf.backoff };
	uint32_t i;

	for (i = 0; i < p.count; i++) {
		conf_site_params(&w.conf, i, &sites[i]);
		names[i] = w.conf.transports[i].name;
	}
	cr_assert_eq(shared_new(&p, 1, &other), 0);
	cr_assert_eq(shared_attach(other, segment, 2, 70, clock_mono()), 0);
	place = site_open(other, (uint32_t)conf_transport_find(&w.conf, "smtp"),
	    "smtp.test", clock_mono());
	cr_assert_not_null(place);
}

static void
start(void)
{
	const struct shared_shape shape = { .slots = 64, .members = 4 };
	const struct shared_owner owner = { (uid_t)-1, (gid_t)-1 };

	world_start(&w, CONF);
	snprintf(name, sizeof(name), "/k%d.sites", (int)getpid());
	cr_assert_eq(shared_create(name, &shape, &owner, &segment), 0);
	cr_assert_eq(shared_open_up(segment), 0);
	start_other();
	w.s.generation = 1;
	links_linked(&w.s, "sites", dup(segment));
	world_link_smtp(&w);
	world_run(&w);
}

static void
end(void)
{
	world_end(&w);
	shared_free(&other);
	io_close(&segment);
	shm_unlink(name);
}

TestSuite(kept, .init = start, .fini = end, .timeout = 60);

/* ---- the other queue ---- */

static uint32_t
other_takes(uint32_t most)
{
	uint32_t n = 0;

	while (n < most && site_take(place, clock_mono()) == SITE_ROOM)
		n++;
	return n;
}

static void
other_ends(uint32_t n)
{
	static const struct site_report report = { .result = SITE_DELIVERED };

	while (n-- > 0)
		site_done(place, &report, clock_mono(), NULL);
}

static void
other_waits(void)
{
	cr_assert_eq(site_wait(place, true, clock_mono()), SITE_FULL);
}

/* ---- the agent ---- */

static void
say_kept(uint64_t job)
{
	world_send(
	    w.agent, &(struct msg){ .type = MSG_KEPT, .u.KEPT.job = job });
}

static void
say_closed(uint64_t connection)
{
	world_send(w.agent,
	    &(struct msg){
		.type = MSG_CLOSED, .u.CLOSED.connection = connection });
	world_run(&w);
}

static void
keep(const struct world_delivery *d)
{
	uint32_t i;

	for (i = 0; i < d->nrcpts; i++)
		world_result(&w, d, i, AGENT_SENT);
	say_kept(d->number);
	world_run(&w);
}

/* So many entries. */
static void
mail(uint32_t n)
{
	world_message(&w, "u@smtp.test", 2 * n);
}

static struct world_delivery
take(void)
{
	struct world_delivery d;

	world_take_one(&w, &d);
	cr_assert(d.may_keep);
	return d;
}

static void
no_more(void)
{
	struct world_delivery d;

	cr_assert_not(world_take(&w, &d));
}

/* The agent was told to close this one, and no other. */
static void
is_closed(uint64_t connection)
{
	no_more();
	cr_assert_eq(w.ncloses, 1);
	cr_assert_eq(w.closes[0], connection);
	w.ncloses = 0;
}

#define running() (sched_figures(w.s.sched).running)

/* ---- the next delivery ---- */

Test(kept, the_next_entry_takes_connection_and_place)
{
	struct world_delivery d[LIMIT], next;
	int i;

	mail(LIMIT + 3);
	for (i = 0; i < LIMIT; i++) {
		d[i] = take();
		cr_expect_eq(d[i].connection, 0);
	}
	no_more();
	for (i = 0; i < 3; i++) {
		keep(&d[i]);
		next = take();
		cr_expect_eq(next.connection, d[i].number);
		d[i] = next;
	}
	no_more();
	cr_expect_eq(other_takes(1), 0);
	cr_expect_eq(running(), LIMIT);
}

Test(kept, a_message_that_comes_later_takes_it_too)
{
	struct world_delivery d;

	mail(1);
	d = take();
	keep(&d);
	cr_expect_eq(running(), 0);
	cr_expect_eq(other_takes(LIMIT), LIMIT - 1, "it has its place");
	mail(1);
	cr_expect_eq(take().connection, d.number);
	cr_expect_eq(other_takes(1), 0);
}

/* mutation: queue-send/agents/kept.c, kept_find() that does not compare sites.
 */
Test(kept, another_destination_does_not)
{
	struct world_delivery d;

	mail(1);
	d = take();
	keep(&d);
	world_message(&w, "u@x.smtp.test", 1);
	no_more(); /* routed to discard, whose agent is not there */
	cr_expect_eq(other_takes(LIMIT), LIMIT - 1);
	mail(2);
	cr_expect_eq(take().connection, d.number);
	no_more();
}

Test(kept, closed_by_the_far_end_while_a_delivery_was_on_its_way_to_it)
{
	struct world_delivery d, next;

	mail(1);
	d = take();
	keep(&d);
	mail(1);
	next = take();
	cr_expect_eq(next.connection, d.number);
	say_closed(d.number); /* the agent opens another one for it */
	cr_expect_eq(running(), 1);
	cr_expect_eq(other_takes(LIMIT), LIMIT - 1);
	keep(&next);
	cr_expect_eq(other_takes(1), 0);
	say_closed(next.number);
	cr_expect_eq(other_takes(LIMIT), 1);
}

/* As dispatch.c has it when the entry cannot go to the agent.
 * mutation: queue-send/agents/kept.c, kept_spared() that does nothing. */
Test(kept, an_entry_that_cannot_start_leaves_it)
{
	struct world_delivery d;
	struct sched_entry *e;

	mail(1);
	d = take();
	keep(&d);
	w.s.dispatch_at = USEC_NEVER;
	world_run(&w);
	mail(1);
	no_more();
	schedule_pause(&w.s, false);
	e = sched_select(w.s.sched, w.s.now);
	cr_assert_not_null(e);
	kept_spared(&w.s, kept_find(&w.s, e));
	sched_put_back(w.s.sched, e, w.s.now);
	cr_expect_eq(other_takes(LIMIT), LIMIT - 1);
	w.s.dispatch_at = 0;
	send_wake(&w.s);
	world_run(&w);
	cr_expect_eq(take().connection, d.number);
	cr_expect_eq(other_takes(LIMIT), 0);
}

/* ---- the end of a connection ---- */

Test(kept, its_place_is_free_when_it_is_closed)
{
	struct world_delivery d;

	mail(1);
	d = take();
	keep(&d);
	cr_expect_eq(other_takes(LIMIT), LIMIT - 1);
	say_closed(d.number);
	cr_expect_eq(other_takes(1), 1);
	mail(1);
	no_more(); /* the other queue has all */
}

static void
keep_two(struct world_delivery d[2])
{
	mail(2);
	d[0] = take();
	d[1] = take();
	keep(&d[0]);
	keep(&d[1]);
}

/* mutation: queue-send/agents/kept.c, kept_work() that closes nothing. */
Test(kept, without_mail_one_is_closed_when_another_queue_waits)
{
	struct world_delivery d[2];

	keep_two(d);
	cr_expect_eq(other_takes(LIMIT), LIMIT - 2);
	other_waits();
	for (; w.ncloses == 0; no_more()) /* KEPT_IDLE */
		event_base_loop(w.s.base, EVLOOP_ONCE);
	is_closed(d[0].number);
	cr_expect_eq(other_takes(1), 0, "it is still open");
	say_closed(d[0].number);
	cr_expect_eq(other_takes(1), 1);
}

Test(kept, N45_more_than_its_share_is_given_up_after_a_turn)
{
	struct world_delivery d[LIMIT], next;
	int i;

	mail(20);
	for (i = 0; i < LIMIT; i++)
		d[i] = take();
	other_waits();
	keep(&d[0]);
	next = take();
	cr_expect_eq(next.connection, d[0].number, "not within its turn");
	world_reload(&w, CONF "smtp_connection_turn_time = 0\n");
	keep(&next);
	is_closed(next.number);
	cr_expect_eq(running(), LIMIT - 1);
	cr_expect_eq(other_takes(1), 0, "not before CLOSED");
	say_closed(next.number);
	cr_expect_eq(other_takes(2), 1);
	other_waits();
	keep(&d[1]);
	is_closed(d[1].number);
	say_closed(d[1].number);
	cr_expect_eq(other_takes(2), 1);
	other_waits();
	keep(&d[2]); /* two of four, two queues */
	next = take();
	cr_expect_eq(next.connection, d[2].number);
	cr_expect_eq(w.ncloses, 0);
}

Test(kept, not_more_than_the_process_limit)
{
	struct world_delivery d[2];

	keep_two(d);
	no_more();
	cr_expect_eq(w.ncloses, 0);
	world_reload(&w, CONF "smtp_process_limit = 1\n");
	is_closed(d[0].number);
}

Test(kept, a_reload_that_ends_it)
{
	struct world_delivery d[2];

	mail(2);
	d[0] = take();
	d[1] = take();
	keep(&d[0]);
	world_reload(&w, CONF "smtp_connection_cache_time_limit = 0\n");
	is_closed(d[0].number);
	keep(&d[1]);
	is_closed(d[1].number);
	cr_expect_eq(running(), 1, "until it is closed");
	say_closed(d[1].number);
	cr_expect_eq(running(), 0);
	cr_expect_eq(other_takes(LIMIT), LIMIT - 1);
	say_closed(d[0].number);
	cr_expect_eq(other_takes(LIMIT), 1);
}

Test(kept, a_stop_closes_all_and_waits_for_it)
{
	struct world_delivery d;

	mail(1);
	d = take();
	keep(&d);
	control_ops.stop(
	    &(struct daemon){ .state = &w.s }, 1000 * USEC_PER_SEC);
	world_run(&w);
	is_closed(d.number);
	cr_expect_eq(w.s.links->kept.count, 1);
	say_closed(d.number);
	cr_expect_eq(w.s.links->kept.count, 0);
	cr_expect_eq(other_takes(LIMIT), LIMIT);
}

/* ---- agents that end or lie ---- */

Test(kept, P1_of_an_agent_that_died_the_place_is_kept_until_it_is_over)
{
	struct world_delivery d;

	mail(1);
	d = take();
	keep(&d);
	io_close(&w.agent);
	event_base_loop(w.s.base, EVLOOP_NONBLOCK);
	event_base_loop(w.s.base, EVLOOP_NONBLOCK);
	cr_assert_null(w.s.agent[AGENT_PROGRAM_SMTP]);
	cr_expect_eq(other_takes(LIMIT), LIMIT - 1);
	world_link_smtp(&w); /* the supervisor has seen its end */
	world_run(&w);
	cr_expect_eq(other_takes(LIMIT), 1);
	cr_expect_eq(w.s.links->kept.count, 0);
}

/* A message is not to blame that is delivered, and whose connection is being
 * closed. */
Test(kept, a_death_after_the_result_is_not_counted)
{
	struct world_delivery d;

	mail(1);
	d = take();
	world_reload(&w, CONF "smtp_connection_cache_time_limit = 0\n");
	keep(&d);
	is_closed(d.number);
	io_close(&w.agent);
	world_run(&w);
	world_link_smtp(&w);
	world_run(&w);
	cr_expect_eq(running(), 0);
	world_is_empty(&w);
}

static void
is_dropped(const char *what)
{
	world_run(&w);
	cr_assert_null(w.s.agent[AGENT_PROGRAM_SMTP], "%s", what);
	world_link_smtp(&w);
	world_run(&w);
}

Test(kept, I18_an_agent_that_lies_is_dropped)
{
	struct world_delivery d;

	say_kept(4711);
	is_dropped("unknown delivery");
	mail(1);
	d = take();
	say_closed(d.number);
	is_dropped("CLOSED of a delivery that runs");
	cr_expect_eq(other_takes(LIMIT), LIMIT);
	other_ends(LIMIT);
	sched_flush(w.s.sched, w.s.now);
	mail(1);
	d = take();
	world_reload(&w, CONF "smtp_connection_cache_time_limit = 0\n");
	keep(&d);
	say_kept(d.number);
	is_dropped("KEPT twice");
	cr_expect_eq(w.s.links->kept.count, 0);
	cr_expect_eq(running(), 0);
}

Test(kept, CLOSED_of_nothing_is_no_lie)
{
	say_closed(4711);
	cr_expect_not_null(w.s.agent[AGENT_PROGRAM_SMTP]);
}

Test(kept, switched_off_nothing_is_said_of_it)
{
	struct world_delivery d;

	world_reload(&w, CONF "smtp_connection_cache_time_limit = 0\n");
	mail(1);
	world_take_one(&w, &d);
	cr_expect_not(d.may_keep);
	say_kept(d.number);
	is_dropped("KEPT unasked");
}
