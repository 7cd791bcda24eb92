/* What queue-send says of a message: the situation, with its figures. */
#include "queue-send/schedule/own.h"
#include "queue-send/reports/own.h"
#include "tests/unit/queue-send/world.h"

#include "queue-send/operators/own.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/situation.h"
#include "queue-send/schedule/schedule.h"

#define FACTS_MAX 64

/* One EXPLAINED; its strings are copied. */
struct fact {
	struct msg_EXPLAINED f;
	char site[300], other[100], why[300];
};

static struct world w;
static struct wire *wire;
static int peer;
static struct chan_frame frame; /* large */
static struct fact facts[FACTS_MAX];
static unsigned nfacts;
static struct msg_EXPLAINED_END last;

static void
on_frame(void *arg UNUSED, struct wire *x UNUSED, struct chan_frame *f UNUSED)
{
}

static void
on_closed(void *arg UNUSED, struct wire *x UNUSED)
{
}

static const struct wire_ops ops = { .frame = on_frame, .closed = on_closed };

static void
begin(const char *conf)
{
	int fds[2];

	world_start(&w, conf);
	cr_assert_eq(chan_pair(fds), 0);
	cr_assert_eq(wire_new(w.s.base, fds[0], &ops, NULL, &wire), 0);
	peer = fds[1];
}

static void
start(void)
{
	begin("initial_destination_concurrency = 1\n"
	      "minimal_backoff_time = 1h\nmaximal_backoff_time = 1h\n"
	      "default_delivery_slot_cost = 0\nerror_interval = 1h\n"
	      "qmgr_message_active_limit = 20\n");
}

static void
end(void)
{
	wire_free(&wire);
	io_close(&peer);
	world_end(&w);
}

TestSuite(explain, .init = start, .fini = end, .timeout = 60);

/* ---- questions ---- */

static void
copy(char *out, size_t size, const msg_str *s)
{
	snprintf(out, size, "%.*s", (int)s->len, s->data);
}

static void
take_fact(void)
{
	struct fact *f = &facts[nfacts++];

	cr_assert_leq(nfacts, FACTS_MAX);
	f->f = frame.msg.u.EXPLAINED;
	copy(f->site, sizeof(f->site), &f->f.site);
	copy(f->other, sizeof(f->other), &f->f.other);
	copy(f->why, sizeof(f->why), &f->f.why);
}

static void
take_answer(void)
{
	nfacts = 0;
	for (;;) {
		cr_assert_eq(chan_recv(peer, &frame), 1);
		if (frame.msg.type == MSG_EXPLAINED_END)
			break;
		cr_assert_eq(frame.msg.type, MSG_EXPLAINED);
		cr_expect_eq(frame.msg.u.EXPLAINED.serial, 7);
		take_fact();
	}
	last = frame.msg.u.EXPLAINED_END;
	cr_expect_eq(last.serial, 7);
}

static void
ask(uint64_t inode)
{
	int fd =
	    spool_open_file(&w.s.sp, world_where(&w, inode), inode, O_RDONLY);
	struct queue_file file;

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	io_close(&fd);
	send_read_clocks(&w.s);
	explain_message(&w.s, wire,
	    &(struct msg_EXPLAIN){ .serial = 7,
		.arrival_wall = file.arrival_wall,
		.nonce = file.nonce,
		.queue = file.queue,
		.inode = inode });
	take_answer();
}

static void
ask_address(const char *address)
{
	send_read_clocks(&w.s);
	explain_address(&w.s, wire,
	    &(struct msg_EXPLAIN_TO){
		.serial = 7, .sender = MSG_S(""), .address = MSG_S(address) });
	take_answer();
}

/* The only fact of this kind. */
static const struct fact *
fact(enum situation situation)
{
	const struct fact *found = NULL;
	unsigned i;

	for (i = 0; i < nfacts; i++)
		if (facts[i].f.situation == situation) {
			cr_expect_null(found, "two of %d", situation);
			found = &facts[i];
		}
	cr_assert_not_null(found, "no %d", situation);
	return found;
}

