/* Peers that lie or die (I17, I18). */
#include "queue-send/agents/own.h"
#include "tests/unit/queue-send/world.h"

#include "base/header.h"
#include "base/io.h"
#include "queue-send/backlog/backlog.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(peers, .init = start, .fini = end, .timeout = 60);

static void
take(struct world_delivery *delivery)
{
	cr_assert(world_take(&w, delivery));
	close(delivery->fd);
}

struct lie {
	const char *name;
	struct msg msg;
};

static void
lie_and_see(const struct lie *lie)
{
	struct world_delivery again;
	struct msg msg = lie->msg;
	uint64_t inode;

	inode = world_message(&w, "u@one.test", 3);
	take(&again);
	if (msg.type == MSG_RESULT) {
		msg.u.RESULT.job += again.number;
		msg.u.RESULT.rcpt += again.rcpt[0];
	} else if (msg.type == MSG_DONE) {
		msg.u.DONE.job += again.number;
	}
	world_result(&w, &again, 1, AGENT_SENT);
	world_send(w.agent, &msg);
	world_run(&w);
	cr_assert_null(w.s.agent[AGENT_PROGRAM_LOCAL], "%s", lie->name);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED, "%s", lie->name);
	cr_assert_str_eq(
	    world_marks(&w, SPOOL_DEFERRED, inode), ".D.", "%s", lie->name);
	cr_assert_eq(sched_figures(w.s.sched).running, 0);
	world_link_agent(&w);
	world_run(&w);
}

#define RESULT(j, r, o, d, t)                     \
	{                                         \
		.type = MSG_RESULT, .u.RESULT = { \
			.job = j,                 \
			.rcpt = r,                \
			.outcome = o,             \
			.dsn = MSG_S(d),          \
			.relay = MSG_S(""),       \
			.text = t                 \
		}                                 \
	}

Test(peers, I18_an_agent_that_lies_is_dropped_and_its_jobs_deferred)
{
	static char large[AGENT_TEXT_MAX + 2];
	const struct lie lies[] = {
		{ "unknown delivery",
		    RESULT(1, 0, AGENT_SENT, "2.0.0", MSG_S("")) },
		{ "recipient of no delivery",
		    RESULT(0, 3, AGENT_SENT, "2.0.0", MSG_S("")) },
		{ "recipient out of range",
		    RESULT(0, 4000000000u, AGENT_SENT, "2.0.0", MSG_S("")) },
		{ "twice", RESULT(0, 1, AGENT_FAILED, "5.0.0", MSG_S("")) },
		{ "bad outcome",
		    RESULT(0, 0, AGENT_NOUTCOMES, "2.0.0", MSG_S("")) },
		{ "outcome 255", RESULT(0, 0, 255, "2.0.0", MSG_S("")) },
		{ "long code",
		    RESULT(
			0, 0, AGENT_SENT, "2.0.0.0.0.0.0.0.0.0", MSG_S("")) },
		{ "long text",
		    RESULT(0, 0, AGENT_SENT, "2.0.0",
			((struct msg_str){ large, sizeof(large) - 1 })) },
		{ "wishes of an unknown delivery",
		    { .type = MSG_PASSED_ON, .u.PASSED_ON = { 7, 0 } } },
		{ "done with an unknown delivery",
		    { .type = MSG_DONE,
			.u.DONE = { .job = 7,
			    .dsn = MSG_S(""),
			    .text = MSG_S("") } } },
		{ "done with no such end",
		    { .type = MSG_DONE,
			.u.DONE = { .site = AGENT_SITE_NENDS,
			    .dsn = MSG_S(""),
			    .text = MSG_S("") } } },
		{ "not an agent's message",
		    { .type = MSG_CREDIT, .u.CREDIT = { .messages = 1 } } },
	};
	size_t i;

	memset(large, 'x', sizeof(large) - 1);
	for (i = 0; i < ARRAY_LEN(lies); i++)
		lie_and_see(&lies[i]);
}

