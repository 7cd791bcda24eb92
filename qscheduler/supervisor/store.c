#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "log/log.h"

#define TELL_EVERY  (60 * USEC_PER_SEC) /* of saves that fail */
#define RETRY_MAX   (60 * USEC_PER_SEC)
#define ANSWER_WAIT (1 * USEC_PER_SEC) /* askers wait for five */
#define CLOCK_STEP  (5 * USEC_PER_SEC) /* less is no step of the clock */

/* ---- answers ---- */

static void
answer_first(struct super *s, const char *more)
{
	struct store *st = &s->store;
	struct store_answer *a = &st->waiting[0];
	char text[SCHED_ANSWER_SIZE];

	snprintf(text, sizeof(text), "%s%s", a->text, more);
	publish_answer(s, &a->asker, 0, text);
	st->nwaiting--;
	memmove(a, a + 1, st->nwaiting * sizeof(*a));
}

static void
answer_up_to(struct super *s, uint64_t change, const char *more)
{
	while (s->store.nwaiting > 0 && s->store.waiting[0].change <= change)
		answer_first(s, more);
}

void
store_answer(
    struct super *s, const struct asker *asker, const char *text, usec_t now)
{
	struct store *st = &s->store;
	struct store_answer *a;

	if (st->nwaiting == ARRAY_LEN(st->waiting))
		answer_first(s, STORE_LATER);
	a = &st->waiting[st->nwaiting++];
	*a = (struct store_answer){ .asker = *asker,
		.change = st->change,
		.until = now + ANSWER_WAIT };
	snprintf(a->text, sizeof(a->text), "%s", text);
	store_save(s, now);
}

/* ---- QUEUE_BASE/by-hand ---- */

void
store_changed(struct super *s)
{
	s->store.change++;
}

/* The change is in force, whether or not it could be written down. */
static void
not_saved(struct super *s, int error, const char *why)
{
	struct store *st = &s->store;
	const usec_t interval = s->instance.conf->error_interval;
	const usec_t retry = interval < RETRY_MAX ? interval : RETRY_MAX;
	char more[SCHED_ANSWER_SIZE];

	st->save_at = st->as_of.mono + retry;
	snprintf(more, sizeof(more), "; a restart may forget it: %s",
	    strerror(-error));
	answer_up_to(s, st->saving, more);
	if (log_due(st->as_of.mono, TELL_EVERY, &st->told))
		log_warning("%s: what was set by hand would be forgotten by a "
			    "restart; tried again every %d s",
		    why, (int)(retry / USEC_PER_SEC));
}

static void
on_saved(void *ctx, uint32_t number UNUSED, const struct worker_result *result,
    struct buf *more UNUSED)
{
	struct super *s = ctx;
	struct store *st = &s->store;

	if (result->r == -ETIMEDOUT) {
		answer_up_to(s, UINT64_MAX, STORE_LATER);
		return;
	}
	if (result->r < 0) {
		not_saved(s, result->r, result->text);
	} else {
		answer_up_to(s, st->saving, "");
		st->saved = st->saving;
		st->told = 0; /* the next failure is a new one */
	}
	st->saving = 0;
	if (result->r == 0 && st->saved != st->change)
		store_save(s, clock_mono());
}

/* In the worker. */
static int
save(const struct worker_call *call)
{
	const struct super *s = call->ctx;

	return override_write(s->base.fd, s->base.path, s->queues.overrides,
	    &s->store.as_of, call->error);
}

static const struct worker_task saving = { "write what was set by hand", save,
	on_saved };

void
store_save(struct super *s, usec_t now)
{
	struct override *o = &s->queues.overrides[0];
	struct store *st = &s->store;
	int r;

	if (st->saving != 0)
		return;
	st->save_at = 0;
	st->saving = st->change;
	override_moment_now(now, &st->as_of);
	o->until[OVERRIDE_COUNT] =
	    grow_count_by_hand(s, &o->value[OVERRIDE_COUNT]);
	r = worker_start(&s->workers, &saving, WORKER_OVERRIDES, s);
	if (r < 0) {
		not_saved(s, r, strerror(-r));
		st->saving = 0;
	}
}

/* The times in the file are of the wall clock as it was: after a step they are
 * written anew, for a start after the next boot. */
static void
follow_clock(struct super *s, usec_t now)
{
	struct override_moment *then = &s->store.as_of;
	const usec_t wall = clock_wall();

	if (llabs(wall - now - (then->wall - then->mono)) < CLOCK_STEP)
		return;
	then->wall = wall;
	then->mono = now;
	if (override_is_any(s->queues.overrides, now))
		store_changed(s);
}

void
store_tick(struct super *s, usec_t now)
{
	struct store *st = &s->store;

	follow_clock(s, now);
	while (st->nwaiting > 0 && now >= st->waiting[0].until)
		answer_first(s, STORE_LATER);
	if (st->saved != st->change && now >= st->save_at)
		store_save(s, now);
}

/* ---- at the start ---- */

void
store_restore(struct super *s, usec_t now)
{
	const struct override *o = &s->queues.overrides[0];

	override_moment_now(now, &s->store.as_of);
	if (override_restore(&s->queues, &s->store.as_of))
		store_changed(s);
	if (o->until[OVERRIDE_COUNT] != 0 &&
	    !grow_restore_count(
		s, o->value[OVERRIDE_COUNT], o->until[OVERRIDE_COUNT]))
		store_changed(s);
}

/* The steps of base_open(), before there is anything that could hang. */
static _Noreturn void
try(const char *path, int report, pid_t parent)
{
	char name[8];
	int fd, lock;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lock = openat(fd, "lock", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	(void)io_read_all(lock, name, sizeof(name));
	(void)fsync(fd);
	(void)io_write_all(report, "", 1);
	_exit(0);
}

void
store_await(const char *path, usec_t limit)
{
	const pid_t self = getpid();
	struct pollfd wait = { .events = POLLIN };
	int report[2];
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0)
		try(path, report[1], self);
	io_close(&report[1]);
	wait.fd = report[0];
	if (pid > 0 && poll(&wait, 1, (int)(limit / USEC_PER_MSEC)) == 0) {
		log_error("ALERT: %s: its disk has not answered for %d s: "
			  "nothing is started before it does",
		    path, (int)(limit / USEC_PER_SEC));
		(void)poll(&wait, 1, -1);
		log_info("%s: its disk answers", path);
	}
	io_close(&report[0]);
}