static void
take(struct world_delivery *delivery)
{
	cr_assert(world_take(&w, delivery));
	close(delivery->fd);
}

/* ---- the active queue ---- */

Test(explain, delivering_and_window)
{
	uint64_t one = world_message(&w, "a@one.test", 1);
	uint64_t two = world_message(&w, "b@one.test", 1);
	uint64_t three = world_message(&w, "c@one.test", 1);
	const struct fact *f;

	world_send(w.agent,
	    &(struct msg){ .type = MSG_AGENT, .u.AGENT = { .pid = 4711 } });
	world_run(&w);
	ask(one);
	f = fact(SITUATION_DELIVERING);
	cr_expect_eq(f->f.recipients, 1);
	cr_expect_eq(f->f.pid, 4711);
	cr_expect_str_eq(f->site, "discard/one.test");
	cr_expect_str_eq(f->why, "deliver-local");
	cr_expect_leq(f->f.since_wall, w.s.now_wall);
	ask(two);
	f = fact(SITUATION_WINDOW);
	cr_expect_eq(f->f.used, 1);
	cr_expect_eq(f->f.limit, 1);
	cr_expect_eq(f->f.ahead, 0);
	ask(three);
	f = fact(SITUATION_WINDOW);
	cr_expect_eq(f->f.ahead, 1);
	cr_expect_eq(f->f.more, 0);
}

/* mutation: the groups are not counted down, and all are told. */
Test(explain, A9_a_message_of_many_sites_is_answered_in_bounds)
{
	uint64_t inode = world_message(&w, "d", 300);
	unsigned i, recipients = 0;

	ask(inode);
	cr_expect_leq(nfacts, EXPLAIN_GROUPS + 5);
	for (i = 0; i < nfacts; i++)
		recipients += facts[i].f.recipients;
	cr_expect_eq(recipients + last.left_out, 300, "%u, %u", recipients,
	    last.left_out);
	cr_expect_gt(last.left_out, 200);
}

Test(explain, nothing_starts)
{
	uint64_t inode;

	close(w.agent);
	w.agent = -1;
	world_run(&w);
	inode = world_message(&w, "a@one.test", 1);
	ask(inode);
	cr_expect_str_eq(fact(SITUATION_NO_AGENT)->why, "deliver-local");
	w.s.schedule->starts_nothing = true;
	ask(inode);
	fact(SITUATION_PAUSED);
}

/* mutation: queue-send/operators/explain.c: a row of the table of lists has
 * another situation. */
Test(explain, a_message_whose_attempt_is_over)
{
	static const struct {
		enum message_state state;
		enum situation want;
	} rows[] = {
		{ STATE_UNSYNCED, SITUATION_SYNCING },
		{ STATE_SYNCING, SITUATION_SYNCING },
		{ STATE_UNREPORTED, SITUATION_REPORTING },
		{ STATE_REPORTING, SITUATION_REPORTING },
	};
	uint64_t inode = world_message(&w, "a@one.test", 1);
	struct message *m = messages_find(&w.s.messages, inode);
	size_t i;

	cr_assert_not_null(m);
	w.s.sync.not_before = w.s.reports->not_before = USEC_NEVER;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		messages_put(&w.s.messages, m, rows[i].state);
		ask(inode);
		fact(rows[i].want);
	}
	messages_put(&w.s.messages, m, STATE_ACTIVE);
	w.s.messages.faults = 0; /* the steps of this test */
}

Test(explain, what_an_operator_has_decided)
{
	uint64_t inode = world_message(&w, "a@one.test", 1);
	struct message *m = messages_find(&w.s.messages, inode);

	cr_assert_not_null(m);
	m->fate = FATE_HELD;
	ask(inode);
	cr_expect_str_eq(fact(SITUATION_DECIDED)->why, "held");
	cr_expect_eq(fact(SITUATION_DECIDED)->f.need, 1);
	m->fate = FATE_OPEN;
}