Test(peers, I18_an_agent_cannot_end_the_job_of_another)
{
	uint64_t inode = world_message(&w, "d", 1);
	struct world_delivery delivery;
	int first = w.agent;

	take(&delivery);
	w.agent = -1;
	world_link_agent(&w);
	world_run(&w);
	world_done(&w, &delivery); /* by the other one */
	world_run(&w);
	cr_assert_null(w.s.agent[AGENT_PROGRAM_LOCAL]);
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	io_close(&w.agent);
	w.agent = first;
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
}

Test(peers, a_code_that_does_not_fit_the_outcome_is_replaced)
{
	static const struct {
		const char *dsn, *want;
	} cases[] = {
		{ "5.7.1", "4.0.0 x" },
		{ "4.7.1", "4.7.1 x" },
		{ "4.1234.1", "4.0.0 x" },
		{ "4.7.", "4.0.0 x" },
		{ "4..1", "4.0.0 x" },
		{ "", "4.0.0 x" },
		{ "4.7.1\n", "4.0.0 x" },
	};
	struct world_delivery delivery;
	uint64_t inode;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct msg msg = RESULT(0, 0, AGENT_DEFERRED, "", MSG_S("x"));

		inode = world_message(&w, "d", 1);
		take(&delivery);
		msg.u.RESULT.job = delivery.number;
		msg.u.RESULT.dsn = MSG_S(cases[i].dsn);
		world_send(w.agent, &msg);
		world_done(&w, &delivery);
		world_run(&w);
		cr_assert_str_eq(world_reason(&w, SPOOL_DEFER, inode, 0),
		    cases[i].want, "%s", cases[i].dsn);
	}
}

Test(peers, todo_proc_that_says_what_it_may_not_loses_its_link)
{
	static const struct msg_MESSAGE right = {
		.inode = 5,
		.dir = SPOOL_INCOMING,
		.arrival_wall = 1,
		.queue = 1,
		.sender = { "", 0 },
		.census = { "", 0 },
	};
	struct msg_MESSAGE wrong[7];
	static char sender[ADDRESS_MAX + 1];
	size_t i;

	for (i = 0; i < ARRAY_LEN(wrong); i++)
		wrong[i] = right;
	memset(sender, 'a', sizeof(sender));
	wrong[0].inode = 0;
	wrong[1].dir = SPOOL_ACTIVE;
	wrong[2].dir = 4711;
	wrong[3].queue = QUEUE_NUM_MAX + 1;
	wrong[4].arrival_wall = -1;
	wrong[5].sender = (struct msg_str){ sender, sizeof(sender) };
	wrong[6].census = (struct msg_str){ "abc", 3 };
	for (i = 0; i < ARRAY_LEN(wrong); i++) {
		world_send(w.todo,
		    &(struct msg){
			.type = MSG_MESSAGE, .u.MESSAGE = wrong[i] });
		world_run(&w);
		cr_assert_null(w.s.links->todo, "%zu", i);
		world_link_todo(&w);
		world_run(&w);
		cr_assert_not_null(w.s.links->todo);
	}
	/* More than it has credit for. */
	for (i = 0; i <= MSG_PREP_WINDOW * 2; i++)
		if (chan_send(w.todo,
			&(struct msg){
			    .type = MSG_MESSAGE, .u.MESSAGE = right },
			-1) < 0)
			break;
	world_run(&w);
	cr_assert_eq(w.s.active, 0);
}

/* An offer that tells of the file, with one recipient of seven bytes. */
static struct msg_MESSAGE
telling(void)
{
	static const char rcpts[] = "R.\x07\0r@a.tld";

	return (struct msg_MESSAGE){
		.inode = 5,
		.dir = SPOOL_INCOMING,
		.arrival_wall = 1,
		.queue = 1,
		.size = QUEUE_FILE_HEADER + 10 + 4 + 11 + QUEUE_FILE_TRAILER,
		.content_len = 10,
		.recipients = 1,
		.pending = 1,
		.version = 1,
		.env_len = 4,
		.rcpt_len = 11,
		.message_id = MSG_S("m@a"),
		.rcpts = { rcpts, 11 },
	};
}

