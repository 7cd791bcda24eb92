#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "scratch.h"

#define TEXT(s) (s), sizeof(s) - 1

static char path_env[] = "PATH=/usr/bin:/bin";
static char mark_env[] = "MARK=here";
static char *environment[] = { path_env, mark_env, NULL };
static usec_t limit = 60 * USEC_PER_SEC;
static char *home;

static void
block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void
run_argv(char *const *argv, struct message *m, struct verdict *v)
{
	const struct command c = { .name = "x",
		.argv = argv,
		.envp = environment,
		.home = home != NULL ? home : scratch(),
		.limit = limit };

	block_signals();
	command_run(&c, m, v);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
	cr_expect_eq(errno, ECHILD);
}

static void
run_shell(const char *script, struct message *m, struct verdict *v)
{
	char sh[] = "/bin/sh", c[] = "-c", *text = strdup(script);
	char *argv[] = { sh, c, text, NULL };

	run_argv(argv, m, v);
	free(text);
}

static void
run(const char *script, struct verdict *v)
{
	struct message m;

	scratch_message(&m, "s@x", "bob@x", TEXT("Subject: x\n\nbody"));
	run_shell(script, &m, v);
	scratch_message_done(&m);
}

Test(command, C1_the_program_reads_it_byte_exact, .fini = scratch_done)
{
	size_t len = 1u << 20, i;
	char *content = malloc(len);
	struct buf got = { 0 }, want = { 0 };
	struct message m;
	struct verdict v;

	for (i = 0; i < len; i++)
		content[i] = (char)(i * 17 >> 2);
	scratch_message(&m, "s@x", "bob@x", content, len);
	run_shell("cat > got", &m, &v);
	cr_assert_eq(v.outcome, AGENT_SENT, "%s", v.text);
	cr_expect_str_eq(v.dsn, "2.0.0");
	scratch_read(scratch_path("got"), &got);
	scratch_whole(&m, content, len, &want);
	cr_assert_eq(got.len, want.len);
	cr_expect_eq(memcmp(got.data, want.data, want.len), 0);
	scratch_message_done(&m);
	buf_done(&got);
	buf_done(&want);
	free(content);
}

static const struct {
	const char *name, *script;
	enum agent_outcome outcome;
	const char *dsn, *text;
} rows[] = {
	{ "does not read", "exec 0<&-; exit 0", AGENT_SENT, "2.0.0",
	    "delivered to program x" },
	{ "no user", "exit 67", AGENT_FAILED, "5.1.1",
	    "program x: user unknown" },
	{ "says why", "cat >/dev/null; echo to 1; echo to 2 >&2; exit 75",
	    AGENT_DEFERRED, "4.3.0",
	    "program x: temporary failure: to 1 to 2" },
	{ "signal", "kill -9 $$", AGENT_DEFERRED, "4.3.0",
	    "program x was ended by signal 9" },
	{ "SIGPIPE is not ignored", "kill -PIPE $$", AGENT_DEFERRED, "4.3.0",
	    "program x was ended by signal 13" },
	{ "SIGTERM is not blocked", "kill -TERM $$", AGENT_DEFERRED, "4.3.0",
	    "program x was ended by signal 15" },
	{ "environment", "test \"$MARK\" = here && exit 0; exit 1", AGENT_SENT,
	    "2.0.0", "delivered to program x" },
	{ "nothing of ours is in the environment",
	    "test -z \"$LEAK\" && exit 0; exit 1", AGENT_SENT, "2.0.0",
	    "delivered to program x" },
	{ "its own session",
	    "read -r pid name state parent group session rest "
	    "</proc/$$/stat && test $session = $$ || exit 64",
	    AGENT_SENT, "2.0.0", "delivered to program x" },
	{ "only 0, 1, 2 are open",
	    "for f in 3 4 5 6 7 8 9 10 11 12 13 14 15; do "
	    "test -e /proc/$$/fd/$f && exit 64; done; exit 0",
	    AGENT_SENT, "2.0.0", "delivered to program x" },
};

Test(command, what_becomes_of_it, .fini = scratch_done)
{
	int leak = open("/dev/null", 0);
	size_t i;

	setenv("LEAK", "x", 1);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct verdict v;

		run(rows[i].script, &v);
		cr_expect_eq(
		    v.outcome, rows[i].outcome, "%s: %s", rows[i].name, v.text);
		cr_expect_str_eq(v.dsn, rows[i].dsn, "%s", rows[i].name);
		cr_expect_str_eq(
		    v.text, rows[i].text, "%s: %s", rows[i].name, v.text);
	}
	close(leak);
}

