#include "qctl/qread.h"
#include "qctl/rules.h"
#include "qctl/sites.h"
#include "qctl/task.h"

#include <errno.h>
#include <inttypes.h>
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
#include "qctl/check.h"
#include "qctl/look.h"

static int
complain(const struct options *o, int code, const char *text)
{
	fprintf(stderr, "%s: %s\n", o->program, text);
	return code;
}

/* ---- in the command's process ---- */

static int
add_target(struct task *t, const struct target *target)
{
	const size_t want = t->targets_cap == 0 ? 64 : t->targets_cap * 2;
	struct target *more;

	if (t->ntargets == t->targets_cap) {
		more = reallocarray(t->targets, want, sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		t->targets = more;
		t->targets_cap = want;
	}
	t->targets[t->ntargets++] = *target;
	return 0;
}

/* The index of an id that was found. */
static void
take_id(struct task *t, const void *data)
{
	size_t i;

	memcpy(&i, data, sizeof(i));
	if (i < t->options.select.nids)
		t->options.select.ids[i].found = true;
}

/* A row is an id that was found, a domain, or a message to act on. */
static void
take_row(uint32_t queue UNUSED, const void *data, size_t len, void *arg)
{
	struct task *t = arg;
	struct target target;
	int r = 0;

	if (t->options.verb == VERB_SHAPE)
		r = shape_take(t->view.rows, data, len);
	else if (t->options.verb == VERB_READ)
		qread_take(data, len);
	else if (len == sizeof(size_t))
		take_id(t, data);
	else if (len == sizeof(target)) {
		memcpy(&target, data, sizeof(target));
		r = add_target(t, &target);
	}
	if (r < 0)
		t->error = r;
}

/* Is there an id for this queue in this round? Without ids every queue is read.
 */
static bool
queue_wanted(const struct task *t, uint32_t queue)
{
	const struct select *s = &t->options.select;
	size_t i;

	if (!select_queue(s, queue))
		return false;
	for (i = 0; i < s->nids; i++)
		if (!s->ids[i].found &&
		    (s->ids[i].id.queue == queue) != t->elsewhere)
			return true;
	return s->nids == 0;
}

static int
read_round(struct task *t, uint32_t *queues, size_t count,
    struct worker_totals *totals)
{
	const bool head = t->options.verb == VERB_LIST && !t->options.json;
	const struct worker_job job = {
		.program = t->options.program,
		.queues = queues,
		.nqueues = count,
		.gentle = task_is_bulk(t),
		.silence_limit = t->silence_limit,
		.silent =
		    "its disk does not answer; what it holds is not shown",
		.run = task_read,
		.head = head && totals->messages == 0 ? list_head : NULL,
		.take_row = take_row,
		.arg = t,
	};
	struct worker_totals more;
	int r = worker_run_all(&job, &more);

	totals->messages += more.messages;
	totals->bytes += more.bytes;
	totals->silent += more.silent;
	totals->troubled += more.troubled;
	totals->denied += more.denied;
	return r;
}

/* First the queues that ids name, then for those not found the others: a
 * message may have gone to another queue. */
static int
read_queues(struct task *t, const uint32_t *all, size_t count,
    struct worker_totals *totals)
{
	uint32_t wanted[QUEUE_NUM_MAX];
	int round, r = 0;

	for (round = 0; r == 0 && round < 2; round++) {
		size_t i, n = 0;

		t->elsewhere = round == 1;
		if (round == 1 && t->options.select.nids == 0)
			break;
		for (i = 0; i < count; i++)
			if (queue_wanted(t, all[i]))
				wanted[n++] = all[i];
		r = read_round(t, wanted, n, totals);
	}
	return r;
}

static int
put(const struct options *o, int r, const struct buf *text)
{
	if (r < 0)
		return complain(o, EX_OSERR, strerror(-r));
	if (fputs(buf_str(text), stdout) >= 0 && fflush(stdout) == 0)
		return EX_OK;
	return complain(o, EX_IOERR, "standard output cannot be written");
}

static int
print_total(const struct task *t, const struct worker_totals *totals)
{
	const struct options *o = &t->options;
	struct buf text = { 0 };
	int code, r = 0;

	if (o->verb == VERB_SHAPE)
		r = shape_print(t->view.rows, &text);
	else if (o->verb == VERB_READ)
		r = qread_print(o, &text);
	else if (o->verb == VERB_LIST && !o->json && totals->messages > 0)
		r = list_total(totals, &text);
	else if (o->verb == VERB_LIST && !o->json &&
	    totals->silent + totals->troubled == 0)
		r = buf_add_str(&text,
		    o->select.nids > 0 || o->select.keys != 0
			? "No message fits\n"
			: "Mail queue is empty\n");
	code = put(o, r, &text);
	buf_done(&text);
	return code;
}

static int
tell_missing(const struct options *o)
{
	char id[QUEUE_ID_SIZE];
	size_t i;
	int code = EX_OK;

	for (i = 0; i < o->select.nids; i++)
		if (!o->select.ids[i].found) {
			queue_id_format(&o->select.ids[i].id, id);
			fprintf(stderr, "%s: %s: no such message\n", o->program,
			    id);
			code = EX_DATAERR;
		}
	return code;
}

static int
finish(const struct task *t, const struct worker_totals *totals)
{
	const struct options *o = &t->options;
	int code;

	if (t->error < 0)
		return complain(o, EX_OSERR, strerror(-t->error));
	if (totals->denied > 0)
		return complain(o, EX_NOPERM, LOOK_DENIED);
	code = print_total(t, totals);
	if (code == EX_OK)
		code = tell_missing(o);
	return code == EX_OK && totals->silent + totals->troubled > 0
	    ? EX_TEMPFAIL
	    : code;
}

/* A command that acts: messages that are not there, and queues that could not
 * be read, are told however the others fared. */
static int
finish_act(struct task *t, const uint32_t *queues, size_t count,
    const struct worker_totals *totals)
{
	const int missing = tell_missing(&t->options);
	const int code = task_act_all(t, queues, count);

	if (code != EX_OK || missing != EX_OK)
		return code != EX_OK ? code : missing;
	return totals->silent + totals->troubled > 0 ? EX_TEMPFAIL : EX_OK;
}

/* Does queue= name queues, and none that is there? */
static bool
names_no_queue(const struct task *t, const uint32_t *queues, size_t count)
{
	const struct select *s = &t->options.select;
	size_t i;

	for (i = 0; i < count; i++)
		if (select_queue(s, queues[i]))
			return false;
	return (s->keys & 1u << SELECT_QUEUE) != 0;
}

static int
read_base(struct task *t)
{
	uint32_t queues[QUEUE_NUM_MAX];
	struct worker_totals totals = { 0 };
	bool troubled = false;
	int code, r = 0, count = spool_list(t->base, queues, ARRAY_LEN(queues));

	if (count < 0) {
		fprintf(stderr, "%s: %s: %s\n", t->options.program, t->base,
		    strerror(-count));
		return count == -EACCES ? EX_NOPERM : EX_UNAVAILABLE;
	}
	if (names_no_queue(t, queues, (size_t)count))
		return complain(&t->options, EX_DATAERR,
		    "no queue that queue= names is there");
	if (t->options.verb == VERB_CHECK)
		return task_check_all(t, queues, (size_t)count);
	if (t->options.verb == VERB_SHAPE &&
	    (t->view.rows = shape_new()) == NULL)
		return complain(&t->options, EX_OSERR, strerror(ENOMEM));
	if (t->options.rule && !t->options.dry_run) {
		code = rules_change(t, queues, (size_t)count, &troubled);
		if (code != EX_OK)
			return code;
		t->options.yes = true; /* mail to come cannot be counted */
	}
	if (!(t->options.verb == VERB_ACT && task_is_flush(t)))
		r = read_queues(t, queues, (size_t)count, &totals);
	if (r == -EIO)
		return complain(
		    &t->options, EX_IOERR, "standard output cannot be written");
	if (r < 0)
		return complain(&t->options, EX_OSERR, strerror(-r));
	totals.troubled += troubled;
	if (t->options.verb == VERB_ACT && t->error == 0 && totals.denied == 0)
		return finish_act(t, queues, (size_t)count, &totals);
	return finish(t, &totals);
}

/* ---- the command ---- */

static int
take_conf(struct task *t, const struct conf *conf)
{
	t->base = strdup(conf->queue_base);
	t->instance = strdup(conf->instance);
	t->silence_limit = conf->disk_time_limit;
	t->backoff_max = conf->backoff.maximal_backoff_time;
	t->active_limit = conf->sched.message_active_limit;
	return t->base == NULL || t->instance == NULL ? EX_OSERR : EX_OK;
}

/* The configuration in force takes the place of a wrong file. */
static int
load_conf(struct task *t)
{
	struct buf error = { 0 };
	struct conf conf;
	int code, r = conf_load_in_force(t->options.conf_path, &conf, &error);

	if (r < 0)
		complain(&t->options, EX_CONFIG,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	if (r == 1)
		fprintf(stderr, "%s: %s: the configuration in force is used\n",
		    t->options.program, buf_str(&error));
	buf_done(&error);
	if (r < 0)
		return EX_CONFIG;
	look_become(&conf, &t->options, t->argv);
	code = take_conf(t, &conf);
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
		code = complain(o, r == -EINVAL ? EX_DATAERR : EX_OSERR,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return code;
}

/* The table of queues, from shared memory. */
static int
print_queues(const struct options *o)
{
	struct buf text = { 0 };
	int code, r = qread_queues(o, &text);

	if (r == -EACCES || r == -EPERM)
		code = complain(o, EX_NOPERM, "another user's instance");
	else if (r < 0 && r != -ENOMEM)
		code = complain(o, EX_UNAVAILABLE,
		    r == -ENOENT ? "no supervisor of this instance is running"
				 : strerror(-r));
	else
		code = put(o, r, &text);
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
		code = read_base(t);
		qread_end();
	}
	return code == EX_OK && (o->qread & QREAD_QUEUES) != 0 ? print_queues(o)
							       : code;
}

static int
run(struct task *t)
{
	int code = t->look != NULL ? take_conf(t, t->look) : load_conf(t);

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
		    : t->options.verb == VERB_RULES ? rules_show(t)
		    : t->options.verb == VERB_SITES
		    ? sites_show(&t->options, t->instance)
		    : read_base(t);
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
	code = put(o, r, &text);
	buf_done(&text);
	return code;
}

static int
usage(const struct options *o, int error, const struct buf *text)
{
	return complain(o, error == -EOPNOTSUPP ? EX_UNAVAILABLE : EX_USAGE,
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
	else if (t->look != NULL && !look_shows(&t->options))
		code = complain(&t->options, EX_NOPERM, LOOK_DENIED);
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
	buf_done(&t->selection);
	free(t->base);
	free(t->instance);
	select_done(&t->options.select);
}

/* For users who may look, and cannot read the queues by themselves. */
static int
be_look(struct task *t, int argc, char **argv)
{
	static struct conf conf;
	int code = look_begin(argc, argv, &conf);

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
