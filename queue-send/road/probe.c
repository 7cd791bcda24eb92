#include "queue-send/road/road.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "log/log.h"

struct probe_task {
	struct sync_task task; /* first */
	const struct spool *sp;
};

/* One byte is written in place, as a mark, in the file of our lock. That is
 * open for writing only here, and keeps no file system from being remounted
 * read-only. */
static int
write_probe(struct sync_task *task)
{
	const struct spool *sp =
	    ((const struct probe_task *)(const void *)task)->sp;
	int fd = sp->sys->openat(sp->dir[SPOOL_LOCK], SEND_LOCK,
	    O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = queue_file_mark(sp->sys, fd, 0, RCPT_PENDING);
	sp->sys->close(fd);
	return r;
}

static void
try_all(struct send *s)
{
	s->admission_blocked_until = s->finish_at = s->stuck_at = 0;
	removal_probed(s);
	s->record_at = s->now;
	send_wake(s);
}

static void
conclude(struct send *s, int error)
{
	if (!health_probed(&s->health, error, s->now))
		return;
	log_warning("%s: can be written again: deliveries go on", s->sp.path);
	try_all(s);
	s->pub.changed = true;
}

void
probe_try_again(struct send *s)
{
	s->health.probe_at = s->now;
	if (s->refused_at != USEC_NEVER)
		s->refused_at = s->now;
	if (s->stray_at != USEC_NEVER)
		s->stray_at = s->now;
	evacuate_try_again(s);
	try_all(s);
}

static void
ended(struct send *s, struct sync_task *task)
{
	s->probe.away = false;
	conclude(s, task->error);
	sync_task_free(task);
}

static bool
give_to_thread(struct send *s)
{
	struct probe_task *t =
	    s->probe.pool.threads == 0 ? NULL : malloc(sizeof(*t));

	if (t == NULL)
		return false;
	sync_task_init(&t->task, write_probe, NULL);
	t->sp = &s->sp;
	s->probe.away = pool_put(&s->probe.pool, &t->task) == 0;
	if (!s->probe.away)
		sync_task_free(&t->task);
	return s->probe.away;
}

usec_t
probe_work(struct send *s)
{
	struct probe_task here = { .sp = &s->sp };

	if (s->probe.away || !s->health.read_only)
		return USEC_NEVER;
	if (!health_probe_due(&s->health, s->now))
		return s->health.probe_at;
	if (give_to_thread(s))
		return USEC_NEVER;
	conclude(s, write_probe(&here.task));
	return s->health.read_only ? s->health.probe_at : USEC_NEVER;
}

int
probe_init(struct send *s)
{
	return pool_init(s, &s->probe.pool, 1, ended);
}

void
probe_done(struct send *s)
{
	s->hung |= !pool_done(&s->probe.pool);
}
