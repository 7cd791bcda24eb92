#include "deliver-local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"

/* A child keeps its own time; a child that is this late hangs. */
#define HANG_MARGIN (30 * USEC_PER_SEC)
/* From SIGKILL to the end, and from the end of the pipe to that of the process
 * that had it: a process that takes longer waits within the kernel, and may do
 * so for ever. */
#define KILL_GRACE  (5 * USEC_PER_SEC)
#define EXIT_GRACE  (100 * USEC_PER_MSEC)
/* Forks that fail: 1, 2, 4 … seconds apart, then the recipient waits in the
 * queue. */
#define FORK_TRIES  6

struct task {
	LIST_ENTRY(task) entry;
	struct local *l;
	struct agent_delivery *delivery;
	uint32_t place; /* of the recipient in the delivery */
	pid_t pid;      /* 0: none */
	int fd;         /* of the verdict, then of the process */
	struct event *event;
	unsigned failed_forks;
	usec_t started_at, deadline;
	bool killed;                     /* the time was over */
	char asks[MAILBOX_PART_MAX + 1]; /* the account that comes first; "" */
	size_t got;
	char data[sizeof(struct verdict) + 1]; /* one more shows one too long */
};

static void next(struct task *t);

static void
set_timer(struct event *ev, usec_t in)
{
	const struct timeval tv = clock_timeval(in);

	(void)event_add(ev, &tv);
}

static void
drop_watch(struct task *t)
{
	if (t->event != NULL)
		event_free(t->event);
	t->event = NULL;
	io_close(&t->fd);
}

static void
end_task(struct task *t)
{
	struct local *l = t->l;

	agent_done(t->delivery, false, "", "");
	drop_watch(t);
	LIST_REMOVE(t, entry);
	free(t);
	if (LIST_EMPTY(&l->tasks) && l->idle != NULL)
		l->idle(l);
}

static void
report(struct task *t, const struct verdict *v)
{
	char relay[AGENT_RELAY_MAX];

	if (t->delivery->kind == AGENT_PIPE)
		snprintf(relay, sizeof(relay), "pipe:%s", t->delivery->nexthop);
	else
		snprintf(relay, sizeof(relay), "%s",
		    t->delivery->kind == AGENT_ALIAS ? "alias" : "local");
	agent_result(t->delivery, t->place,
	    &(struct agent_report){ .outcome = (enum agent_outcome)v->outcome,
		.dsn = v->dsn,
		.relay = relay,
		.text = v->text,
		.xfer = clock_mono() - t->started_at });
	t->place++;
}

/* ---- the child has ended ---- */

static void
verdict_of_death(struct verdict *v, int status)
{
	if (WIFSIGNALED(status))
		verdict_set(v, AGENT_DEFERRED, "4.3.0",
		    "the process that delivered was ended by signal %d",
		    WTERMSIG(status));
	else
		verdict_set(v, AGENT_DEFERRED, "4.3.0",
		    "the process that delivered ended without a word "
		    "(status %d)",
		    WEXITSTATUS(status));
}

static bool
has_ended(pid_t pid, int *ret_status)
{
	return waitpid(pid, ret_status, WNOHANG) != 0;
}

/* Of the recipient that is being delivered to. */
static bool
runs_program(const struct task *t)
{
	return child_runs_program(
	    t->delivery, t->delivery->rcpts[t->place].address);
}

static void
verdict_of_time(struct verdict *v, const struct task *t)
{
	usec_t limit = runs_program(t) ? t->l->conf->command_time_limit
				       : t->l->conf->maildir_time_limit;

	verdict_set(v, AGENT_DEFERRED, "4.3.0",
	    "the delivery was given up: no progress in %lld s",
	    (long long)(limit / USEC_PER_SEC));
}

static void
finish(struct task *t, int status)
{
	struct verdict v;

	t->pid = 0;
	if (verdict_read(t->data, t->got, &v) < 0) {
		if (t->killed)
			verdict_of_time(&v, t);
		else
			verdict_of_death(&v, status);
	}
	drop_watch(t);
	report(t, &v);
	next(t);
}

/* The child has ended, or is not waited for any longer. */
static void
reap(struct task *t)
{
	int status = 0;

	if (!has_ended(t->pid, &status)) {
		(void)t->l->kill(t->pid, SIGKILL);
		strays_add(
		    &t->l->strays, t->delivery->nexthop, t->pid, clock_mono());
		t->killed = true;
	}
	finish(t, status);
}