static void
is_refused(const struct msg_MESSAGE *wrong, size_t i)
{
	world_send(
	    w.todo, &(struct msg){ .type = MSG_MESSAGE, .u.MESSAGE = *wrong });
	world_run(&w);
	cr_assert_null(w.s.links->todo, "%zu", i);
	world_link_todo(&w);
	world_run(&w);
	cr_assert_not_null(w.s.links->todo);
}

Test(peers, todo_proc_that_tells_what_no_file_has_loses_its_link)
{
	static char id[HEADER_MESSAGE_ID_MAX];
	struct msg_MESSAGE wrong[17], right = telling();
	size_t i;

	memset(id, 'a', sizeof(id));
	for (i = 0; i < ARRAY_LEN(wrong); i++)
		wrong[i] = right;
	wrong[0].version = 0; /* and yet recipients */
	wrong[1].version = QUEUE_FILE_VERSION + 1;
	wrong[2].size++;
	wrong[3].env_len = UINT64_MAX;
	wrong[4].rcpt_len = UINT64_MAX - 3;
	wrong[5].content_len = UINT64_MAX - 8;
	wrong[6].flags = UINT32_MAX;
	wrong[7].message_id = (struct msg_str){ id, sizeof(id) };
	wrong[8].rcpts.len = 10;
	wrong[9].pending = 0;
	wrong[10].recipients = 2;
	wrong[11].recipients = 0;
	wrong[12].rcpts.data = "RD\x07\0r@a.tld"; /* marked */
	wrong[13].rcpts.data = "R.\x08\0r@a.tld"; /* longer */
	wrong[14].rcpts.data = "R.\x06\0r@a.tld"; /* a rest */
	wrong[15].rcpts.data = "S.\x07\0r@a.tld";
	wrong[16].rcpts.data = "R.\x07\0r@a\n\n\n\n";
	for (i = 0; i < ARRAY_LEN(wrong); i++)
		is_refused(&wrong[i], i);
	wrong[0] = right;
	wrong[0].dir = SPOOL_DEFERRED;
	is_refused(&wrong[0], i);
	world_send(
	    w.todo, &(struct msg){ .type = MSG_MESSAGE, .u.MESSAGE = right });
	world_run(&w);
	cr_assert_not_null(w.s.links->todo);
}

Test(peers, I17_todo_proc_that_dies_is_asked_again)
{
	uint64_t inode = world_message(&w, "d", 1);

	world_deliver(&w, AGENT_DEFERRED);
	deferred_flush(&w.s);
	send_wake(&w.s);
	world_run(&w);
	cr_assert_eq(w.nprepared, 1);
	close(w.todo);
	w.todo = -1;
	world_run(&w);
	cr_assert_eq(w.s.due.asked, 0);
	w.credit = 0;
	world_link_todo(&w);
	world_run(&w);
	cr_assert_eq(w.nprepared, 2);
	cr_assert_eq(w.prepared[1], inode);
	cr_assert_gt(w.credit, 0);
	/* It says that it cannot be had now: later again. */
	world_send(w.todo,
	    &(struct msg){ .type = MSG_GONE,
		.u.GONE = { .inode = inode, .error = -EIO } });
	world_run(&w);
	cr_assert_eq(w.s.due.count, 1);
	cr_assert_eq(w.s.due.asked, 0);
	deferred_flush(&w.s);
	send_wake(&w.s);
	world_run(&w);
	/* That it is not there: forgotten. */
	cr_assert_eq(spool_remove(&w.s.sp, SPOOL_DEFERRED, inode), 0);
	world_send(w.todo,
	    &(struct msg){ .type = MSG_GONE,
		.u.GONE = { .inode = inode, .error = -ENOENT } });
	world_run(&w);
	cr_assert_eq(w.s.due.count, 0);
	cr_assert_eq(world_count(&w, SPOOL_DEFER), 0);
}
