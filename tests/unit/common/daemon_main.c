#include "tests/unit/common/daemon_child.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"

/* A program that tells its supervisor what happens to it. */
static bool hangs, complains, has_bug, reuses;
static int witness = -1; /* the peer of the socket with a reused number */

static int
say_start(struct daemon *d)
{
	daemon_ready(d);
	return 0;
}

static void
say_linked(struct daemon *d, const char *name, int fd)
{
	daemon_status(d, name);
	close(fd);
}

static int
say_told(struct daemon *d, const struct msg *msg)
{
	char text[100];

	if (msg->type != MSG_FORGET)
		return -ENOENT;
	snprintf(text, sizeof(text), "forget %u of %u, we are %u",
	    msg->u.FORGET.generation, msg->u.FORGET.queue, d->generation);
	daemon_status(d, text);
	return 0;
}

static void
say_reload(struct daemon *d, const struct conf *fresh)
{
	char text[100];

	snprintf(text, sizeof(text), "reload %u %u", d->conf->queue_load_pct,
	    fresh->queue_load_pct);
	daemon_status(d, text);
}

static void
complain_often(void)
{
	int i;

	for (i = 1; i <= 100; i++)
		log_warning("complaint %d", i);
}

static void
say_flush(struct daemon *d)
{
	daemon_status(d, "flush");
	if (complains)
		complain_often();
	ASSERT(!has_bug);
}

/* Another socket gets the number of the channel, as an operator's may. */
static void
reuse_number(void)
{
	int ends[2];

	cr_assert_eq(chan_pair(ends), 0);
	cr_assert_eq(dup2(ends[0], DAEMON_CHANNEL_FD), DAEMON_CHANNEL_FD);
	witness = ends[1];
	log_warning("not for a stranger");
}

static void
say_stop(struct daemon *d, usec_t limit)
{
	if (reuses)
		reuse_number();
	daemon_status(d, limit > 0 ? "stop" : "stop at once");
	if (!hangs)
		daemon_exit(d, 7);
}

static const struct daemon_ops ops = {
	.name = "test-daemon",
	.user = DAEMON_AS_QMAILR,
	.start = say_start,
	.linked = say_linked,
	.told = say_told,
	.reload = say_reload,
	.flush = say_flush,
	.stop = say_stop,
};

static void
set_up(void)
{
	child_ops = &ops;
	child_set_up();
}

TestSuite(daemon_main, .init = set_up, .fini = child_tear_down);

static char p[] = "test-daemon", one[] = "1", odd[] = "1x", big[] = "4096",
	    unknown[] = "-x", dash_c[] = "-c";

