#include "qsim/qsim.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/io.h"
#include "base/text.h"
#include "base/version.h"

#define USAGE                                                 \
	"usage: qsim replay FILE\n"                           \
	"       qsim explain FILE\n"                          \
	"       qsim published [--runs N] [--seed S]\n"       \
	"       qsim compare [--set NAME=VALUE,...] [--plot]" \
	" [--seed S] FILE..."

#define COMPLAINT_MAX 1000

int
qsim_complain(int code, const char *text)
{
	struct buf clean = { 0 };

	/* Names of files may have anything in them. */
	(void)text_clean(&clean, text, strlen(text), COMPLAINT_MAX);
	fprintf(stderr, "qsim: %s\n", buf_str(&clean));
	buf_done(&clean);
	return code;
}

int
qsim_ended(int error)
{
	if (fflush(stdout) != 0 || ferror(stdout) != 0)
		return qsim_complain(
		    EXIT_TEMPORARY, "standard output cannot be written");
	if (error < 0)
		return qsim_complain(EXIT_TEMPORARY, strerror(-error));
	return 0;
}

int
qsim_print(const struct buf *text)
{
	size_t n = fwrite(text->data, 1, text->len, stdout);

	return n == text->len ? 0 : -EIO;
}

int
qsim_read(const char *path, struct scenario *ret_scenario)
{
	struct buf error = { 0 };
	int code = 0, r = scenario_read(path, ret_scenario, &error);

	if (r < 0)
		code = qsim_complain(
		    r == -ENOMEM || r == -EIO ? EXIT_TEMPORARY : EXIT_PERMANENT,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return code;
}

const char *
qsim_time(usec_t time, char text[QSIM_TIME_MAX])
{
	size_t len;

	snprintf(text, QSIM_TIME_MAX, "%" PRId64 ".%06" PRId64,
	    time / USEC_PER_SEC, time % USEC_PER_SEC);
	for (len = strlen(text); text[len - 1] == '0'; len--)
		;
	text[text[len - 1] == '.' ? len - 1 : len] = '\0';
	return text;
}

static int
help_main(const struct options *o UNUSED)
{
	(void)puts(USAGE
	    "\n\n"
	    "Try a policy of the scheduler before living with it: workloads\n"
	    "run under a virtual clock, on the scheduler that delivers mail.\n"
	    "\n"
	    "  replay     print the selections that a scenario leads to\n"
	    "  explain    print why each of them was made\n"
	    "  published  repeat the published measurements of the feedback\n"
	    "  compare    print the delays of workloads under several "
	    "settings\n"
	    "\n"
	    "  --runs N              so many runs, with their spread\n"
	    "  --seed S              of what is at random\n"
	    "  --set NAME=VALUE,...  settings to compare; may be repeated\n"
	    "  --plot                draw the delays in the terminal\n"
	    "  --progress            show it, also without a terminal\n"
	    "\n"
	    "The format of scenarios is in qsim(1).");
	return qsim_ended(0);
}

static int
version_main(const struct options *o UNUSED)
{
	(void)puts("qsim " QSCHED_VERSION);
	return qsim_ended(0);
}

static int (*const mains[TASK_NTASKS])(const struct options *o) = {
	[TASK_REPLAY] = replay_main,
	[TASK_EXPLAIN] = explain_main,
	[TASK_PUBLISHED] = published_main,
	[TASK_COMPARE] = compare_main,
	[TASK_HELP] = help_main,
	[TASK_VERSION] = version_main,
};

int
qsim_main(int argc, char **argv)
{
	struct options o;
	struct buf error = { 0 };

	(void)io_std_fds();
	signal(SIGPIPE, SIG_IGN); /* a closed output is told (A6) */
	if (options_parse(argc, argv, &o, &error) < 0) {
		(void)qsim_complain(EXIT_PERMANENT, buf_str(&error));
		fprintf(stderr, "%s\n", USAGE);
		buf_done(&error);
		return EXIT_PERMANENT;
	}
	return mains[o.task](&o);
}
