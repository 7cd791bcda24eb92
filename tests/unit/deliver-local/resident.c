/* Processes that stay for the next delivery of their account. */
#include "deliver-local/task.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "scratch.h"

static struct conf conf;
static struct local local;
static int peer = -1;
static char empty[] = "", user[] = SCRATCH_USER;

static void
on_deliver(void *arg UNUSED, struct agent_delivery *delivery)
{
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
		.kill = kill };
	LIST_INIT(&local.tasks);
	cr_assert_eq(strays_init(&local.strays, local.base), 0);
	cr_assert_eq(
	    residents_new(local.base, &local.strays, kill, &local.residents),
	    0);
	residents_renew(local.residents, 60 * USEC_PER_SEC);
	cr_assert(mkdir(scratch_path("mail"), 0777) == 0);
	cr_assert(chmod(scratch_path("mail"), 0777) == 0);
	cr_assert(chan_pair(fds) == 0);
	cr_assert_eq(
	    agent_new(local.base, fds[0], &ops, NULL, &local.link.agent), 0);
	peer = fds[1];
}

static void
teardown(void)
{
	task_end_all(&local);
	residents_free(&local.residents);
	cr_expect_null(local.residents);
	strays_done(&local.strays);
	agent_free(&local.link.agent);
	event_base_free(local.base);
	free(conf.maildir_path);
	io_close(&peer);
	scratch_done();
}

TestSuite(resident, .init = setup, .fini = teardown);

/* ---- deliveries ---- */

static void
send_delivery(uint64_t number, const char *rcpt, const char *content)
{
	struct buf list = { 0 };
	struct msg msg = { .type = MSG_DELIVER_WHOLE };

	cr_assert_eq(agent_rcpt_add(&list, 10, rcpt, strlen(rcpt)), 0);
	msg.u.DELIVER_WHOLE = (struct msg_DELIVER_WHOLE){
		.job = number,
		.id = MSG_S("0A"),
		.kind = AGENT_LOCAL,
		.transport = MSG_S("local"),
		.nexthop = MSG_S("bob"),
		.sender = MSG_S("s@x"),
		.nrcpts = 1,
		.rcpts = { list.data, list.len },
		.content = MSG_S(content),
	};
	cr_assert_eq(chan_send(peer, &msg, -1), 0);
	buf_done(&list);
}

static struct chan_frame in;

static enum msg_type
answer(void)
{
	while (chan_recv(peer, &in) != 1)
		event_base_loop(local.base, EVLOOP_ONCE);
	return in.msg.type;
}

static void
expect(uint64_t number, enum agent_outcome outcome, const char *text)
{
	const struct msg_RESULT *r = &in.msg.u.RESULT;

	cr_assert_eq(answer(), MSG_RESULT);
	cr_expect_eq(r->outcome, outcome, "%llu: %.*s",
	    (unsigned long long)number, (int)r->text.len, r->text.data);
	cr_expect_eq(strncmp(r->text.data, text, strlen(text)), 0, "%.*s",
	    (int)r->text.len, r->text.data);
	cr_assert_eq(answer(), MSG_DONE);
	cr_expect_eq(in.msg.u.DONE.job, number);
}

static void
deliver(uint64_t number, const char *rcpt, const char *content)
{
	send_delivery(number, rcpt, content);
	expect(number, AGENT_SENT, "delivered to maildir");
}

/* The process that made the only file in this maildir, which is removed. */
static pid_t
process_of(const char *name)
{
	char file[256];
	const char *at;
	long pid = 0;

	cr_assert_eq(scratch_count(scratch_path("mail/%s/new", name), file), 1);
	at = strchr(file, 'P');
	cr_assert(at != NULL && sscanf(at, "P%ldQ", &pid) == 1, "%s", file);
	cr_assert_eq(unlink(scratch_path("mail/%s/new/%s", name, file)), 0);
	return (pid_t)pid;
}

static pid_t
deliver_bob(uint64_t number)
{
	deliver(number, "bob@x", "Subject: x\n\nbody\n");
	return process_of("bob");
}

/* mutation: deliver-local/task.c, start_child() without residents. */
Test(resident, one_process_serves_one_account)
{
	static const char second[] = "Subject: two\n\nNUL is not in it, ÿ\n";
	const struct message head = { .sender = "s@x", .recipient = "bob@x" };
	struct buf got = { 0 }, want = { 0 };
	const pid_t first = deliver_bob(1);
	char file[256];
	int i;

	deliver(2, "bob@x", second);
	cr_assert_eq(scratch_count(scratch_path("mail/bob/new"), file), 1);
	scratch_read(scratch_path("mail/bob/new/%s", file), &got);
	scratch_whole(&head, second, sizeof(second) - 1, &want);
	cr_assert_eq(got.len, want.len);
	cr_expect_eq(memcmp(got.data, want.data, want.len), 0);
	cr_expect_eq(process_of("bob"), first);
	for (i = 3; i < 40; i++) /* some of them sweep tmp/ */
		cr_expect_eq(deliver_bob((uint64_t)i), first);
	buf_done(&got);
	buf_done(&want);
}

