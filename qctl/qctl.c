#include "qctl/qctl.h"

#include <errno.h>
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
#include "qctl/check/check.h"
#include "qctl/read/look.h"
#include "qctl/routing/rules.h"
#include "qctl/show/qread.h"
#include "qctl/show/shares.h"
#include "qctl/show/sites.h"

/* ---- verbs ---- */

static int
show_qread(struct task *t)
{
	const struct options *o = &t->options;
	int code = EX_OK;

	if ((o->qread & QREAD_MESSAGES) != 0)
		code = task_read_all(t);
	return code == EX_OK && (o->qread & QREAD_QUEUES) != 0 ? qread_queues(o)
							       : code;
}

static int
show_help(struct task *t)
{
	const struct options *o = &t->options;
	struct buf out = { 0 };
	int r = face_help(o->program, &out);

	if (r == -ENOENT)
		r = options_help(&out);
	return task_put(o, r, &out);
}

static int
show_version(struct task *t UNUSED)
{
	return puts("qctl " QSCHED_VERSION) < 0 ? EX_IOERR : EX_OK;
}

/* The function of each verb. shows: it is for readers, too, who are not in
 * qmail_group. needs: of what is done before; each includes those above it. */
static const struct command {
	int (*run)(struct task *t);
	bool shows;
	enum {
		NEEDS_NOTHING,
		NEEDS_CONF,
		NEEDS_BASE, /* the disk of QUEUE_BASE, or the supervisor */
		NEEDS_LIST, /* of queues, which may be empty */
		NEEDS_QUEUE,
	} needs;
} commands[NVERBS] = {
	[VERB_LIST] = { task_read_all, true, NEEDS_QUEUE },
	[VERB_SHOW] = { task_read_all, true, NEEDS_QUEUE },
	[VERB_SHAPE] = { task_read_all, true, NEEDS_QUEUE },
	[VERB_EXPLAIN] = { task_read_all, true, NEEDS_QUEUE },
	[VERB_SITES] = { sites_show, true, NEEDS_BASE },
	[VERB_SHARES] = { shares_show, true, NEEDS_QUEUE },
	[VERB_ACT] = { task_read_all, false, NEEDS_QUEUE },
	[VERB_READ] = { show_qread, true, NEEDS_QUEUE },
	[VERB_CHECK] = { task_check_all, false, NEEDS_QUEUE },
	[VERB_RULES] = { rules_show, false, NEEDS_BASE },
	[VERB_ROUTE] = { route_show, false, NEEDS_CONF },
	[VERB_TRACE] = { trace_show, false, NEEDS_LIST },
	[VERB_HELP] = { show_help, false, NEEDS_NOTHING },
	[VERB_VERSION] = { show_version, false, NEEDS_NOTHING },
};

bool
qctl_only_shows(const struct options *o, bool own_only)
{
	return commands[o->verb].shows && !o->content &&
	    (!own_only || o->verb == VERB_SHARES);
}

/* The table of queues of `qread -i' is in shared memory, open to all. */
static bool
needs_base(const struct options *o)
{
	return commands[o->verb].needs >= NEEDS_BASE &&
	    (o->verb != VERB_READ || (o->qread & QREAD_MESSAGES) != 0);
}

/* Does queue= name queues, and none that is there? */
static bool
names_no_queue(const struct task *t)
{
	const struct select *s = &t->options.select;
	int i;

	for (i = 0; i < t->nqueues; i++)
		if (select_queue(s, t->queues[i]))
			return false;
	return (s->keys & 1u << SELECT_QUEUE) != 0;
}

/* Are the queues there that the command needs? An exit code. */
static int
judge_queues(const struct task *t)
{
	const struct options *o = &t->options;

	if (!needs_base(o) || commands[o->verb].needs < NEEDS_LIST)
		return EX_OK;
	if (t->nqueues < 0) {
		task_tell(o, "%s: %s", t->base, strerror(-t->nqueues));
		return t->nqueues == -EACCES ? EX_NOPERM : EX_UNAVAILABLE;
	}
	if (commands[o->verb].needs == NEEDS_LIST)
		return EX_OK;
	if (t->base_silent && t->nqueues == 0)
		return EX_TEMPFAIL;
	return names_no_queue(t) ? task_complain(o, EX_DATAERR,
				       "no queue that queue= names is there")
				 : EX_OK;
}

/* ---- the configuration ---- */

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
		task_tell(&t->options, "%s: the configuration in force is used",
		    buf_str(&error));
	buf_done(&error);
	if (r < 0)
		return EX_CONFIG;
	code = take_conf(t, &conf);
	if (code == EX_OK && needs_base(&t->options))
		queues_find(t);
	/* queue-look would wait for that disk. */
	if (code == EX_OK && !t->base_silent && needs_base(&t->options) &&
	    qctl_only_shows(&t->options, false))
		look_become(&conf, t->argv);
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

/* The routing, for a filter by destination, and for `qread', which shows all
 * recipients as remote without it. */
static int
load_routing(const struct options *o)
{
	const bool channels =
	    o->verb == VERB_READ && (o->qread & QREAD_MESSAGES) != 0;

	if ((!channels && !select_by_destination(&o->select)) ||
	    destination_begin(o->conf_path) == 0)
		return EX_OK;
	task_complain(o, EX_CONFIG,
	    channels ? "the routing cannot be read: all recipients are shown "
		       "as remote"
		     : "the routing cannot be read: no destination is known");
	return channels ? EX_OK : EX_CONFIG;
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
	code = load_routing(&t->options);
	if (code == EX_OK)
		code = judge_queues(t);
	if (code == EX_OK)
		code = commands[t->options.verb].run(t);
	destination_end();
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
	else if (t->look != NULL && !qctl_only_shows(&t->options, t->own_only))
		code = task_complain(&t->options, EX_NOPERM, LOOK_DENIED);
	else if (commands[t->options.verb].needs == NEEDS_NOTHING)
		code = commands[t->options.verb].run(t);
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
