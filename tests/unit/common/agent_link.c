#include "agent/agent.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"

/* The agent under test in a loop, and queue-send's end as a bare socket. */
static struct event_base *base;
static struct agent *agent;
static int peer = -1;

static struct agent_delivery *held[512];
static size_t nheld;
static uint32_t orphans, bads;
static const char *last_bad;
static bool answer_at_once;
static uint64_t closed; /* the last that we are told to close */

static const struct agent_report sent = {
	.outcome = AGENT_SENT,
	.dsn = "2.0.0",
	.relay = "local",
	.text = "ok",
	.conn = 5,
	.xfer = 7,
};

static void
on_deliver(void *arg UNUSED, struct agent_delivery *d)
{
	if (answer_at_once) {
		agent_result_rest(d, &sent);
		agent_done(d, AGENT_SITE_TALKED, "", "");
		return;
	}
	cr_assert(nheld < ARRAY_LEN(held));
	held[nheld++] = d;
}

static void
on_orphaned(void *arg UNUSED)
{
	orphans++;
}

static void
on_bad(void *arg UNUSED, const char *what)
{
	bads++;
	last_bad = what;
}

static void
on_close(void *arg UNUSED, uint64_t connection)
{
	closed = connection;
	agent_connection_closed(agent, connection);
}

static const struct agent_ops ops = {
	.deliver = on_deliver,
	.orphaned = on_orphaned,
	.bad = on_bad,
	.close = on_close,
};

static void
setup(void)
{
	int fds[2];

	base = event_base_new();
	cr_assert(base != NULL && chan_pair(fds) == 0);
	cr_assert_eq(agent_new(base, fds[0], &ops, NULL, &agent), 0);
	peer = fds[1];
}

static void
teardown(void)
{
	size_t i;

	agent_free(&agent);
	for (i = 0; i < nheld; i++)
		agent_done(held[i], AGENT_SITE_TALKED, "", "");
	io_close(&peer);
	event_base_free(base);
}

static int
queue_file(void)
{
	char name[] = "/tmp/agent-link-XXXXXX";
	int fd = mkstemp(name), ret;

	cr_assert(fd >= 0 && ftruncate(fd, 100) == 0);
	ret = open(name, O_RDONLY | O_CLOEXEC);
	unlink(name);
	close(fd);
	return ret;
}

static int
send_deliver(uint64_t number, uint32_t nrcpts, uint64_t len)
{
	struct buf rcpts = { 0 };
	struct msg msg = { .type = MSG_DELIVER };
	uint32_t i;
	int fd = queue_file(), r;

	for (i = 0; i < nrcpts; i++)
		agent_rcpt_add(&rcpts, 10 + i, "a@b", 3);
	msg.u.DELIVER = (struct msg_DELIVER){
		.job = number,
		.id = MSG_S("0A"),
		.kind = AGENT_DISCARD,
		.transport = MSG_S("discard"),
		.nexthop = MSG_S("b"),
		.sender = MSG_S(""),
		.content_off = 0,
		.content_len = len,
		.nrcpts = nrcpts,
		.rcpts = { buf_str(&rcpts), rcpts.len },
	};
	r = chan_send(peer, &msg, fd);
	close(fd);
	buf_done(&rcpts);
	return r;
}

static void
turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static struct chan_frame in;

/* The next answer, or MSG number 0 when there is none. */
static enum msg_type
answer(void)
{
	turn();
	return chan_recv(peer, &in) == 1 ? in.msg.type : (enum msg_type)0;
}

static bool
str_is(const struct msg_str *s, const char *want)
{
	return s->len == strlen(want) && memcmp(s->data, want, s->len) == 0;
}

