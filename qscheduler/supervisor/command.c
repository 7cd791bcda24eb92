#include "qscheduler/supervisor/options.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/version.h"
#include "config/conf.h"
#include "daemon/daemon.h"
#include "qscheduler/supervisor/supervisor.h"

static int
finish(int r, FILE *out)
{
	if (r < 0 || fflush(out) != 0 || ferror(out)) {
		fprintf(stderr, "qscheduler: cannot write: %s\n",
		    r < 0 ? strerror(-r) : "output is closed or full");
		return EXIT_TEMPORARY;
	}
	return 0;
}

static void
print_errors(struct buf *error, int r)
{
	char *rest = error->data, *line;

	if (error->len == 0) {
		fprintf(stderr, "qscheduler: %s\n", strerror(-r));
		return;
	}
	while ((line = strsep(&rest, "\n")) != NULL)
		fprintf(stderr, "qscheduler: %s\n", line);
}

/* files: with the files that it names, and each wrong line is told. */
static int
load(const struct options *o, bool files, struct conf *ret_conf)
{
	struct daemon_users users;
	struct buf error = { 0 };
	int r =
	    (files ? conf_judge : conf_load)(o->conf_path, ret_conf, &error);

	if (r == 0) {
		r = daemon_users(ret_conf, &users, &error);
		if (r == 0 && files)
			r = files_check_lines(ret_conf, &error);
		if (r == 0 && files)
			r = files_check(ret_conf, &users, &error);
		if (r == 0 && files)
			r = files_check_pipes(ret_conf, &error);
		if (r == 0 && files)
			r = base_place_judge(ret_conf->queue_base, &error);
		if (r == 0 && files)
			r = unit_check(ret_conf, &error);
		if (r < 0)
			conf_done(ret_conf);
	}
	if (r < 0)
		print_errors(&error, r);
	buf_done(&error);
	return r;
}

/* Warnings of a check that is passed. */
static int
print_warnings(const struct conf *conf)
{
	struct buf lines = { 0 }, error = { 0 };
	int r = files_warnings(conf, &lines, &error);
	char *rest = lines.data, *line;

	while (r == 0 && (line = strsep(&rest, "\n")) != NULL)
		if (*line != '\0')
			fprintf(stderr, "qscheduler: warning: %s\n", line);
	if (r < 0)
		fprintf(stderr, "qscheduler: %s\n",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&lines);
	buf_done(&error);
	return r;
}

static int
run_dump(const struct options *o)
{
	struct conf conf;
	int r = load(o, false, &conf);

	if (r < 0)
		return daemon_exit_code(r);
	r = finish(conf_dump(&conf, stdout), stdout);
	conf_done(&conf);
	return r;
}

/* The path may be one that somebody typed. */
static int
print_judged(const char *path)
{
	struct buf line = { 0 };
	int r = text_clean(&line, path, strlen(path), PATH_MAX);

	if (r == 0)
		printf("%s: %s\n", buf_str(&line),
		    access(path, F_OK) == 0
			? "ok"
			: "not there, the defaults are in force");
	buf_done(&line);
	return r;
}

static int
run_check(const struct options *o)
{
	struct conf conf;
	int r = load(o, true, &conf);

	if (r < 0)
		return daemon_exit_code(r);
	r = print_warnings(&conf);
	if (r < 0) {
		conf_done(&conf);
		return daemon_exit_code(r);
	}
	r = print_judged(conf_path(&conf));
	conf_done(&conf);
	return finish(r, stdout);
}

static int
run_sample(const struct options *o UNUSED)
{
	return finish(conf_sample(stdout), stdout);
}

static int
run_manual(const struct options *o UNUSED)
{
	return finish(conf_manual(stdout), stdout);
}

static int
run_help(const struct options *o UNUSED)
{
	options_usage(stdout);
	return finish(0, stdout);
}

static int
run_version(const struct options *o UNUSED)
{
	puts("qscheduler " QSCHED_VERSION);
	return finish(0, stdout);
}

int
command_run(const struct options *o)
{
	static int (*const commands[])(const struct options *) = {
		[COMMAND_DUMP] = run_dump,
		[COMMAND_CHECK] = run_check,
		[COMMAND_SAMPLE] = run_sample,
		[COMMAND_MANUAL] = run_manual,
		[COMMAND_HELP] = run_help,
		[COMMAND_VERSION] = run_version,
	};

	ASSERT(
	    o->command < ARRAY_LEN(commands) && commands[o->command] != NULL);
	return commands[o->command](o);
}
