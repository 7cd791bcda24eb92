#include "scratch.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* mutation: report_no_socket() does not read the page. */
Test(newaliases, beside_a_supervisor_without_a_socket)
{
	struct scratch s;
	struct run run;
	pid_t pid;

	scratch_new(&s, 1, NULL);
	scratch_pages(&s, QUEUE_STATE_OPEN, 0); /* of this process */
	cr_expect_eq(scratch_exit(&s, &run, ARGS("newaliases"), ""), 75);
	cr_expect_not_null(strstr(run.err, "NOT in force yet: qscheduler runs"),
	    "%s", run.err);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		scratch_pages(&s, QUEUE_STATE_OPEN, 0);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_eq(scratch_exit(&s, &run, ARGS("newaliases"), ""), 0);
	cr_expect_not_null(strstr(run.err, "does not run"), "%s", run.err);
	scratch_done(&s);
}
