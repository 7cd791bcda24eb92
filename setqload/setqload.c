#include "setqload/setqload.h"

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
#include "ipc/ask.h"
#include "ipc/page.h"
#include "setqload/options.h"

#define ANSWER_LIMIT (5 * USEC_PER_SEC)

static int
complain(int code, const char *text)
{
	fprintf(stderr, "setqload: %s\n", text);
	return code;
}

static int
say(const char *text)
{
	if (puts(text) >= 0 && fflush(stdout) == 0)
		return EX_OK;
	return complain(EX_IOERR, "standard output cannot be written");
}

/* What became of the request, of reading the page or asking. */
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
	    "no permission; this is for root, or the user who runs it" },
	{ -EPERM, EX_NOPERM, "the shared memory belongs to another user" },
	{ -ETIMEDOUT, EX_TEMPFAIL, "the supervisor does not answer" },
	{ -EAGAIN, EX_TEMPFAIL, "the message queue is full" },
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

/* The words of the supervisor; memory of somebody else. */
static int
report_answer(const struct options *o, int code, const char *answer)
{
	struct buf text = { 0 };
	int r, exit_code;

	r = code == 0 ? 0 : buf_printf(&text, "queue %d: ", (int)o->queue);
	if (r == 0)
		r = text_clean(&text, answer, strlen(answer), 64);
	if (r < 0)
		exit_code = complain(EX_OSERR, strerror(-r));
	else if (code == 0)
		exit_code = say(buf_str(&text));
	else
		exit_code = complain(EX_DATAERR, buf_str(&text));
	buf_done(&text);
	return exit_code;
}

/* A message queue outlives a supervisor that was killed: nobody would answer.
 */
static int
look(const char *instance)
{
	struct sched_page page;
	int r = sched_page_read(instance, &page);

	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return r;
	return page_stale(&page.head, clock_mono()) ? -ESTALE : 0;
}

static int
set_load(const struct options *o, const char *instance)
{
	const uint32_t nonce = arc4random();
	const struct msg request = {
		.type = MSG_SET_LOAD,
		.u.SET_LOAD = {
			.pid = (uint32_t)getpid(),
			.nonce = nonce,
			.queue = o->queue,
			.local_used = o->local.used,
			.local_limit = o->local.limit,
			.remote_used = o->remote.used,
			.remote_limit = o->remote.limit,
		},
	};
	char answer[64];
	int code = 0, r = look(instance);

	if (r == 0)
		r = ask_request(
		    instance, &request, nonce, ANSWER_LIMIT, &code, answer);
	return r < 0 ? report_failure(instance, r)
		     : report_answer(o, code, answer);
}

static int
set_load_of_instance(const struct options *o)
{
	struct buf instance = { 0 }, error = { 0 };
	int r, code;

	r = conf_instance(o->instance, o->conf_path, &instance, &error);
	if (r == 0)
		code = set_load(o, buf_str(&instance));
	else
		code = complain(o->instance != NULL ? EX_USAGE : EX_CONFIG,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&instance);
	buf_done(&error);
	return code;
}

static int
help(void)
{
	return say(OPTIONS_USAGE
	    "\n\n"
	    "Tell the supervisor the load of a queue, for a minute.\n"
	    "LOCAL and REMOTE are PERCENT or USED/LIMIT: 45, 45/100, 2/10.\n\n"
	    "  -q QUEUE     its number, 1 to 4095\n"
	    "  -i INSTANCE  instead of QSCHED_INSTANCE or the configuration's\n"
	    "  -c FILE      configuration instead of QSCHED_CONF or\n"
	    "               " CONF_DEFAULT_FILE);
}

int
setqload_main(int argc, char **argv)
{
	struct options o;
	struct buf error = { 0 };

	(void)io_std_fds();
	signal(SIGPIPE, SIG_IGN); /* a closed output is told (A6) */
	if (options_parse(argc, argv, &o, &error) < 0) {
		(void)complain(EX_USAGE, buf_str(&error));
		fprintf(stderr, "%s\n", OPTIONS_USAGE);
		buf_done(&error);
		return EX_USAGE;
	}
	if (o.task == TASK_HELP)
		return help();
	if (o.task == TASK_VERSION)
		return say("setqload " QSCHED_VERSION);
	return set_load_of_instance(&o);
}
