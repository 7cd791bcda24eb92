#include "qscheduler/supervisor/look.h"

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
#include "qscheduler/supervisor/super.h"

#define MORE_MAX (1024 * 1024)

struct look {
	LIST_ENTRY(look) link;
	struct super *super;
	enum look_kind kind;
	uint32_t number;
	look_done *done;       /* NULL: nobody waits any more */
	volatile uint32_t *at; /* shared with the process: what it looks at */
	usec_t began;
	bool late; /* it was answered for */
	pid_t pid;
	int fd, pidfd;
	struct event *event;
	size_t got;
	struct look_result result;
	struct buf more;
};

static const char *const names[LOOK_NKINDS] = {
	[LOOK_FACTS] = "first look",
	[LOOK_CHECK] = "check",
	[LOOK_MAIL] = "look for mail",
	[LOOK_MAKE] = "make",
	[LOOK_SEAL] = "seal",
	[LOOK_SWEEP] = "look at directories that are not run",
	[LOOK_SAVE] = "write what is disabled by hand",
	[LOOK_JUDGE] = "read the configuration",
};

/* ---- in the process ---- */

/* Nothing of ours but what is needed: a lock that this process kept would
 * outlive the supervisor where the disk does not answer. */
static void
shed(const struct super *s, int report)
{
	const int low = report < s->base.fd ? report : s->base.fd;
	const int high = report < s->base.fd ? s->base.fd : report;
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;
	int sig;

	for (sig = 1; sig <= SIGRTMAX; sig++)
		(void)sigaction(sig, &sa, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)close(s->base.lock);
	(void)close_range(STDERR_FILENO + 1, (unsigned)low - 1, 0);
	if (high - low > 1)
		(void)close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	(void)close_range((unsigned)high + 1, UINT_MAX, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static _Noreturn void
run(struct look *l, int report, pid_t parent)
{
	struct look_result *out = &l->result;
	struct buf error = { 0 };

	shed(l->super, report);
	if (getppid() != parent)
		_exit(0);
	out->r = look_run(
	    l->super, l->kind, l->number, l->at, out, &error, &l->more);
	if (out->r < 0)
		snprintf(out->text, sizeof(out->text), "%s",
		    error.len > 0 ? buf_str(&error) : strerror(-out->r));
	_exit(io_write_all(report, out, sizeof(*out)) < 0 ||
	    io_write_all(report, l->more.data, l->more.len) < 0);
}

/* ---- in the supervisor ---- */

static void
look_free(struct look **look)
{
	struct look *l = *look;
	void *at = (void *)(uintptr_t)l->at;

	LIST_REMOVE(l, link);
	if (l->event != NULL)
		event_free(l->event);
	if (at != NULL)
		(void)munmap(at, sizeof(*l->at));
	io_close(&l->fd);
	io_close(&l->pidfd);
	buf_done(&l->more);
	free(l);
	*look = NULL;
}

static void
fail(struct look *l, int r, const char *text)
{
	memset(&l->result, 0, sizeof(l->result));
	l->result.r = r;
	snprintf(l->result.text, sizeof(l->result.text), "%s", text);
}

/* "queue 3", or where our own files are. */
static void
describe(const struct look *l, char *out, size_t size)
{
	if (l->number >= 1 && l->number <= QUEUE_NUM_MAX)
		snprintf(out, size, "queue %" PRIu32, l->number);
	else
		snprintf(out, size, "%s", l->super->base.path);
}

static usec_t
limit_of(const struct super *s)
{
	return s->conf->disk_time_limit;
}

/* Its process is where no signal reaches it, or slow; its answer comes when the
 * disk lets go of it. */
static void
give_up(struct look *l)
{
	struct look_result none = { .r = -ETIMEDOUT };
	struct buf more = { 0 };
	char what[64];

	l->late = true;
	(void)event_remove_timer(l->event);
	if (l->kind == LOOK_SWEEP)
		l->number = *l->at;
	describe(l, what, sizeof(what));
	log_error("ALERT: %s: its disk has not answered for %d s (%s)", what,
	    (int)((clock_mono() - l->began) / USEC_PER_SEC), names[l->kind]);
	snprintf(none.text, sizeof(none.text), "the disk does not answer");
	l->done(l->super, l->number, &none, &more);
}

static void
tell_late(const struct look *l)
{
	char what[64];

	describe(l, what, sizeof(what));
	log_info("%s: its disk answers again, after %d s (%s)", what,
	    (int)((clock_mono() - l->began) / USEC_PER_SEC), names[l->kind]);
}

/* Not busy any more while it is answered: the next may begin. */
static void
answer(struct look *l)
{
	const struct look_result result = l->result;
	struct buf more = l->more;
	look_done *done = l->done;
	struct super *s = l->super;
	const uint32_t number = l->number;

	if (l->late)
		tell_late(l);
	l->more = (struct buf){ 0 };
	look_free(&l);
	done(s, number, &result, &more);
	buf_done(&more);
}

/* The result, then `more` to the end. */
static ssize_t
take(struct look *l)
{
	const size_t size = sizeof(l->result);
	ssize_t n;

	if (l->got < size) {
		n = read(l->fd, (char *)&l->result + l->got, size - l->got);
		l->got += n > 0 ? (size_t)n : 0;
		return n;
	}
	if (l->more.len >= MORE_MAX || buf_reserve(&l->more, PIPE_BUF) < 0) {
		l->got = 0;
		return 0;
	}
	n = read(l->fd, l->more.data + l->more.len, PIPE_BUF);
	l->more.len += n > 0 ? (size_t)n : 0;
	l->more.data[l->more.len] = '\0';
	return n;
}

static void
on_report(evutil_socket_t fd UNUSED, short what, void *arg)
{
	struct look *l = arg;
	ssize_t n;

	if ((what & EV_TIMEOUT) != 0) {
		give_up(l);
		return;
	}
	n = take(l);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (n < 0 || l->got < sizeof(l->result))
		fail(l, -ECHILD, "the process that looked has ended");
	answer(l);
}

static int
watch(struct look *l, int report[2])
{
	const struct timeval limit = clock_timeval(limit_of(l->super));
	void *at = mmap(NULL, sizeof(*l->at), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	l->at = at;
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	(void)fcntl(report[1], F_SETFL, 0);
	l->fd = report[0];
	l->event = event_new(
	    l->super->loop, l->fd, EV_READ | EV_PERSIST, on_report, l);
	return l->event == NULL || event_add(l->event, &limit) < 0 ? -ENOMEM
								   : 0;
}

static int
launch(struct look *l, int report)
{
	const pid_t self = getpid();
	sigset_t all, before;
	int r = 0;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	l->pid = fork();
	if (l->pid == 0)
		run(l, report, self);
	if (l->pid < 0)
		r = -errno;
	else
		l->pidfd = pidfd_open(l->pid, 0);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

static unsigned
count_young(const struct super *s, usec_t now)
{
	const struct look *l;
	unsigned n = 0;

	LIST_FOREACH (l, &s->looks, link)
		n += now - l->began < LOOK_YOUNG;
	return n;
}

int
look_start(
    struct super *s, enum look_kind kind, uint32_t number, look_done *done)
{
	const usec_t now = clock_mono();
	struct look *l;
	int report[2] = { -1, -1 }, r;

	if (look_runs(s, number))
		return -EBUSY;
	if (count_young(s, now) >= LOOKS_MAX)
		return -EAGAIN;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->super = s;
	l->kind = kind;
	l->number = number;
	l->done = done;
	l->began = now;
	l->fd = l->pidfd = -1;
	LIST_INSERT_HEAD(&s->looks, l, link);
	r = watch(l, report);
	if (r == 0)
		r = launch(l, report[1]);
	io_close(&report[1]);
	if (r < 0)
		look_free(&l);
	return r;
}

bool
look_runs(const struct super *s, uint32_t number)
{
	const struct look *l;

	LIST_FOREACH (l, &s->looks, link)
		if (l->number == number)
			return true;
	return false;
}

void
looks_close(struct super *s)
{
	struct look *l;

	while ((l = LIST_FIRST(&s->looks)) != NULL) {
		(void)pidfd_send_signal(l->pidfd, SIGKILL, NULL, 0);
		look_free(&l);
	}
}
