#include "todo-proc/examine_task.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/msg.h"
#include "route/route.h"
#include "smtp/verp.h"

/* A census that takes more is made alone, so that threads take no more memory
 * than one process that counts. */
#define LARGE         (1u << 20)

/* The header in which deliver-local looks for loops is as long. */
#define HOPS_READ_MAX ((uint64_t)256 << 10)

void
examine_task_drop(struct sync_task *task)
{
	struct examine_task *e = (struct examine_task *)(void *)task;

	buf_done(&e->sender);
	buf_done(&e->census);
	buf_done(&e->destinations);
	buf_done(&e->rcpts);
	io_close(&e->fd);
}

static int
find_transport(const struct routing *r, const char *name)
{
	uint32_t i;

	for (i = 0; i < r->limits.ntransports; i++)
		if (strcmp(r->names[i], name) == 0)
			return (int)i;
	return -1;
}

static void
count_one(struct examine_task *e, struct census *census,
    const struct queue_rcpt *rcpt)
{
	const bool expanded = (e->file.flags & QUEUE_FILE_EXPANDED) != 0;
	char nexthop[ROUTE_NEXTHOP_MAX + 1];
	struct route route;
	const char *why;
	int transport;

	/* queue-send alone judges a recipient without a route or next hop. */
	if (route_lookup_from(e->routing->table, buf_str(&e->sender),
		rcpt->address, expanded, &route) < 0 ||
	    route_nexthop(&route, rcpt->address, nexthop, &why) < 0)
		return;
	transport = find_transport(e->routing, route.transport);
	if (transport < 0)
		return;
	e->content |= e->routing->content[transport];
	census_add(census, (uint32_t)transport, nexthop,
	    route_is_mailbox(&route) ? NULL : rcpt->address);
}

static int
count_pass(struct examine_task *e, struct census *census, int fd)
{
	struct queue_rcpt rcpt;
	int r;

	e->pending = 0;
	queue_rcpt_again(&e->cursor, &e->file);
	while ((r = queue_rcpt_next(&e->cursor, fd, &rcpt)) > 0) {
		if (rcpt.mark != RCPT_PENDING)
			continue;
		e->pending++;
		count_one(e, census, &rcpt);
	}
	return r;
}

static int
count(struct examine_task *e, int fd)
{
	struct census census;
	int r = census_begin(&census, &e->routing->limits, e->file.rcpt_count);

	if (r < 0)
		return r;
	census.single =
	    verp_kind(buf_str(&e->sender), e->sender.len) == VERP_WANTED;
	do
		r = count_pass(e, &census, fd);
	while (r == 0 && census_pass_ends(&census));
	if (r == 0)
		r = census_rows(&census, &e->census);
	if (r == 0)
		census_names(&census, &e->destinations);
	census_done(&census);
	return r;
}

static int
take_census(struct examine_task *e, int fd)
{
	static pthread_mutex_t large = PTHREAD_MUTEX_INITIALIZER;
	const bool alone = census_size(e->file.rcpt_count) > LARGE;
	int r;

	if (alone)
		pthread_mutex_lock(&large);
	r = count(e, fd);
	if (alone)
		pthread_mutex_unlock(&large);
	return r;
}

/* The first piece has the Message-ID. Most headers end in it; Received fields
 * are counted up to HOPS_READ_MAX octets. The content was read just now, for
 * its checksum, and is in memory. */
static void
read_header(struct examine_task *e, int fd)
{
	struct header_hops hops = { 0 };
	char piece[HEADER_READ_MAX];
	uint64_t done = 0;
	size_t len;

	while (
	    !hops.ended && done < e->file.content_len && done < HOPS_READ_MAX) {
		len = e->file.content_len - done < sizeof(piece)
		    ? (size_t)(e->file.content_len - done)
		    : sizeof(piece);
		if (queue_file_content(
			fd, e->file.content_off + done, piece, len) < 0)
			break;
		if (done == 0)
			header_message_id(
			    piece, len, e->message_id, sizeof(e->message_id));
		header_hops_add(&hops, piece, len);
		done += len;
	}
	e->hops = hops.count;
}

