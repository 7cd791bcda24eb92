/* Deliveries that do not get on, and processes that do not end. */
#include "deliver-local/local.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "scratch.h"

#define TEXT(s)  (s), sizeof(s) - 1
#define LIMIT    (600 * USEC_PER_MSEC)
#define PATIENCE (4 * USEC_PER_SEC)

static struct conf conf;
static struct local local;
static struct message message;
static int peer = -1;
static char empty[] = "", user[] = SCRATCH_USER;
static uint32_t kills;

/* ---- children of several kinds ---- */

static void
stops_itself(const struct child_plan *plan UNUSED, int fd UNUSED)
{
	raise(SIGSTOP);
}

static void
hangs(const struct child_plan *plan UNUSED, int fd UNUSED)
{
	sigset_t none;

	sigemptyset(&none);
	for (;;)
		sigsuspend(&none);
}

static void
ends_but_for_its_exit(const struct child_plan *plan, int fd)
{
	struct verdict v;

	verdict_set(&v, AGENT_SENT, "2.0.0", "delivered to maildir");
	(void)verdict_write(&v, fd);
	close(fd);
	hangs(plan, -1);
}

/* The same, when it is told to, and it tells that its pipe is closed. */
static int go[2], closed[2];

static void
ends_when_told(const struct child_plan *plan, int fd)
{
	struct verdict v;
	char octet;

	if (read(go[0], &octet, 1) != 1)
		_exit(1);
	verdict_set(&v, AGENT_SENT, "2.0.0", "delivered to maildir");
	(void)verdict_write(&v, fd);
	close(fd);
	if (write(closed[1], "", 1) != 1)
		_exit(1);
	hangs(plan, -1);
}

/* Longer than the limit in all, and never a tenth of that without a word, on a
 * machine that is not busy. */
static void
gets_on(const struct child_plan *plan UNUSED, int fd)
{
	static const unsigned char octet = VERDICT_PROGRESS;
	struct verdict v;
	int i;

	for (i = 0; i < 50; i++) {
		usleep(PATIENCE / 40);
		if (write(fd, &octet, 1) != 1)
			_exit(1);
	}
	verdict_set(&v, AGENT_SENT, "2.0.0", "slowly");
	(void)verdict_write(&v, fd);
	_exit(0);
}

/* As one that was stopped and runs again, though its parent gave it up. */
static void
is_late(const struct child_plan *plan, int fd)
{
	struct child_plan late = *plan;

	late.started_at -= 2 * LIMIT;
	child_main(&late, fd);
}

/* What the kernel does with SIGKILL for a process that waits within it. */
static int
kills_nothing(pid_t pid UNUSED, int sig UNUSED)
{
	kills++;
	return 0;
}

/* ---- the agent ---- */

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
		.maildir_time_limit = LIMIT,
	};
	local = (struct local){ .conf = &conf,
		.base = event_base_new(),
		.private = geteuid() != 0,
		.host = "host",
		.child = child_main,
		.kill = kill };
	LIST_INIT(&local.tasks);
	cr_assert_eq(strays_init(&local.strays, local.base), 0);
	cr_assert(mkdir(scratch_path("mail"), 0777) == 0);
	cr_assert(chmod(scratch_path("mail"), 0777) == 0);
	cr_assert(chan_pair(fds) == 0);
	cr_assert_eq(
	    agent_new(local.base, fds[0], &ops, NULL, &local.link.agent), 0);
	peer = fds[1];
	scratch_message(&message, "", "", TEXT("Subject: x\n\nbody\n"));
}

static void
teardown(void)
{
	local.kill = kill;
	task_end_all(&local);
	strays_done(&local.strays);
	agent_free(&local.link.agent);
	event_base_free(local.base);
	free(conf.maildir_path);
	io_close(&peer);
	scratch_message_done(&message);
	scratch_done();
}

TestSuite(stray, .init = setup, .fini = teardown);

static void
send_delivery(uint64_t number, const char *account)
{
	struct buf list = { 0 };
	char address[64];
	struct msg msg = { .type = MSG_DELIVER };
	int len =
	    snprintf(address, sizeof(address), "%s+%d@x", account, (int)number);

	cr_assert_eq(agent_rcpt_add(&list, 0, address, (size_t)len), 0);
	msg.u.DELIVER = (struct msg_DELIVER){
		.job = number,
		.id = MSG_S("0A"),
		.kind = AGENT_LOCAL,
		.transport = MSG_S("local"),
		.nexthop = MSG_S(account),
		.sender = MSG_S("s@x"),
		.content_off = message.off,
		.content_len = message.len,
		.nrcpts = 1,
		.rcpts = { list.data, list.len },
	};
	cr_assert_eq(chan_send(peer, &msg, message.fd), 0);
	buf_done(&list);
}