Test(command, output_without_end_is_read_and_dropped, .fini = scratch_done)
{
	struct verdict v;

	run("cat >/dev/null; head -c 1000000 /dev/zero | tr '\\0' x; exit 75",
	    &v);
	cr_expect_eq(v.outcome, AGENT_DEFERRED);
	cr_expect_eq(strlen(v.text), VERDICT_TEXT_MAX - 1);
}

Test(command, P5_programs_that_cannot_run, .fini = scratch_done)
{
	static const struct {
		const char *name, *path;
		int error;
	} paths[] = {
		{ "absent", "absent", ENOENT },
		{ "not executable", "plain", EACCES },
		{ "no program", "rubbish", ENOEXEC },
		{ "a directory", ".", EACCES },
	};
	size_t i;

	scratch_file("plain", TEXT("x"));
	scratch_file("rubbish", TEXT("\1\2\3"));
	cr_assert(chmod(scratch_path("rubbish"), 0755) == 0);
	for (i = 0; i < ARRAY_LEN(paths); i++) {
		char *path = strdup(scratch_path("%s", paths[i].path));
		char *argv[] = { path, NULL };
		struct message m;
		struct verdict v;

		scratch_message(&m, "", "bob@x", TEXT("x"));
		run_argv(argv, &m, &v);
		cr_expect_eq(v.outcome, AGENT_DEFERRED, "%s", paths[i].name);
		cr_expect_str_eq(v.dsn, "4.3.5");
		cr_expect_not_null(strstr(v.text, strerror(paths[i].error)),
		    "%s: %s", paths[i].name, v.text);
		scratch_message_done(&m);
		free(path);
	}
}

Test(command, a_home_that_is_not_there, .fini = scratch_done)
{
	struct verdict v;
	char none[] = "/nonexistent/home";

	home = none;
	run("test $(pwd) = / || exit 64", &v);
	cr_expect_eq(v.outcome, AGENT_SENT, "%s", v.text);
}

/* A pipe whose other end is held by what the program leaves behind: its end
 * of file says that all of them are gone. */
static int fence[2];

static bool
fence_falls(void)
{
	struct pollfd p = { .fd = fence[0] };

	close(fence[1]);
	return poll(&p, 1, 120000) == 1 && (p.revents & POLLHUP) != 0;
}

static void
run_with_fence(const char *format, struct verdict *v)
{
	char script[512];
	const char *name = scratch_path("fence");

	cr_assert(mkfifo(name, 0600) == 0);
	fence[0] = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	fence[1] = open(name, O_WRONLY | O_CLOEXEC);
	cr_assert(fence[0] >= 0 && fence[1] >= 0);
	snprintf(script, sizeof(script), "exec 9>%s; %s", name, format);
	run(script, v);
}

Test(command, P17_grandchildren_end_with_the_program, .fini = scratch_done)
{
	struct verdict v;

	run_with_fence(
	    "(trap '' TERM HUP; sleep 1000) & sleep 1000 & exit 0", &v);
	cr_expect_eq(v.outcome, AGENT_SENT, "%s", v.text);
	cr_expect(fence_falls());
}

Test(command, P14_the_time_limit_ends_the_group, .fini = scratch_done)
{
	struct verdict v;
	usec_t start = clock_mono();

	limit = USEC_PER_SEC / 2;
	run_with_fence("sleep 1000 & sleep 1000", &v);
	cr_expect_eq(v.outcome, AGENT_DEFERRED);
	cr_expect_str_eq(v.dsn, "4.3.0");
	cr_expect_str_eq(v.text, "program x was ended: the time limit is over");
	cr_expect(fence_falls());
	cr_expect_lt(
	    clock_mono() - start, limit + COMMAND_GRACE, "SIGTERM was enough");
}

Test(command, P14_who_ignores_SIGTERM_is_killed, .fini = scratch_done)
{
	struct verdict v;

	limit = USEC_PER_SEC / 2;
	run_with_fence("trap '' TERM; sleep 1000 & wait; sleep 1000", &v);
	cr_expect_eq(v.outcome, AGENT_DEFERRED);
	cr_expect(fence_falls());
}

/* A trap that ends with 0 is a habit, not a delivery. */
Test(command, exit_0_after_the_time_limit_is_no_delivery, .fini = scratch_done)
{
	struct verdict v;

	limit = USEC_PER_SEC / 2;
	run("trap 'exit 0' TERM; sleep 1000 & wait", &v);
	cr_expect_eq(v.outcome, AGENT_DEFERRED, "%s", v.text);
}

Test(command, P10_a_stop_ends_the_group, .fini = scratch_done)
{
	struct verdict v;

	block_signals();
	raise(SIGTERM); /* it waits until it is asked for */
	run_with_fence("sleep 1000 & sleep 1000", &v);
	cr_expect_eq(v.outcome, AGENT_DEFERRED);
	cr_expect_str_eq(v.text, "program x was ended: the mail system stops");
	cr_expect(fence_falls());
}

