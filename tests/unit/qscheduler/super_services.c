/* Programs of the instance, beside those of its queues, with the supervisor
 * whole: no such program is in the product, the stage has two. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "fake.h"
#include "ipc/page.h"

static int manager = -1; /* what systemd would read */

static void
set_up(void)
{
	stage_init();
	stage()->services = true;
}

static void
tear_down(void)
{
	io_close(&manager);
	stage_done();
}

TestSuite(super_services, .init = set_up, .fini = tear_down, .timeout = 100);

Test(super_services, the_product_has_the_four_of_a_queue_and_none_else)
{
	static const char *const names[NROLES] = {
		[ROLE_QUEUE_SEND] = "queue-send",
		[ROLE_TODO_PROC] = "todo-proc",
		[ROLE_DELIVER_LOCAL] = "deliver-local",
		[ROLE_DELIVER_SMTP] = "deliver-smtp",
	};
	const struct role *roles[GROUP_MAX];
	unsigned i;

	cr_assert_eq(roles_of(SCOPE_QUEUE, roles), NROLES);
	for (i = 0; i < NROLES; i++) {
		cr_expect_str_eq(roles[i]->name, names[i]);
		cr_expect_eq(roles[i]->leads, i == ROLE_QUEUE_SEND);
	}
	cr_expect_eq(roles_of(SCOPE_INSTANCE, roles), 0);
	cr_expect_eq(role_table.n, NROLES, "each has room in its group");
}

/* One process for two queues; its arguments, its object, its frames. */
Test(super_services, one_is_started_for_all_queues)
{
	char path[64], line[256] = { 0 };
	ssize_t n, i;
	pid_t pid;
	int fd;

	stage_conf("queue_count = 2");
	stage_start("-s");
	pid = stage_pid(stage_hear("fake-server start"));
	stage_hear("fake-server LINK qscheduler");
	stage_hear("fake-second start");
	stage_wait_ready();
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = io_read_all(fd, line, sizeof(line) - 1);
	io_close(&fd);
	for (i = 0; i < n - 1; i++)
		if (line[i] == '\0')
			line[i] = ' ';
	cr_expect(strstr(line, "/conf --listen 25") != NULL, "%s", line);
	cr_expect_eq(line[strlen(line) - 1], '5', "no number: %s", line);
	stage_hear("fake-server PING");
	kill(stage()->pid, SIGUSR1);
	stage_wait_log("dump: fake-server: up, pid");
	stage_wait_log("dump: fake-second: up, pid");
	kill(stage()->pid, SIGHUP);
	stage_hear("fake-server RELOAD");
	cr_expect_eq(stage_stop(), 0);
	stage_hear("fake-server STOP");
	for (i = 0; i < (ssize_t)stage()->nkept; i++) {
		cr_expect_neq(
		    strncmp(stage()->kept[i], "fake-server start", 17), 0);
		cr_expect_neq(
		    strncmp(stage()->kept[i], "fake-second LINK", 16), 0);
	}
}

Test(super_services, P7_one_that_ends_comes_back_alone)
{
	pid_t pid;

	stage_start("-s");
	pid = stage_pid(stage_hear("fake-server start"));
	stage_wait_ready();
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_expect_neq(stage_pid(stage_hear("fake-server start")), pid);
	stage_hear("fake-server LINK qscheduler");
	cr_expect(
	    stage_logged("error: fake-server (pid"), "%s", stage()->logged);
	cr_expect(stage_logged("died of signal 9"));
	cr_expect_not(stage_logged("fake-second (pid"));
	cr_expect_not(stage_logged("queue-send/1 (pid"));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_services, P3_one_that_hangs_is_killed_and_started_again)
{
	pid_t pid;

	stage_conf("heartbeat_time_limit = 2s");
	stage_mode("fake-server", "hang");
	stage_start("-s");
	pid = stage_pid(stage_hear("fake-server start"));
	stage_wait_log("ALERT: fake-server (pid");
	stage_wait_log("it hangs; it is killed and started again");
	cr_expect_neq(stage_pid(stage_hear("fake-server start")), pid);
	cr_expect_not(stage_logged("queue-send/1 (pid"), "others answer");
	cr_expect_eq(stage_stop(), 0);
}

/* The failure of a program of the instance does not keep the queues from being
 * ready. */
