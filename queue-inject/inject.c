#include "queue-inject/inject.h"

#include "base/clock.h"
#include "base/version.h"
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#define INPUT_TIME_LIMIT (24 * 3600 * USEC_PER_SEC) /* as qmail-queue's */
#define HEAP             (256 << 10) /* more than a small message needs */

/* The first is for names that are none of these. */
static const struct face faces[] = {
	{ "queue-inject", options_own, 0, mail_prepare, mail_content, NULL,
	    false },
	{ "sendmail", options_sendmail, 0, mail_prepare, mail_content, NULL,
	    false },
	{ "qmail-queue", NULL, TASK_SUBMIT, qmail_prepare, inject_copy,
	    qmail_envelope, true },
	{ "mailq", NULL, TASK_LIST, NULL, NULL, NULL, false },
	{ "newaliases", NULL, TASK_ALIASES, NULL, NULL, NULL, false },
};

static const struct face *
find_face(int argc, char *const *argv)
{
	const char *name = argc > 0 ? argv[0] : "";
	const char *slash = strrchr(name, '/');
	size_t i;

	if (slash != NULL)
		name = slash + 1;
	for (i = 0; i < ARRAY_LEN(faces); i++)
		if (strcmp(name, faces[i].name) == 0)
			return &faces[i];
	return &faces[0];
}

/* ---- signals ---- */

static const int stop_signals[] = { SIGHUP, SIGINT, SIGTERM };

/* Signals are blocked, and read while the input is waited for: nothing is cut
 * off between link and fsync. A signal that is ignored (nohup) stays ignored.
 */
static int
catch_signals(void)
{
	struct sigaction sa;
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < ARRAY_LEN(stop_signals); i++)
		if (sigaction(stop_signals[i], NULL, &sa) < 0 ||
		    sa.sa_handler != SIG_IGN)
			sigaddset(&set, stop_signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- tasks ---- */

static int
load_conf(struct inject *inject)
{
	struct buf error = { 0 };
	int r = conf_load_in_force(
	    inject->options.conf_path, &inject->conf, &error);

	/* Mail is taken all the same, as the system runs. */
	if (r == 1)
		fprintf(stderr, "%s: %s: used as it was, from %s\n",
		    inject->face->name, buf_str(&error),
		    conf_path(&inject->conf));
	if (r < 0)
		refuse(&inject->why, REFUSAL_CONFIG, "%s",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	buf_done(&error);
	return r < 0 ? -1 : 0;
}

/* An id that cannot be shown does not unsay that the message is accepted. */
static void
print_id(const struct queue_id *id)
{
	char text[QUEUE_ID_SIZE];

	queue_id_format(id, text);
	printf("%s\n", text);
	if (fflush(stdout) != 0)
		fprintf(stderr, "queue-inject: accepted as %s\n", text);
}

static int
say(const char *text, struct refusal *why)
{
	if (puts(text) >= 0 && fflush(stdout) == 0)
		return 0;
	return refuse(
	    why, REFUSAL_READ, "standard output: %s", strerror(errno));
}

static int
help(struct refusal *why)
{
	struct buf text = { 0 };
	int r = options_help(&text);

	r = r < 0 ? refuse(why, REFUSAL_MEMORY, "%s", strerror(-r))
		  : say(buf_str(&text), why);
	buf_done(&text);
	return r;
}

/* The reason of a failure is in inject->why. */
static int
run_task(struct inject *inject)
{
	struct queue_id id;

	if (inject->options.task == TASK_HELP)
		return help(&inject->why);
	if (inject->options.task == TASK_VERSION)
		return say("queue-inject " QSCHED_VERSION, &inject->why);
	if (inject->options.task == TASK_NOTHING)
		return 0;
	if (inject->options.task == TASK_LIST ||
	    inject->options.task == TASK_RETRY)
		return beside_start(&inject->options, &inject->why);
	if (inject->options.task == TASK_ALIASES)
		return newaliases_run(
		    &inject->options, inject->face->name, &inject->why);
	if (load_conf(inject) < 0)
		return inject->options.task == TASK_DIALOGUE
		    ? dialogue_turn_away(inject)
		    : -1;
	if (inject->options.task == TASK_DIALOGUE)
		return dialogue_run(inject);
	if (inject_run(inject, &id) < 0)
		return -1;
	if (inject->options.print_id)
		print_id(&id);
	return 0;
}

int
inject_main(int argc, char **argv)
{
	struct inject inject = { .face = find_face(argc, argv),
		.sys = &spool_sys_real,
		.eol = "\n" };

	/* Memory is had once, and goes with the process. */
	(void)mallopt(M_TOP_PAD, HEAP);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * HEAP);
	inject.no_input = fcntl(STDIN_FILENO, F_GETFD) < 0;
	daemon_sane_command();
	inject.stop_fd = catch_signals();
	inject.deadline_mono = clock_mono() + INPUT_TIME_LIMIT;
	inject.options =
	    (struct options){ .task = inject.face->task, .ignore_dot = true };
	if (inject.face->options == NULL ||
	    inject.face->options(argc, argv, &inject.options, &inject.why) == 0)
		run_task(&inject);
	if (inject.why.kind != REFUSAL_NONE)
		refusal_print(&inject.why, inject.face->name, stderr);
	inject_done(&inject);
	return refusal_exit(inject.why.kind, inject.face->qmail_exits);
}