/* The program must not take the part that could be read for all of it. */
Test(command, D8_a_message_that_cannot_be_read, .fini = scratch_done)
{
	struct message m;
	struct verdict v;

	scratch_message(&m, "", "bob@x", TEXT("x"));
	m.len = 1000;
	run_shell("cat >/dev/null; echo all of it > got", &m, &v);
	scratch_message_done(&m);
	cr_expect_eq(v.outcome, AGENT_DEFERRED, "%s", v.text);
	cr_expect_str_eq(
	    v.text, "program x was ended: the message cannot be read");
	cr_expect_eq(access(scratch_path("got"), F_OK), -1);
}

/* mutation: deliver-local/command.c, end_left() does nothing; command_run()
 * does not become the one that orphans go to. */
Test(command, X27_processes_of_other_sessions_end_with_the_program,
    .fini = scratch_done)
{
	static const char *const scripts[] = {
		"setsid sleep 1000 & exit 0",
		/* has the output open, and a process of its own below it */
		"setsid sh -c 'setsid sleep 1000 & sleep 1000' & exit 0",
		/* an orphan already, which ignores signals */
		("(setsid sh -c 'trap \"\" HUP TERM INT; setsid sleep 1000 & "
		 "echo > ready; wait' &); until test -e ready; do :; done"),
		"for i in 1 2 3 4 5 6 7 8 9; do (setsid sleep 1000 &); done",
	};
	struct verdict v;
	size_t i;

	for (i = 0; i < ARRAY_LEN(scripts); i++) {
		run_with_fence(scripts[i], &v);
		cr_expect_eq(v.outcome, AGENT_SENT, "%s", v.text);
		cr_expect(fence_falls(), "%s", scripts[i]);
		close(fence[0]);
		cr_assert_eq(unlink(scratch_path("fence")), 0);
	}
}

/* The program waits until nothing but itself is a child of its parent, in any
 * state. mutation: deliver-local/command.c, orphans are reaped at the end. */
Test(command, X27_orphans_that_end_are_reaped_at_once, .fini = scratch_done)
{
	struct verdict v;

	limit = 10 * USEC_PER_SEC;
	run("for i in 1 2 3 4 5 6 7 8 9; do (: &); (: &); done\n"
	    "until read -r all </proc/$PPID/task/$PPID/children; "
	    "test \"$all\" = $$; do :; done",
	    &v);
	cr_expect_eq(v.outcome, AGENT_SENT, "%s", v.text);
}

/* Children of root, as of programs that are set-user-id root. They end with the
 * write end of the pipe. */
static int
start_others(unsigned count)
{
	int ends[2];
	char byte;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	while (count-- > 0) {
		pid_t pid = fork();

		cr_assert_geq(pid, 0);
		if (pid == 0) {
			close(ends[1]);
			_exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
		}
	}
	close(ends[0]);
	return ends[1];
}

/* mutation: deliver-local/command.c, the list is read to 4096 octets. */
Test(
    command, P17_children_behind_many_of_others_are_ended, .fini = scratch_done)
{
	char sh[] = "/bin/sh", c[] = "-c", script[256];
	char *argv[] = { sh, c, script, NULL };
	const struct command command = { .name = "x",
		.argv = argv,
		.envp = environment,
		.home = scratch(),
		.limit = limit };
	const uid_t nobody = 65534;
	struct pollfd p = { .events = POLLIN };
	struct message m;
	struct verdict v;
	int others;

	if (geteuid() != 0)
		cr_skip_test("only root has children of others");
	cr_assert_eq(chown(scratch(), nobody, (gid_t)-1), 0);
	scratch_message(&m, "s@x", "bob@x", TEXT("Subject: x\n\nbody"));
	block_signals();
	others = start_others(1100); /* with four octets each, above 4096 */
	cr_assert_eq(mkfifo(scratch_path("fence"), 0666), 0);
	cr_assert_eq(chown(scratch_path("fence"), nobody, (gid_t)-1), 0);
	fence[0] =
	    open(scratch_path("fence"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	fence[1] = open(scratch_path("fence"), O_WRONLY | O_CLOEXEC);
	cr_assert(fence[0] >= 0 && fence[1] >= 0);
	snprintf(script, sizeof(script), "exec 9>%s; setsid sleep 20 & exit 0",
	    scratch_path("fence"));
	p.fd = fence[0];
	cr_assert_eq(setresuid(nobody, nobody, 0), 0);
	command_run(&command, &m, &v);
	cr_assert_eq(setresuid(0, 0, 0), 0);
	cr_expect_eq(v.outcome, AGENT_SENT, "%s", v.text);
	close(fence[1]);
	cr_expect_eq(poll(&p, 1, 0), 1, "a process is left");
	close(others);
	scratch_message_done(&m);
}