Test(daemon_main, by_hand_it_says_who_starts_it)
{
	struct {
		const char *name;
		char *argv[4];
		bool channel;
	} rows[] = {
		{ "no channel", { p, one }, false },
		{ "no queue", { p }, true },
		{ "two queues", { p, one, one }, true },
		{ "not a number", { p, odd }, true },
		{ "out of range", { p, big }, true },
		{ "unknown option", { p, unknown }, true },
		{ "no value", { p, dash_c }, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		int ends[2];
		pid_t pid;

		cr_assert_eq(chan_pair(ends), 0);
		pid = fork();
		if (pid == 0)
			_exit(child_run(
			    rows[i].channel ? ends[1] : -1, rows[i].argv));
		close(ends[1]);
		cr_expect_eq(
		    child_finish(pid), EXIT_PERMANENT, "%s", rows[i].name);
		close(ends[0]);
	}
}

/* A pipe, a datagram socket, an internet socket: not ours. */
Test(daemon_main, another_descriptor_is_not_a_channel)
{
	char *argv[] = { p, one, NULL };
	int pair[2], kind;

	for (kind = 0; kind < 3; kind++) {
		pid_t pid;
		int fd;

		if (kind == 0)
			fd = pipe(pair) == 0 ? pair[0] : -1;
		else
			fd = socket(kind == 1 ? AF_UNIX : AF_INET,
			    kind == 1 ? SOCK_STREAM : SOCK_DGRAM, 0);
		cr_assert(fd >= 0);
		pid = fork();
		if (pid == 0)
			_exit(child_run(fd, argv));
		cr_expect_eq(
		    child_finish(pid), EXIT_PERMANENT, "kind %d", kind);
		close(fd);
	}
}

Test(daemon_main, wrong_configuration_exits_100)
{
	int sock;
	pid_t pid;

	child_write_conf("no_such_parameter = 1");
	pid = child_start(&sock);
	cr_expect(
	    strstr(child_heard(sock), "conf:7: no_such_parameter: unknown") !=
	    NULL); /* its last words */
	cr_expect_str_eq(child_heard(sock), "end");
	cr_expect_eq(child_finish(pid), EXIT_PERMANENT);
}

Test(daemon_main, ready_link_flush_stop)
{
	const struct msg link = { .type = MSG_LINK,
		.u.LINK = { .name = MSG_S("page") } };
	const struct msg flush = { .type = MSG_FLUSH };
	const struct msg stop = { .type = MSG_STOP,
		.u.STOP = { .limit_usec = USEC_PER_SEC } };
	int sock, null = open("/dev/null", O_RDONLY);
	pid_t pid = child_start(&sock);

	cr_expect_str_eq(child_heard(sock), "READY");
	child_tell(sock, &link, null);
	cr_expect_str_eq(child_heard(sock), "page");
	child_tell(sock, &flush, -1);
	cr_expect_str_eq(child_heard(sock), "flush");
	child_tell(sock, &stop, -1);
	cr_expect_str_eq(child_heard(sock), "stop");
	cr_expect_eq(child_finish(pid), 7);
}

Test(daemon_main, what_is_for_the_program_is_passed_on)
{
	const struct msg bare = { .type = MSG_LINK,
		.u.LINK = { .name = MSG_S("sites"), .generation = 7 } };
	const struct msg forget = { .type = MSG_FORGET,
		.u.FORGET = { .queue = 2, .generation = 4 } };
	int sock;
	pid_t pid = child_start(&sock);

	cr_expect_str_eq(child_heard(sock), "READY");
	child_tell(sock, &bare, -1); /* of use for its generation alone */
	child_tell(sock, &forget, -1);
	cr_expect_str_eq(child_heard(sock), "forget 4 of 2, we are 7");
	close(sock);
	cr_expect_eq(child_finish(pid), 7);
}

/* What may not come is dropped, and ends nothing (local attack 9). */
Test(daemon_main, frames_that_may_not_come)
{
	const struct msg no_fd = { .type = MSG_LINK,
		.u.LINK = { .name = MSG_S("page") } };
	const struct msg not_known = { .type = MSG_RESCAN };
	const struct msg long_name = { .type = MSG_LINK,
		.u.LINK = {
		    .name = MSG_S("0123456789012345678901234567890123") } };
	const struct msg not_ours = { .type = MSG_READY };
	const struct msg flush = { .type = MSG_FLUSH };
	int sock, null = open("/dev/null", O_RDONLY);
	pid_t pid = child_start(&sock);

	cr_expect_str_eq(child_heard(sock), "READY");
	child_tell(sock, &no_fd, -1);
	child_tell(sock, &not_known, -1);
	child_tell(sock, &long_name, null);
	child_tell(sock, &not_ours, null);
	cr_assert_eq(send(sock, "\377\377\377\377junk", 8, 0), 8);
	child_tell(sock, &flush, null);
	cr_expect_str_eq(child_heard(sock), "flush");
	close(sock);
	cr_expect_eq(child_finish(pid), 7);
}

Test(daemon_main, P2_the_end_of_the_channel_is_a_stop)
{
	int sock;
	pid_t pid = child_start(&sock);

	cr_expect_str_eq(child_heard(sock), "READY");
	close(sock);
	cr_expect_eq(child_finish(pid), 7);
}

#define IS_SILENT 0
#define HEARS     1

/* What a program says whose supervisor is gone, to a socket that has got the
 * number of the channel. */
static int
run_reusing(int channel, char **argv)
{
	struct chan_frame frame;

	reuses = true;
	cr_assert_eq(child_run(channel, argv), 7);
	cr_assert(witness >= 0);
	return chan_recv(witness, &frame) == 1 ? HEARS : IS_SILENT;
}

Test(daemon_main, P25_nothing_is_said_on_the_number_of_a_channel_that_ended)
{
	int sock;
	pid_t pid = child_start_by(run_reusing, &sock);

	cr_expect_str_eq(child_heard(sock), "READY");
	close(sock);
	cr_expect_eq(child_finish(pid), IS_SILENT);
}

Test(daemon_main, a_stop_that_takes_too_long_is_ended)
{
	const struct msg stop = { .type = MSG_STOP,
		.u.STOP = { .limit_usec = -5 } };
	int sock;
	pid_t pid;

	hangs = true;
	pid = child_start(&sock);
	cr_expect_str_eq(child_heard(sock), "READY");
	child_tell(sock, &stop, -1);
	child_tell(sock, &stop, -1);
	cr_expect_str_eq(child_heard(sock), "stop at once");
	cr_expect_str_eq(child_heard_all(sock),
	    "warning: the time to stop is over: ended with work undone");
	cr_expect_str_eq(child_heard(sock), "end");
	cr_expect_eq(child_finish(pid), EXIT_TEMPORARY);
}

/* One a second at the most, the last one always, without any other event. */
Test(daemon_main, what_it_complains_of_is_told_the_supervisor)
{
	const struct msg flush = { .type = MSG_FLUSH };
	usec_t first;
	int sock;
	pid_t pid;

	complains = true;
	pid = child_start(&sock);
	cr_expect_str_eq(child_heard(sock), "READY");
	child_tell(sock, &flush, -1);
	cr_expect_str_eq(child_heard_all(sock), "flush");
	cr_expect_str_eq(child_heard_all(sock), "warning: complaint 1");
	first = clock_mono();
	cr_expect_str_eq(child_heard_all(sock), "warning: complaint 100");
	cr_expect(clock_mono() - first > USEC_PER_SEC / 2);
	child_tell(sock, &flush, -1);
	cr_expect_str_eq(child_heard_all(sock), "flush");
	close(sock);
	cr_expect_eq(child_finish(pid), 7);
}

Test(daemon_main, P15_the_bug_that_ends_it_is_told_the_supervisor)
{
	const struct msg flush = { .type = MSG_FLUSH };
	int sock;
	pid_t pid;

	has_bug = true;
	pid = child_start(&sock);
	cr_expect_str_eq(child_heard(sock), "READY");
	child_tell(sock, &flush, -1);
	cr_expect_str_eq(child_heard(sock), "flush");
	cr_expect(strstr(child_heard(sock), "daemon_main.c:") != NULL);
	cr_expect_str_eq(child_heard(sock), "end");
	cr_expect_eq(child_finish(pid), -SIGABRT);
}

Test(daemon_main, P3_a_ping_is_answered)
{
	const struct msg ping = { .type = MSG_PING,
		.u.PING = { .serial = 4711 } };
	int sock;
	pid_t pid = child_start(&sock);

	cr_expect_str_eq(child_heard(sock), "READY");
	child_tell(sock, &ping, -1);
	cr_expect_str_eq(child_heard(sock), "PONG");
	cr_expect_eq(child_frame.msg.u.PONG.serial, 4711);
	close(sock);
	cr_expect_eq(child_finish(pid), 7);
}

Test(daemon_main, signals_do_as_frames_do)
{
	int sock;
	pid_t pid = child_start(&sock);

	cr_expect_str_eq(child_heard(sock), "READY");
	kill(pid, SIGALRM);
	cr_expect_str_eq(child_heard(sock), "flush");
	child_write_conf("queue_load = 60");
	kill(pid, SIGHUP);
	cr_expect_str_eq(child_heard(sock), "reload 50 60");
	kill(pid, SIGTERM);
	cr_expect_str_eq(child_heard(sock), "stop");
	cr_expect_eq(child_finish(pid), 7);
}

Test(daemon_main, P11_a_wrong_file_keeps_the_old_configuration)
{
	const struct msg reload = { .type = MSG_RELOAD };
	const struct msg flush = { .type = MSG_FLUSH };
	int sock;
	pid_t pid = child_start(&sock);

	cr_expect_str_eq(child_heard(sock), "READY");
	child_write_conf("queue_load = 60\nqueue_load = 70");
	child_tell(sock, &reload, -1);
	child_tell(sock, &flush, -1);
	cr_expect_str_eq(child_heard(sock), "flush");
	child_write_conf("queue_load = 80");
	child_tell(sock, &reload, -1);
	cr_expect_str_eq(child_heard(sock), "reload 50 80");
	close(sock);
	cr_expect_eq(child_finish(pid), 7);
}
