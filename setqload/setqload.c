#include "setqload/setqload.h"

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
#include "ipc/ask.h"
#include "ipc/page_text.h"

#define ANSWER_LIMIT (5 * USEC_PER_SEC)
/* A reload reads files, which may lie on a slow disk. systemd gives it 60 s. */
#define RELOAD_LIMIT (50 * USEC_PER_SEC)

static int
complain(int code, const char *text)
{
	fprintf(stderr, "setqload: %s\n", text);
	return code;
}

static int
put(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return EX_OK;
	return complain(EX_IOERR, "standard output cannot be written");
}

/* ---- failures ---- */

/* Reports a failure to read the page, or to ask. */
static const struct failure {
	int error, exit_code;
	const char *why;
} failures[] = {
	{ -ESTALE, EX_UNAVAILABLE,
	    "the supervisor gave no sign of life for 10 s" },
	{ -EBADMSG, EX_UNAVAILABLE,
	    "the shared memory is damaged, or of another version" },
	{ -EACCES, EX_NOPERM,
	    "no permission; this is for the user who runs the instance and "
	    "members of operator_group" },
	{ -EPERM, EX_NOPERM, "the shared memory belongs to another user" },
	{ -ETIMEDOUT, EX_TEMPFAIL,
	    "the supervisor does not answer: nothing is done" },
	{ -EAGAIN, EX_TEMPFAIL, "the supervisor takes no requests now" },
	{ -ENOMSG, EX_TEMPFAIL,
	    "the supervisor has no socket for requests now" },
};

/* "queue 3: "; nothing for 0, which is none. */
static int
add_queue(int32_t queue, struct buf *out)
{
	return queue == 0 ? 0 : buf_printf(out, "queue %" PRIi32 ": ", queue);
}

static int
report_failure(const char *instance, int32_t queue, int error)
{
	const char *why = strerror(-error);
	int r, code = EX_OSERR;
	char name[IPC_NAME_MAX], absent[PAGE_ABSENT_SIZE];
	struct buf text = { 0 };
	size_t i;

	if (error == -ENOENT) {
		why = page_absent_text(absent);
		code = EX_UNAVAILABLE;
	}
	for (i = 0; i < ARRAY_LEN(failures); i++)
		if (failures[i].error == error) {
			why = failures[i].why;
			code = failures[i].exit_code;
		}
	ipc_name_scheduler(instance, name);
	r = add_queue(queue, &text);
	if (r == 0)
		r = error == -ENOENT
		    ? buf_printf(&text, "instance %s: %s", instance, why)
		    : buf_printf(&text, "%s: %s", name, why);
	(void)complain(code, r < 0 ? why : buf_str(&text));
	buf_done(&text);
	return code;
}

/* Reports a request that the supervisor understood, and refused. */
static int
exit_code_of(int refusal)
{
	static const int ours[] = { -ENOENT, -EINVAL, -ERANGE, -EBUSY,
		-EALREADY };
	size_t i;

	if (refusal == -EACCES)
		return EX_NOPERM;
	for (i = 0; i < ARRAY_LEN(ours); i++)
		if (ours[i] == refusal)
			return EX_DATAERR;
	return EX_OSERR;
}

/* Reports what the supervisor answered: its text, which lies in memory of
 * another process. */
static int
report_answer(int32_t queue, int code, const char *answer)
{
	struct buf text = { 0 };
	int r = 0, exit_code;

	if (code != 0)
		r = add_queue(queue, &text);
	if (r == 0)
		r = text_clean(
		    &text, answer, strlen(answer), SCHED_ANSWER_SIZE);
	if (r == 0 && code == 0)
		r = buf_add_char(&text, '\n');
	if (r < 0)
		exit_code = complain(EX_OSERR, strerror(-r));
	else if (code == 0)
		exit_code = put(buf_str(&text));
	else
		exit_code = complain(exit_code_of(code), buf_str(&text));
	buf_done(&text);
	return exit_code;
}

/* ---- requests ---- */

struct asker {
	uint32_t pid, nonce;
	int32_t queue; /* 0: none, or all */
};

static void
fill_set(const struct options *o, struct asker who, struct msg *msg)
{
	msg->u.SET_LOAD_FOR = (struct msg_SET_LOAD_FOR){
		.pid = who.pid,
		.nonce = who.nonce,
		.queue = who.queue,
		.local_used = o->local.used,
		.local_limit = o->local.limit,
		.remote_used = o->remote.used,
		.remote_limit = o->remote.limit,
		.seconds = o->seconds,
	};
}

