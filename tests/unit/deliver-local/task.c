#include "deliver-local/local.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "scratch.h"

#define TEXT(s) (s), sizeof(s) - 1

static struct conf conf;
static struct local local;
static struct message message;
static int peer = -1;
static struct agent_delivery *last;
static uint32_t idles;
static char empty[] = "", user[] = SCRATCH_USER;

static void
on_deliver(void *arg UNUSED, struct agent_delivery *delivery)
{
	last = delivery;
	task_begin(&local, delivery);
}

static void
on_orphaned(void *arg UNUSED)
{
}

static const struct agent_ops ops = {
	.deliver = on_deliver,
	.orphaned = on_orphaned,
};

static void
on_idle(struct local *l UNUSED)
{
	idles++;
}

static void
load_programs(const char *text)
{
	struct buf error = { 0 };

	programs_free(&local.programs);
	cr_assert_eq(programs_load(scratch_file("programs", text, strlen(text)),
			 &local.programs, &error),
	    0, "%s", buf_str(&error));
	buf_done(&error);
}

static void
setup(void)
{
	int fds[2];

	conf = (struct conf){
		.maildir_path = strdup(scratch_path("mail/%%u")),
		.maildir_user = geteuid() == 0 ? user : empty,
		.command_time_limit = 60 * USEC_PER_SEC,
		.maildir_time_limit = 60 * USEC_PER_SEC,
	};
	local = (struct local){ .conf = &conf,
		.base = event_base_new(),
		.private = geteuid() != 0,
		.host = "host",
		.child = child_main,
		.kill = kill,
		.idle = on_idle };
	LIST_INIT(&local.tasks);
	cr_assert_eq(strays_init(&local.strays, local.base), 0);
	cr_assert(mkdir(scratch_path("mail"), 0777) == 0);
	cr_assert(chmod(scratch_path("mail"), 0777) == 0);
	cr_assert(chan_pair(fds) == 0);
	cr_assert_eq(
	    agent_new(local.base, fds[0], &ops, NULL, &local.link.agent), 0);
	peer = fds[1];
	scratch_message(&message, "", "", TEXT("Subject: x\n\nbody\n"));
	load_programs("kill " SCRATCH_USER " /bin/sh -c \"kill -9 $PPID\"\n"
		      "wait " SCRATCH_USER " /bin/sleep 1000\n");
}

static void
teardown(void)
{
	task_end_all(&local);
	strays_done(&local.strays);
	agent_free(&local.link.agent);
	programs_free(&local.programs);
	event_base_free(local.base);
	free(conf.maildir_path);
	io_close(&peer);
	scratch_message_done(&message);
	scratch_done();
}

static void
send_delivery(uint64_t number, enum agent_kind kind, const char *nexthop,
    const char *const *rcpts)
{
	struct buf list = { 0 };
	uint32_t n = 0;
	struct msg msg = { .type = MSG_DELIVER };

	for (; rcpts[n] != NULL; n++)
		agent_rcpt_add(&list, 10 + n, rcpts[n], strlen(rcpts[n]));
	msg.u.DELIVER = (struct msg_DELIVER){
		.job = number,
		.id = MSG_S("0A"),
		.kind = (uint8_t)kind,
		.transport = MSG_S("t"),
		.nexthop = MSG_S(nexthop),
		.sender = MSG_S("s@x"),
		.content_off = message.off,
		.content_len = message.len,
		.nrcpts = n,
		.rcpts = { list.data, list.len },
	};
	cr_assert_eq(chan_send(peer, &msg, message.fd), 0);
	buf_done(&list);
}

static struct chan_frame in;

/* The next answer; the loop waits for what it waits for. */
static enum msg_type
answer(void)
{
	while (chan_recv(peer, &in) != 1)
		event_base_loop(local.base, EVLOOP_ONCE);
	return in.msg.type;
}

