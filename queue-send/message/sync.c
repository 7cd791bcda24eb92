#include "queue-send/message/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "spool/reason.h"

#define TASKS_MAX     64 /* two descriptors each */
#define MANY          64 /* that wait: one sync of the whole is cheaper */
#define SHORTAGE_WAIT USEC_PER_SEC

void
sync_changed(struct send *s)
{
	if (s->sync.changed_at == 0)
		s->sync.changed_at = s->now;
}

void
sync_marked(struct send *s, struct message *m)
{
	m->marked = s->sync.epoch;
	sync_changed(s);
}

bool
sync_is_wanting(const struct send *s, const struct message *m)
{
	return m->marked > 0 &&
	    (s->sync.distrusted || m->marked > s->sync.synced);
}

/* ---- one message, in a thread ---- */

struct sync_one {
	struct sync_task task; /* first; fds[1] is the file, if it was open */
	struct queue_id id;
	const struct spool *sp;
	bool reasons; /* bounce/ may have some */
	bool opened;  /* an error is of a sync */
};

/* The reasons first: a mark says that there is one. */
static int
open_both(struct sync_one *t)
{
	const uint64_t inode = t->id.inode;
	int *fds = t->task.fds;

	if (t->reasons)
		fds[0] = reason_open(t->sp, SPOOL_BOUNCE, inode);
	if (fds[0] < 0 && t->reasons && fds[0] != -ENOENT)
		return fds[0];
	if (fds[1] < 0)
		fds[1] = spool_open_file(t->sp, SPOOL_ACTIVE, inode, O_RDWR);
	if (fds[1] == -EROFS)
		fds[1] = spool_open_file(t->sp, SPOOL_ACTIVE, inode, O_RDONLY);
	return fds[1] < 0 ? fds[1] : 0;
}

static int
sync_both(struct sync_task *task)
{
	struct sync_one *t = (struct sync_one *)(void *)task;
	int i, r = open_both(t);

	t->opened = r == 0;
	for (i = 0; r == 0 && i < SYNC_JOB_FDS; i++)
		if (task->fds[i] >= 0 && t->sp->sys->fsync(task->fds[i]) < 0)
			r = -errno;
	return r;
}

/* ---- tasks that are done ---- */

static void
leaves(struct send *s, struct message *m)
{
	m->marked = 0;
	messages_put(&s->messages, m, STATE_FINISHED);
}

static void
failed(struct send *s, struct message *m, int error)
{
	disk_mark_failed(
	    s, m, "sync what was delivered (a power cut may repeat it)", error);
	m->deferred++;
	m->reported = true; /* not now: by the next attempt */
	leaves(s, m);
}

static void
not_opened(struct send *s, struct message *m, int error)
{
	if (disk_is_shortage(error)) {
		messages_close_resting(&s->messages);
		s->sync.not_before = s->now + SHORTAGE_WAIT;
		messages_put(&s->messages, m, STATE_UNSYNCED);
	} else if (error == -ENOENT) { /* gone: finish.c deals with that */
		leaves(s, m);
	} else {
		failed(s, m, error);
	}
}

/* The message may have gone meanwhile, and another one have its inode. */
static void
one_is_done(struct send *s, const struct sync_one *t)
{
	struct message *m = messages_find(&s->messages, t->id.inode);

	s->sync.tasks--;
	if (m == NULL || m->state != STATE_SYNCING ||
	    !message_is(m, t->id.arrival_wall, t->id.nonce))
		return;
	if (!t->opened)
		not_opened(s, m, t->task.error);
	else if (t->task.error < 0)
		failed(s, m, t->task.error);
	else
		leaves(s, m);
}

static void
whole_is_done(struct send *s, const struct sync_task *job)
{
	struct marks_sync *y = &s->sync;
	struct message *m, *next;

	if (job->error == 0) {
		y->synced = y->whole;
	} else {
		y->distrusted = true;
		s->pub.changed = true;
		log_error("%s: cannot sync what was delivered: %s: a power cut "
			  "may repeat it",
		    s->sp.path, strerror(-job->error));
		disk_count_error(s, HEALTH_OTHER, job->error);
	}
	y->whole = 0;
	for (m = messages_first(&s->messages, STATE_UNSYNCED); m != NULL;
	     m = next) {
		next = TAILQ_NEXT(m, on);
		if (!sync_is_wanting(s, m))
			messages_put(&s->messages, m, STATE_FINISHED);
	}
}

static void
ended(void *send, struct sync_task *job)
{
	struct send *s = send;

	if (job->whole)
		whole_is_done(s, job);
	else
		one_is_done(s, (struct sync_one *)(void *)job);
	send_wake(s);
	sync_task_free(job);
}

/* ---- tasks to do ---- */

/* The file is the task's from here on. */
static void
take_file(struct send *s, struct message *m, struct sync_task *job)
{
	messages_use(&s->messages, m);
	job->fds[1] = m->fd;
	m->fd = -1;
}

static int
start_one(struct send *s, struct message *m)
{
	struct sync_one *t = malloc(sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	*t = (struct sync_one){ .id = message_queue_id(m),
		.sp = &s->sp,
		.reasons = m->failed > 0 || m->succeeded };
	sync_task_init(&t->task, sync_both, NULL, ended);
	take_file(s, m, &t->task);
	s->sync.tasks++;
	messages_put(&s->messages, m, STATE_SYNCING);
	disk_do(s, DISK_SYNC, &t->task);
	return 0;
}

static int
start_whole(struct send *s)
{
	struct marks_sync *y = &s->sync;
	struct sync_task *job;
	const int fd = fcntl(s->lock, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	job = sync_task_new(ended);
	if (job == NULL) {
		close(fd);
		return -ENOMEM;
	}
	job->whole = true;
	job->fds[0] = fd;
	y->whole = y->epoch++;
	y->changed_at = 0;
	disk_do(s, DISK_SYNC, job);
	return 0;
}

/* Start syncs of messages that wait for one. */
static int
start_waiting(struct send *s)
{
	struct message *m;
	int r;

	while (s->sync.tasks < TASKS_MAX &&
	    (m = messages_first(&s->messages, STATE_UNSYNCED)) != NULL) {
		r = start_one(s, m);
		if (r < 0)
			return r;
	}
	return 0;
}

static usec_t
whole_at(const struct send *s)
{
	const struct marks_sync *y = &s->sync;

	if (y->whole > 0 || y->changed_at == 0)
		return USEC_NEVER;
	if (s->messages.count[STATE_UNSYNCED] >= MANY && !y->distrusted)
		return s->now;
	return s->conf->mark_sync_interval == 0
	    ? USEC_NEVER
	    : y->changed_at + s->conf->mark_sync_interval;
}

usec_t
sync_work(struct send *s)
{
	struct marks_sync *y = &s->sync;
	int r;

	if (s->now < y->not_before)
		return y->not_before;
	r = start_waiting(s);
	if (r == 0 && s->now >= whole_at(s))
		r = start_whole(s);
	if (r == 0)
		return whole_at(s);
	y->not_before = s->now + SHORTAGE_WAIT;
	return y->not_before;
}

void
sync_init(struct send *s)
{
	s->sync.epoch = 1;
}
