/* Places at destinations that other queues take as well (docs/SITES.md): the
 * others are here, with the real table. */
#include "queue-send/schedule/own.h"
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "queue-send/control.h"
#include "queue-send/agents/agents.h"
#include "queue-send/schedule/schedule.h"
#include "site/shared.h"

#define LIMIT      4
#define OTHER      2 /* the queue of the others */
#define GENERATION 70
#define LIMIT_MSEC 120000

static struct world w;
static struct shared *other;
static char name[64];
static int segment;
static struct shared_id first;

static struct shared_params
params(struct site_params *sites, const char **names)
{
	struct shared_params p = { .sites = sites,
		.names = names,
		.count = w.conf.ntransports,
		.backoff = w.conf.backoff };
	uint32_t i;

	for (i = 0; i < p.count; i++) {
		conf_site_params(&w.conf, i, &sites[i]);
		names[i] = w.conf.transports[i].name;
	}
	return p;
}

static void
start_other(void)
{
	struct site_params sites[CONF_TRANSPORTS_MAX];
	const char *names[CONF_TRANSPORTS_MAX];
	struct shared_params p = params(sites, names);

	cr_assert_eq(shared_new(&p, 1, &other), 0);
	cr_assert_eq(
	    shared_attach(other, segment, OTHER, GENERATION, clock_mono()), 0);
}

static void
start(void)
{
	const struct shared_shape shape = { .slots = 64, .members = 4 };
	const struct shared_owner owner = { (uid_t)-1, (gid_t)-1 };

	world_start(&w,
	    "initial_destination_concurrency = 4\n"
	    "default_destination_concurrency_limit = 4\n"
	    "default_destination_recipient_limit = 2\n"
	    "default_delivery_slot_cost = 0\n");
	snprintf(name, sizeof(name), "/u%d.sites", (int)getpid());
	cr_assert_eq(shared_create(name, &shape, &owner, &segment), 0);
	cr_assert_eq(shared_open_up(segment), 0);
	cr_assert_eq(shared_identify(segment, &first), 0);
	start_other();
	w.s.generation = 1;
	links_linked(&w.s, "sites", dup(segment));
	cr_assert(shared_is_attached(w.s.sites));
}

static void
end(void)
{
	world_end(&w);
	shared_free(&other);
	io_close(&segment);
	shm_unlink(name);
}

TestSuite(site_table, .init = start, .fini = end, .timeout = 60);

/* ---- what the other queue does ---- */

static struct site *
open_site(void)
{
	struct site *site;
	uint32_t i;

	for (i = 0; strcmp(w.conf.transports[i].name, "discard") != 0; i++)
		continue;
	site = site_open(other, i, "one.test", clock_mono());
	cr_assert_not_null(site);
	return site;
}

static uint32_t
other_takes(struct site *site, uint32_t most)
{
	uint32_t n = 0;

	while (n < most && site_take(site, clock_mono()) == SITE_ROOM)
		n++;
	return n;
}

static void
other_ends(struct site *site, uint32_t n, enum site_result result)
{
	const struct site_report report = { .result = result,
		.why = "4.4.1 no connection" };

	while (n-- > 0)
		site_done(site, &report, clock_mono(), NULL);
}

static void
other_closes(struct site *site)
{
	site_close(site, clock_mono());
}

/* ---- what this one does ---- */

static uint32_t
running(void)
{
	return sched_figures(w.s.sched).running;
}

/* Woken by another process, it takes a moment. */
static void
run_until_running(uint32_t count)
{
	const usec_t limit = clock_mono() + LIMIT_MSEC * USEC_PER_MSEC;

	while (running() < count && clock_mono() < limit) {
		struct pollfd wake = { shared_wake_fd(w.s.sites), POLLIN, 0 };

		(void)poll(&wake, 1, 100);
		world_run(&w);
	}
	cr_assert_eq(running(), count);
}

static void
tell(const struct msg *msg, int want)
{
	cr_assert_eq(
	    control_ops.told(&(struct daemon){ .state = &w.s }, msg), want);
	world_run(&w);
}

static void
forget(uint32_t queue, uint32_t generation)
{
	const struct msg msg = { .type = MSG_FORGET,
		.u.FORGET = { .queue = queue, .generation = generation } };

	tell(&msg, 0);
}

Test(site_table, what_another_queue_has_is_not_there)
{
	struct site *site = open_site();

	cr_assert_eq(other_takes(site, 3), 3);
	world_message(&w, "u@one.test", 20);
	cr_expect_eq(running(), 1);
	cr_expect_eq(other_takes(site, 1), 0);
	other_ends(site, 3, SITE_DELIVERED);
	run_until_running(LIMIT);
	cr_expect_eq(other_takes(site, 1), 0);
	other_closes(site);
}

Test(site_table, what_the_dead_had_is_free_when_the_supervisor_says_so)
{
	struct site *site = open_site();

	cr_assert_eq(other_takes(site, LIMIT), LIMIT);
	world_message(&w, "u@one.test", 20);
	cr_expect_eq(running(), 0);
	forget(OTHER, GENERATION - 1); /* of its group before */
	forget(OTHER + 1, GENERATION);
	cr_expect_eq(running(), 0);
	forget(OTHER, GENERATION);
	run_until_running(LIMIT);
	other_closes(site);
}

