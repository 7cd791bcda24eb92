#include "qtop/qtop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/io.h"
#include "base/version.h"
#include "config/conf.h"

static int
say(const char *text)
{
	if (puts(text) >= 0 && fflush(stdout) == 0)
		return 0;
	fprintf(stderr, "qtop: standard output cannot be written\n");
	return EX_IOERR;
}

static int
help(void)
{
	struct buf text = { 0 };
	int code, r;

	r = buf_add_str(&text,
	    OPTIONS_USAGE
	    "\n\nShow the queues of a running instance and their load."
	    "\nEvery user may watch an instance that root started; a private "
	    "instance\nonly the user who runs it.\n\n");
	if (r == 0)
		r = options_help(&text);
	if (r == 0)
		r = buf_add_str(&text,
		    "\nOn the screen the key h explains columns and keys.");
	code = say(r < 0 ? strerror(-r) : buf_str(&text));
	buf_done(&text);
	return code;
}

static int
show(const struct options *o)
{
	struct buf instance = { 0 }, error = { 0 };
	int r, code;

	r = conf_instance(o->instance, o->conf_path, &instance, &error);
	if (r == 1)
		fprintf(stderr,
		    "qtop: %s: the configuration in force is used\n",
		    buf_str(&error));
	if (r < 0) {
		fprintf(stderr, "qtop: %s\n",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
		code = o->instance != NULL ? EX_USAGE : EX_CONFIG;
	} else if (o->task == TASK_BATCH) {
		code = batch_run(o, buf_str(&instance), &model_source_shm);
	} else {
		code = screen_run(o, buf_str(&instance), &model_source_shm);
	}
	buf_done(&instance);
	buf_done(&error);
	return code;
}

int
qtop_main(int argc, char **argv)
{
	struct options o;
	struct buf error = { 0 };

	(void)io_std_fds();
	signal(SIGPIPE, SIG_IGN); /* a closed output is an error of write */
	if (options_parse(argc, argv, &o, &error) < 0) {
		fprintf(
		    stderr, "qtop: %s\n%s\n", buf_str(&error), OPTIONS_USAGE);
		buf_done(&error);
		return EX_USAGE;
	}
	if (o.task == TASK_HELP)
		return help();
	if (o.task == TASK_VERSION)
		return say("qtop " QSCHED_VERSION);
	return show(&o);
}
