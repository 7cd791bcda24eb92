/* Command line and batch output. */
#include "fake.h"

#include "base/clock.h"
#include "qtop/qtop.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 8

static char **
copy_words(int argc, const char *const *words)
{
	char **argv = calloc((size_t)argc + 1, sizeof(*argv));
	int i;

	cr_assert_not_null(argv);
	for (i = 0; i < argc; i++) {
		argv[i] = strdup(words[i]);
		cr_assert_not_null(argv[i]);
	}
	return argv;
}

static void
free_words(char **argv)
{
	size_t i;

	for (i = 0; argv[i] != NULL; i++)
		free(argv[i]);
	free(argv);
}

static int
count(const char *const words[WORDS])
{
	int n = 0;

	while (n < WORDS && words[n] != NULL)
		n++;
	return n;
}

Test(qtop_options, taken)
{
	static const struct {
		const char *words[WORDS];
		enum task task;
		usec_t delay;
		uint64_t count;
	} rows[] = {
		{ { "x" }, TASK_SCREEN, 2000000, 0 },
		{ { "x", "-b", "-n", "1" }, TASK_BATCH, 2000000, 1 },
		{ { "x", "-bd", "0.5", "-n3" }, TASK_BATCH, 500000, 3 },
		{ { "x", "-d", "86400" }, TASK_SCREEN, 86400000000, 0 },
		{ { "x", "--help", "rubbish" }, TASK_HELP, 2000000, 0 },
		{ { "x", "--version" }, TASK_VERSION, 2000000, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct options o;
		struct buf error = { 0 };
		const int n = count(rows[i].words);
		char **argv = copy_words(n, rows[i].words);

		cr_assert_eq(
		    options_parse(n, argv, &o, &error), 0, "row %zu", i);
		cr_expect_eq(o.task, rows[i].task, "row %zu", i);
		cr_expect_eq(o.delay, rows[i].delay, "row %zu", i);
		cr_expect_eq(o.count, rows[i].count, "row %zu", i);
		free_words(argv);
	}
}

Test(qtop_options, A1_F2_refused)
{
	static const struct {
		const char *words[WORDS], *want;
	} rows[] = {
		{ { "x", "-Z" }, "`-Z'" },
		{ { "x", "--nope\n" }, "`--nope?'" },
		{ { "x", "-d" }, "-d needs a value" },
		{ { "x", "-d", "0" }, "`0'" },
		{ { "x", "-d", "-1" }, "`-1'" },
		{ { "x", "-d", "1e9" }, "`1e9'" },
		{ { "x", "-d", "86401" }, "`86401'" },
		{ { "x", "-d", "nan" }, "`nan'" },
		{ { "x", "-n", "0" }, "`0'" },
		{ { "x", "-n", "1.5" }, "`1.5'" },
		{ { "x", "-n", "18446744073709551616" }, "count" },
		{ { "x", "rubbish" }, "too many" },
		{ { "x", "--", "rubbish" }, "too many" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct options o;
		struct buf error = { 0 };
		const int n = count(rows[i].words);
		char **argv = copy_words(n, rows[i].words);

		cr_expect_eq(
		    options_parse(n, argv, &o, &error), -EINVAL, "row %zu", i);
		cr_expect(strstr(buf_str(&error), rows[i].want) != NULL,
		    "row %zu: %s", i, buf_str(&error));
		buf_done(&error);
		free_words(argv);
	}
}

/* ---- whole runs, in a child, as a command is ---- */

struct run {
	int code;
	char out[4096], err[2048];
};

static void
read_back(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	close(fd);
}

static struct run
run(int out, int (*body)(void *arg), void *arg)
{
	const int err = memfd_create("err", MFD_CLOEXEC);
	struct run r;
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		_exit(body(arg));
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	r.code = WEXITSTATUS(status);
	read_back(out, r.out, sizeof(r.out));
	read_back(err, r.err, sizeof(r.err));
	return r;
}

static int
new_output(void)
{
	return memfd_create("out", MFD_CLOEXEC);
}

static int
batch(void *arg)
{
	const struct options o = {
		.task = TASK_BATCH,
		.delay = 1000,
		.count = *(uint64_t *)arg,
	};

	return batch_run(&o, "t", &fake_source);
}

/* Fresh by the clock that runs. */
static void
make_current(void)
{
	fake_make(1);
	fake.sched.head.beat_mono = clock_mono();
	fake.queues[0].head.beat_mono = fake.sched.head.beat_mono;
}

Test(qtop_batch, so_many_looks)
{
	uint64_t n = 2;
	const char *second;
	struct run r;

	make_current();
	r = run(new_output(), batch, &n);
	cr_expect_eq(r.code, 0);
	cr_expect_str_empty(r.err);
	second = strstr(r.out, "\n\nqscheduler t: ");
	cr_assert_not_null(second, "%s", r.out);
	cr_expect_null(strstr(second + 2, "\n\n"));
	cr_expect(strstr(second,
		      "threshold = 90.00 , qcount = 1, qconf = 1, ") != NULL);
}

Test(qtop_batch, A5_no_supervisor)
{
	uint64_t n = 5;
	struct run r;

	make_current();
	fake.sched_error = -ENOENT;
	r = run(new_output(), batch, &n);
	cr_expect_eq(r.code, 69);
	cr_expect_str_empty(r.out);
	cr_expect_str_eq(r.err,
	    "qtop: instance t: no supervisor of this instance is "
	    "running: start qscheduler\n");
}

Test(qtop_batch, A4_another_user)
{
	static const int errors[] = { -EPERM, -EACCES };
	uint64_t n = 5;
	struct run r;
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++) {
		make_current();
		fake.sched_error = errors[i];
		r = run(new_output(), batch, &n);
		cr_expect_eq(r.code, 77);
		cr_expect_str_empty(r.out);
		cr_expect(strstr(r.err, "/t.qscheduler: ") != NULL);
	}
}

Test(qtop_batch, A5_I12_stale_is_shown_and_told)
{
	uint64_t n = 5;
	struct run r;

	make_current();
	fake.sched.head.beat_mono = 1;
	r = run(new_output(), batch, &n);
	cr_expect_eq(r.code, 69);
	cr_expect(strstr(r.err, "STALE") != NULL);
	cr_expect(strstr(r.out, "STALE") != NULL);
	cr_expect(strstr(r.out, "threshold = ") != NULL);
}

Test(qtop_batch, A6_full_output)
{
	uint64_t n = 3;
	struct run r;

	make_current();
	r = run(open("/dev/full", O_WRONLY | O_CLOEXEC), batch, &n);
	cr_expect_eq(r.code, 74);
	cr_expect(strstr(r.err, "standard output: ") != NULL, "%s", r.err);
}

struct words {
	int argc;
	char **argv;
};

static int
whole(void *arg)
{
	const struct words *w = arg;

	return qtop_main(w->argc, w->argv);
}

Test(qtop, A6_closed_pipe)
{
	const char *const words[] = { "qtop", "--help" };
	struct words w = { 2, copy_words(2, words) };
	struct run r;
	int fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	r = run(fds[1], whole, &w);
	cr_expect_eq(r.code, 74);
	cr_expect(strstr(r.err, "standard output") != NULL, "%s", r.err);
	free_words(w.argv);
}

Test(qtop, A1_exit_codes)
{
	static const struct {
		const char *words[WORDS];
		int want;
	} rows[] = {
		{ { NULL }, 64 },
		{ { "qtop" }, 64 }, /* no terminal */
		{ { "qtop", "--nope" }, 64 },
		{ { "qtop", "--", "x" }, 64 },
		{ { "qtop", "-d" }, 64 },
		{ { "qtop", "-b", "-i", "a/b" }, 64 },
		{ { "qtop", "-b", "-c", "/none" }, 78 },
		{ { "qtop", "-b", "-n", "1", "-i", "no-such-one" }, 69 },
		{ { "qtop", "--help" }, 0 },
		{ { "qtop", "--version" }, 0 },
	};
	size_t i;

	unsetenv("QSCHED_CONF");
	unsetenv("QSCHED_INSTANCE");
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const int n = count(rows[i].words);
		struct words w = { n, copy_words(n, rows[i].words) };
		struct run r = run(new_output(), whole, &w);

		cr_expect_eq(
		    r.code, rows[i].want, "row %zu: %d: %s", i, r.code, r.err);
		cr_expect_neq(r.out[0] == '\0', r.err[0] == '\0', "row %zu", i);
		cr_expect(strlen(r.err) < 400, "row %zu", i);
		free_words(w.argv);
	}
}

Test(qtop, A1_too_many_and_too_long)
{
	const int n = 100000;
	const char **words = calloc((size_t)n, sizeof(*words));
	char *text = malloc(128 * 1024 + 1);
	struct words w = { n, NULL };
	struct run r;
	int i;

	cr_assert(words != NULL && text != NULL);
	memset(text, 'x', 128 * 1024);
	text[128 * 1024] = '\0';
	for (i = 0; i < n; i++)
		words[i] = "x";
	w.argv = copy_words(n, words);
	r = run(new_output(), whole, &w);
	cr_expect_eq(r.code, 64);
	cr_expect(strlen(r.err) < 400);
	free_words(w.argv);
	words[1] = "-i";
	words[2] = text;
	w = (struct words){ 3, copy_words(3, words) };
	r = run(new_output(), whole, &w);
	cr_expect_eq(r.code, 64);
	cr_expect(strlen(r.err) < 400);
	free_words(w.argv);
	free(text);
	free(words);
}
