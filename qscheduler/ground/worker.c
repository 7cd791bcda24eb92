#include "qscheduler/ground/ground.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"

#define MORE_MAX (1024 * 1024)

struct worker {
	LIST_ENTRY(worker) link;
	struct workers *all;
	const struct worker_task *task;
	void *ctx;
	uint32_t number;
	volatile uint32_t *at; /* struct worker_call */
	usec_t began;
	bool late; /* -ETIMEDOUT was answered for it */
	pid_t pid;
	int fd, pidfd;
	struct event *event;
	size_t got;
	struct worker_result result;
	struct buf more;
};

void (*worker_seam)(const char *task, uint32_t number);

/* ---- in the worker ---- */

void
signals_reset(void)
{
	sigset_t none;

	io_default_signals();
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Keep nothing of the supervisor but what is needed. */
static void
shed(const struct workers *all, int report)
{
	const int low = report < all->keep ? report : all->keep;
	const int high = report < all->keep ? all->keep : report;

	signals_reset();
	(void)close(all->lock);
	(void)close_range(STDERR_FILENO + 1, (unsigned)low - 1, 0);
	if (high - low > 1)
		(void)close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	(void)close_range((unsigned)high + 1, UINT_MAX, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static _Noreturn void
run(struct worker *w, int report, pid_t parent)
{
	struct worker_result *out = &w->result;
	struct buf error = { 0 };
	const struct worker_call call = { w->ctx, w->number, w->at, &error,
		&w->more };

	shed(w->all, report);
	if (getppid() != parent)
		_exit(0);
	if (worker_seam != NULL)
		worker_seam(w->task->name, w->number);
	out->r = w->task->run(&call);
	if (out->r < 0)
		snprintf(out->text, sizeof(out->text), "%s",
		    error.len > 0 ? buf_str(&error) : strerror(-out->r));
	_exit(io_write_all(report, out, sizeof(*out)) < 0 ||
	    io_write_all(report, w->more.data, w->more.len) < 0);
}

/* ---- in the supervisor ---- */

static void
worker_free(struct worker **worker)
{
	struct worker *w = *worker;
	void *at = (void *)(uintptr_t)w->at;

	LIST_REMOVE(w, link);
	if (w->event != NULL)
		event_free(w->event);
	if (at != NULL)
		(void)munmap(at, sizeof(*w->at));
	io_close(&w->fd);
	io_close(&w->pidfd);
	buf_done(&w->more);
	free(w);
	*worker = NULL;
}

static void
fail(struct worker *w, int r, const char *text)
{
	memset(&w->result, 0, sizeof(w->result));
	w->result.r = r;
	snprintf(w->result.text, sizeof(w->result.text), "%s", text);
}

/* "queue 3", or where our own files are. */
static void
describe(const struct worker *w, char *out, size_t size)
{
	if (w->number >= 1 && w->number <= CONF_QUEUE_NUM_MAX)
		snprintf(out, size, "queue %" PRIu32, w->number);
	else
		snprintf(out, size, "%s", w->all->path);
}

/* The worker sleeps where no signal reaches it, or is slow; its answer comes
 * when the disk lets go of it. */
static void
give_up(struct worker *w)
{
	struct worker_result none = { .r = -ETIMEDOUT };
	struct buf more = { 0 };
	char what[64];

	w->late = true;
	(void)event_remove_timer(w->event);
	if (*w->at != 0)
		w->number = *w->at;
	describe(w, what, sizeof(what));
	log_error("ALERT: %s: its disk has not answered for %d s (%s)", what,
	    (int)((clock_mono() - w->began) / USEC_PER_SEC), w->task->name);
	snprintf(none.text, sizeof(none.text), "the disk does not answer");
	w->task->done(w->ctx, w->number, &none, &more);
}

static void
tell_late(const struct worker *w)
{
	char what[64];

	describe(w, what, sizeof(what));
	log_info("%s: its disk answers again, after %d s (%s)", what,
	    (int)((clock_mono() - w->began) / USEC_PER_SEC), w->task->name);
}

/* The worker is gone before its answer is given: the next one may begin. */
static void
answer(struct worker *w)
{
	const struct worker_result result = w->result;
	struct buf more = w->more;
	const struct worker_task *task = w->task;
	void *ctx = w->ctx;
	const uint32_t number = w->number;

	if (w->late)
		tell_late(w);
	w->more = (struct buf){ 0 };
	worker_free(&w);
	task->done(ctx, number, &result, &more);
	buf_done(&more);
}

/* The result, then `more` to the end. */
static ssize_t
take(struct worker *w)
{
	const size_t size = sizeof(w->result);
	ssize_t n;

	if (w->got < size) {
		n = read(w->fd, (char *)&w->result + w->got, size - w->got);
		w->got += n > 0 ? (size_t)n : 0;
		return n;
	}
	if (w->more.len >= MORE_MAX || buf_reserve(&w->more, PIPE_BUF) < 0) {
		w->got = 0;
		return 0;
	}
	n = read(w->fd, w->more.data + w->more.len, PIPE_BUF);
	w->more.len += n > 0 ? (size_t)n : 0;
	w->more.data[w->more.len] = '\0';
	return n;
}

static void
on_report(evutil_socket_t fd UNUSED, short what, void *arg)
{
	struct worker *w = arg;
	ssize_t n;

	if ((what & EV_TIMEOUT) != 0) {
		give_up(w);
		return;
	}
	n = take(w);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (n < 0 || w->got < sizeof(w->result))
		fail(w, -ECHILD, "its worker has ended");
	answer(w);
}

static int
watch(struct worker *w, int report[2])
{
	const struct instance *in = w->all->instance;
	const struct timeval limit = clock_timeval(in->conf->disk_time_limit);
	void *at = mmap(NULL, sizeof(*w->at), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	w->at = at;
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	(void)fcntl(report[1], F_SETFL, 0);
	w->fd = report[0];
	w->event =
	    event_new(in->loop, w->fd, EV_READ | EV_PERSIST, on_report, w);
	return w->event == NULL || event_add(w->event, &limit) < 0 ? -ENOMEM
								   : 0;
}

static int
launch(struct worker *w, int report)
{
	const pid_t self = getpid();
	sigset_t all, before;
	int r = 0;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	w->pid = fork();
	if (w->pid == 0)
		run(w, report, self);
	if (w->pid < 0)
		r = -errno;
	else
		w->pidfd = pidfd_open(w->pid, 0);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

static unsigned
count_young(const struct workers *all, usec_t now)
{
	const struct worker *w;
	unsigned n = 0;

	LIST_FOREACH (w, &all->list, link)
		n += now - w->began < WORKER_YOUNG;
	return n;
}

int
worker_start(struct workers *all, const struct worker_task *task,
    uint32_t number, void *ctx)
{
	const usec_t now = clock_mono();
	struct worker *w;
	int report[2] = { -1, -1 }, r;

	if (worker_runs(all, number))
		return -EBUSY;
	if (count_young(all, now) >= WORKERS_MAX)
		return -EAGAIN;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return -ENOMEM;
	w->all = all;
	w->task = task;
	w->ctx = ctx;
	w->number = number;
	w->began = now;
	w->fd = w->pidfd = -1;
	LIST_INSERT_HEAD(&all->list, w, link);
	r = watch(w, report);
	if (r == 0)
		r = launch(w, report[1]);
	io_close(&report[1]);
	if (r < 0)
		worker_free(&w);
	return r;
}

bool
worker_runs(const struct workers *all, uint32_t number)
{
	const struct worker *w;

	LIST_FOREACH (w, &all->list, link)
		if (w->number == number)
			return true;
	return false;
}

void
workers_close(struct workers *all)
{
	struct worker *w;

	while ((w = LIST_FIRST(&all->list)) != NULL) {
		(void)pidfd_send_signal(w->pidfd, SIGKILL, NULL, 0);
		worker_free(&w);
	}
}
