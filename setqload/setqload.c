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

#define ANSWER_LIMIT (5 * USEC_PER_SEC)

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
	{ -ENOENT, EX_UNAVAILABLE,
	    "no supervisor of this instance is running" },
	{ -ESTALE, EX_UNAVAILABLE,
	    "the supervisor gave no sign of life for 10 s" },
	{ -EBADMSG, EX_UNAVAILABLE,
	    "the shared memory is damaged, or of another version" },
	{ -EACCES, EX_NOPERM,
	    "no permission; this is for the user who runs the instance" },
	{ -EPERM, EX_NOPERM, "the shared memory belongs to another user" },
	{ -ETIMEDOUT, EX_TEMPFAIL,
	    "the supervisor does not answer: nothing is done" },
	{ -EAGAIN, EX_TEMPFAIL, "the message queue is full" },
	{ -ENOMSG, EX_TEMPFAIL,
	    "the supervisor has no message queue at the moment" },
};

static int
report_failure(const char *instance, int error)
{
	const char *why = strerror(-error);
	int code = EX_OSERR;
	char name[IPC_NAME_MAX], text[IPC_NAME_MAX + 128];
	size_t i;

	for (i = 0; i < ARRAY_LEN(failures); i++)
		if (failures[i].error == error) {
			why = failures[i].why;
			code = failures[i].exit_code;
		}
	ipc_name_scheduler(instance, name);
	snprintf(text, sizeof(text), "%s: %s", name, why);
	return complain(code, text);
}

/* Reports a request that the supervisor understood, and refused. */
static int
exit_code_of(int refusal)
{
	static const int ours[] = { -ENOENT, -EINVAL, -ERANGE, -EBUSY,
		-EALREADY };
	size_t i;

	for (i = 0; i < ARRAY_LEN(ours); i++)
		if (ours[i] == refusal)
			return EX_DATAERR;
	return EX_OSERR;
}

/* The text of the supervisor, in memory of another process. */
static int
report_answer(const struct options *o, int code, const char *answer)
{
	struct buf text = { 0 };
	int r = 0, exit_code;

	if (code != 0 && o->queue != 0)
		r = buf_printf(&text, "queue %" PRIi32 ": ", o->queue);
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
};

static void
fill_set(const struct options *o, struct asker who, struct msg *msg)
{
	msg->u.SET_LOAD_FOR = (struct msg_SET_LOAD_FOR){
		.pid = who.pid,
		.nonce = who.nonce,
		.queue = o->queue,
		.local_used = o->local.used,
		.local_limit = o->local.limit,
		.remote_used = o->remote.used,
		.remote_limit = o->remote.limit,
		.seconds = o->seconds,
	};
}

static void
fill_clear(const struct options *o, struct asker who, struct msg *msg)
{
	msg->u.CLEAR_LOAD =
	    (struct msg_CLEAR_LOAD){ who.pid, who.nonce, o->queue };
}

static void
fill_disable(const struct options *o, struct asker who, struct msg *msg)
{
	msg->u.DISABLE = (struct msg_DISABLE){ who.pid, who.nonce, o->queue,
		o->seconds, MSG_S(o->reason) };
}

static void
fill_enable(const struct options *o, struct asker who, struct msg *msg)
{
	msg->u.ENABLE = (struct msg_ENABLE){ who.pid, who.nonce, o->queue };
}

static void
fill_count(const struct options *o, struct asker who, struct msg *msg)
{
	msg->u.COUNT =
	    (struct msg_COUNT){ who.pid, who.nonce, o->count, o->seconds };
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

/* The page is read first: a message queue outlives a killed supervisor, and no
 * answer would come.
 */
static int
ask(const struct options *o, const char *instance)
{
	const struct asker who = { (uint32_t)getpid(), arc4random() };
	struct msg request = { .type = requests[o->command].type };
	char answer[SCHED_ANSWER_SIZE];
	struct sched_page page = { 0 };
	int code = 0, r = read_page(instance, &page);

	requests[o->command].fill(o, who, &request);
	if (r == 0 || r == -EAGAIN)
		r = ask_request(
		    instance, &request, who.nonce, ANSWER_LIMIT, &code, answer);
	if (r == -ENOENT && page.head.pid != 0)
		r = -ENOMSG; /* the page was there a moment ago */
	return r < 0 ? report_failure(instance, r)
		     : report_answer(o, code, answer);
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
		return report_failure(instance, r == -EAGAIN ? -ESTALE : r);
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
		code = ask(o, buf_str(&instance));
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
	    OPTIONS_USAGE "\n\nAdjust the queues of a running qscheduler.\n"
			  "LOCAL and REMOTE are PERCENT or USED/LIMIT: 45, "
			  "45/100, 2/10.\n\n");
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