Test(agent_link, results_and_done, .init = setup, .fini = teardown)
{
	cr_assert_eq(send_deliver(7, 3, 100), 0);
	turn();
	cr_assert_eq(nheld, 1);
	agent_result(held[0], 1, &sent);
	agent_result_rest(held[0],
	    &(struct agent_report){ .outcome = AGENT_DEFERRED,
		.dsn = "4.2.0",
		.relay = "none",
		.text = "a\nb" });
	nheld = 0;
	agent_done(held[0], AGENT_SITE_FAILED, "4.4.1", "no\troute");

	cr_assert_eq(answer(), MSG_RESULT);
	cr_expect_eq(in.msg.u.RESULT.job, 7);
	cr_expect_eq(in.msg.u.RESULT.rcpt, 11);
	cr_expect_eq(in.msg.u.RESULT.outcome, AGENT_SENT);
	cr_expect(str_is(&in.msg.u.RESULT.dsn, "2.0.0"));
	cr_expect(str_is(&in.msg.u.RESULT.relay, "local"));
	cr_expect(str_is(&in.msg.u.RESULT.text, "ok"));
	cr_expect_eq(in.msg.u.RESULT.conn_usec, 5);
	cr_expect_eq(in.msg.u.RESULT.xfer_usec, 7);
	cr_assert_eq(answer(), MSG_RESULT);
	cr_expect_eq(in.msg.u.RESULT.rcpt, 10);
	cr_assert_eq(answer(), MSG_RESULT);
	cr_expect_eq(in.msg.u.RESULT.rcpt, 12);
	cr_expect_eq(in.msg.u.RESULT.outcome, AGENT_DEFERRED);
	cr_expect(
	    str_is(&in.msg.u.RESULT.text, "a?b"), "foreign text is clean");
	cr_assert_eq(answer(), MSG_DONE);
	cr_expect_eq(in.msg.u.DONE.job, 7);
	cr_expect_eq(in.msg.u.DONE.site, AGENT_SITE_FAILED);
	cr_expect(str_is(&in.msg.u.DONE.dsn, "4.4.1"));
	cr_expect(str_is(&in.msg.u.DONE.text, "no?route"));
	cr_expect_eq(answer(), 0);
}

Test(agent_link, long_text_is_cut, .init = setup, .fini = teardown)
{
	static char text[3 * AGENT_TEXT_MAX];

	memset(text, 'x', sizeof(text) - 1);
	send_deliver(1, 1, 0);
	turn();
	nheld = 0;
	agent_result(held[0], 0,
	    &(struct agent_report){ .outcome = AGENT_FAILED,
		.dsn = text,
		.relay = text,
		.text = text });
	agent_done(held[0], AGENT_SITE_DOUBTED, "", text);
	cr_assert_eq(answer(), MSG_RESULT);
	cr_expect_eq(in.msg.u.RESULT.dsn.len, AGENT_DSN_MAX);
	cr_expect_eq(in.msg.u.RESULT.relay.len, AGENT_RELAY_MAX);
	cr_expect_eq(in.msg.u.RESULT.text.len, AGENT_TEXT_MAX);
	cr_assert_eq(answer(), MSG_DONE);
	cr_expect_eq(in.msg.u.DONE.site, AGENT_SITE_DOUBTED);
}

Test(agent_link, I18_a_bad_job_is_answered_and_ends_nothing, .init = setup,
    .fini = teardown)
{
	cr_assert_eq(send_deliver(9, 1, 101), 0);
	cr_assert_eq(answer(), MSG_DONE);
	cr_expect_eq(in.msg.u.DONE.job, 9);
	cr_expect_eq(in.msg.u.DONE.site, AGENT_SITE_TALKED);
	cr_expect_eq(bads, 1);
	cr_expect_eq(orphans, 0);
	send_deliver(9, 1, 100);
	turn();
	cr_expect_eq(nheld, 1, "the next one is taken");
}

Test(
    agent_link, I18_a_number_in_use_is_dropped, .init = setup, .fini = teardown)
{
	send_deliver(5, 1, 0);
	send_deliver(5, 1, 0);
	turn();
	cr_expect_eq(nheld, 1);
	cr_expect_eq(bads, 1);
	cr_expect_str_eq(last_bad, "DELIVER: number in use");
	cr_expect_eq(answer(), 0, "an answer would end the first");
}

Test(agent_link, frames_that_are_for_others_and_rubbish_are_dropped,
    .init = setup, .fini = teardown)
{
	const struct msg foreign = { .type = MSG_FLUSH };

	cr_assert_eq(chan_send(peer, &foreign, -1), 0);
	cr_assert_eq(send(peer, "rubbish", 7, 0), 7);
	turn();
	turn();
	cr_expect_eq(bads, 2);
	send_deliver(1, 1, 0);
	turn();
	cr_expect_eq(nheld, 1);
	cr_expect_eq(orphans, 0);
}

Test(agent_link, queue_send_gone_is_told_once, .init = setup, .fini = teardown)
{
	send_deliver(1, 2, 0);
	turn();
	io_close(&peer);
	turn();
	turn();
	cr_expect_eq(orphans, 1);
	cr_assert_eq(nheld, 1, "the delivery is still there");
	agent_result_rest(held[0], &sent);
	agent_done(held[0], AGENT_SITE_TALKED, "", "");
	nheld = 0;
	turn();
	cr_expect_eq(orphans, 1);
}

