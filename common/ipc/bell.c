#include "ipc/bell.h"

#include "ipc/names.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES         3
#define STOCK_DEPTH   10
#define MSG_MAX_FILE  "/proc/sys/fs/mqueue/msg_max"
/* Larger than any record in the queue: a record that does not fit would stay
 * for ever.
 */
#define RECORD_BUFFER 8192

static uint32_t
system_depth(void)
{
	unsigned depth = 0;
	FILE *f = fopen(MSG_MAX_FILE, "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%9u", &depth) != 1)
		depth = 0;
	fclose(f);
	return depth;
}

static mqd_t
open_new(const char *name, uint32_t depth, uint32_t size)
{
	struct mq_attr attr = {
		.mq_maxmsg = (long)depth,
		.mq_msgsize = (long)size,
	};

	return mq_open(name, O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK | O_CLOEXEC,
	    0600, &attr);
}

/* The greatest depth that is allowed: EINVAL means msg_max, EMFILE
 * RLIMIT_MSGQUEUE. */
static mqd_t
open_deepest(
    const char *name, const struct mq_shape *shape, uint32_t *ret_depth)
{
	const uint32_t ladder[] = { shape->depth, STOCK_DEPTH, system_depth(),
		1 };
	uint32_t last = UINT32_MAX;
	mqd_t mq = (mqd_t)-1;
	size_t i;

	errno = EINVAL;
	for (i = 0; i < ARRAY_LEN(ladder); i++) {
		if (ladder[i] == 0 || ladder[i] >= last)
			continue;
		last = ladder[i];
		mq = open_new(name, last, shape->size);
		if (mq != (mqd_t)-1)
			*ret_depth = last;
		if (mq != (mqd_t)-1 || (errno != EINVAL && errno != EMFILE))
			break;
	}
	return mq;
}

/* Remove and create; -EEXIST when another process was faster. */
static int
replace(const char *name, const struct mq_shape *shape, mqd_t *ret_mq,
    uint32_t *ret_depth)
{
	if (mq_unlink(name) < 0 && errno != ENOENT)
		return errno == EACCES ? -EPERM : -errno;
	*ret_mq = open_deepest(name, shape, ret_depth);
	return *ret_mq == (mqd_t)-1 ? -errno : 0;
}

int
mq_create(const char *name, const struct mq_shape *shape, uid_t uid, gid_t gid,
    mode_t mode, mqd_t *ret_mq, uint32_t *ret_depth)
{
	uint32_t got = 0;
	mqd_t mq = (mqd_t)-1;
	int i, r = -EEXIST;

	for (i = 0; i < TRIES && r == -EEXIST; i++)
		r = replace(name, shape, &mq, &got);
	if (r < 0)
		return r;
	if (fchown(mq, uid, gid) < 0 || fchmod(mq, mode) < 0) {
		r = -errno;
		mq_close(mq);
		mq_unlink(name);
		return r;
	}
	*ret_mq = mq;
	*ret_depth = got;
	return 0;
}

bool
mq_same(const char *name, mqd_t mq)
{
	struct stat ours, named;
	mqd_t other;
	bool same;

	other = mq_open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (other == (mqd_t)-1)
		return errno != ENOENT && errno != EACCES;
	same = fstat(mq, &ours) == 0 && fstat(other, &named) == 0 &&
	    ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
	mq_close(other);
	return same;
}

/* The name of a queue that is replaced is unlinked. */
static bool
is_replaced(mqd_t mq)
{
	struct stat st;

	return fstat(mq, &st) < 0 || st.st_nlink == 0;
}

void
bell_let_go(struct bell_rope *rope)
{
	if (rope->mq != BELL_NO_MQ)
		mq_close(rope->mq);
	rope->mq = BELL_NO_MQ;
}

static int
take_hold(struct bell_rope *rope, const char *instance, uint32_t queue)
{
	char name[IPC_NAME_MAX];

	ipc_name_queue(instance, queue, name);
	rope->mq = mq_open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return rope->mq == BELL_NO_MQ ? -errno : 0;
}

int
bell_pull(struct bell_rope *rope, const char *instance, uint32_t queue,
    const struct bell *bell, usec_t now)
{
	int r = 0;

	if (rope->mq != BELL_NO_MQ && now - rope->looked_at >= BELL_BELIEVED) {
		rope->looked_at = now;
		if (is_replaced(rope->mq))
			bell_let_go(rope);
	}
	if (rope->mq == BELL_NO_MQ) {
		rope->looked_at = now;
		r = take_hold(rope, instance, queue);
	}
	if (r == 0 &&
	    mq_send(rope->mq, (const char *)bell, sizeof(*bell), 0) < 0)
		r = -errno;
	return r;
}

bool
bell_wait(const struct bell_rope *rope, usec_t limit, int stop_fd)
{
	struct pollfd fds[] = {
		{ .fd = (int)rope->mq, .events = POLLOUT },
		{ .fd = stop_fd, .events = POLLIN },
	};
	int n =
	    poll(fds, ARRAY_LEN(fds), (int)((limit - 1) / USEC_PER_MSEC) + 1);

	return n < 0 ? errno == EINTR : n > 0 && fds[1].revents == 0;
}

int
mq_take(mqd_t mq, void *ret_record, size_t size)
{
	/* A time in the past: no wait even if the descriptor blocks. */
	const struct timespec past = { 0 };
	char record[RECORD_BUFFER];
	ssize_t n;

	do {
		n = mq_timedreceive(mq, record, sizeof(record), NULL, &past);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == ETIMEDOUT ? 0 : -errno;
	if ((size_t)n != size)
		return -EBADMSG;
	memcpy(ret_record, record, size);
	return 1;
}

int
bell_take(mqd_t mq, struct bell *ret_bell)
{
	return mq_take(mq, ret_bell, sizeof(*ret_bell));
}

int
bell_ring(const char *instance, uint32_t queue, const struct bell *bell)
{
	struct bell_rope rope = { .mq = BELL_NO_MQ };
	int r = bell_pull(&rope, instance, queue, bell, 0);

	bell_let_go(&rope);
	return r;
}
