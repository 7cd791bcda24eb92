/* Several queues: judged, then asked for one by one. */
#include "command.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "base/clock.h"

TestSuite(setqload_several, .init = command_setup, .fini = command_teardown);

struct step {
	bool judge;
	int32_t queue;
	int code;
	const char *answer; /* NULL: none */
};

static void
answer_step(const struct step *step)
{
	struct ask ask;

	take_request(&ask);
	cr_expect_eq(ask.msg.type, MSG_DISABLE);
	cr_expect_eq(ask.msg.u.DISABLE.queue, step->queue);
	cr_expect_eq(ask.from.judge, step->judge);
	if (step->answer != NULL)
		answer_request(&ask, step->code, step->answer);
}

/* `--disable -q 3-4 -q 9` and so many answers. */
static struct run
run_several(const struct step *steps, size_t n)
{
	const char *const words[] = { "setqload", "-i", instance, "--disable",
		"-q", "3-4", "-q", "9" };
	const int fds[2] = { memfd_create("out", MFD_CLOEXEC),
		memfd_create("err", MFD_CLOEXEC) };
	char **argv = copy_words(ARRAY_LEN(words), words);
	struct run r;
	int status;
	pid_t pid;
	size_t i;

	start_supervisor();
	pid = start(ARRAY_LEN(words), argv, fds, false);
	free_words(argv);
	for (i = 0; i < n; i++)
		answer_step(&steps[i]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	r.code = WEXITSTATUS(status);
	read_back(fds[0], r.out, sizeof(r.out));
	read_back(fds[1], r.err, sizeof(r.err));
	cr_expect_not(is_asked(), "asked for more");
	return r;
}

Test(setqload_several, several_one_after_the_other)
{
	static const struct step steps[] = {
		{ true, 3, 0, "would" },
		{ true, 4, 0, "would" },
		{ true, 9, 0, "would" },
		{ false, 3, 0, "queue 3: disabled" },
		{ false, 4, 0, "queue 4: disabled" },
		{ false, 9, 0, "queue 9: disabled" },
	};
	struct run r = run_several(steps, ARRAY_LEN(steps));

	cr_expect_eq(r.code, EX_OK);
	cr_expect_str_eq(
	    r.out, "queue 3: disabled\nqueue 4: disabled\nqueue 9: disabled\n");
	cr_expect_str_empty(r.err);
}

Test(setqload_several, several_are_judged_and_one_cannot_be)
{
	static const struct step steps[] = {
		{ true, 3, -EBUSY, "is closing" },
		{ true, 4, 0, "would" },
		{ true, 9, -ENOENT, "there is no such queue" },
	};
	struct run r = run_several(steps, ARRAY_LEN(steps));

	cr_expect_eq(r.code, EX_DATAERR);
	cr_expect_str_empty(r.out);
	cr_expect_str_eq(r.err,
	    "setqload: queue 3: is closing\n"
	    "setqload: queue 9: there is no such queue\n"
	    "setqload: nothing is done\n");
}

/* What came in between stops none of the others. */
Test(setqload_several, several_and_one_fails_after_all)
{
	static const struct step steps[] = {
		{ true, 3, 0, "would" },
		{ true, 4, 0, "would" },
		{ true, 9, 0, "would" },
		{ false, 3, -EBUSY, "is closing" },
		{ false, 4, 0, "queue 4: disabled" },
		{ false, 9, 0, "queue 9: disabled" },
	};
	struct run r = run_several(steps, ARRAY_LEN(steps));

	cr_expect_eq(r.code, EX_DATAERR);
	cr_expect_str_eq(r.out, "queue 4: disabled\nqueue 9: disabled\n");
	cr_expect_str_eq(r.err, "setqload: queue 3: is closing\n");
}

Test(setqload_several, several_and_no_answer_any_more)
{
	static const struct step steps[] = {
		{ true, 3, 0, "would" },
		{ true, 4, 0, "would" },
		{ true, 9, 0, "would" },
		{ false, 3, 0, "queue 3: disabled" },
		{ false, 4, 0, NULL },
	};
	struct run r = run_several(steps, ARRAY_LEN(steps));
	char want[256];

	cr_expect_eq(r.code, EX_TEMPFAIL);
	cr_expect_str_eq(r.out, "queue 3: disabled\n");
	snprintf(want, sizeof(want),
	    "setqload: queue 4: %s: the supervisor does not answer: nothing is "
	    "done\nsetqload: queue 9: not asked for\n",
	    name);
	cr_expect_str_eq(r.err, want);
}
