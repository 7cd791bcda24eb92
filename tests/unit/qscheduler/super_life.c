/* The supervisor whole, with children of the test's. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "fake.h"
#include "ipc/page.h"

TestSuite(super_life, .init = stage_init, .fini = stage_done, .timeout = 100);

static const char *const children[] = { "queue-send", "todo-proc",
	"deliver-local", "deliver-smtp" };

Test(super_life, start_links_and_stop)
{
	static const char *const links[] = { "queue-send LINK page",
		"queue-send LINK qscheduler", "queue-send LINK todo-proc",
		"queue-send LINK deliver-local",
		"queue-send LINK deliver-smtp" };
	struct sched_page page;
	size_t i;

	stage_start("-s");
	for (i = 0; i < ARRAY_LEN(links); i++)
		stage_hear(links[i]);
	stage_wait_ready();
	stage_page(&page);
	cr_expect_eq(page.qcount, 1);
	cr_expect_eq(page.qconf, 1);
	cr_expect_eq(page.rows[0].queue, 1);
	cr_expect_eq(page.rows[0].state, QUEUE_STATE_OPEN);
	cr_expect(stage_object_there("queue1"));
	cr_expect_eq(stage_stop(), 0);
	stage_hear("queue-send STOP");
	cr_expect_not(stage_object_there("qscheduler"));
	cr_expect_not(stage_object_there("queue1"));
}

Test(super_life, P10_term_twice)
{
	stage_start("-s");
	stage_wait_ready();
	kill(stage()->pid, SIGTERM);
	kill(stage()->pid, SIGTERM);
	kill(stage()->pid, SIGINT);
	cr_expect_eq(stage_finish(), 0);
}

Test(super_life, P10_term_during_start_and_reload)
{
	stage_start("-s");
	stage_hear("queue-send start");
	kill(stage()->pid, SIGHUP);
	kill(stage()->pid, SIGTERM);
	kill(stage()->pid, SIGHUP);
	cr_expect_eq(stage_finish(), 0);
	cr_expect_not(stage_object_there("qscheduler"));
}

Test(super_life, P10_a_child_that_does_not_end_is_killed)
{
	stage_conf("stop_time_limit = 1s");
	stage_mode("queue-send", "hang");
	stage_mode("deliver-smtp", "hang");
	stage_start("-s");
	stage_wait_ready();
	cr_expect_eq(stage_stop(), 0);
	cr_expect(stage_logged("out of time: killed"));
	cr_expect_not(stage_object_there("queue1"));
}

Test(super_life, P1_queue_send_takes_its_group_along)
{
	pid_t pids[ARRAY_LEN(children)], pid;
	char what[64];
	size_t i;

	stage_start("-s");
	for (i = 0; i < ARRAY_LEN(children); i++) {
		snprintf(what, sizeof(what), "%s start", children[i]);
		pids[i] = stage_pid(stage_hear(what));
	}
	for (i = 1; i < ARRAY_LEN(children); i++) {
		snprintf(what, sizeof(what), "%s LINK queue-send", children[i]);
		stage_hear(what);
	}
	cr_assert_eq(kill(pids[0], SIGKILL), 0);
	for (i = 1; i < ARRAY_LEN(children); i++) {
		snprintf(what, sizeof(what), "%s STOP", children[i]);
		pid = stage_pid(stage_hear(what));
		cr_expect_eq(pid, pids[i]);
	}
	stage_hear("queue-send start");
	cr_expect_eq(stage_stop(), 0);
}

/* Places at destinations are given back only when nobody can hold them. */
Test(super_life, P1_nothing_of_a_new_group_before_the_last_one_is_gone)
{
	const char *gone, *again;
	size_t i;
	pid_t pid;

	stage_conf("log_level = debug");
	stage_mode("deliver-smtp", "hang");
	stage_start("-s");
	pid = stage_pid(stage_hear("queue-send start"));
	stage_wait_ready();
	stage_wait_log("deliver-smtp/1: ready: starting to up");
	cr_assert_eq(kill(pid, SIGKILL), 0);
	stage_wait_log("deliver-smtp/1: exited: killed");
	stage_hear("deliver-smtp start"); /* the first */
	stage_hear("deliver-smtp start");
	cr_expect_eq(stage_stop(), 0); /* with all of the log */
	gone = strstr(stage()->logged, "deliver-smtp/1: exited: killed");
	for (i = 0; i < ARRAY_LEN(children); i++) {
		char what[80];

		snprintf(what, sizeof(what), "%s/1: clear: waiting to starting",
		    children[i]);
		again = strstr(stage()->logged, what); /* the first */
		cr_assert_not_null(again);
		again = strstr(again + 1, what);
		cr_expect(
		    again > gone, "%s:\n%s", children[i], stage()->logged);
	}
}