static void
on_exit_of_child(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	reap(arg);
}

/* The end of its pipe is near the end of the child, but for one that waits for
 * a file system while its files are closed. The loop goes on meanwhile, since
 * how long that takes may be for the recipient to say. */
static void
pipe_has_ended(struct task *t)
{
	const struct timeval tv = clock_timeval(EXIT_GRACE);
	int status = 0;

	if (has_ended(t->pid, &status)) {
		finish(t, status);
		return;
	}
	drop_watch(t);
	t->fd = pidfd_open(t->pid, 0);
	t->event = event_new(
	    t->l->base, t->fd, t->fd < 0 ? 0 : EV_READ, on_exit_of_child, t);
	if (t->event == NULL || event_add(t->event, &tv) < 0)
		reap(t);
}

/* The pipe has not ended, though all that have it were killed. */
static void
give_up(struct task *t)
{
	int status = 0, fd;

	if (!has_ended(t->pid, &status)) {
		reap(t);
		return;
	}
	fd = t->fd;
	t->fd = -1;
	event_free(t->event);
	t->event = NULL;
	strays_add_behind(
	    &t->l->strays, t->delivery->nexthop, &fd, clock_mono());
	io_close(&fd);
	finish(t, status);
}

static void
time_is_over(struct task *t)
{
	if (t->killed) {
		give_up(t);
		return;
	}
	(void)t->l->kill(t->pid, SIGKILL);
	t->killed = true;
	set_timer(t->event, KILL_GRACE);
}

static void
skip(struct task *t, size_t n)
{
	memmove(t->data, t->data + n, t->got - n);
	t->got -= n;
}

/* The account comes once, before anything else. */
static void
take_what_comes_first(struct task *t)
{
	if (t->asks[0] != '\0') {
		if (t->got < sizeof(struct known_news))
			return;
		known_take(t->l->known, t->asks, t->data, t->started_at);
		skip(t, sizeof(struct known_news));
		t->asks[0] = '\0';
	}
	skip(t, verdict_progress_len(t->data, t->got));
}

/* Octets that do not fit are more than a verdict, and are read only to see
 * their end. */
static ssize_t
read_more(struct task *t, int fd)
{
	size_t room = sizeof(t->data) - t->got;
	char rest[256];
	ssize_t n = room > 0 ? read(fd, t->data + t->got, room)
			     : read(fd, rest, sizeof(rest));

	if (n > 0 && room > 0) {
		t->got += (size_t)n;
		take_what_comes_first(t);
	}
	return n;
}

static void
on_verdict(evutil_socket_t fd, short what, void *arg)
{
	struct task *t = arg;
	ssize_t n;

	if (what & EV_TIMEOUT) {
		time_is_over(t);
		return;
	}
	/* The loop counts the time of the event from here again. */
	n = read_more(t, fd);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		pipe_has_ended(t);
	else if (clock_mono() > t->deadline)
		time_is_over(t);
}

/* ---- begin ---- */

static struct child_plan
make_plan(const struct task *t)
{
	const struct local *l = t->l;
	struct child_plan plan = {
		.delivery = t->delivery,
		.recipient = t->delivery->rcpts[t->place].address,
		.parent = getpid(),
		.private = l->private,
		.maildir_path = l->conf->maildir_path,
		.maildir_user = l->conf->maildir_user,
		.host = l->host,
		.hopcount_limit = l->conf->hopcount_limit,
		.command_time_limit = l->conf->command_time_limit,
		.maildir_time_limit = l->conf->maildir_time_limit,
		.started_at = t->started_at,
		.programs = l->programs,
		.number = l->deliveries,
		.conf = l->conf,
		.routes = l->routes,
		.queue = l->queue,
		.rcpt_index = t->delivery->rcpts[t->place].index,
		.qmails = l->system_uids[1],
		.qmail = l->qmail,
	};

	memcpy(plan.system_uids, l->system_uids, sizeof(plan.system_uids));
	return plan;
}

/* Signals are blocked from before the fork until the child has put off the
 * handlers of this loop. */
