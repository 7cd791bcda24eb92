#include "qctl/show/qread.h"
#include "qctl/routing/rules.h"
#include "qctl/show/sites.h"
#include "qctl/act/task.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "base/version.h"
#include "config/conf.h"
#include "ipc/page_text.h"
#include "qctl/read/look.h"

/* A session that has sent its content waits for the answer; a program has its
 * own time. */
static usec_t
delivery_max(const struct conf *conf)
{
	usec_t most = conf->smtp_data_done_timeout;

	if (most < conf->command_time_limit)
		most = conf->command_time_limit;
	return most < conf->maildir_time_limit ? conf->maildir_time_limit
					       : most;
}

static int
take_conf(struct task *t, const struct conf *conf)
{
	t->base = strdup(conf->queue_base);
	t->instance = strdup(conf->instance);
	t->silence_limit = conf->disk_time_limit;
	t->backoff_max = conf->backoff.maximal_backoff_time;
	t->delivery_max = delivery_max(conf);
	t->active_limit = conf->sched.message_active_limit;
	t->limits = (struct conf){
		.user_message_limit = conf->user_message_limit,
		.user_size_limit = conf->user_size_limit,
		.user_inode_limit = conf->user_inode_limit,
		.user_message_rate = conf->user_message_rate,
		.user_process_limit = conf->user_process_limit,
		.trusted_users = strdup(conf->trusted_users),
	};
	return t->base == NULL || t->instance == NULL ||
		t->limits.trusted_users == NULL
	    ? EX_OSERR
	    : EX_OK;
}

/* The table of queues of `qread -i' is in shared memory. */
static bool
needs_base(const struct options *o)
{
	return o->verb != VERB_ROUTE &&
	    (o->verb != VERB_READ || (o->qread & QREAD_MESSAGES) != 0);
}