/* What queue-send was told at its LINKs, its pid after it taken away. */
static uint32_t
group_of(const char *said)
{
	unsigned group = 0;

	cr_assert_eq(
	    sscanf(said, "queue-send LINK page of %u", &group), 1, "%s", said);
	return group;
}

/* The number that readers of the page know the state of a queue by: of its
 * group, and of what a slow disk changed besides. */
static uint32_t
shown_generation(void)
{
	struct sched_page page;

	stage_page(&page);
	return page.rows[0].generation;
}

static void
wait_shown_beyond(uint32_t generation)
{
	const usec_t end = clock_mono() + 60 * USEC_PER_SEC;

	while (shown_generation() <= generation)
		cr_assert(clock_mono() < end, "still %u", generation);
}

Test(super_life, each_group_has_a_generation_of_its_own)
{
	uint32_t first, second, shown;
	pid_t pid;

	stage_start("-s");
	stage_wait_ready();
	pid = stage_pid(stage_hear("queue-send start"));
	first = group_of(stage_hear("queue-send LINK page"));
	shown = shown_generation();
	cr_expect_geq(shown, first);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	second = group_of(stage_hear("queue-send LINK page"));
	cr_expect(second > first);
	wait_shown_beyond(shown);
	cr_assert_eq(kill(stage()->pid, SIGKILL), 0);
	cr_expect_eq(stage_finish(), -SIGKILL);
	stage_hear("queue-send EOF");
	stage_start("-s");
	first = group_of(stage_hear("queue-send LINK page"));
	cr_expect(first != second && first != second + 1,
	    "one that another supervisor had");
	stage_wait_ready();
	cr_expect_eq(stage_stop(), 0);
}

/* The helpers of the stage let go of their links at once. */
Test(super_life, P7_a_sender_that_loses_a_helper_and_exits_0_is_restarted)
{
	stage_mode("queue-send", "exit-0-with-link");
	stage_start("-s");
	stage_hear("queue-send LINK deliver-smtp");
	stage_hear("queue-send lost");
	stage_hear("queue-send start");
	stage_hear("queue-send start");
	cr_expect(stage_logged("queue-send/1 (pid"));
	cr_expect(stage_logged("ended with status 0: again in"));
	cr_expect_eq(stage_stop(), 0);
}