static pid_t
fork_child(child_fn *child, const struct child_plan *plan, int result_fd)
{
	sigset_t all, old;
	pid_t pid;
	int error;

	log_flush(); /* the child must not have these lines, too */
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0) {
		child(plan, result_fd);
		_exit(EXIT_TEMPORARY);
	}
	error = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	errno = error;
	return pid;
}

/* A program has its own time limit; a maildir is to get on, and so is an
 * expansion, which may take long in all. */
static void
begin_time(struct task *t)
{
	const struct conf *conf = t->l->conf;
	usec_t whole = conf->command_time_limit + HANG_MARGIN;
	usec_t step =
	    conf->maildir_time_limit + conf->maildir_time_limit / PULSE_PARTS;

	t->killed = false;
	t->deadline = t->started_at + whole;
	if (t->delivery->kind == AGENT_ALIAS && !runs_program(t))
		t->deadline = USEC_NEVER;
	else if (runs_program(t) || step > whole)
		step = whole;
	set_timer(t->event, step);
}

static int
start_child(struct task *t)
{
	struct child_plan plan = make_plan(t);
	int fds[2];

	known_plan(&plan, t->l->known, t->started_at);
	memcpy(t->asks, plan.asks, sizeof(t->asks));
	if (plan.account != NULL) /* the child sends none */
		t->asks[0] = '\0';
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	t->event =
	    event_new(t->l->base, fds[0], EV_READ | EV_PERSIST, on_verdict, t);
	t->pid = t->event == NULL ? -1 : fork_child(t->l->child, &plan, fds[1]);
	if (t->pid < 0) {
		int error = t->event == NULL ? ENOMEM : errno;

		t->pid = 0;
		close(fds[0]);
		close(fds[1]);
		drop_watch(t);
		return -error;
	}
	close(fds[1]);
	t->fd = fds[0];
	t->got = 0;
	begin_time(t);
	t->l->deliveries++;
	return 0;
}

static void
on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct task *t = arg;

	drop_watch(t);
	next(t);
}

/* true: it is waiting; false: the recipient is dealt with. */
static bool
wait_or_give_up(struct task *t, int error)
{
	struct verdict v;

	if (t->failed_forks < FORK_TRIES)
		t->event = evtimer_new(t->l->base, on_retry, t);
	if (t->event != NULL) {
		set_timer(t->event, USEC_PER_SEC << t->failed_forks++);
		return true;
	}
	verdict_error(&v, error, "start a process for the delivery");
	report(t, &v);
	return false;
}

static void
refuse(struct task *t)
{
	struct verdict v;

	verdict_set(&v, AGENT_DEFERRED, "4.3.0",
	    "earlier deliveries to %s hang and cannot be ended",
	    t->delivery->nexthop);
	report(t, &v);
}

/* Go on until something has to be waited for. */
static void
next(struct task *t)
{
	int r;

	while (!t->l->ending && t->place < t->delivery->nrcpts) {
		t->started_at = clock_mono();
		if (!strays_allow(&t->l->strays, t->delivery->nexthop)) {
			refuse(t);
			continue;
		}
		r = start_child(t);
		if (r == 0) {
			t->failed_forks = 0;
			return;
		}
		if (wait_or_give_up(t, r))
			return;
	}
	end_task(t);
}

void
task_begin(struct local *l, struct agent_delivery *delivery)
{
	struct task *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		agent_defer(delivery, "4.3.0", "out of memory");
		return;
	}
	t->l = l;
	t->delivery = delivery;
	t->fd = -1;
	LIST_INSERT_HEAD(&l->tasks, t, entry);
	next(t);
}

void
task_end_waiting(struct local *l)
{
	struct task *t, *after;

	for (t = LIST_FIRST(&l->tasks); t != NULL; t = after) {
		after = LIST_NEXT(t, entry);
		if (t->pid == 0)
			end_task(t);
	}
}

void
task_ask_all(struct local *l)
{
	struct task *t;

	LIST_FOREACH (t, &l->tasks, entry)
		if (t->pid > 0 && runs_program(t))
			(void)l->kill(t->pid, SIGTERM);
}

void
task_end_all(struct local *l)
{
	struct task *t;

	l->idle = NULL;
	while ((t = LIST_FIRST(&l->tasks)) != NULL) {
		if (t->pid > 0)
			(void)l->kill(t->pid, SIGKILL);
		end_task(t);
	}
}
