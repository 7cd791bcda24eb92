#include "deliver-local/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "spool/prepared.h"
#include "spool/waiting.h"

#define LOCK_EVERY (20 * USEC_PER_MSEC)

/* Another recipient of the same message may be expanded at this moment. */
static int
wait_for_lock(int fd, usec_t limit)
{
	const struct timespec pause = { 0, LOCK_EVERY * 1000 };
	const usec_t until = clock_mono() + limit;
	int r;

	while ((r = prepared_lock(fd)) == -EAGAIN && clock_mono() < until)
		(void)nanosleep(&pause, NULL);
	return r;
}

/* The message may have left the active queue before the lock was ours, since
 * queue-send had given this delivery up. */
static int
is_still_here(const struct spool *sp, const struct parent *p)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat named, open;

	spool_leaf(sp, SPOOL_ACTIVE, p->id.inode, leaf, sizeof(leaf));
	if (fstat(p->fd, &open) < 0 ||
	    fstatat(sp->dir[SPOOL_ACTIVE], leaf, &named, AT_SYMLINK_NOFOLLOW) <
		0)
		return -errno;
	return named.st_ino == open.st_ino && named.st_dev == open.st_dev
	    ? 0
	    : -ENOENT;
}

static int
check_identity(const struct parent *p)
{
	return p->file.arrival_wall == p->id.arrival_wall &&
		p->file.nonce == p->id.nonce && p->file.queue == p->id.queue
	    ? 0
	    : -ENOENT;
}

int
parent_take(const struct expansion *x, struct parent *ret)
{
	struct parent *p = ret;
	const struct spool *sp = x->sp;
	int r = queue_id_parse(x->id, &p->id);

	p->fd = -1;
	if (r < 0)
		return r;
	p->fd = spool_open_file(sp, SPOOL_ACTIVE, p->id.inode, O_RDWR);
	if (p->fd < 0)
		return p->fd;
	r = wait_for_lock(p->fd, x->lock_limit);
	if (r == 0)
		r = is_still_here(sp, p);
	if (r == 0)
		r = queue_file_read(p->fd, &p->file);
	if (r == 0)
		r = check_identity(p);
	if (r == 0)
		r = prepared_find_rcpt(p->fd, &p->file, x->index, &p->rcpt);
	if (r == 0)
		p->submitter = waiting_submitter_of(sp, p->fd, p->file.uid);
	return r;
}
