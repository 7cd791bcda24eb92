#include "queue-send/message/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define EVERY      (2 * USEC_PER_SEC) /* of a queue without mail, by syncs */
#define EVERY_BUSY (100 * USEC_PER_MSEC)
#define TELL       (100 * USEC_PER_MSEC)
#define BLOCK      4096

struct late_task {
	struct sync_task task; /* first */
	const struct spool *sp;
	bool synced; /* the file system has no direct writes */
};

/* Where the file system has no direct writes. */
static int
write_and_sync(const struct spool *sp, int fd)
{
	int r = queue_file_mark(sp->sys, fd, 0, RCPT_PENDING);

	return r == 0 && sp->sys->fsync(fd) < 0 ? -errno : r;
}

/* Some file systems take O_DIRECT and write through memory, which answers for
 * the disk. A kernel that does not say so is believed. */
static bool
is_direct(const struct spool *sp, int fd)
{
	struct statx st = { 0 };

	return sp->sys->statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) < 0 ||
	    (st.stx_mask & STATX_DIOALIGN) == 0 || st.stx_dio_mem_align != 0;
}

/* -EINVAL: the file system has no direct writes. */
static int
write_block(const struct spool *sp, int more)
{
	static const _Alignas(BLOCK) unsigned char block[BLOCK];
	const int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | more;
	int fd = sp->sys->openat(sp->dir[SPOOL_LOCK], SEND_LOCK, flags, 0);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (more == 0)
		r = write_and_sync(sp, fd);
	else if (!is_direct(sp, fd))
		r = -EINVAL;
	else if (sp->sys->pwrite(fd, block, sizeof(block), 0) < 0)
		r = -errno;
	sp->sys->close(fd);
	return r;
}

/* An error is an answer of the disk, too. */
static int
ask_disk(struct sync_task *task)
{
	struct late_task *t = (struct late_task *)task;
	int r = write_block(t->sp, O_DIRECT);

	t->synced = r == -EINVAL;
	return t->synced ? write_block(t->sp, 0) : r;
}

/* Published at once: the time that the page had is over. */
static void
answered(void *send, struct sync_task *task)
{
	struct send *s = send;
	const bool busy = s->active > 0 || rate_read(&s->rate_in, s->now) > 0,
		   synced = ((const struct late_task *)task)->synced;

	s->late.away = s->late.told = false;
	/* Each sync is a commit of the journal, for which others wait. */
	s->late.at = s->now + (busy && !synced ? EVERY_BUSY : EVERY);
	s->pub.published_at = 0;
	s->pub.changed = true;
	sync_task_free(task);
}

static void
ask(struct send *s)
{
	struct late_task *t = malloc(sizeof(*t));

	s->late.at = s->now + EVERY;
	if (t == NULL)
		return;
	*t = (struct late_task){ .sp = &s->sp };
	sync_task_init(&t->task, ask_disk, NULL, answered);
	s->late.away = true;
	s->late.began = s->now;
	disk_do(s, DISK_ASK, &t->task);
}

usec_t
late_work(struct send *s)
{
	struct late *l = &s->late;

	if (!disk_has_threads(s, DISK_ASK))
		return USEC_NEVER;
	if (!l->away && s->now >= l->at)
		ask(s);
	if (!l->away)
		return l->at;
	if (l->told)
		return USEC_NEVER;
	if (s->now < l->began + TELL)
		return l->began + TELL;
	l->told = s->pub.changed = true;
	return USEC_NEVER;
}

void
late_fill(struct send *s, struct queue_page *page)
{
	page->disk_since_mono = 0;
	page->disk_work = DISK_WORK_NONE;
	if (!disk_has_threads(s, DISK_ASK))
		return;
	/* A shorter call may have ended when the page is read. */
	page->disk_since_mono = disk_oldest(s, TELL, &page->disk_work);
	if (page->disk_work == DISK_WORK_NONE)
		page->disk_since_mono =
		    s->late.away ? s->late.began : s->late.at;
}