Test(agent_link, a_job_outlives_its_agent, .init = setup, .fini = teardown)
{
	send_deliver(1, 1, 0);
	turn();
	agent_free(&agent);
	cr_assert_null(held[0]->agent);
	agent_result(held[0], 0, &sent);
	agent_done(held[0], AGENT_SITE_TALKED, "", "");
	nheld = 0;
}

/* queue-send does not read: answers wait, and no new jobs are taken; when it
 * reads again nothing was lost. */
Test(agent_link, a_slow_reader_loses_nothing, .init = setup, .fini = teardown)
{
	enum {
		JOBS = 20000
	};
	uint64_t to_send = 0, results = 0, dones = 0, idle = 0;

	answer_at_once = true;
	while (idle < 10) {
		int r = to_send < JOBS ? send_deliver(to_send + 1, 100, 0) : 1;

		idle = r == 0 ? 0 : idle + 1;
		to_send += r == 0;
		turn();
	}
	cr_expect_lt(to_send, JOBS, "it stopped taking jobs");
	cr_expect_eq(orphans, 0);
	while (dones < to_send) {
		enum msg_type type = answer();

		results += type == MSG_RESULT;
		dones += type == MSG_DONE;
	}
	cr_expect_eq(results, 100 * to_send);
	cr_expect_eq(orphans, 0);
}

/* What cannot even wait ends the link: the delivery must not stay open. */
Test(agent_link, answers_beyond_the_limit_end_the_link, .init = setup,
    .fini = teardown)
{
	static char text[AGENT_TEXT_MAX];
	size_t i;

	memset(text, 'x', sizeof(text) - 1);
	for (i = 0; i < 64; i++) {
		cr_assert_eq(send_deliver(i, 100, 0), 0);
		turn();
	}
	cr_assert_eq(nheld, 64);
	for (i = 0; i < nheld; i++) {
		agent_result_rest(held[i],
		    &(struct agent_report){ .outcome = AGENT_DEFERRED,
			.dsn = "4.0.0",
			.relay = "",
			.text = text });
		cr_expect_eq(orphans, 0, "never from inside a call");
		agent_done(held[i], AGENT_SITE_TALKED, "", "");
	}
	nheld = 0;
	turn();
	cr_expect_eq(orphans, 1);
	cr_expect_eq(agent_queued(agent), 0);
}

Test(agent_link, the_process_is_told, .init = setup, .fini = teardown)
{
	agent_introduce(agent);
	cr_assert_eq(answer(), MSG_AGENT);
	cr_expect_eq(in.msg.u.AGENT.pid, (uint32_t)getpid());
}

/* ---- connections that are kept ---- */

static void
send_reuse(uint64_t job, uint64_t connection)
{
	const struct msg msg = { .type = MSG_REUSE,
		.u.REUSE = { job, connection } };

	cr_assert_eq(chan_send(peer, &msg, -1), 0);
}

Test(agent_link, REUSE_is_for_the_next_delivery_alone, .init = setup,
    .fini = teardown)
{
	send_reuse(7, 3);
	send_deliver(7, 1, 0);
	send_deliver(8, 1, 0);
	send_reuse(9, 4);
	send_deliver(10, 1, 0);
	send_deliver(9, 1, 0);
	turn();
	cr_assert_eq(nheld, 4);
	cr_expect(held[0]->may_keep);
	cr_expect_eq(held[0]->connection, 3);
	cr_expect_not(held[1]->may_keep);
	cr_expect_eq(held[1]->connection, 0);
	cr_expect_not(held[2]->may_keep, "the number of another");
	cr_expect_not(held[3]->may_keep, "not the next one");
}

Test(agent_link, KEPT_in_place_of_DONE, .init = setup, .fini = teardown)
{
	send_reuse(7, 0);
	send_deliver(7, 1, 0);
	turn();
	agent_result_rest(held[0], &sent);
	agent_kept(held[0]);
	nheld = 0;
	cr_expect_eq(answer(), MSG_RESULT);
	cr_assert_eq(answer(), MSG_KEPT);
	cr_expect_eq(in.msg.u.KEPT.job, 7);
	cr_assert_eq(
	    chan_send(peer,
		&(struct msg){ .type = MSG_CLOSE, .u.CLOSE.connection = 7 },
		-1),
	    0);
	cr_assert_eq(answer(), MSG_CLOSED);
	cr_expect_eq(in.msg.u.CLOSED.connection, 7);
	cr_expect_eq(closed, 7);
}