/* While queue-send is not there at all, others are judged as always. */
Test(super_life, P7_exit_0_without_a_leader_is_a_failure)
{
	stage_mode("queue-send", "exit-3");
	stage_mode("deliver-smtp", "exit-0");
	stage_start("-s");
	stage_wait_log("is quarantined: queue-send failed 5 times");
	/* Not four times a second for ever. */
	stage_wait_log("deliver-smtp/1 (pid");
	stage_wait_log("ended with status 0: again in 2.00 s");
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, P1_an_agent_comes_back_alone_with_a_new_link)
{
	pid_t agent;

	stage_start("-s");
	agent = stage_pid(stage_hear("deliver-smtp start"));
	stage_hear("queue-send LINK deliver-smtp");
	stage_wait_ready();
	cr_assert_eq(kill(agent, SIGKILL), 0);
	cr_expect_neq(stage_pid(stage_hear("deliver-smtp start")), agent);
	stage_hear("queue-send LINK deliver-smtp");
	cr_expect_not(stage_logged("queue-send/1 (pid"));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, P6_P7_a_crash_loop_is_seen_and_stays_alone)
{
	struct sched_page page = { 0 };
	int look;

	stage_mode("deliver-smtp", "exit-0");
	stage_start("-s");
	stage_wait_ready();
	stage_wait_log("quarantined: deliver-smtp failed 5 times in a row, "
		       "ended with status 0");
	/* The page is published once a second. */
	for (look = 0; look < 1500 && page.rows[0].restarts < 4; look++) {
		stage_page(&page);
		(void)poll(NULL, 0, 20);
	}
	cr_expect(page.rows[0].restarts >= 4);
	cr_expect_not(stage_logged("queue-send/1 (pid"));
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, P6_statuses_are_told)
{
	stage_mode("deliver-smtp", "exit-3");
	stage_mode("deliver-local", "crash");
	stage_start("-s");
	stage_wait_log("ended with status 3");
	stage_wait_log("died of signal 9");
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, P5_a_missing_program)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/bin/todo-proc", stage()->dir);
	cr_assert_eq(unlink(path), 0);
	stage_start("-s");
	stage_wait_ready(); /* it is not waited for */
	stage_wait_log("todo-proc/1: exec: No such file or directory");
	stage_wait_log("again in 0.50 s");
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, a_child_that_floods_is_held_back)
{
	stage_mode("deliver-local", "flood");
	stage_start("-s");
	stage_wait_ready();
	stage_wait_log("sent a bad frame: dropped");
	stage_wait_log("sends without end: held back");
	/* and it works on: a tick goes by, all is heard */
	kill(stage()->pid, SIGUSR1);
	stage_wait_log("dump: deliver-local/1: up");
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, a_child_without_its_channel_is_started_again)
{
	pid_t first;

	stage_mode("deliver-local", "close-channel");
	stage_start("-s");
	first = stage_pid(stage_hear("deliver-local start"));
	cr_expect_neq(stage_pid(stage_hear("deliver-local start")), first);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, P11_hup_storm_and_wrong_file)
{
	const char *line;
	usec_t began;
	int i, reloads = 0;

	stage_start("-s");
	stage_wait_ready();
	stage_conf("queue_load = 50");
	began = clock_mono();
	for (i = 0; i < 100; i++) {
		kill(stage()->pid, SIGHUP);
		(void)poll(NULL, 0, 5); /* each is seen by itself */
	}
	stage_hear("queue-send RELOAD");
	stage_wait_log("configuration reloaded");
	stage_conf("queue_load = 500");
	kill(stage()->pid, SIGHUP);
	stage_wait_log("the old configuration stays in force");
	cr_expect(stage_logged("conf:"));
	cr_expect(stage_logged("queue_load"));
	cr_expect_eq(stage_stop(), 0);
	for (line = stage()->logged;
	     (line = strstr(line, "configuration reloaded")) != NULL; line++)
		reloads++;
	cr_expect_leq(reloads, (clock_mono() - began) / USEC_PER_SEC + 2,
	    "%d reloads", reloads);
}

Test(super_life, alrm_flushes)
{
	stage_start("-s");
	stage_wait_ready();
	kill(stage()->pid, SIGALRM);
	stage_hear("queue-send FLUSH");
	kill(stage()->pid, SIGUSR1);
	stage_wait_log("dump: queue-send/1: up");
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, I16_one_supervisor_for_a_base_and_an_instance)
{
	struct stage *s = stage();
	const pid_t first_pid = (stage_start("-s"), s->pid);
	char base[sizeof(s->base)];

	stage_wait_ready();
	memcpy(base, s->base, sizeof(base));
	stage_start("-s");
	cr_expect_eq(stage_finish(), EXIT_TEMPORARY);
	cr_expect(stage_logged("another qscheduler runs on it"));

	snprintf(s->base, sizeof(s->base), "%s/other", s->dir);
	stage_conf("");
	stage_start("-s");
	cr_expect_eq(stage_finish(), EXIT_TEMPORARY);
	cr_expect(stage_logged("another qscheduler runs it, pid"));
	s->pid = first_pid;
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, P2_I15_takes_over_from_one_that_was_killed)
{
	stage_start("-s");
	stage_wait_ready();
	cr_assert_eq(kill(stage()->pid, SIGKILL), 0);
	cr_expect_eq(stage_finish(), -SIGKILL);
	stage_hear("queue-send EOF");
	cr_expect(stage_object_there("queue1"));
	stage_start("-s");
	stage_wait_ready();
	cr_expect_eq(stage_stop(), 0);
	cr_expect_not(stage_object_there("queue1"));
}

