#include "deliver-local/task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"
#include "submit/submit.h"

/* Forks that fail: 1, 2, 4 … seconds apart, then the recipient waits in the
 * queue. */
#define FORK_TRIES 6

static void next(struct task *t);

static void
end_task(struct task *t)
{
	struct local *l = t->l;

	const char *why = t->cancelled;

	if (why == NULL && l->ending)
		why = AGENT_STOPPED;
	agent_done(t->delivery, AGENT_SITE_TALKED,
	    why == NULL ? "" : AGENT_CANCELLED_DSN, why == NULL ? "" : why);
	watch_drop(t);
	resident_free(&t->resident);
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

/* ---- begin ---- */

static struct child_plan
make_plan(const struct task *t)
{
	const struct local *l = t->l;

	return (struct child_plan){
		.delivery = t->delivery,
		.recipient = t->delivery->rcpts[t->place].address,
		.private = l->private,
		.maildir_path = l->conf->maildir_path,
		.maildir_user = l->conf->maildir_user,
		.forward_path = l->conf->forward_path,
		.host = l->host,
		.command_time_limit = l->conf->command_time_limit,
		.maildir_time_limit = l->conf->maildir_time_limit,
		.reserve = submit_reserve(l->conf, ROOM_SYSTEM),
		.mailbox_size_limit = l->conf->mailbox_size_limit,
		.started_at = t->started_at,
		.programs = l->programs,
		.number = l->deliveries,
		.conf = l->conf,
		.routes = l->routes,
		.queue = l->queue,
		.rcpt_index = t->delivery->rcpts[t->place].index,
		.users = l->users,
	};
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
		words_forget(); /* the child puts other files there */
		child(plan, result_fd);
		_exit(EXIT_TEMPORARY);
	}
	error = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	errno = error;
	return pid;
}

/* A pipe; for a process that may stay, a socket, by which it gets more. The
 * process waits for those, this one never. */
static int
make_pair(bool stays, int fds[2])
{
	if (!stays)
		return pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	return fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int
start_process(struct task *t, struct child_plan *plan)
{
	int fds[2] = { -1, -1 }, r;

	t->resident = t->alone ? NULL : resident_new(t->l->residents, plan);
	plan->may_stay = t->resident != NULL;
	plan->parent = getpid();
	r = make_pair(plan->may_stay, fds);
	if (r == 0)
		r = watch_begin(t, fds[0]);
	if (r < 0) {
		io_close(&fds[0]);
	} else {
		t->pid = fork_child(t->l->child, plan, fds[1]);
		r = t->pid < 0 ? -errno : 0;
	}
	io_close(&fds[1]);
	if (r < 0) {
		t->pid = 0;
		watch_drop(t);
		resident_free(&t->resident);
	}
	return r;
}

/* false: none of the account is there. */
static bool
give_to_resident(struct task *t, const struct child_plan *plan)
{
	struct residents *all = t->l->residents;
	struct resident *r;
	pid_t pid;
	int fd;

	while ((r = resident_take(all, plan, &pid, &fd)) != NULL) {
		if (watch_begin(t, fd) == 0) {
			if (serve_send(plan, fd) == 0) {
				t->pid = pid;
				t->resident = r;
				return true;
			}
			watch_drop(t);
			fd = -1;
		}
		resident_end(all, r, pid, fd);
	}
	return false;
}

static int
start_child(struct task *t)
{
	struct child_plan plan = make_plan(t);
	int r = 0;

	t->number = plan.number;
	child_name_account(&plan);
	if (t->alone || !give_to_resident(t, &plan))
		r = start_process(t, &plan);
	if (r < 0)
		return r;
	t->alone = false;
	t->l->deliveries++;
	return 0;
}

static void
on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct task *t = arg;

	watch_drop(t);
	next(t);
}

/* true: it is waiting; false: the recipient is dealt with. */
static bool
wait_or_give_up(struct task *t, int error)
{
	const struct timeval tv =
	    clock_timeval(USEC_PER_SEC << t->failed_forks);
	struct verdict v;

	residents_end_idle(t->l->residents);
	if (t->failed_forks < FORK_TRIES)
		t->event = evtimer_new(t->l->base, on_retry, t);
	if (t->event != NULL) {
		t->failed_forks++;
		(void)event_add(t->event, &tv);
		return true;
	}
	verdict_error(&v, error, "start a process for the delivery");
	report(t, &v);
	return false;
}

void
task_answered(struct task *t, const struct verdict *v)
{
	report(t, v);
	next(t);
}

void
task_anew(struct task *t)
{
	t->alone = true;
	next(t);
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

	while (!t->l->ending && t->cancelled == NULL &&
	    t->place < t->delivery->nrcpts) {
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
task_cancel(
    void *local, struct agent_delivery *delivery, enum agent_stage stage)
{
	const struct local *l = local;
	struct task *t, *found = NULL;

	LIST_FOREACH (t, &l->tasks, entry)
		if (t->delivery == delivery)
			found = t;
	if (found == NULL)
		return;
	found->cancelled = agent_cancelled(stage);
	if (found->pid == 0)
		end_task(found);
}

void
task_ask_all(int fd UNUSED, short what UNUSED, void *local)
{
	const struct local *l = local;
	struct task *t;

	LIST_FOREACH (t, &l->tasks, entry)
		if (t->pid > 0 && watch_is_program(t))
			(void)l->kill(t->pid, SIGTERM);
}

void
task_end_all(void *local)
{
	struct local *l = local;
	struct task *t;

	l->idle = NULL;
	while ((t = LIST_FIRST(&l->tasks)) != NULL) {
		if (t->pid > 0)
			(void)l->kill(t->pid, SIGKILL);
		end_task(t);
	}
}
