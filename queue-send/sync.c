#include "queue-send/road.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>

#include "log/log.h"
#include "spool/reason.h"
#include "spool/sync_pool.h"

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

/* ---- tasks that are done ---- */

static void
leaves(struct send *s, struct message *m)
{
	m->marked = m->syncing = 0;
	messages_put(&s->messages, m, LIST_FINISHED);
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

/* The message may have gone meanwhile, and another one have its inode. */
static void
one_is_done(struct send *s, const struct sync_task *job)
{
	struct message *m = messages_find(&s->messages, job->inode);

	s->sync.tasks--;
	if (m == NULL || m->syncing != job->serial)
		return;
	if (job->error < 0)
		failed(s, m, job->error);
	else
		leaves(s, m);
}

static void
whole_is_done(struct send *s, const struct sync_task *job)
{
	struct marks_sync *y = &s->sync;
	uint32_t n = s->messages.count[LIST_UNSYNCED];
	struct message *m;

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
	for (; n > 0; n--) {
		m = messages_first(&s->messages, LIST_UNSYNCED);
		messages_put(&s->messages, m,
		    sync_is_wanting(s, m) ? LIST_UNSYNCED : LIST_FINISHED);
	}
}

static void
on_done(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct send *s = arg;
	struct sync_task *job;

	send_read_clocks(s);
	while ((job = sync_pool_take(s->sync.pool)) != NULL) {
		if (job->whole)
			whole_is_done(s, job);
		else
			one_is_done(s, job);
		sync_task_free(job);
	}
	send_wake(s);
}

/* ---- tasks to do ---- */

/* The reasons first: a mark says that there is one. */
static int
take_files(struct send *s, struct message *m, struct sync_task *job)
{
	int r;

	if (m->failed > 0 || m->succeeded) {
		job->fds[0] = reason_open(&s->sp, SPOOL_BOUNCE, m->inode);
		if (job->fds[0] < 0 && job->fds[0] != -ENOENT)
			return job->fds[0];
	}
	r = disk_open_to_read(s, m);
	if (r < 0)
		return r;
	messages_use(&s->messages, m);
	job->fds[1] = r;
	m->fd = -1;
	return 0;
}

static int
start_one(struct send *s, struct message *m)
{
	struct sync_task *job = sync_task_new();
	int r = job == NULL ? -ENOMEM : take_files(s, m, job);

	if (r == 0) {
		job->inode = m->inode;
		job->serial = ++s->sync.serial;
		r = sync_pool_put(s->sync.pool, job);
	}
	if (r < 0) {
		sync_task_free(job);
		return r;
	}
	m->syncing = s->sync.serial;
	s->sync.tasks++;
	messages_put(&s->messages, m, LIST_SYNCING);
	return 0;
}

static int
start_whole(struct send *s)
{
	struct marks_sync *y = &s->sync;
	struct sync_task *job = sync_task_new();
	int r = -ENOMEM;

	if (job != NULL) {
		job->whole = true;
		job->fds[0] = fcntl(s->lock, F_DUPFD_CLOEXEC, 0);
		r = job->fds[0] < 0 ? -errno : sync_pool_put(y->pool, job);
	}
	if (r < 0) {
		sync_task_free(job);
		return r;
	}
	y->whole = y->epoch++;
	y->changed_at = 0;
	return 0;
}

/* Start syncs of messages that wait for one. */
static int
start_waiting(struct send *s)
{
	struct message *m;
	int r;

	while (s->sync.tasks < TASKS_MAX &&
	    (m = messages_first(&s->messages, LIST_UNSYNCED)) != NULL) {
		r = start_one(s, m);
		if (disk_is_shortage(r) || r == -EAGAIN)
			return r;
		if (r == -ENOENT) /* gone: finish.c deals with that */
			leaves(s, m);
		else if (r < 0)
			failed(s, m, r);
		if (r < 0)
			send_wake(s);
	}
	return 0;
}

static usec_t
whole_at(const struct send *s)
{
	const struct marks_sync *y = &s->sync;

	if (y->whole > 0 || y->changed_at == 0)
		return USEC_NEVER;
	if (s->messages.count[LIST_UNSYNCED] >= MANY && !y->distrusted)
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

/* ---- start and end ---- */

int
sync_init(struct send *s)
{
	struct marks_sync *y = &s->sync;

	y->epoch = 1;
	y->pool = sync_pool_new(s->sp.sys, y->threads);
	if (y->pool == NULL)
		return -ENOMEM;
	y->done = event_new(
	    s->base, sync_pool_fd(y->pool), EV_READ | EV_PERSIST, on_done, s);
	if (y->done == NULL || event_add(y->done, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void
sync_done(struct send *s)
{
	if (s->sync.done != NULL)
		event_free(s->sync.done);
	s->sync.done = NULL;
	sync_pool_free(&s->sync.pool);
}