Test(site_table, a_destination_that_another_queue_found_dead_is_left_alone)
{
	struct site *site = open_site();
	struct world_delivery delivery;
	uint64_t inode;

	cr_assert_eq(other_takes(site, LIMIT), LIMIT);
	other_ends(site, LIMIT, SITE_FAILED);
	inode = world_message(&w, "u@one.test", 3);
	cr_expect_not(world_take(&w, &delivery), "nothing is tried");
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_expect_str_eq(world_reason(&w, SPOOL_DEFER, inode, 0),
	    "4.4.1 delivery temporarily suspended: no connection", "%s",
	    world_reason(&w, SPOOL_DEFER, inode, 0));
	cr_expect_eq(w.s.schedule->log.count, 0, "who found it tells of it");
	other_closes(site);
}

Test(site_table, who_waits_hears_of_a_death)
{
	struct site *site = open_site();
	uint64_t inode;
	int i;

	cr_assert_eq(other_takes(site, LIMIT), LIMIT);
	inode = world_message(&w, "u@one.test", 3);
	cr_expect_eq(running(), 0);
	other_ends(site, LIMIT, SITE_FAILED);
	for (i = 0; i < 200 && world_where(&w, inode) != SPOOL_DEFERRED; i++) {
		struct pollfd wake = { shared_wake_fd(w.s.sites), POLLIN, 0 };

		(void)poll(&wake, 1, 100);
		world_run(&w);
	}
	cr_expect_eq(world_where(&w, inode), SPOOL_DEFERRED);
	other_closes(site);
}

static void
run_for(usec_t length)
{
	const usec_t end = clock_mono() + length;

	while (clock_mono() < end) {
		struct pollfd wake = { shared_wake_fd(w.s.sites), POLLIN, 0 };

		(void)poll(&wake, 1, 5);
		world_run(&w);
	}
}

/* It stands in line, and what it may not use is for the others, at once. */
Test(site_table, who_may_not_deliver_holds_nobody_up)
{
	struct site *site = open_site();
	uint32_t taken = 0;
	usec_t end;

	cr_assert_eq(other_takes(site, LIMIT), LIMIT);
	world_message(&w, "u@one.test", 20);
	cr_expect_eq(running(), 0);
	w.s.health.read_only = true;
	w.s.health.probe_at = USEC_NEVER;
	world_run(&w);
	end = clock_mono() + 400 * USEC_PER_MSEC;
	while (clock_mono() < end) {
		other_ends(site, 1, SITE_DELIVERED);
		run_for(0);
		while (site_wait(site, true, clock_mono()) != SITE_ROOM)
			run_for(USEC_PER_MSEC);
		taken += other_takes(site, 1);
	}
	cr_expect_gt(taken, 40, "%u", taken);
	other_ends(site, LIMIT, SITE_DELIVERED);
	w.s.health.read_only = false;
	send_wake(&w.s);
	run_until_running(LIMIT);
	other_closes(site);
}

Test(site_table, an_end_without_deliveries_gives_everything_up)
{
	struct site *site = open_site();

	cr_assert_eq(other_takes(site, LIMIT), LIMIT);
	world_message(&w, "u@one.test", 20);
	other_ends(site, 1, SITE_AGENT_DIED);
	world_again(&w);
	cr_expect_eq(other_takes(site, 1), 1);
	other_ends(site, LIMIT, SITE_AGENT_DIED);
	other_closes(site);
}

/* An agent that is stopped has its connections as long as it is there. */
Test(site_table, P3_an_end_with_deliveries_leaves_them_to_the_supervisor)
{
	struct site *site = open_site();
	const uint32_t own = w.s.sp.queue;

	world_message(&w, "u@one.test", 20);
	cr_expect_eq(running(), LIMIT);
	cr_expect_eq(other_takes(site, 1), 0);
	world_again(&w);
	cr_expect_eq(other_takes(site, 1), 0);
	shared_forget(other, own, 1, clock_mono());
	cr_expect_eq(other_takes(site, LIMIT + 1), LIMIT);
	other_ends(site, LIMIT, SITE_AGENT_DIED);
	other_closes(site);
}

/* Its process is seen to end before its connections do. */
Test(site_table, P1_an_agent_that_died_keeps_its_places_until_the_next_is_there)
{
	struct site *site = open_site();
	int i;

	world_message(&w, "u@one.test", 20);
	cr_expect_eq(running(), LIMIT);
	io_close(&w.agent);
	for (i = 0; i < 60; i++)
		event_base_loop(w.s.base, EVLOOP_NONBLOCK);
	cr_expect_null(w.s.agent[AGENT_PROGRAM_LOCAL]);
	cr_expect_eq(other_takes(site, 1), 0);
	cr_expect_eq(running(), LIMIT);
	world_link_agent(&w);
	/* This queue is in line for one of them. */
	cr_expect_eq(other_takes(site, LIMIT), LIMIT - 1);
	other_ends(site, LIMIT - 1, SITE_DELIVERED);
	other_closes(site);
}