/* Without these queue-send opens the file in a first attempt. Recipients are
 * those that were counted: queue-send, which had an earlier offer of the
 * message, may have marked one since. */
static int
take_along(struct examine_task *e)
{
	const struct queue_file *f = &e->file;
	const char *rcpts = queue_rcpt_bytes(&e->cursor, f);

	if (e->dir != SPOOL_INCOMING)
		return 0;
	if (rcpts == NULL || f->rcpt_count > MSG_FEW_RCPTS ||
	    f->rcpt_len > MSG_FEW_BYTES || e->pending < f->rcpt_count)
		return 0;
	return buf_add(&e->rcpts, rcpts, (size_t)f->rcpt_len);
}

static int
inspect(struct examine_task *e, int fd)
{
	int r = queue_file_read(fd, &e->file);

	if (r == 0)
		r = queue_file_verify_for(fd, &e->file, &e->sender, &e->cursor);
	if (r == 0)
		r = take_census(e, fd);
	if (r == 0)
		read_header(e, fd);
	if (r == 0)
		r = take_along(e);
	return r;
}

/* The rule of the header. */
static bool
needs_descriptor(const struct examine_task *e)
{
	return !e->in_memory || e->content || e->rcpts.len == 0 ||
	    e->file.rcpt_count > 1 || e->file.version > QUEUE_FILE_PLAIN;
}

/* The lock would stay with the open file, and others lock it by another one. */
static void
keep(struct examine_task *e, int *fd)
{
	if (!e->may_write || !needs_descriptor(e) ||
	    e->sp->sys->flock(*fd, LOCK_UN) < 0)
		return;
	e->fd = *fd;
	*fd = -1;
}

static bool
may_be_read(int error)
{
	return error == -EROFS || error == -EACCES || error == -EPERM ||
	    error == -ETXTBSY;
}

static int
open_settled(struct examine_task *e, struct stat *ret_st)
{
	int fd;

	if (e->dir != SPOOL_INCOMING)
		return spool_open_stat(
		    e->sp, e->dir, e->inode, O_RDONLY, ret_st);
	fd = spool_open_settled(e->sp, e->dir, e->inode, O_RDWR, ret_st);
	e->may_write = fd >= 0;
	if (!may_be_read(fd))
		return fd;
	return spool_open_settled(e->sp, e->dir, e->inode, O_RDONLY, ret_st);
}

/* A file that a power cut left with two names loses one first, maybe this. */
static int
open_file(struct examine_task *e, struct stat *ret_st)
{
	char leaf[SPOOL_PATH_MAX];
	int fd = open_settled(e, ret_st);

	if (fd != -EPERM)
		return fd;
	spool_leaf(e->sp, e->dir, e->inode, leaf, sizeof(leaf));
	if (spool_keep_one_name(e->sp, e->dir, leaf) < 0)
		return fd;
	return open_settled(e, ret_st);
}

int
examine_task_work(struct sync_task *task)
{
	struct examine_task *e = (struct examine_task *)(void *)task;
	char name[QUEUE_FILE_MAX];
	struct stat st;
	int fd = open_file(e, &st), r = fd;

	if (fd >= 0) {
		e->mtime_wall = clock_usec(st.st_mtim);
		e->owner = st.st_uid;
		r = inspect(e, fd);
	}
	if (r == 0)
		keep(e, &fd);
	io_close(&fd);
	if (r != -EBADMSG && r != -EPERM)
		return r;
	e->why = queue_file_reason();
	queue_file_name(e->inode, name);
	e->moved = spool_move_corrupt(
	    e->sp, e->dir, (uint32_t)(e->inode % e->sp->split), name);
	return r;
}