static void
fill_clear(const struct options *o UNUSED, struct asker who, struct msg *msg)
{
	msg->u.CLEAR_LOAD =
	    (struct msg_CLEAR_LOAD){ who.pid, who.nonce, who.queue };
}

static void
fill_disable(const struct options *o, struct asker who, struct msg *msg)
{
	msg->u.DISABLE = (struct msg_DISABLE){ who.pid, who.nonce, who.queue,
		o->seconds, MSG_S(o->reason) };
}

static void
fill_enable(const struct options *o UNUSED, struct asker who, struct msg *msg)
{
	msg->u.ENABLE = (struct msg_ENABLE){ who.pid, who.nonce, who.queue };
}

static void
fill_count(const struct options *o, struct asker who, struct msg *msg)
{
	msg->u.COUNT =
	    (struct msg_COUNT){ who.pid, who.nonce, o->count, o->seconds };
}

static void
fill_reread(const struct options *o UNUSED, struct asker who, struct msg *msg)
{
	msg->u.REREAD = (struct msg_REREAD){ who.pid, who.nonce, 0 };
}

static const struct {
	enum msg_type type;
	void (*fill)(
	    const struct options *o, struct asker who, struct msg *msg);
} requests[NCOMMANDS] = {
	[COMMAND_SET] = { MSG_SET_LOAD_FOR, fill_set },
	[COMMAND_CLEAR] = { MSG_CLEAR_LOAD, fill_clear },
	[COMMAND_DISABLE] = { MSG_DISABLE, fill_disable },
	[COMMAND_ENABLE] = { MSG_ENABLE, fill_enable },
	[COMMAND_COUNT] = { MSG_COUNT, fill_count },
	[COMMAND_RELOAD] = { MSG_REREAD, fill_reread },
};

/* Reads the page of a running supervisor. */
static int
read_page(const char *instance, struct sched_page *ret_page)
{
	int r = sched_page_read(instance, ret_page);

	if (r < 0)
		return r;
	return page_stale(&ret_page->head, clock_mono()) ? -ESTALE : 0;
}

/* Reports a reload that was refused. The page has the whole reason. */
static int
report_reload(const char *instance)
{
	struct sched_page page = { 0 };
	struct buf text = { 0 };
	int r = sched_page_read(instance, &page);

	if (r == 0)
		r = page_text_conf(&page, &text);
	(void)complain(0,
	    r == 0 && text.len > 0 ? buf_str(&text)
				   : "old configuration in force: see the log");
	buf_done(&text);
	return EX_CONFIG;
}

/* The supervisor that is asked. */
struct target {
	const char *instance;
	const char *base; /* QUEUE_BASE; NULL: not known */
};

enum mode {
	MODE_DO,
	MODE_JUDGE, /* would it be done? */
};

/* One request, or only its judgement: an exit code. *ret_answered is false when
 * the supervisor did not answer. The page tells of a supervisor that has hung
 * for long. Without a page, as on a full /dev/shm, the socket shows whether the
 * supervisor is there. */
static int
ask(const struct options *o, const struct target *to, int32_t queue,
    enum mode mode, bool *ret_answered)
{
	const struct asker who = { (uint32_t)getpid(), arc4random(), queue };
	struct msg request = { .type = requests[o->command].type };
	char answer[SCHED_ANSWER_SIZE];
	struct sched_page page = { 0 };
	int code = 0, r = read_page(to->instance, &page);

	requests[o->command].fill(o, who, &request);
	if (r == 0 || r == -EAGAIN || r == -ENOENT)
		r = ask_request(
		    &(struct ask_question){ to->instance, to->base, &request,
			who.nonce, mode == MODE_JUDGE,
			o->command == COMMAND_RELOAD ? RELOAD_LIMIT
						     : ANSWER_LIMIT },
		    &code, answer);
	if (r == -ENOENT && page.head.pid != 0)
		r = -ENOMSG; /* the page was there a moment ago */
	*ret_answered = r == 0;
	if (r < 0)
		return report_failure(
		    to->instance, o->nqueues > 1 ? queue : 0, r);
	if (mode == MODE_JUDGE && code == 0)
		return EX_OK;
	return o->command == COMMAND_RELOAD && code == -EBADMSG
	    ? report_reload(to->instance)
	    : report_answer(queue, code, answer);
}

