#include "deliver-local/task.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/io.h"

/* A child keeps its own time; a child that is this late hangs. */
#define HANG_MARGIN (30 * USEC_PER_SEC)
/* From the end of the pipe to that of the process that had it: a process that
 * takes longer waits within the kernel, and may do so for ever. */
#define EXIT_GRACE  (100 * USEC_PER_MSEC)

static void
set_timer(struct event *ev, usec_t in)
{
	const struct timeval tv = clock_timeval(in);

	(void)event_add(ev, &tv);
}

void
watch_drop(struct task *t)
{
	if (t->event != NULL)
		event_free(t->event);
	t->event = NULL;
	io_close(&t->fd);
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

bool
watch_is_program(const struct task *t)
{
	return child_runs_program(
	    t->delivery, t->delivery->rcpts[t->place].address);
}

static void
verdict_of_time(struct verdict *v, const struct task *t)
{
	usec_t limit = watch_is_program(t) ? t->l->conf->command_time_limit
					   : t->l->conf->maildir_time_limit;

	verdict_set(v, AGENT_DEFERRED, "4.3.0",
	    "the delivery was given up: no progress in %lld s",
	    (long long)(limit / USEC_PER_SEC));
}

/* The answer to this delivery, not one that was sent before it was asked. */
static bool
read_stays(const struct task *t, struct verdict *ret_verdict)
{
	const size_t head = 1 + sizeof(t->number);

	return t->resident != NULL && t->got > head &&
	    (unsigned char)t->data[0] == VERDICT_STAYS &&
	    memcmp(t->data + 1, &t->number, sizeof(t->number)) == 0 &&
	    verdict_read(t->data + head, t->got - head, ret_verdict) == 0;
}

/* An answer that was given in time counts, though the process was killed before
 * anybody looked: the message is in the maildir. */
static void
finish(struct task *t, int status)
{
	struct verdict v;

	t->pid = 0;
	if (verdict_read(t->data, t->got, &v) < 0 && !read_stays(t, &v)) {
		if (t->killed)
			verdict_of_time(&v, t);
		else
			verdict_of_death(&v, status);
	}
	watch_drop(t);
	resident_free(&t->resident);
	task_answered(t, &v);
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
	watch_drop(t);
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
skip_progress(struct task *t)
{
	const size_t n = verdict_progress_len(t->data, t->got);

	memmove(t->data, t->data + n, t->got - n);
	t->got -= n;
}

/* The process, and its descriptor, are another's. */
static void
forget_process(struct task *t)
{
	event_free(t->event);
	t->event = NULL;
	t->resident = NULL;
	t->pid = 0;
	t->fd = -1;
}

/* The process goes on, and is the next delivery's of the account. */
static void
stay(struct task *t, const struct verdict *v)
{
	resident_keep(t->l->residents, t->resident, t->pid, t->fd);
	forget_process(t);
	task_answered(t, v);
}

/* The process has no use for the delivery. Its end is near, and no matter. */
static void
begin_anew(struct task *t)
{
	resident_end(t->l->residents, t->resident, t->pid, t->fd);
	forget_process(t);
	task_anew(t);
}

/* An answer that comes before the end of the pipe; only a process that may stay
 * is believed to do so. */
static bool
answers_and_stays(struct task *t)
{
	const unsigned char tag = (unsigned char)t->data[0];
	struct verdict v;

	if (t->resident == NULL || t->killed || t->got == 0)
		return false;
	if (read_stays(t, &v)) {
		stay(t, &v);
		return true;
	}
	if (tag == VERDICT_ANEW && t->got == 1 &&
	    resident_serves(t->resident)) {
		begin_anew(t);
		return true;
	}
	if (tag == VERDICT_STAYS || tag == VERDICT_ANEW)
		(void)t->l->kill(t->pid, SIGKILL);
	return false;
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
		skip_progress(t);
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
	else if (answers_and_stays(t))
		return;
	else if (clock_mono() > t->deadline)
		time_is_over(t);
}

/* ---- begin ---- */

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
	if (t->delivery->kind == AGENT_ALIAS && !watch_is_program(t))
		t->deadline = USEC_NEVER;
	else if (watch_is_program(t) || step > whole)
		step = whole;
	set_timer(t->event, step);
}

int
watch_begin(struct task *t, int fd)
{
	t->event =
	    event_new(t->l->base, fd, EV_READ | EV_PERSIST, on_verdict, t);
	if (t->event == NULL)
		return -ENOMEM;
	t->fd = fd;
	t->got = 0;
	begin_time(t);
	return 0;
}
