#include "qscheduler/look.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"
#include "qscheduler/super.h"

struct look {
	LIST_ENTRY(look) link;
	struct super *super;
	enum look_kind kind;
	uint32_t queue;
	look_done *done; /* NULL: nobody waits any more */
	pid_t pid;
	int fd, pidfd;
	struct event *event;
	size_t got;
	struct look_result result;
};

static const char *const names[LOOK_NKINDS] = {
	[LOOK_CHECK] = "check",
	[LOOK_MAIL] = "look for mail",
	[LOOK_MAKE] = "make",
	[LOOK_SEAL] = "seal",
	[LOOK_SWEEP] = "look at directories that are not run",
};

/* ---- in the process ---- */

static int
run_check(struct super *s, uint32_t queue, struct look_result *out UNUSED,
    struct buf *error UNUSED)
{
	int r = base_check(&s->base, queue);

	if (r < 0 || !spool_is_closed_at(s->base.path, queue))
		return r;
	r = spool_set_closed(s->base.path, queue, false);
	return r < 0 ? r : 1;
}

static int
run_make(
    struct super *s, uint32_t queue, struct look_result *out, struct buf *error)
{
	struct queue_facts *facts = &out->facts;
	int r = base_read_list(&s->base, error);

	if (r < 0)
		return r;
	facts->wanted = true;
	base_look(&s->base, queue, facts);
	if (base_judge(facts) != VERDICT_DISABLE)
		return base_make(&s->base, queue, s->conf->queue_split, error);
	(void)base_describe_lost(&s->base, queue, facts, error);
	return facts->error < 0 ? facts->error : -ENOENT;
}

static int
run_mail(struct super *s, uint32_t queue, struct look_result *out,
    struct buf *error UNUSED)
{
	base_look(&s->base, queue, &out->facts);
	return out->facts.error;
}

static int
run_seal(struct super *s, uint32_t queue, struct look_result *out UNUSED,
    struct buf *error UNUSED)
{
	return base_seal(&s->base, queue);
}

static int
run_sweep(struct super *s, uint32_t queue UNUSED, struct look_result *out,
    struct buf *error UNUSED)
{
	uint32_t disk[QUEUE_NUM_MAX];
	int i, n = spool_list(s->base.path, disk, ARRAY_LEN(disk));

	for (i = 0; i < n; i++) {
		struct queue_facts facts = { 0 };

		if (queue_find(s, disk[i]) != NULL)
			continue;
		base_look(&s->base, disk[i], &facts);
		out->mail[disk[i]] = facts.mail;
	}
	return n < 0 ? n : 0;
}

static int (*const runs[LOOK_NKINDS])(struct super *s, uint32_t queue,
    struct look_result *out, struct buf *error) = {
	[LOOK_CHECK] = run_check,
	[LOOK_MAIL] = run_mail,
	[LOOK_MAKE] = run_make,
	[LOOK_SEAL] = run_seal,
	[LOOK_SWEEP] = run_sweep,
};

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
	out->r = runs[l->kind](l->super, l->queue, out, &error);
	if (out->r < 0)
		snprintf(out->text, sizeof(out->text), "%s",
		    error.len > 0 ? buf_str(&error) : strerror(-out->r));
	_exit(io_write_all(report, out, sizeof(*out)) < 0);
}

/* ---- in the supervisor ---- */

static void
look_free(struct look **look)
{
	struct look *l = *look;

	LIST_REMOVE(l, link);
	l->super->nlooks--;
	if (l->event != NULL)
		event_free(l->event);
	io_close(&l->fd);
	io_close(&l->pidfd);
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

/* It may be where no signal reaches it; its end is heard later. */
static void
give_up(struct look *l)
{
	look_done *done = l->done;

	log_error("ALERT: queue %" PRIu32 ": its disk has not answered for "
		  "%d s (%s)",
	    l->queue, (int)(LOOK_LIMIT / USEC_PER_SEC), names[l->kind]);
	(void)pidfd_send_signal(l->pidfd, SIGKILL, NULL, 0);
	fail(l, -ETIMEDOUT, "the disk does not answer");
	(void)event_remove_timer(l->event);
	l->done = NULL;
	if (done != NULL)
		done(l->super, l->queue, &l->result);
}

/* Not busy any more while it is answered: the next may begin. */
static void
answer(struct look *l)
{
	const struct look_result result = l->result;
	look_done *done = l->done;
	struct super *s = l->super;
	const uint32_t queue = l->queue;

	look_free(&l);
	if (done != NULL)
		done(s, queue, &result);
}

static void
on_report(evutil_socket_t fd, short what, void *arg)
{
	struct look *l = arg;
	ssize_t n;

	if ((what & EV_TIMEOUT) != 0) {
		give_up(l);
		return;
	}
	n = read(fd, (char *)&l->result + l->got, sizeof(l->result) - l->got);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		l->got += (size_t)n;
		if (l->got < sizeof(l->result))
			return;
	} else if (l->done != NULL) {
		fail(l, -ECHILD, "the process that looked has ended");
	}
	answer(l);
}

static int
watch(struct look *l, int report[2])
{
	const struct timeval limit = clock_timeval(LOOK_LIMIT);

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

int
look_start(
    struct super *s, enum look_kind kind, uint32_t queue, look_done *done)
{
	struct look *l;
	int report[2] = { -1, -1 }, r;

	if (look_runs(s, queue))
		return -EBUSY;
	if (s->nlooks >= LOOKS_MAX)
		return -EAGAIN;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->super = s;
	l->kind = kind;
	l->queue = queue;
	l->done = done;
	l->fd = l->pidfd = -1;
	LIST_INSERT_HEAD(&s->looks, l, link);
	s->nlooks++;
	r = watch(l, report);
	if (r == 0)
		r = launch(l, report[1]);
	io_close(&report[1]);
	if (r < 0)
		look_free(&l);
	return r;
}

bool
look_runs(const struct super *s, uint32_t queue)
{
	const struct look *l;

	LIST_FOREACH (l, &s->looks, link)
		if (l->queue == queue)
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
