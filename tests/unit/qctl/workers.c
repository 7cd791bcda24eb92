#include "qctl/read/worker.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint32_t queues[] = { 1, 2, 3, 4, 5 };

/* Each queue is another kind of trouble. */
static int
be(struct worker *w, void *arg UNUSED)
{
	char text[80];
	int i;

	switch (w->queue) {
	case 1: /* long messages, in parts */
		for (i = 0; i < 4000; i++) {
			snprintf(text, sizeof(text), "%s one %d\n",
			    i % 2000 == 0 ? "begin" : "more", i % 2000);
			(void)worker_text(w, text, strlen(text));
			worker_step(w);
			if (i % 2000 == 1999)
				worker_message(w, 100);
		}
		break;
	case 2:
		worker_note(w, "a note \033[2J");
		break;
	case 3:
		raise(SIGKILL);
		break;
	case 4:
		(void)worker_text(w, "four\n", 5);
		worker_message(w, 7);
		for (;;)
			pause();
	case 5:
		worker_denied(w);
		worker_row(w, "row", 3);
		break;
	default:
		break;
	}
	return 0;
}

static unsigned rows;

static void
take_row(uint32_t queue, const void *data, size_t len, void *arg UNUSED)
{
	rows += queue == 5 && len == 3 && memcmp(data, "row", 3) == 0;
}

static void
redirect(void)
{
	cr_redirect_stdout();
	cr_redirect_stderr();
}

TestSuite(workers, .init = redirect);

static char *
slurp(FILE *f)
{
	static char text[1 << 18];
	size_t n = fread(text, 1, sizeof(text) - 1, f);

	text[n] = '\0';
	return text;
}

Test(workers, one_that_hangs_or_dies_stops_no_other)
{
	const struct worker_job job = { "qctl", queues, ARRAY_LEN(queues),
		15 * USEC_PER_SEC, "its disk does not answer", be, "head\n",
		take_row, NULL, true, NULL };
	struct worker_totals t;
	const char *out, *at;
	int line = 0;

	cr_expect_eq(worker_run_all(&job, &t), 0);
	cr_expect_eq(t.messages, 3);
	cr_expect_eq(t.bytes, 207);
	cr_expect_eq(t.silent, 1);
	cr_expect_eq(t.troubled, 2, "the note, the death");
	cr_expect_eq(t.denied, 1);
	cr_expect_eq(rows, 1);
	fflush(stdout);
	out = slurp(cr_get_redirected_stdout());
	cr_expect_eq(strncmp(out, "head\n", 5), 0);
	cr_expect_null(strstr(out + 1, "head\n"));
	cr_expect_not_null(strstr(out, "four\n"));
	/* No line of another queue within a message. */
	at = strstr(out, "begin one 0\n");
	cr_assert_not_null(at);
	for (at = strchr(at, '\n') + 1; line < 1998; line++) {
		cr_assert_eq(strncmp(at, "more", 4), 0, "%.20s", at);
		at = strchr(at, '\n') + 1;
	}
	fflush(stderr);
	out = slurp(cr_get_redirected_stderr());
	cr_expect_not_null(strstr(out, "qctl: queue 2: a note ?[2J\n"));
	cr_expect_not_null(strstr(out, "qctl: queue 3: the process"));
	cr_expect_not_null(strstr(out, "qctl: queue 4: its disk does not"));
}

Test(workers, none)
{
	const struct worker_job job = { .head = "head\n" };
	struct worker_totals t;

	cr_expect_eq(worker_run_all(&job, &t), 0);
	cr_expect_eq(t.messages, 0);
	fflush(stdout);
	cr_expect_str_empty(slurp(cr_get_redirected_stdout()));
}

static int to_test[2];

static int
stop(struct worker *w, void *arg UNUSED)
{
	const pid_t me = getpid();

	worker_row(w, &me, sizeof(me));
	return raise(SIGSTOP);
}

static void
hand_on(uint32_t queue UNUSED, const void *data, size_t len, void *arg UNUSED)
{
	(void)!write(to_test[1], data, len);
}

static _Noreturn void
be_command(void)
{
	const struct worker_job job = { .queues = queues,
		.nqueues = 1,
		.silence_limit = 3600 * USEC_PER_SEC,
		.run = stop,
		.take_row = hand_on };
	struct worker_totals t;

	(void)worker_run_all(&job, &t);
	_exit(0);
}

Test(workers, a_stopped_one_ends_with_its_parent)
{
	pid_t command, worker = 0;
	int status = 0;

	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	cr_assert_eq(pipe(to_test), 0);
	command = fork();
	if (command == 0)
		be_command();
	cr_assert_eq(
	    read(to_test[0], &worker, sizeof(worker)), (ssize_t)sizeof(worker));
	cr_expect_eq(kill(command, SIGKILL), 0);
	cr_expect_eq(waitpid(command, NULL, 0), command);
	/* One that lives ends by these. */
	(void)kill(worker, SIGTERM);
	(void)kill(worker, SIGCONT);
	cr_assert_eq(waitpid(worker, &status, 0), worker);
	cr_expect_eq(WTERMSIG(status), SIGKILL);
}