/* The state of a message says what it waits for. */
Test(explain, states)
{
	static const struct {
		enum message_state state;
		enum situation want;
	} rows[] = {
		{ STATE_FINISHED, SITUATION_LEAVING },
		{ STATE_STUCK, SITUATION_STUCK },
		{ STATE_UNSYNCED, SITUATION_SYNCING },
		{ STATE_SYNCING, SITUATION_SYNCING },
		{ STATE_UNREPORTED, SITUATION_REPORTING },
		{ STATE_REPORTING, SITUATION_REPORTING },
		{ STATE_UNMOVED, SITUATION_LEAVING },
		{ STATE_LEAVING, SITUATION_MOVING },
		{ STATE_READING, SITUATION_READING },
	};
	uint64_t inode = world_message(&w, "a@one.test", 1);
	struct message *m = messages_find(&w.s.messages, inode);
	size_t i;

	cr_assert_not_null(m);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		messages_put(&w.s.messages, m, rows[i].state);
		ask(inode);
		fact(rows[i].want);
	}
	messages_put(&w.s.messages, m, STATE_ACTIVE);
	w.s.messages.faults = 0; /* the steps of this test */
	m->nunrecorded = 3;
	ask(inode);
	cr_expect_eq(fact(SITUATION_RECORDING)->f.recipients, 3);
	m->nunrecorded = 0;
}

/* ---- outside ---- */

/* mutation: queue-send/operators/explain.c: explain_message() knows no moves.
 */
Test(explain, D41_on_the_way_to_the_active_queue)
{
	struct message *m;
	uint64_t inode;

	w.s.stopping = true; /* nothing comes in */
	inode = world_message(&w, "a@one.test", 1);
	m = messages_find(&w.s.messages, inode);
	cr_assert_not_null(m);
	ask(inode);
	fact(SITUATION_OFFERED);
	messages_put(&w.s.messages, m, STATE_ENTERING_INCOMING);
	ask(inode);
	fact(SITUATION_ENTERING);
}

Test(explain, due_later_and_dead)
{
	uint64_t inode = world_message(&w, "k@one.test", 1);
	struct world_delivery delivery;
	const struct fact *f;

	take(&delivery);
	world_site_failed(&w, &delivery);
	world_run(&w);
	ask(inode);
	f = fact(SITUATION_LATER);
	cr_expect_gt(f->f.until_wall, w.s.now_wall + 3000 * USEC_PER_SEC);
	cr_expect_lt(f->f.until_wall, w.s.now_wall + 4000 * USEC_PER_SEC);
	ask_address("k@one.test");
	f = fact(SITUATION_DEAD);
	cr_expect_str_eq(f->site, "discard/one.test");
	cr_expect_str_eq(f->why, "4.4.1 no connection");
	cr_expect_leq(f->f.since_wall, w.s.now_wall);
	cr_expect_gt(f->f.since_wall, w.s.now_wall - 60 * USEC_PER_SEC);
	cr_expect_gt(f->f.until_wall, w.s.now_wall);
	ask_address("k@two.test");
	cr_expect_eq(fact(SITUATION_OPEN)->f.limit, 1);
	due_flush(&w.s.due);
	ask(inode);
	fact(SITUATION_DUE);
	due_ask(&w.s.due, w.s.now);
	ask(inode);
	fact(SITUATION_PREPARED);
	due_find(&w.s.due, inode)->deaths = 2;
	ask(inode);
	cr_expect_eq(fact(SITUATION_SUSPECT)->f.need, 2);
}

/* A next hop of SMTP, whose destination MX records name. */
static uint32_t smtp;

/* Behind start(), which the suite has run. */
static void
start_smtp(void)
{
	end();
	begin("smtp_initial_destination_concurrency = 2\n"
	      "default_delivery_slot_cost = 0\n");
	world_link_smtp(&w);
	world_run(&w);
	smtp = (uint32_t)conf_transport_find(&w.conf, "smtp");
}

static void
expect_address(
    const char *address, enum situation situation, const char *site, uint32_t n)
{
	ask_address(address);
	cr_expect_str_eq(fact(situation)->site, site);
	cr_expect_eq(fact(situation)->f.used, n);
}