Test(super_services, P6_one_that_keeps_failing_is_quarantined_alone)
{
	struct sched_page page;

	stage_mode("fake-server", "complain");
	stage_start("-s");
	stage_wait_ready();
	stage_wait_log("ALERT: fake-server is quarantined: fake-server failed "
		       "5 times in a row, ended with status 3: no? use");
	stage_page(&page);
	cr_expect_eq(page.rows[0].state, QUEUE_STATE_OPEN);
	stage_mode("fake-server", "ready");
	kill(stage()->pid, SIGHUP);
	stage_wait_log("fake-server is out of quarantine");
	cr_expect_eq(stage_stop(), 0);
}

Test(super_services, one_that_floods_is_held_back)
{
	stage_mode("fake-server", "flood");
	stage_start("-s");
	stage_wait_ready();
	stage_wait_log("fake-server (pid");
	stage_wait_log("sent a bad frame: dropped");
	stage_wait_log("sends without end: held back");
	cr_expect_eq(stage_stop(), 0);
}

static bool
is_before(const char *first, const char *second)
{
	const char *a = strstr(stage()->logged, first);
	const char *b = strstr(stage()->logged, second);

	return a != NULL && b != NULL && a < b;
}

/* A service may put mail into a queue for as long as it is there. */
Test(super_services, P10_services_stop_before_queues)
{
	stage_conf("log_level = debug");
	stage_start("-s");
	stage_wait_ready();
	cr_expect_eq(stage_stop(), 0);
	cr_expect(is_before("fake-server: exited: stopping to down",
		      "queue-send/1: want-down: up to stopping"),
	    "%s", stage()->logged);
	cr_expect(is_before("fake-second: exited: stopping to down",
	    "todo-proc/1: want-down: up to stopping"));
}

Test(super_services, P10_one_that_does_not_stop_does_not_keep_the_queues)
{
	stage_conf("stop_time_limit = 4s\nlog_level = debug");
	stage_mode("fake-server", "hang");
	stage_start("-s");
	stage_wait_ready();
	cr_expect_eq(stage_stop(), 0);
	cr_expect(is_before("queue-send/1: exited: stopping to down",
		      "fake-server: timer: stopping to killed"),
	    "%s", stage()->logged);
}

/* The next supervisor starts no second one beside it. */
Test(super_services, P2_one_of_a_supervisor_that_was_killed_is_waited_for)
{
	pid_t pid;

	stage_mode("fake-server", "hang-orphan");
	stage_conf("stop_time_limit = 1s");
	stage_start("-s");
	pid = stage_pid(stage_hear("fake-server start"));
	stage_wait_ready();
	cr_assert_eq(kill(stage()->pid, SIGKILL), 0);
	cr_assert_eq(stage_finish(), -SIGKILL);
	stage_hear("queue-send EOF");
	stage_mode("fake-server", "ready");
	stage_start("-s");
	stage_wait_log("fake-server (pid");
	stage_wait_log("of an earlier supervisor is still there: the next one "
		       "waits for its end");
	stage_wait_log("of an earlier supervisor does not end: killed");
	cr_expect_neq(stage_pid(stage_hear("fake-server start")), pid);
	stage_wait_ready();
	cr_expect_eq(stage_stop(), 0);
}

static void
open_manager(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/notify", stage()->dir);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert(manager >= 0);
	cr_assert_eq(
	    bind(manager, (const struct sockaddr *)&to, sizeof(to)), 0);
	setenv("NOTIFY_SOCKET", to.sun_path, 1);
}

/* A datagram that ends so. */
static void
wait_told(const char *what)
{
	const usec_t end = clock_mono() + 120 * USEC_PER_SEC;
	const size_t len = strlen(what);
	char text[512];
	ssize_t n;

	do {
		struct pollfd wait = { manager, POLLIN, 0 };

		cr_assert(clock_mono() < end, "not told: %s", what);
		(void)poll(&wait, 1, 1000);
		n = recv(manager, text, sizeof(text) - 1, MSG_DONTWAIT);
		text[n > 0 ? n : 0] = '\0';
	} while (n < (ssize_t)len || strcmp(text + n - len, what) != 0);
}

Test(super_services, systemd_is_told_of_those_that_are_not_up)
{
	open_manager();
	stage_mode("fake-second", "exit-3");
	stage_start("-s");
	wait_told("STATUS=1 queue open, 0 closing, 0 disabled, 0 "
		  "quarantined, fake-second quarantined");
	stage_mode("fake-second", "ready");
	kill(stage()->pid, SIGHUP);
	wait_told("STATUS=1 queue open, 0 closing, 0 disabled, 0 quarantined");
	cr_expect_eq(stage_stop(), 0);
}