/* The configuration in force takes the place of a wrong file. */
static int
load_conf(struct task *t)
{
	struct buf error = { 0 };
	struct conf conf;
	int code, r = conf_load_in_force(t->options.conf_path, &conf, &error);

	if (r < 0)
		task_complain(&t->options, EX_CONFIG,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	if (r == 1)
		fprintf(stderr, "%s: %s: the configuration in force is used\n",
		    t->options.program, buf_str(&error));
	buf_done(&error);
	if (r < 0)
		return EX_CONFIG;
	code = take_conf(t, &conf);
	if (code == EX_OK && needs_base(&t->options))
		queues_find(t);
	/* queue-look would wait for that disk. */
	if (code == EX_OK && !t->base_silent)
		look_become(&conf, &t->options, t->argv);
	conf_done(&conf);
	return code;
}

static int
read_stdin(struct options *o)
{
	struct buf error = { 0 };
	int code = EX_OK, r;

	if (!o->select.from_stdin)
		return EX_OK;
	r = select_read_ids(&o->select, STDIN_FILENO, &error);
	if (r < 0)
		code = task_complain(o, r == -EINVAL ? EX_DATAERR : EX_OSERR,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return code;
}

/* The table of queues, from shared memory. */
static int
print_queues(const struct options *o)
{
	char absent[PAGE_ABSENT_SIZE];
	struct buf text = { 0 };
	int code, r = qread_queues(o, &text);

	if (r == -EACCES || r == -EPERM)
		code = task_complain(o, EX_NOPERM, "another user's instance");
	else if (r < 0 && r != -ENOMEM)
		code = task_complain(o, EX_UNAVAILABLE,
		    r == -ENOENT ? page_absent_text(absent) : strerror(-r));
	else
		code = task_put(o, r, &text);
	buf_done(&text);
	return code;
}

static int
run_qread(struct task *t)
{
	const struct options *o = &t->options;
	int code = EX_OK;

	if ((o->qread & QREAD_MESSAGES) != 0) {
		qread_begin(o);
		code = task_read_all(t);
		qread_end();
	}
	return code == EX_OK && (o->qread & QREAD_QUEUES) != 0 ? print_queues(o)
							       : code;
}

static int
show_rules(struct task *t)
{
	return t->base_silent ? EX_TEMPFAIL : rules_show(t);
}

static int
run(struct task *t)
{
	int code = t->look != NULL ? take_conf(t, t->look) : load_conf(t);

	if (code == EX_OK && t->look != NULL && needs_base(&t->options))
		queues_find(t);
	if (code == EX_OK)
		code = read_stdin(&t->options);
	/* No id on standard input selects nothing, not everything. */
	if (code != EX_OK ||
	    (t->options.select.from_stdin && t->options.select.nids == 0))
		return code;
	t->view = (struct view){ &t->options, clock_wall(),
		isatty(STDOUT_FILENO) == 1, NULL, NULL };
	code = destination_begin(&t->options);
	if (code == EX_OK)
		code = t->options.verb == VERB_READ ? run_qread(t)
		    : t->options.verb == VERB_RULES ? show_rules(t)
		    : t->options.verb == VERB_ROUTE ? route_show(&t->options)
		    : t->options.verb == VERB_TRACE ? trace_show(t)
		    : t->options.verb == VERB_SITES
		    ? sites_show(&t->options, t->instance)
		    : task_read_all(t);
	destination_end();
	return code;
}

static int
help(const struct options *o)
{
	struct buf text = { 0 };
	int code, r = face_help(o->program, &text);

	if (r == -ENOENT)
		r = options_help(&text);
	code = task_put(o, r, &text);
	buf_done(&text);
	return code;
}

static int
usage(const struct options *o, int error, const struct buf *text)
{
	return task_complain(o,
	    error == -EOPNOTSUPP ? EX_UNAVAILABLE : EX_USAGE,
	    text->len > 0 ? buf_str(text) : strerror(-error));
}

/* The command as it was typed, for the log. */
static int
note_selection(struct task *t, int argc, char **argv)
{
	int i, r = 0;

	for (i = 1; r == 0 && i < argc && t->selection.len < 300; i++)
		r = i > 1 ? buf_add_char(&t->selection, ' ') : 0,
		r = r < 0
		    ? r
		    : text_clean(&t->selection, argv[i], strlen(argv[i]), 100);
	return r;
}

static int
command(struct task *t, int argc, char **argv)
{
	struct buf error = { 0 };
	int code, r = options_parse(argc, argv, &t->options, &error);

	t->argv = argv;
	/* The file that the caller names is not for our rights. */
	if (t->look != NULL)
		t->options.conf_path = conf_path(t->look);
	if (r == 0)
		r = note_selection(t, argc, argv);
	if (r < 0)
		code = usage(&t->options, r, &error);
	else if (t->look != NULL && !look_shows(&t->options, t->own_only))
		code = task_complain(&t->options, EX_NOPERM, LOOK_DENIED);
	else if (t->options.verb == VERB_HELP)
		code = help(&t->options);
	else if (t->options.verb == VERB_VERSION)
		code = puts("qctl " QSCHED_VERSION) < 0 ? EX_IOERR : EX_OK;
	else
		code = run(t);
	buf_done(&error);
	return code;
}

static void
task_done(struct task *t)
{
	shape_free(&t->view.rows);
	free(t->targets);
	free(t->gone);
	buf_done(&t->selection);
	free(t->base);
	free(t->instance);
	free(t->limits.trusted_users);
	select_done(&t->options.select);
}

/* For users who may look, and cannot read the queues by themselves. */
static int
be_look(struct task *t, int argc, char **argv)
{
	static struct conf conf;
	int code = look_begin(argc, argv, &conf, &t->own_only);

	if (code != EX_OK)
		return code;
	io_default_signals();
	t->look = &conf;
	code = command(t, argc - LOOK_WORDS, argv + LOOK_WORDS);
	conf_done(&conf);
	return code;
}

int
qctl_main(int argc, char **argv)
{
	static struct task task;
	int code;

	task = (struct task){ 0 };
	if (look_is_called(argc, argv)) {
		code = be_look(&task, argc, argv);
	} else {
		(void)io_std_fds();
		io_default_signals();
		code = command(&task, argc, argv);
	}
	task_done(&task);
	return code;
}