static void
expect_result(uint32_t rcpt, enum agent_outcome outcome, const char *dsn,
    const char *relay, const char *text)
{
	const struct msg_RESULT *r = &in.msg.u.RESULT;

	cr_assert_eq(answer(), MSG_RESULT);
	cr_expect_eq(r->rcpt, rcpt);
	cr_expect_eq(r->outcome, outcome);
	cr_expect_eq(strncmp(r->dsn.data, dsn, strlen(dsn)), 0, "%.*s",
	    (int)r->dsn.len, r->dsn.data);
	cr_expect_eq(strncmp(r->relay.data, relay, strlen(relay)), 0);
	cr_expect_eq(strncmp(r->text.data, text, strlen(text)), 0, "%.*s",
	    (int)r->text.len, r->text.data);
	cr_expect_eq(r->conn_usec, 0);
	cr_expect_gt(r->xfer_usec, 0);
}

static void
expect_done(uint64_t number)
{
	cr_assert_eq(answer(), MSG_DONE);
	cr_expect_eq(in.msg.u.DONE.job, number);
	cr_expect_eq(in.msg.u.DONE.site, AGENT_SITE_TALKED);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}

static const char *const bob[] = { "bob@x", NULL };

static void
say_bug(const struct child_plan *plan UNUSED, int result_fd UNUSED)
{
	words_say("bug");
}

/* The number of the channel is that of another file in such a process. */
Test(task, P25_a_process_of_a_delivery_says_nothing_on_the_channel,
    .init = setup, .fini = teardown)
{
	int channel[2];

	cr_assert_eq(chan_pair(channel), 0);
	words_begin(channel[0]);
	local.child = say_bug;
	send_delivery(1, AGENT_LOCAL, "bob", bob);
	cr_assert_eq(answer(), MSG_RESULT);
	expect_done(1);
	cr_expect_eq(chan_recv(channel[1], &in), -EAGAIN);
	words_end();
}

/* mutation: deliver-local/child.c, child_deliver() without content. */
Test(task, X14_the_content_in_the_frame_is_what_is_delivered, .init = setup,
    .fini = teardown)
{
	static const char content[] = "Subject: in the frame\n\nNUL \0 end";
	const struct message head = { .sender = "s@x", .recipient = "bob@x" };
	struct buf list = { 0 }, got = { 0 }, want = { 0 };
	struct msg msg = { .type = MSG_DELIVER_WHOLE };
	char name[256];

	cr_assert_eq(agent_rcpt_add(&list, 10, "bob@x", 5), 0);
	msg.u.DELIVER_WHOLE = (struct msg_DELIVER_WHOLE){
		.job = 1,
		.id = MSG_S("0A"),
		.kind = AGENT_LOCAL,
		.transport = MSG_S("local"),
		.nexthop = MSG_S("bob"),
		.sender = MSG_S("s@x"),
		.nrcpts = 1,
		.rcpts = { list.data, list.len },
		.content = { content, sizeof(content) - 1 },
	};
	cr_assert_eq(chan_send(peer, &msg, -1), 0);
	expect_result(10, AGENT_SENT, "2.0.0", "local", "delivered to maildir");
	expect_done(1);
	cr_assert_eq(scratch_count(scratch_path("mail/bob/new"), name), 1);
	scratch_read(scratch_path("mail/bob/new/%s", name), &got);
	scratch_whole(&head, content, sizeof(content) - 1, &want);
	cr_assert_eq(got.len, want.len);
	cr_expect_eq(memcmp(got.data, want.data, want.len), 0);
	buf_done(&list);
	buf_done(&got);
	buf_done(&want);
}

Test(task, a_result_for_each_recipient_in_turn, .init = setup, .fini = teardown)
{
	static const char *const three[] = { "bob@x", "../x@y", "eve@x", NULL };

	send_delivery(1, AGENT_LOCAL, "x", three);
	expect_result(10, AGENT_SENT, "2.0.0", "local", "delivered to maildir");
	expect_result(11, AGENT_FAILED, "5.1.3", "local", "bad mailbox");
	expect_result(12, AGENT_SENT, "2.0.0", "local", "delivered to maildir");
	expect_done(1);
	cr_expect_eq(scratch_count(scratch_path("mail/bob/new"), NULL), 1);
	cr_expect_eq(scratch_count(scratch_path("mail/eve/new"), NULL), 1);
	cr_expect(LIST_EMPTY(&local.tasks));
	cr_expect_eq(idles, 1);
}

