/* The whole command, with a supervisor that is this test. */
#include "command.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

TestSuite(setqload, .init = command_setup, .fini = command_teardown);

static void
answer_one(int code, const char *text)
{
	struct ask ask;

	take_request(&ask);
	cr_expect_eq(ask.msg.u.SET_LOAD_FOR.queue, 3);
	cr_expect_eq(ask.msg.u.SET_LOAD_FOR.local_used, 2);
	cr_expect_eq(ask.msg.u.SET_LOAD_FOR.local_limit, 10);
	cr_expect_eq(ask.msg.u.SET_LOAD_FOR.remote_used, 5);
	cr_expect_eq(ask.msg.u.SET_LOAD_FOR.remote_limit, 20);
	answer_request(&ask, code, text);
}

enum how {
	PLAIN,
	ANSWERED,
	REFUSED,
	FULL_OUTPUT,
	AS_NOBODY,
};

static struct run
run(enum how how, int argc, const char *const *words)
{
	struct run r;
	int fds[2] = { memfd_create("out", MFD_CLOEXEC),
		memfd_create("err", MFD_CLOEXEC) };
	char **argv;
	int status;
	pid_t pid;

	if (how == FULL_OUTPUT) {
		close(fds[0]);
		fds[0] = open("/dev/full", O_WRONLY | O_CLOEXEC);
	}
	argv = copy_words(argc, words);
	pid = start(argc, argv, fds, how == AS_NOBODY);
	free_words(argv);
	if (how == ANSWERED || how == FULL_OUTPUT)
		answer_one(0, "as\x1b said");
	if (how == REFUSED)
		answer_one(-ENOENT, "there is no such queue");
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	r.code = WEXITSTATUS(status);
	read_back(fds[0], r.out, sizeof(r.out));
	read_back(fds[1], r.err, sizeof(r.err));
	return r;
}

static struct run
run_usual(enum how how)
{
	const char *argv[] = { "setqload", "-i", instance, "-q", "3",
		"2/10 5/20", NULL };

	return run(how, 6, argv);
}

Test(setqload, answered)
{
	struct run r;

	start_supervisor();
	r = run_usual(ANSWERED);
	cr_expect_eq(r.code, EX_OK, "%s", r.err);
	cr_expect_str_eq(r.out, "as? said\n", "cleaned");
	cr_expect_str_empty(r.err);
}

Test(setqload, refused)
{
	struct run r;

	start_supervisor();
	r = run_usual(REFUSED);
	cr_expect_eq(r.code, EX_DATAERR);
	cr_expect_str_empty(r.out);
	cr_expect_str_eq(r.err, "setqload: queue 3: there is no such queue\n");
}

Test(setqload, A6_output_full)
{
	struct run r;

	start_supervisor();
	r = run_usual(FULL_OUTPUT);
	cr_expect_eq(r.code, EX_IOERR);
	cr_expect(strstr(r.err, "standard output") != NULL, "%s", r.err);
}

Test(setqload, A5_no_supervisor)
{
	struct run r = run_usual(PLAIN);

	cr_expect_eq(r.code, EX_UNAVAILABLE);
	cr_expect(strstr(r.err, "instance ") != NULL, "%s", r.err);
	cr_expect(
	    strstr(r.err, "running: start qscheduler") != NULL, "%s", r.err);
}

/* What it left behind is there and would take the request. */
Test(setqload, A5_supervisor_killed)
{
	struct run r;

	start_supervisor();
	page_write_begin(&page->head);
	page_write_end(&page->head, clock_mono() - PAGE_STALE - 1, 1);
	r = run_usual(PLAIN);
	cr_expect_eq(r.code, EX_UNAVAILABLE);
	cr_expect(strstr(r.err, "sign of life") != NULL, "%s", r.err);
	cr_expect_not(is_asked(), "asked all the same");
}

Test(setqload, A5_another_version)
{
	struct run r;

	start_supervisor();
	page->head.version++;
	r = run_usual(PLAIN);
	cr_expect_eq(r.code, EX_UNAVAILABLE);
	cr_expect(strstr(r.err, "version") != NULL, "%s", r.err);
}

Test(setqload, I1_no_room_for_requests)
{
	struct run r;
	int fd;

	start_supervisor();
	cr_assert_eq(ask_socket_connect(instance, NULL, &fd), 0);
	while (send(fd, "x", 1, MSG_DONTWAIT) == 1)
		;
	r = run_usual(PLAIN);
	cr_expect_eq(r.code, EX_TEMPFAIL);
	cr_expect(strstr(r.err, "takes no requests") != NULL, "%s", r.err);
	close(fd);
}

Test(setqload, nobody_answers)
{
	struct run r;

	start_supervisor();
	r = run_usual(PLAIN);
	cr_expect_eq(r.code, EX_TEMPFAIL);
	cr_expect(strstr(r.err, "does not answer") != NULL, "%s", r.err);
}

Test(setqload, A4_no_permission)
{
	struct run r;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	start_supervisor();
	r = run_usual(AS_NOBODY);
	cr_expect_eq(r.code, EX_NOPERM);
	cr_expect(strstr(r.err, "no permission") != NULL, "%s", r.err);
	cr_expect_not(is_asked());
}

/* Between a start and its socket, or without one. */
Test(setqload, I2_no_socket)
{
	struct run r;

	start_supervisor();
	ask_socket_close(instance, &requests);
	r = run_usual(PLAIN);
	cr_expect_eq(r.code, EX_TEMPFAIL);
	cr_expect(strstr(r.err, "no socket") != NULL, "%s", r.err);
}

/* ---- the list ---- */