/* mutation: common/agent/agent.c, begin() that answers DONE alone. */
Test(agent_link, a_bad_job_closes_the_connection_it_was_given, .init = setup,
    .fini = teardown)
{
	send_reuse(9, 6);
	cr_assert_eq(send_deliver(9, 1, 101), 0);
	cr_assert_eq(answer(), MSG_CLOSED);
	cr_expect_eq(in.msg.u.CLOSED.connection, 6);
	cr_assert_eq(answer(), MSG_DONE);
}

static void
send_wishes(uint64_t number, uint8_t ret, const char *envid,
    const struct dsn_rcpt *rcpts, size_t n)
{
	struct buf wishes = { 0 };
	const struct msg_str id = { envid, strlen(envid) };
	struct msg msg = { .type = MSG_WISHES };
	size_t i;

	for (i = 0; i < n; i++)
		cr_assert_eq(agent_wish_add(&wishes, &rcpts[i]), 0);
	msg.u.WISHES = (struct msg_WISHES){ .job = number,
		.ret = ret,
		.envid = id,
		.rcpts = { buf_str(&wishes), wishes.len } };
	cr_assert_eq(chan_send(peer, &msg, -1), 0);
	buf_done(&wishes);
}

static const struct dsn_rcpt wishes[] = { { DSN_SUCCESS, "rfc822;a+2Bb" },
	{ 0, "" } };

Test(agent_link, wishes_are_those_of_the_next_delivery, .init = setup,
    .fini = teardown)
{
	struct agent_report report = sent;

	send_wishes(7, DSN_RET_HDRS, "id", wishes, 2);
	cr_assert_eq(send_deliver(7, 2, 100), 0);
	cr_assert_eq(send_deliver(8, 2, 100), 0);
	turn();
	cr_assert_eq(nheld, 2);
	cr_expect_eq(held[0]->dsn.ret, DSN_RET_HDRS);
	cr_expect_str_eq(held[0]->dsn.envid, "id");
	cr_expect_eq(held[0]->rcpts[0].notify, DSN_SUCCESS);
	cr_expect_str_eq(held[0]->rcpts[0].orcpt, "rfc822;a+2Bb");
	cr_expect(
	    held[0]->rcpts[1].notify == 0 && held[0]->rcpts[1].orcpt == NULL);
	cr_expect(
	    dsn_mail_is_empty(&held[1]->dsn) && held[1]->rcpts[0].notify == 0);
	/* Said of those alone who asked for a success. */
	report.passed_on = true;
	agent_result_rest(held[0], &report);
	cr_assert_eq(answer(), MSG_PASSED_ON);
	cr_expect_eq(in.msg.u.PASSED_ON.job, 7);
	cr_expect_eq(in.msg.u.PASSED_ON.rcpt, 10);
	cr_expect_eq(answer(), MSG_RESULT);
	cr_expect_eq(answer(), MSG_RESULT);
	cr_expect_eq(answer(), 0);
}

/* A delivery whose wishes are not known would ask for reports. */
Test(agent_link, I18_wrong_wishes_refuse_the_delivery, .init = setup,
    .fini = teardown)
{
	static const struct {
		const char *name, *envid;
		uint8_t ret;
		size_t nrcpts;
	} rows[] = {
		{ "a recipient less", "", 0, 1 },
		{ "a recipient more", "", 0, 3 },
		{ "no xtext", "a\rRCPT", 0, 2 },
		{ "a blank", "a b", 0, 2 },
		{ "RET", "", 'X', 2 },
	};
	const struct dsn_rcpt three[] = { wishes[0], wishes[1], wishes[1] };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		send_wishes(
		    20 + i, rows[i].ret, rows[i].envid, three, rows[i].nrcpts);
		cr_assert_eq(send_deliver(20 + i, 2, 100), 0);
		cr_expect_eq(answer(), MSG_DONE, "%s", rows[i].name);
		cr_expect_eq(in.msg.u.DONE.job, 20 + i);
		cr_expect(str_is(&in.msg.u.DONE.dsn, "4.3.0"));
		cr_expect_eq(nheld, 0, "%s", rows[i].name);
		cr_expect_eq(bads, i + 1);
	}
}