/* mutation: delivery_destination() is always NULL, or knows no deliveries;
 * explain_site() without SITUATION_UNPLACED. */
Test(explain, the_destination_of_a_domain, .init = start_smtp)
{
	struct world_delivery delivery;
	uint64_t inode;

	expect_address(
	    "k@roll0.test", SITUATION_UNPLACED, "smtp/roll0.test", 0);
	inode = world_message(&w, "k@roll0.test", 1);
	take(&delivery);
	world_send(w.agent,
	    &(struct msg){ .type = MSG_ELSEWHERE,
		.u.ELSEWHERE = { .job = delivery.number,
		    .site = MSG_S("mx:a.test"),
		    .seconds = 0 } });
	world_run(&w);
	take(&delivery);
	expect_address("l@ROLL0.test", SITUATION_OPEN, "smtp/mx:a.test", 1);
	expect_address(
	    "k@roll1.test", SITUATION_UNPLACED, "smtp/roll1.test", 0);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_expect_eq(world_where(&w, inode), SPOOL_NDIRS);
	expect_address(
	    "k@roll0.test", SITUATION_UNPLACED, "smtp/roll0.test", 0);
	rollup_note(&w.s, smtp, "roll0.test", "mx:b.test", 60);
	expect_address("k@roll0.test", SITUATION_OPEN, "smtp/mx:b.test", 0);
}

Test(explain, parked)
{
	uint64_t inode = 0;
	const struct fact *f;
	int i;

	for (i = 0; i < 7; i++)
		inode = world_message(&w, "a@hangs.test", 1);
	ask(inode);
	f = fact(SITUATION_PARKED);
	cr_expect_str_eq(f->site, "discard/hangs.test");
	cr_expect_eq(f->f.used, 4);
	cr_expect_eq(f->f.limit, 4);
	cr_expect_eq(f->f.ahead, 2);
	cr_expect_eq(f->f.more, 0);
}

Test(explain, unknown_and_another_of_the_inode)
{
	uint64_t inode = world_file(&w, "a@one.test", 1, 0);

	ask(inode);
	fact(SITUATION_UNKNOWN);
	inode = world_message(&w, "a@one.test", 1);
	explain_message(
	    &w.s, wire, &(struct msg_EXPLAIN){ .serial = 7, .inode = inode });
	take_answer();
	cr_expect_eq(last.error, -ENOENT);
	cr_expect_eq(nfacts, 0);
}

Test(explain, states_of_the_queue)
{
	uint64_t inode = world_file(&w, "a@one.test", 1, 0);

	w.s.health.read_only = true;
	w.s.health.error = -EROFS;
	w.s.health.probe_at = w.s.now + USEC_PER_SEC;
	w.s.stopping = true;
	ask(inode);
	cr_expect_str_eq(
	    fact(SITUATION_READ_ONLY)->why, "Read-only file system");
	fact(SITUATION_STOPPING);
	w.s.health.read_only = w.s.stopping = false;
	w.s.active += 20;
	ask(inode);
	cr_expect_eq(fact(SITUATION_ACTIVE_FULL)->f.limit, 20);
	w.s.active -= 20;
	w.s.messages.count[STATE_ENTERING_INCOMING] += 20;
	ask(inode);
	cr_expect_eq(fact(SITUATION_ACTIVE_FULL)->f.used, 20, "on their way");
	w.s.messages.count[STATE_ENTERING_INCOMING] -= 20;
	close(w.todo);
	w.todo = -1;
	world_run(&w);
	ask(inode);
	fact(SITUATION_NO_TODO);
}

Test(explain, addresses_that_are_none)
{
	static char longer[ADDRESS_MAX + 2];

	ask_address("");
	cr_expect_lt(last.error, 0);
	ask_address("a\033@one.test");
	cr_expect_lt(last.error, 0);
	memset(longer, 'a', sizeof(longer) - 1);
	ask_address(longer);
	cr_expect_lt(last.error, 0);
	cr_expect_eq(nfacts, 0);
}