/* The maildir of each delivery is its own, whoever had one before. */
Test(resident, another_recipient_of_the_account_has_another_maildir)
{
	const pid_t first = deliver_bob(1);

	deliver(2, "eve@x", "Subject: x\n\nfor eve\n");
	cr_expect_eq(process_of("eve"), first);
	cr_expect_eq(deliver_bob(3), first);
	cr_expect_eq(scratch_count(scratch_path("mail/eve/new"), NULL), 0);
}

/* mutation: deliver-local/maildir.c, open_dirs_or_new() follows links. */
Test(resident, X13_a_link_in_place_of_a_maildir_is_not_followed)
{
	deliver_bob(1);
	deliver_bob(2);
	cr_assert_eq(
	    rename(scratch_path("mail/bob"), scratch_path("mail/old")), 0);
	cr_assert_eq(symlink("old", scratch_path("mail/bob")), 0);
	send_delivery(3, "bob@x", "Subject: x\n\nbody\n");
	expect(3, AGENT_DEFERRED, "maildir");
	cr_expect_eq(scratch_count(scratch_path("mail/old/new"), NULL), 0);
	cr_assert_eq(unlink(scratch_path("mail/bob")), 0);
	deliver_bob(4);
	cr_expect_eq(scratch_count(scratch_path("mail/bob/cur"), NULL), 0);
}

Test(resident, a_maildir_that_was_removed_is_made_again)
{
	const pid_t first = deliver_bob(1);

	cr_assert_eq(rmdir(scratch_path("mail/bob/new")), 0);
	cr_expect_eq(deliver_bob(2), first);
	cr_assert_eq(
	    rename(scratch_path("mail/bob"), scratch_path("mail/old")), 0);
	cr_expect_eq(deliver_bob(3), first);
	cr_expect_eq(scratch_count(scratch_path("mail/old/new"), NULL), 0);
}

/* A failure is the last word of its process. */
Test(resident, a_delivery_that_fails_is_the_last_of_its_process)
{
	const pid_t first = deliver_bob(1);

	send_delivery(2, "bob@x", "Delivered-To: bob@x\n\nbody\n");
	expect(2, AGENT_FAILED, "mail forwarding loop");
	cr_expect_neq(deliver_bob(3), first);
}

Test(resident, X17_one_that_was_killed_is_replaced)
{
	const pid_t first = deliver_bob(1);

	cr_assert_eq(kill(first, SIGKILL), 0);
	cr_assert_eq(waitid(P_PID, (id_t)first, NULL, WEXITED | WNOWAIT), 0);
	cr_expect_neq(deliver_bob(2), first);
}

/* mutation: deliver-local/watch.c, on_verdict() without the time limit. */
Test(resident, X17_one_that_was_stopped_is_given_up)
{
	const pid_t first = deliver_bob(1);

	conf.maildir_time_limit = 300 * USEC_PER_MSEC;
	cr_assert_eq(kill(first, SIGSTOP), 0);
	send_delivery(2, "bob@x", "Subject: x\n\nbody\n");
	expect(2, AGENT_DEFERRED, "the delivery was given up");
	conf.maildir_time_limit = 60 * USEC_PER_SEC;
	cr_expect_neq(deliver_bob(3), first);
}

Test(resident, one_that_is_idle_ends_after_its_time)
{
	const pid_t first = deliver_bob(1);

	residents_renew(local.residents, 1);
	cr_expect_neq(deliver_bob(2), first);
	while (waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT) == 0)
		event_base_loop(local.base, EVLOOP_ONCE);
	cr_expect_eq(errno, ECHILD);
}

Test(resident, none_stays_without_a_time)
{
	pid_t first;

	residents_renew(local.residents, 0);
	first = deliver_bob(1);
	cr_expect_neq(deliver_bob(2), first);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}

/* ---- what a process says ---- */

static void
say_stays(const struct child_plan *plan, int fd, uint64_t number)
{
	char packet[8192];
	struct verdict v;
	size_t size;

	verdict_set(&v, AGENT_SENT, "2.0.0", "may stay %d", plan->may_stay);
	size = verdict_size(&v);
	packet[0] = (char)VERDICT_STAYS;
	memcpy(packet + 1, &number, sizeof(number));
	memcpy(packet + 1 + sizeof(number), &v, size);
	size += 1 + sizeof(number);
	if (write(fd, packet, size) != (ssize_t)size)
		_exit(1);
}

static void
says_stays_unasked(const struct child_plan *plan, int fd)
{
	say_stays(plan, fd, plan->number);
	_exit(0);
}

/* The answer to the first delivery, and ahead of time one to the second. */
static void
says_two_at_once(const struct child_plan *plan, int fd)
{
	char packet[4096];

	say_stays(plan, fd, plan->number);
	say_stays(plan, fd, plan->number);
	while (recv(fd, packet, sizeof(packet), 0) > 0)
		continue;
	_exit(0);
}