/* The next result, and the DONE of its delivery; tasks end in any order. */
static struct chan_frame in;

static void
expect(enum agent_outcome outcome, const char *text)
{
	const struct msg_RESULT *r = &in.msg.u.RESULT;
	uint64_t job;

	while (chan_recv(peer, &in) != 1)
		event_base_loop(local.base, EVLOOP_ONCE);
	cr_assert_eq(in.msg.type, MSG_RESULT);
	cr_expect_eq(r->outcome, outcome);
	cr_expect_eq(strncmp(r->text.data, text, strlen(text)), 0, "%.*s",
	    (int)r->text.len, r->text.data);
	job = r->job;
	while (chan_recv(peer, &in) != 1)
		event_base_loop(local.base, EVLOOP_ONCE);
	cr_assert_eq(in.msg.type, MSG_DONE);
	cr_expect_eq(in.msg.u.DONE.site, AGENT_SITE_TALKED);
	cr_expect_eq(in.msg.u.DONE.job, job);
}

static int
delivered(const char *account)
{
	return scratch_count(scratch_path("mail/%s/new", account), NULL);
}

/* ---- tests ---- */

/* mutation: deliver-local/watch.c, begin_time() gives a maildir the time of a
 * program. */
Test(stray, X12_a_child_that_was_stopped_is_given_up)
{
	usec_t began = clock_mono();

	local.child = stops_itself;
	send_delivery(1, "bob");
	expect(AGENT_DEFERRED, "the delivery was given up: no progress");
	cr_expect_geq(clock_mono() - began, LIMIT);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
	cr_expect_eq(local.strays.count, 0u);
}

/* mutation: deliver-local/watch.c, skip_progress() does nothing. */
Test(stray, X12_one_that_gets_on_is_waited_for)
{
	usec_t began = clock_mono();

	conf.maildir_time_limit = PATIENCE;
	local.child = gets_on;
	send_delivery(1, "bob");
	expect(AGENT_SENT, "slowly");
	cr_expect_geq(clock_mono() - began, PATIENCE);
}

/* mutation: deliver-local/maildir.c, commit() without the first progress(), or
 * child.c, beat() without its limit. */
Test(stray, X12_a_late_child_delivers_nothing)
{
	conf.maildir_time_limit = 60 * USEC_PER_SEC;
	send_delivery(1, "bob");
	expect(AGENT_SENT, "delivered to maildir");
	conf.maildir_time_limit = LIMIT;
	local.child = is_late;
	send_delivery(2, "bob");
	expect(AGENT_DEFERRED, "maildir ");
	cr_expect_eq(delivered("bob"), 1);
}

/* As the process that opens an include file, where that hangs. */
static pid_t *left_behind;

static void
leaves_one_behind(const struct child_plan *plan, int fd)
{
	pid_t pid = fork();

	if (pid == 0)
		hangs(plan, fd);
	*left_behind = pid;
	hangs(plan, fd);
}