Test(super_life, P6_quarantine_shows_the_last_words_and_is_released)
{
	struct sched_page page = { 0 };
	const struct sched_row *row = &page.rows[0];
	int look;

	stage_mode("deliver-smtp", "complain");
	stage_start("-s");
	stage_wait_ready();
	stage_wait_log("ALERT: queue 1 is quarantined: deliver-smtp failed 5 "
		       "times in a row, ended with status 3: no? use");
	/* The page is published once a second. */
	for (look = 0; look < 1500 && row->state != QUEUE_STATE_QUARANTINED;
	     look++) {
		stage_page(&page);
		(void)poll(NULL, 0, 20);
	}
	cr_expect_eq(row->state, QUEUE_STATE_QUARANTINED);
	cr_expect(row->until_mono > clock_mono() + 50 * USEC_PER_SEC);
	cr_expect(strstr(row->reason, "ended with status 3: no? use") != NULL);
	stage_mode("deliver-smtp", "ready");
	kill(stage()->pid, SIGHUP);
	stage_wait_log("queue 1 is out of quarantine");
	stage_hear("deliver-smtp LINK queue-send"); /* it runs */
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, P3_a_stopped_child_is_told_to_go_on)
{
	pid_t pid;

	stage_conf("heartbeat_time_limit = 2s");
	stage_start("-s");
	pid = stage_pid(stage_hear("todo-proc start"));
	stage_wait_ready();
	stage_hear("todo-proc PING");
	cr_assert_eq(kill(pid, SIGSTOP), 0);
	stage_wait_log("ALERT: todo-proc/1");
	stage_wait_log("it was stopped by a signal; it is told to go on");
	stage_wait_log("answers again");
	cr_expect_not(stage_logged("it hangs"));
	cr_expect_eq(stage_stop(), 0);
}

/* Its page is its heartbeat, but none of the stage writes one. */
Test(super_life, P3_a_child_that_hangs_is_killed_and_started_again)
{
	pid_t pid;

	stage_conf("heartbeat_time_limit = 2s");
	stage_mode("queue-send", "hang");
	stage_start("-s");
	pid = stage_pid(stage_hear("queue-send start"));
	stage_wait_log("it hangs; it is killed and started again");
	stage_wait_log("died of signal 9");
	cr_expect_neq(stage_pid(stage_hear("queue-send start")), pid);
	cr_expect_not(stage_logged("todo-proc/1 (pid"), "others answer");
	cr_expect_eq(stage_stop(), 0);
}

/* A pause of all of us, or of the supervisor alone, kills nobody. */
Test(super_life, P3_T5_a_supervisor_that_was_stopped_kills_nobody)
{
	int i;

	stage_conf("heartbeat_time_limit = 5s");
	stage_start("-s");
	stage_wait_ready();
	stage_hear("deliver-smtp PING");
	cr_assert_eq(kill(stage()->pid, SIGSTOP), 0);
	(void)poll(NULL, 0, 9000); /* the time that is meant */
	cr_assert_eq(kill(stage()->pid, SIGCONT), 0);
	for (i = 0; i < 3; i++)
		stage_hear("deliver-smtp PING");
	cr_expect_not(stage_logged("ALERT"));
	cr_expect_eq(stage_stop(), 0);
}

/* Inherited from whoever started us. */
Test(super_life, P8_unknown_children_are_ignored)
{
	stage_conf("log_level = debug");
	stage()->inherit = true;
	stage_start("-s");
	stage_wait_log("ended, which is none of ours");
	stage_wait_ready();
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, P17_nothing_is_left_of_a_process_group)
{
	struct pollfd look = { .events = POLLIN };
	pid_t left;

	stage_mode("deliver-local", "leave-child");
	stage_start("-s");
	stage_wait_log("deliver-local/1 (pid");
	left = stage_pid(stage_hear("deliver-local left"));
	look.fd = pidfd_open(left, 0);
	if (look.fd >= 0)
		cr_expect_eq(poll(&look, 1, 120000), 1);
	cr_expect_eq(stage_stop(), 0);
}

Test(super_life, F1_wrong_configuration_exits_100)
{
	stage_conf("no_such_name = 1");
	stage_start("-s");
	cr_expect_eq(stage_finish(), EXIT_PERMANENT);
	cr_expect(stage_logged("conf:10"), "%s", stage()->logged);
	cr_expect(stage_logged("no_such_name"));
}
