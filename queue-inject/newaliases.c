/* newaliases and sendmail -bi: judge the file of aliases and put it in force.
 *
 * The file goes in force with the rest of the configuration, by a reload, which
 * the supervisor is asked for as `setqload --reload` asks. The supervisor
 * answers when a reload that began after the request has ended. */
#include "queue-inject/inject.h"

#include "base/clock.h"
#include "ipc/ask.h"
#include "ipc/page_text.h"
#include "route/alias.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A reload reads files, which may lie on a slow disk. systemd gives it 60 s. */
#define RELOAD_LIMIT (50 * USEC_PER_SEC)

static void
print_lines(const char *name, const char *text)
{
	size_t n;

	for (; *text != '\0'; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		fprintf(stderr, "%s: %.*s\n", name, (int)n, text);
	}
}

static void
tell_wrong_lines(const char *name, const char *complaints)
{
	if (complaints[0] == '\0')
		return;
	print_lines(name, complaints);
	fprintf(stderr,
	    "%s: warning: mail for the name of a wrong line is deferred, "
	    "unless another line has the name\n",
	    name);
}

/* 1: there is a file that can be used; 0: there is nothing to put in force. */
static int
judge_file(const struct conf *conf, const char *name, struct refusal *why)
{
	struct alias_table *table = NULL;
	struct buf error = { 0 };
	int r;

	if (conf->alias_file[0] == '\0' ||
	    (conf_is_private(conf) && !conf_is_set(conf, "alias_file"))) {
		fprintf(stderr,
		    "%s: this instance has no aliases: alias_file "
		    "is not set\n",
		    name);
		return 0;
	}
	r = alias_load(conf->alias_file, &table, &error);
	if (r == 0)
		tell_wrong_lines(name, alias_complaints(table));
	else if (r == -ENOENT)
		r = 0;
	else
		r = refuse(why, REFUSAL_CONFIG,
		    "%s; the aliases that are in force stay",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	alias_free(&table);
	buf_done(&error);
	return r < 0 ? r : 1;
}

/* The reason of the last reload, in the page: "old configuration in force: …".
 * The answer to the request has no room for it. */
static int
refuse_reload(const struct conf *conf, struct refusal *why)
{
	struct sched_page page = { 0 };
	struct buf text = { 0 };
	int r = sched_page_read(conf->instance, &page);

	if (r == 0)
		r = page_text_conf(&page, &text);
	r = refuse(why, REFUSAL_CONFIG,
	    "%s is NOT in force: %s; `qscheduler --check` shows all mistakes",
	    conf->alias_file,
	    r == 0 && text.len > 0 ? buf_str(&text)
				   : "old configuration in force: see the log");
	buf_done(&text);
	return r;
}

/* 0: the supervisor answered, *ret_code and answer say what; -ENOENT: no
 * supervisor has a socket; other -errno of ask_request(). */
static int
ask_reload(
    const struct conf *conf, int *ret_code, char answer[SCHED_ANSWER_SIZE])
{
	const uint32_t nonce = arc4random();
	const struct msg request = { .type = MSG_REREAD,
		.u.REREAD = { (uint32_t)getpid(), nonce, 0 } };

	return ask_request(
	    &(struct ask_question){ conf->instance, conf->queue_base, &request,
		nonce, false, RELOAD_LIMIT },
	    ret_code, answer);
}

/* There is no socket of requests. A supervisor may run all the same: while
 * /dev/shm is full, or until it has made a removed socket again. */
static int
report_no_socket(const struct conf *conf, const char *name, struct refusal *why)
{
	struct sched_page page;

	if (sched_page_read(conf->instance, &page) == 0 &&
	    page_writer_lives(&page.head))
		return refuse(why, REFUSAL_CONFIG,
		    "%s is valid but NOT in force yet: qscheduler runs, and "
		    "has no socket for requests now: run newaliases again in a "
		    "minute, or `systemctl reload qscheduler` (runit: `sv hup "
		    "qscheduler`)",
		    conf->alias_file);
	fprintf(stderr,
	    "%s: qscheduler does not run: it reads %s when it starts\n", name,
	    conf->alias_file);
	return 0;
}

static int
reload(const struct conf *conf, const char *name, struct refusal *why)
{
	char answer[SCHED_ANSWER_SIZE] = "";
	int code = 0, r = ask_reload(conf, &code, answer);

	if (r == 0 && code == 0) {
		printf("%s: %s is in force\n", name, conf->alias_file);
		return 0;
	}
	if (r == 0 && code == -EBADMSG)
		return refuse_reload(conf, why);
	if (r == -ENOENT)
		return report_no_socket(conf, name, why);
	if (r == -EPERM || r == -EACCES || code == -EACCES)
		return refuse(why, REFUSAL_PERMISSION,
		    "%s is valid but NOT in force yet: run newaliases as root, "
		    "or `systemctl reload qscheduler` (runit: `sv hup "
		    "qscheduler`)",
		    conf->alias_file);
	if (r == -ETIMEDOUT)
		return refuse(why, REFUSAL_TIMEOUT,
		    "%s is NOT in force: qscheduler did not reload within %d "
		    "s; its log has the reason",
		    conf->alias_file, (int)(RELOAD_LIMIT / USEC_PER_SEC));
	return refuse(why, REFUSAL_CONFIG,
	    "%s is valid but NOT in force: the supervisor %s: %s",
	    conf->alias_file,
	    r < 0 ? "cannot be reached" : "refuses the reload",
	    r < 0 ? strerror(-r) : answer);
}

int
newaliases_run(const struct options *o, const char *name, struct refusal *why)
{
	struct buf error = { 0 };
	struct conf conf;
	int r = conf_load(o->conf_path, &conf, &error);

	if (r < 0) {
		refuse(why, REFUSAL_CONFIG, "%s",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
		buf_done(&error);
		return -1;
	}
	r = judge_file(&conf, name, why);
	if (r > 0)
		r = reload(&conf, name, why);
	conf_done(&conf);
	buf_done(&error);
	return r < 0 ? -1 : 0;
}