Test(task, deliveries_run_at_the_same_time, .init = setup, .fini = teardown)
{
	uint64_t i, dones = 0, sent = 0;

	for (i = 0; i < 50; i++)
		send_delivery(i, AGENT_LOCAL, "x", bob);
	while (dones < 50) {
		if (answer() == MSG_DONE)
			dones++;
		else
			sent += in.msg.u.RESULT.outcome == AGENT_SENT;
	}
	cr_expect_eq(sent, 50);
	cr_expect_eq(scratch_count(scratch_path("mail/bob/new"), NULL), 50);
	cr_expect(LIST_EMPTY(&local.tasks));
}

Test(task, P15_a_child_that_dies_is_a_temporary_failure, .init = setup,
    .fini = teardown)
{
	send_delivery(1, AGENT_PIPE, "KILL", bob);
	expect_result(10, AGENT_DEFERRED, "4.3.0", "pipe:KILL",
	    "the process that delivered was ended by signal 9");
	expect_done(1);
}

Test(task, P10_programs_can_be_asked_to_end, .init = setup, .fini = teardown)
{
	static const char *const two[] = { "bob@x", "eve@x", NULL };

	send_delivery(1, AGENT_PIPE, "wait", two);
	while (LIST_EMPTY(&local.tasks))
		event_base_loop(local.base, EVLOOP_ONCE);
	local.ending = true;
	task_ask_all(-1, 0, &local);
	expect_result(10, AGENT_DEFERRED, "4.3.0", "pipe:wait",
	    "program wait was ended: the mail system stops");
	expect_done(1); /* the second one is not begun */
}

Test(task, a_firm_end_leaves_none_open, .init = setup, .fini = teardown)
{
	send_delivery(1, AGENT_PIPE, "wait", bob);
	while (LIST_EMPTY(&local.tasks))
		event_base_loop(local.base, EVLOOP_ONCE);
	task_end_all(&local);
	cr_expect(LIST_EMPTY(&local.tasks));
	cr_assert_eq(answer(), MSG_DONE);
}

/* No descriptors for the pipe of a child; a second later there are. */
Test(task, P12_a_delivery_waits_for_resources, .init = setup, .fini = teardown)
{
	struct rlimit old, none;

	cr_assert(getrlimit(RLIMIT_NOFILE, &old) == 0);
	send_delivery(1, AGENT_LOCAL, "x", bob);
	/* Room for the descriptor that comes with the delivery, and no more. */
	none = old;
	none.rlim_cur = (rlim_t)dup(0) + 1;
	close((int)none.rlim_cur - 1);
	cr_assert(setrlimit(RLIMIT_NOFILE, &none) == 0);
	while (LIST_EMPTY(&local.tasks))
		event_base_loop(local.base, EVLOOP_ONCE);
	cr_assert(setrlimit(RLIMIT_NOFILE, &old) == 0);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "nothing was started");
	expect_result(10, AGENT_SENT, "2.0.0", "local", "delivered to maildir");
	expect_done(1);
}

Test(task, P12_what_waits_does_not_hold_up_a_stop, .init = setup,
    .fini = teardown)
{
	struct rlimit old, none;

	cr_assert(getrlimit(RLIMIT_NOFILE, &old) == 0);
	send_delivery(1, AGENT_LOCAL, "x", bob);
	none = old;
	none.rlim_cur = (rlim_t)dup(0) + 1;
	close((int)none.rlim_cur - 1);
	cr_assert(setrlimit(RLIMIT_NOFILE, &none) == 0);
	while (LIST_EMPTY(&local.tasks))
		event_base_loop(local.base, EVLOOP_ONCE);
	cr_assert(setrlimit(RLIMIT_NOFILE, &old) == 0);
	task_end_waiting(&local);
	cr_expect(LIST_EMPTY(&local.tasks));
	expect_done(1);
	cr_expect_eq(scratch_count(scratch_path("mail"), NULL), 0);
}

Test(task, queue_send_gone_in_the_middle, .init = setup, .fini = teardown)
{
	send_delivery(1, AGENT_LOCAL, "x", bob);
	while (LIST_EMPTY(&local.tasks))
		event_base_loop(local.base, EVLOOP_ONCE);
	agent_free(&local.link.agent);
	while (!LIST_EMPTY(&local.tasks))
		event_base_loop(local.base, EVLOOP_ONCE);
	cr_expect_eq(scratch_count(scratch_path("mail/bob/new"), NULL), 1);
}
