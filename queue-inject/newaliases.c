/* newaliases and sendmail -bi: judge the file of aliases and put it in force.
 *
 * The file goes in force with the rest of the configuration, by a reload: the
 * supervisor gets SIGHUP from whoever may signal it, root or the user of a
 * private instance. A reload that succeeds replaces the configuration in force
 * (QUEUE_BASE/conf), which this program waits for. */
#include "queue-inject/inject.h"

#include "base/clock.h"
#include "ipc/page.h"
#include "route/alias.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RELOAD_LIMIT (30 * USEC_PER_SEC)
#define LOOK_EVERY   (50 * USEC_PER_MSEC)
/* The supervisor tells the daemons in the turn of its loop after the one that
 * replaced the file; it publishes its page once a second. */
#define TELL_TIME    (100 * USEC_PER_MSEC)

static void
print_lines(const char *name, const char *text)
{
	size_t n;

	for (; *text != '\0'; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		fprintf(stderr, "%s: %.*s\n", name, (int)n, text);
	}
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
		print_lines(name, alias_complaints(table));
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

/* The configuration in force is another one. */
static bool
is_replaced(const char *path, const struct stat *before)
{
	struct stat now;

	return stat(path, &now) == 0 &&
	    (now.st_ino != before->st_ino ||
		now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
		now.st_mtim.tv_nsec != before->st_mtim.tv_nsec);
}

static bool
is_told(const char *instance, usec_t replaced_at)
{
	struct sched_page page;

	return sched_page_read(instance, &page) == 0 &&
	    page.head.beat_mono > replaced_at + TELL_TIME;
}

static int
await_reload(const struct conf *conf, const char *in_force,
    const struct stat *before, struct refusal *why)
{
	const struct timespec pause = { 0, LOOK_EVERY * 1000 };
	const usec_t until = clock_mono() + RELOAD_LIMIT;
	usec_t replaced_at = 0;

	for (; clock_mono() < until; (void)nanosleep(&pause, NULL)) {
		if (replaced_at == 0 && is_replaced(in_force, before))
			replaced_at = clock_mono();
		if (replaced_at > 0 && is_told(conf->instance, replaced_at))
			return 0;
	}
	return refuse(why, REFUSAL_TIMEOUT,
	    "%s is NOT in force: qscheduler did not reload within %d s; its "
	    "log has the reason, and so has `qscheduler --check`",
	    conf->alias_file, (int)(RELOAD_LIMIT / USEC_PER_SEC));
}

/* SIGHUP to the process that writes the page, and to no other process that has
 * its number now. 0; -ESRCH: it has ended; -errno. */
static int
signal_supervisor(const struct page_head *head)
{
	const pid_t pid = (pid_t)head->pid;
	int fd = pid > 1 ? pidfd_open(pid, 0) : -1, r = 0;

	if (fd < 0)
		return pid > 1 ? -errno : -ESRCH;
	if (page_start_ticks(pid) != head->start_ticks)
		r = -ESRCH;
	else if (pidfd_send_signal(fd, SIGHUP, NULL, 0) < 0)
		r = -errno;
	close(fd);
	return r;
}

static int
reload(const struct conf *conf, const char *name, struct refusal *why)
{
	struct sched_page page;
	struct buf in_force = { 0 };
	struct stat before = { 0 };
	int r = sched_page_read(conf->instance, &page);

	if (r == 0 &&
	    buf_printf(&in_force, "%s/" CONF_IN_FORCE_NAME, conf->queue_base) <
		0)
		return refuse(why, REFUSAL_MEMORY, "out of memory");
	if (r == 0) {
		(void)stat(buf_str(&in_force), &before);
		r = signal_supervisor(&page.head);
	}
	if (r == 0) {
		r = await_reload(conf, buf_str(&in_force), &before, why);
		if (r == 0)
			printf("%s: %s is in force\n", name, conf->alias_file);
	} else if (r == -ENOENT || r == -ESRCH)
		r = fprintf(stderr,
			"%s: qscheduler does not run: it reads %s "
			"when it starts\n",
			name, conf->alias_file) < 0;
	else if (r == -EPERM || r == -EACCES)
		r = refuse(why, REFUSAL_PERMISSION,
		    "%s is valid but NOT in force yet: run newaliases as root, "
		    "or `systemctl reload qscheduler` (runit: `sv hup "
		    "qscheduler`)",
		    conf->alias_file);
	else
		r = refuse(why, REFUSAL_CONFIG,
		    "%s is valid but NOT in force: the supervisor cannot be "
		    "reached: %s",
		    conf->alias_file, strerror(-r));
	buf_done(&in_force);
	return r < 0 ? -1 : 0;
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