/* mutation: deliver-local/watch.c, read_stays() without the number. */
Test(resident, X15_X17_an_answer_before_the_delivery_is_none)
{
	local.private = true;
	local.child = says_two_at_once;
	send_delivery(1, "bob@x", "x");
	expect(1, AGENT_SENT, "may stay 1");
	send_delivery(2, "bob@x", "x");
	expect(2, AGENT_DEFERRED, "the process that delivered was ended by");
}

static void
says_stays_and_waits(const struct child_plan *plan, int fd)
{
	char packet[4096];

	say_stays(plan, fd, plan->number);
	while (recv(fd, packet, sizeof(packet), 0) > 0)
		continue;
	_exit(0);
}

/* An agent that was held up has the answer and the end of its time before it
 * at once; a second delivery would double the message.
 * mutation: deliver-local/watch.c, finish() without read_stays(). */
Test(resident, X15_X17_an_answer_that_waited_for_the_agent_counts)
{
	const struct task *t;

	local.private = true;
	local.child = says_stays_and_waits;
	conf.maildir_time_limit = 1;
	send_delivery(1, "bob@x", "x");
	while (LIST_EMPTY(&local.tasks))
		event_base_loop(local.base, EVLOOP_ONCE);
	t = LIST_FIRST(&local.tasks);
	cr_assert_eq(
	    poll(&(struct pollfd){ .fd = t->fd, .events = POLLIN }, 1, -1), 1);
	while (clock_mono() < t->started_at + 50 * USEC_PER_MSEC)
		continue; /* ticks of the loop's clock */
	expect(1, AGENT_SENT, "may stay 1");
}

/* mutation: deliver-local/watch.c, answers_and_stays() for any process. */
Test(resident, X15_X17_only_one_that_may_stay_is_believed_to)
{
	residents_renew(local.residents, 0);
	local.child = says_stays_unasked;
	send_delivery(1, "bob@x", "x");
	expect(1, AGENT_DEFERRED, "the process that delivered ended without");
}

static void
says_anew_at_once(const struct child_plan *plan UNUSED, int fd)
{
	const char octet = (char)VERDICT_ANEW;

	_exit(write(fd, &octet, 1) == 1 ? 0 : 1);
}

static void
says_anew_and_waits(const struct child_plan *plan UNUSED, int fd)
{
	char octet = (char)VERDICT_ANEW;

	if (write(fd, &octet, 1) == 1)
		while (recv(fd, &octet, 1, 0) > 0)
			continue;
	_exit(1);
}

/* Else a process could be begun for ever. */
Test(resident, X15_X17_one_that_is_new_cannot_ask_for_another)
{
	local.private = true;
	local.child = says_anew_and_waits;
	send_delivery(1, "bob@x", "x");
	expect(1, AGENT_DEFERRED, "the process that delivered was ended by");
}

static void
stays_once(const struct child_plan *plan, int fd)
{
	char packet[4096];
	struct verdict v;

	if (!plan->may_stay) {
		verdict_set(&v, AGENT_SENT, "2.0.0", "begun anew");
		_exit(verdict_write(&v, fd) < 0);
	}
	say_stays(plan, fd, plan->number);
	if (recv(fd, packet, sizeof(packet), 0) <= 0)
		_exit(1);
	says_anew_at_once(plan, fd);
}

Test(resident, what_is_not_for_it_is_begun_anew)
{
	local.private = true;
	local.child = stays_once;
	send_delivery(1, "bob@x", "x");
	expect(1, AGENT_SENT, "may stay 1");
	send_delivery(2, "bob@x", "x");
	expect(2, AGENT_SENT, "begun anew");
}

/* Packets that no agent of ours sends. */
Test(resident, a_packet_that_is_not_whole_is_refused)
{
	static const char packet[200] = { 1, 2, 3 };
	const size_t sizes[] = { 1, 39, 40, 41, sizeof(packet) };
	size_t i;

	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		struct agent_delivery d = { .fd = -1 };
		struct stay stay = { .may = true };
		struct child_plan plan = { .delivery = &d, .stay = &stay };
		struct verdict v;
		char got[sizeof(struct verdict) + 16];
		int fds[2], status;
		pid_t pid;

		verdict_set(&v, AGENT_SENT, "2.0.0", "first");
		cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
		cr_assert_eq(
		    send(fds[0], packet, sizes[i], 0), (ssize_t)sizes[i]);
		pid = fork();
		if (pid == 0) {
			dup2(fds[1], CHILD_RESULT_FD);
			serve_more(&plan, &d, &v);
		}
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect_eq(status, 0);
		cr_expect_gt(recv(fds[0], got, sizeof(got), 0), 1);
		cr_expect_eq(recv(fds[0], got, sizeof(got), 0), 1);
		cr_expect_eq((unsigned char)got[0], VERDICT_ANEW);
		io_close(&fds[0]);
		io_close(&fds[1]);
	}
}