static struct run
run_list(enum how how)
{
	const char *argv[] = { "setqload", "-i", instance, "--list", NULL };

	return run(how, 4, argv);
}

Test(setqload, list_asks_nobody)
{
	struct run r;

	start_supervisor();
	r = run_list(PLAIN);
	cr_expect_eq(r.code, EX_OK, "%s", r.err);
	cr_expect(strstr(r.out, "nothing is set by hand") != NULL, "%s", r.out);
	cr_expect_not(is_asked());
}

Test(setqload, A4_anybody_may_list)
{
	struct run r;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	start_supervisor();
	r = run_list(AS_NOBODY);
	cr_expect_eq(r.code, EX_OK, "%s", r.err);
}

Test(setqload, A5_nothing_to_list)
{
	struct run r = run_list(PLAIN);

	cr_expect_eq(r.code, EX_UNAVAILABLE);
	cr_expect_str_empty(r.out);
	cr_expect(strstr(r.err, "no supervisor of this instance") != NULL, "%s",
	    r.err);
	start_supervisor();
	page_write_begin(&page->head);
	page_write_end(&page->head, clock_mono() - PAGE_STALE - 1, 1);
	r = run_list(PLAIN);
	cr_expect_eq(r.code, EX_UNAVAILABLE);
	cr_expect(strstr(r.err, "sign of life") != NULL, "%s", r.err);
	page_write_begin(&page->head);
	r = run_list(PLAIN);
	cr_expect_eq(r.code, EX_UNAVAILABLE, "torn");
	cr_expect(strstr(r.err, "sign of life") != NULL, "%s", r.err);
}

/* ---- arguments ---- */

Test(setqload, A1_exit_codes)
{
	static const struct {
		const char *words[6];
		int want;
	} rows[] = {
		{ { "setqload" }, EX_USAGE },
		{ { "setqload", "--nope" }, EX_USAGE },
		{ { "setqload", "--" }, EX_USAGE },
		{ { "setqload", "-q" }, EX_USAGE },
		{ { "setqload", "-q", "-1", "45" }, EX_USAGE },
		{ { "setqload", "-q", "99999", "45" }, EX_USAGE },
		{ { "setqload", "-q", "1", "1/0" }, EX_USAGE },
		{ { "setqload", "-ia/b", "-q", "1", "45" }, EX_USAGE },
		{ { "setqload", "-c/none", "-q", "1", "45" }, EX_CONFIG },
		{ { "setqload", "--disable" }, EX_USAGE },
		{ { "setqload", "--clear", "--list" }, EX_USAGE },
		{ { "setqload", "-q", "4294967297", "45" }, EX_USAGE },
		{ { "setqload", "--help" }, EX_OK },
		{ { "setqload", "--version" }, EX_OK },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const char *argv[7] = { NULL };
		struct run r;
		int n;

		for (n = 0; n < 6 && rows[i].words[n] != NULL; n++)
			argv[n] = rows[i].words[n];
		r = run(PLAIN, n, argv);
		cr_expect_eq(r.code, rows[i].want, "row %zu: %d", i, r.code);
		cr_expect_neq(r.out[0] == '\0', r.err[0] == '\0', "row %zu: %s",
		    i, r.err);
		cr_expect(strlen(r.err) < 200, "row %zu: %s", i, r.err);
	}
}

Test(setqload, A1_too_many_and_too_long)
{
	const int n = 100000;
	const char **argv = calloc((size_t)n + 1, sizeof(*argv));
	char *text = malloc(128 * 1024 + 1);
	struct run r;
	int i;

	cr_assert(argv != NULL && text != NULL);
	for (i = 0; i < n; i++)
		argv[i] = "1";
	r = run(PLAIN, n, argv);
	cr_expect_eq(r.code, EX_USAGE);
	cr_expect(strlen(r.err) < 200);
	argv[1] = "-q";
	r = run(PLAIN, n, argv);
	cr_expect_eq(r.code, EX_USAGE);
	cr_expect(strlen(r.err) < 200);
	memset(text, '9', 128 * 1024);
	text[128 * 1024] = '\0';
	for (i = 1; i < 4; i++) {
		const char *one[] = { "setqload", "-q", "1", "1" };

		one[i] = text;
		r = run(PLAIN, 4, one);
		cr_expect_eq(r.code, EX_USAGE, "argument %d", i);
		cr_expect(strlen(r.err) < 200, "argument %d", i);
		cr_expect_neq(strstr(r.err, "...'") == NULL, i > 1,
		    "argument %d: %s", i, r.err);
	}
	free(text);
	free(argv);
}

Test(setqload, A1_no_arguments_at_all)
{
	const char *argv[] = { NULL };

	cr_expect_eq(run(PLAIN, 0, argv).code, EX_USAGE);
}

/* By variable and by configuration. */
Test(setqload, instance_that_is_meant)
{
	char path[] = "/tmp/setqload.XXXXXX", text[64];
	const char *by_env[] = { "setqload", "-q", "3", "2/10 5/20", NULL };
	const char *by_conf[] = { "setqload", "-c", path, "-q", "3", "2/10",
		"5/20", NULL };
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	snprintf(text, sizeof(text), "instance = %s\n", instance);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	start_supervisor();
	setenv("QSCHED_INSTANCE", instance, 1);
	cr_expect_eq(run(ANSWERED, 4, by_env).code, EX_OK);
	setenv("QSCHED_INSTANCE", "not/one", 1);
	cr_expect_eq(run(PLAIN, 4, by_env).code, EX_CONFIG);
	unsetenv("QSCHED_INSTANCE");
	cr_expect_eq(run(ANSWERED, 7, by_conf).code, EX_OK);
	unlink(path);
}
