/* A process that hangs is shown. */
#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "fake.h"
#include "ipc/page.h"

TestSuite(super_silent, .init = stage_init, .fini = stage_done, .timeout = 100);

/* Reads the page until the flag of the first row is so; it is published once a
 * second. */
static void
wait_silent(struct sched_page *page, bool want)
{
	int look;

	for (look = 0; look < 3000; look++) {
		stage_page(page);
		if (((page->rows[0].flags & SCHED_ROW_SILENT) != 0) == want)
			return;
		(void)poll(NULL, 0, 20);
	}
	cr_expect(false, "never %s", want ? "silent" : "well");
}

/* People see a process that hangs before its time is over. */
Test(super_silent, P3_a_child_that_hangs_is_shown)
{
	struct sched_page page = { 0 };
	pid_t pid;

	stage_start("-s");
	pid = stage_pid(stage_hear("todo-proc start"));
	stage_wait_ready();
	cr_assert_eq(kill(pid, SIGSTOP), 0);
	wait_silent(&page, true);
	cr_expect_eq(page.rows[0].state, QUEUE_STATE_OPEN);
	cr_expect_not_null(strstr(
	    page.rows[0].reason, "todo-proc/1 has given no sign of life for "));
	cr_assert_eq(kill(pid, SIGCONT), 0);
	wait_silent(&page, false);
	cr_expect_str_empty(page.rows[0].reason);
	cr_expect_not(stage_logged("ALERT"));
	cr_expect_eq(stage_stop(), 0);
}