/* mutation: deliver-local/watch.c, time_is_over() calls reap(). */
Test(stray, X12_a_process_that_a_child_left_behind_counts)
{
	uint64_t i;

	left_behind = mmap(NULL, sizeof(*left_behind), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(left_behind, MAP_FAILED);
	local.child = leaves_one_behind;
	send_delivery(1, "bob");
	expect(AGENT_DEFERRED, "the delivery was given up: no progress");
	cr_expect_eq(local.strays.count, 1u);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
	for (i = 0; i < STRAYS_MANY; i++)
		local.strays.count++; /* the limit of one each */
	cr_expect_not(strays_allow(&local.strays, "bob"));
	cr_expect(strays_allow(&local.strays, "alice"));
	local.strays.count -= STRAYS_MANY;
	cr_assert_eq(kill(*left_behind, SIGKILL), 0);
	while (local.strays.count > 0)
		event_base_loop(local.base, EVLOOP_ONCE);
	cr_expect(strays_allow(&local.strays, "bob"));
	cr_assert_eq(munmap(left_behind, sizeof(*left_behind)), 0);
}

static void
kill_all(void)
{
	struct stray_pid {
		LIST_ENTRY(stray_pid) entry;
		pid_t pid;
	} * first;

	/* The list of stray.c begins like this. */
	for (first = (struct stray_pid *)(void *)LIST_FIRST(&local.strays.list);
	     first != NULL; first = LIST_NEXT(first, entry))
		cr_assert_eq(kill(first->pid, SIGKILL), 0);
	while (local.strays.count > 0)
		event_base_loop(local.base, EVLOOP_ONCE);
}

/* mutation: deliver-local/watch.c, time_is_over() returns when killed is set;
 * stray.c, strays_allow() returns true always. */
Test(stray, X12_one_that_cannot_be_killed_loses_its_slot)
{
	uint64_t i;

	local.child = hangs;
	local.kill = kills_nothing;
	for (i = 1; i <= STRAYS_EACH; i++)
		send_delivery(i, "bob");
	for (i = 1; i <= STRAYS_EACH; i++)
		expect(AGENT_DEFERRED, "the delivery was given up");
	cr_expect_eq(local.strays.count, (uint32_t)STRAYS_EACH);
	cr_expect_geq(kills, (uint32_t)STRAYS_EACH);
	/* Nothing more is started for this account; the others go on. */
	local.child = child_main;
	conf.maildir_time_limit = 60 * USEC_PER_SEC;
	send_delivery(10, "bob");
	expect(AGENT_DEFERRED, "earlier deliveries to bob hang");
	send_delivery(11, "alice");
	expect(AGENT_SENT, "delivered to maildir");
	cr_expect_eq(delivered("alice"), 1);
	cr_expect_neq(access(scratch_path("mail/bob"), F_OK), 0);
	kill_all();
	send_delivery(12, "bob");
	expect(AGENT_SENT, "delivered to maildir");
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}

/* mutation: deliver-local/watch.c, has_ended() waits without WNOHANG. */
Test(stray, X12_a_process_that_hangs_in_its_exit_holds_up_nobody)
{
	local.child = ends_but_for_its_exit;
	local.kill = kills_nothing;
	send_delivery(1, "bob");
	expect(AGENT_SENT, "delivered to maildir");
	cr_expect_eq(local.strays.count, 1u);
	local.child = child_main;
	conf.maildir_time_limit = 60 * USEC_PER_SEC;
	send_delivery(2, "alice");
	expect(AGENT_SENT, "delivered to maildir");
	kill_all();
}

/* mutation: deliver-local/watch.c, pipe_has_ended() calls poll() for the end of
 * the process, or reap() at once. */
Test(stray, X12_the_loop_goes_on_while_a_process_ends)
{
	char octet;

	cr_assert(pipe(go) == 0 && pipe(closed) == 0);
	local.child = ends_when_told;
	send_delivery(1, "bob");
	while (local.deliveries == 0)
		event_base_loop(local.base, EVLOOP_ONCE);
	cr_assert_eq(write(go[1], "", 1), 1);
	cr_assert_eq(read(closed[0], &octet, 1), 1);
	/* The verdict, and the end of the pipe. */
	event_base_loop(local.base, EVLOOP_ONCE);
	event_base_loop(local.base, EVLOOP_ONCE);
	cr_expect_eq(chan_recv(peer, &in), -EAGAIN);
	cr_expect_eq(local.strays.count, 0u);
	expect(AGENT_SENT, "delivered to maildir");
	cr_expect_eq(local.strays.count, 1u);
	kill_all();
}

/* mutation: deliver-local/stray.c, strays_allow() with STRAYS_EACH always. */
Test(stray, X12_with_many_of_them_one_each_is_enough)
{
	pid_t pids[STRAYS_MANY];
	char name[16];
	size_t i;

	for (i = 0; i < STRAYS_MANY; i++) {
		pids[i] = fork();
		cr_assert_geq(pids[i], 0);
		if (pids[i] == 0)
			hangs(NULL, -1);
		snprintf(name, sizeof(name), "u%zu", i / 2);
		cr_expect(strays_allow(&local.strays, name));
		strays_add(&local.strays, name, pids[i], clock_mono());
	}
	cr_expect_not(strays_allow(&local.strays, "u0"));
	cr_expect(strays_allow(&local.strays, "other"));
	for (i = 0; i < STRAYS_MANY; i++)
		cr_assert_eq(kill(pids[i], SIGKILL), 0);
	while (local.strays.count > 0)
		event_base_loop(local.base, EVLOOP_ONCE);
	cr_expect(strays_allow(&local.strays, "u0"));
}