/* "queues 4, 5 and 6 are left as they are", from the one at `first` on. */
static void
report_rest(const struct options *o, uint32_t first)
{
	struct buf text = { 0 };
	uint32_t i;
	int r = 0;

	for (i = first; r == 0 && i < o->nqueues; i++)
		r = buf_printf(&text, "%s%" PRIi32,
		    i == first
			? (first + 1 == o->nqueues ? "queue " : "queues ")
			: ", ",
		    o->queues[i]);
	if (r == 0 && text.len > 0)
		r = buf_add_str(&text, ": not asked for");
	if (r == 0 && text.len > 0)
		(void)complain(0, buf_str(&text));
	buf_done(&text);
}

/* One after the other, until the supervisor answers no more: the exit code of
 * the first that fails. A judgement goes on to the last in any case, so that
 * all that is wrong is told at once. */
static int
ask_each(const struct options *o, const struct target *to, enum mode mode)
{
	int code, first = EX_OK;
	bool answered = true;
	uint32_t i;

	for (i = 0; answered && i < o->nqueues; i++) {
		code = ask(o, to, o->queues[i], mode, &answered);
		if (first == EX_OK)
			first = code;
	}
	if (mode == MODE_DO)
		report_rest(o, i);
	return first;
}

/* Several queues are several requests, which are sent when the supervisor
 * would carry out each of them. */
static int
ask_all(const struct options *o, const struct target *to)
{
	bool answered;
	int code;

	if (o->nqueues == 0)
		return ask(o, to, 0, MODE_DO, &answered);
	if (o->nqueues > 1) {
		code = ask_each(o, to, MODE_JUDGE);
		if (code != EX_OK)
			return complain(code, "nothing is done");
	}
	return ask_each(o, to, MODE_DO);
}

static int
ask_instance(const struct options *o, const char *instance)
{
	struct buf base = { 0 };
	int code, r = conf_instance_base(o->conf_path, instance, &base);
	const struct target to = { instance,
		base.len > 0 ? buf_str(&base) : NULL };

	code = r < 0 ? complain(EX_OSERR, strerror(-r)) : ask_all(o, &to);
	buf_done(&base);
	return code;
}

/* ---- the list ---- */

static int
list(const struct options *o, const char *instance)
{
	struct sched_page page;
	const struct list_view view = { &page, clock_mono(), clock_wall() };
	struct buf text = { 0 };
	int code, r = read_page(instance, &page);

	if (r < 0) /* torn at every try: its writer died */
		return report_failure(instance, 0, r == -EAGAIN ? -ESTALE : r);
	r = o->json ? list_json(&view, &text) : list_text(&view, &text);
	code = r < 0 ? complain(EX_OSERR, strerror(-r)) : put(buf_str(&text));
	buf_done(&text);
	return code;
}

/* ---- the command ---- */

static int
run(const struct options *o)
{
	struct buf instance = { 0 }, error = { 0 };
	int r, code = 0;

	r = conf_instance(o->instance, o->conf_path, &instance, &error);
	if (r < 0)
		code = complain(o->instance != NULL ? EX_USAGE : EX_CONFIG,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	if (r == 1)
		fprintf(stderr,
		    "setqload: %s: the configuration in force is "
		    "used\n",
		    buf_str(&error));
	if (r >= 0 && o->command == COMMAND_LIST)
		code = list(o, buf_str(&instance));
	else if (r >= 0)
		code = ask_instance(o, buf_str(&instance));
	buf_done(&instance);
	buf_done(&error);
	return code;
}

static int
help(void)
{
	struct buf text = { 0 };
	int code, r;

	r = buf_add_str(&text,
	    OPTIONS_USAGE
	    "\n\nAdjust the queues of a running qscheduler. QUEUES: 2, or "
	    "1,3-5.\n"
	    "LOCAL and REMOTE set the load of the queues, as PERCENT or "
	    "USED/LIMIT: 45,\n45/100, 2/10. Settings survive a restart.\n\n");
	if (r == 0)
		r = options_help(&text);
	code = r < 0 ? complain(EX_OSERR, strerror(-r)) : put(buf_str(&text));
	buf_done(&text);
	return code;
}

int
setqload_main(int argc, char **argv)
{
	struct options o;
	struct buf error = { 0 };

	(void)io_std_fds();
	signal(SIGPIPE, SIG_IGN); /* a closed output is an error of write */
	if (options_parse(argc, argv, &o, &error) < 0) {
		(void)complain(EX_USAGE, buf_str(&error));
		buf_done(&error);
		return EX_USAGE;
	}
	if (o.command == COMMAND_HELP)
		return help();
	if (o.command == COMMAND_VERSION)
		return put("setqload " QSCHED_VERSION "\n");
	return run(&o);
}
