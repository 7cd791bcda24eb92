#include "queue-send/message/path.h"

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

void
probe_try_all(struct send *s)
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
	probe_try_all(s);
	s->pub.changed = true;
}

static void
ended(void *send, struct sync_task *task)
{
	struct send *s = send;

	s->probe_away = false;
	conclude(s, task->error);
	sync_task_free(task);
}

/* Without memory the next probe comes later. */
static void
begin_probe(struct send *s)
{
	struct probe_task *t = malloc(sizeof(*t));

	if (t == NULL) {
		conclude(s, -ENOMEM);
		return;
	}
	sync_task_init(&t->task, write_probe, NULL, ended);
	t->sp = &s->sp;
	s->probe_away = true;
	disk_do(s, DISK_PROBE, &t->task);
}

usec_t
probe_work(struct send *s)
{
	if (s->probe_away || !s->health.read_only)
		return USEC_NEVER;
	if (health_probe_due(&s->health, s->now))
		begin_probe(s);
	return s->health.read_only && !s->probe_away ? s->health.probe_at
						     : USEC_NEVER;
}
