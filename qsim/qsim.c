#include "qsim/qsim.h"

#include <signal.h>

#include "base/io.h"
#include "base/version.h"

#define USAGE                                                 \
	"usage: qsim replay FILE\n"                           \
	"       qsim explain FILE\n"                          \
	"       qsim published [--runs N] [--seed S]\n"       \
	"       qsim compare [--set NAME=VALUE,...] [--plot]" \
	" [--seed S] FILE..."

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
	    "  --help                show this help\n"
	    "  --version             show the version\n"
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
	signal(SIGPIPE, SIG_IGN); /* a closed output is an error of a write */
	if (options_parse(argc, argv, &o, &error) < 0) {
		(void)qsim_complain(EXIT_PERMANENT, buf_str(&error));
		fprintf(stderr, "%s\n", USAGE);
		buf_done(&error);
		return EXIT_PERMANENT;
	}
	return mains[o.task](&o);
}