/* Out of time: agents close first, and places are free when they have ended. */
Test(site_table, P10_a_stop_that_takes_too_long_hangs_up_first)
{
	static struct chan_frame frame;
	struct daemon d = { .state = &w.s, .base = w.s.base };
	struct site *site = open_site();
	const uint32_t own = w.s.sp.queue;
	struct world_delivery delivery;
	int r;

	w.s.d = &d;
	world_message(&w, "u@one.test", 20);
	cr_expect_eq(running(), LIMIT);
	while (world_take(&w, &delivery))
		close(delivery.fd);
	control_ops.stop(&d, 0);
	while (!w.s.hung_up)
		event_base_loop(w.s.base, EVLOOP_ONCE);
	while ((r = chan_recv(w.agent, &frame)) == 1)
		cr_expect_eq(frame.msg.type, MSG_CANCEL);
	cr_expect_eq(r, 0, "it is to end");
	cr_expect_eq(other_takes(site, 1), 0);
	cr_expect_not(d.exiting);
	while (!d.exiting)
		event_base_loop(w.s.base, EVLOOP_ONCE);
	world_again(&w);
	cr_expect_eq(other_takes(site, 1), 0);
	shared_forget(other, own, 1, clock_mono());
	cr_expect_eq(other_takes(site, LIMIT), LIMIT);
	other_ends(site, LIMIT, SITE_DELIVERED);
	other_closes(site);
}

/* ---- a table that is lost ---- */

static int
next_segment(void)
{
	const struct shared_shape shape = { .slots = 64, .members = 4 };
	const struct shared_owner owner = { (uid_t)-1, (gid_t)-1 };
	int fd = -1;

	cr_assert_eq(shared_renew(name, &shape, &owner, &first, &fd), 0);
	return fd;
}

/* It starts nothing, and what runs is counted in the next one before it does.
 * mutation: site_table_linked() without shared_attach() */
static void
lose_and_go_on(void (*lose)(void))
{
	struct site *site = open_site();
	struct world_delivery delivery;
	int fd;

	world_message(&w, "u@one.test", 20);
	cr_expect_eq(running(), LIMIT);
	lose();
	cr_assert(world_take(&w, &delivery));
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_result(&w, &delivery, 1, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(running(), LIMIT - 1, "nothing starts");
	cr_expect(w.s.schedule->lost);
	fd = next_segment();
	links_linked(&w.s, "sites", dup(fd));
	cr_expect_not(w.s.schedule->lost);
	cr_expect_eq(running(), LIMIT - 1, "it is closed yet");
	cr_assert_eq(
	    shared_attach(other, fd, OTHER, GENERATION, clock_mono()), 0);
	cr_expect_eq(shared_open_up(fd), 0);
	run_until_running(LIMIT);
	cr_expect_eq(other_takes(site, 1), 0);
	io_close(&segment);
	segment = fd;
	other_closes(site);
}

static void
cut_off(void)
{
	cr_assert_eq(ftruncate(segment, 0), 0);
}

static void
forget_this(void)
{
	shared_forget(other, w.s.sp.queue, 1, clock_mono());
}

Test(site_table, I11_a_table_that_is_cut_off_is_waited_for)
{
	lose_and_go_on(cut_off);
}

/* Of damage: it must not stand there for ever and look alive. */
Test(site_table, P1_who_has_lost_its_column_waits_for_another_table)
{
	lose_and_go_on(forget_this);
}

/* ---- without ---- */

static void
world_anew(const char *conf)
{
	world_end(&w);
	w.no_segment = true;
	world_start(&w, conf);
}

/* Mail waits for the table, and goes when it is there. */
Test(site_table, without_a_segment_nothing_starts)
{
	world_anew("default_destination_recipient_limit = 2\n"
		   "initial_destination_concurrency = 4\n");
	shared_free(&other);
	world_message(&w, "u@one.test", 20);
	cr_expect_eq(running(), 0);
	w.s.generation = 1;
	links_linked(&w.s, "sites", dup(segment));
	run_until_running(LIMIT);
	start_other();
}

Test(site_table, other_links_without_a_descriptor_are_not_known)
{
	const struct msg page = { .type = MSG_LINK,
		.u.LINK = { .name = MSG_S("page") } };
	const struct msg longer = { .type = MSG_LINK,
		.u.LINK = { .name = MSG_S("sites2") } };

	tell(&page, -ENOENT);
	tell(&longer, -ENOENT);
}

Test(site_table, what_is_no_segment_is_not_used)
{
	static const char *const files[] = { "/dev/null", "/dev/zero" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(files); i++) {
		world_anew("queue_count = 2\nqueue_max = 2\n"
			   "instance = not-there\n");
		w.daemon.base = w.s.base;
		links_linked(&w.s, "sites", open(files[i], O_RDWR | O_CLOEXEC));
		cr_expect_not(shared_is_attached(w.s.sites));
		cr_expect(w.s.schedule->lost);
		world_message(&w, "u@one.test", 20);
		cr_expect_eq(running(), 0);
	}
}
