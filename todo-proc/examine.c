#include "todo-proc/todo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "log/log.h"
#include "todo-proc/pure.h"

void
examined_done(struct examined *e)
{
	buf_done(&e->sender);
	buf_done(&e->census);
	buf_done(&e->destinations);
}

int
examine_corrupt_name(struct todo *t, enum spool_dir dir, uint32_t split,
    const char *name, const char *why)
{
	char part[16] = "";
	int r = spool_move_corrupt(&t->sp, dir, split, name);

	if (r == -ENOENT)
		return r;
	if (spool_dirs[dir].split)
		snprintf(part, sizeof(part), "%" PRIu32 "/", split);
	if (r < 0) {
		if (todo_say(t, r))
			log_error("%s/%s/%s%s: damaged (%s), and cannot be "
				  "moved to corrupt/: %s",
			    t->sp.path, spool_dirs[dir].name, part, name, why,
			    strerror(-r));
		return r;
	}
	t->counts.corrupt++;
	log_error("%s/%s/%s%s: damaged (%s): moved to corrupt/", t->sp.path,
	    spool_dirs[dir].name, part, name, why);
	return -EBADMSG;
}

int
examine_corrupt(
    struct todo *t, enum spool_dir dir, uint64_t inode, const char *why)
{
	char name[QUEUE_FILE_MAX];

	queue_file_name(inode, name);
	return examine_corrupt_name(
	    t, dir, (uint32_t)(inode % t->sp.split), name, why);
}

static void
count_one(struct todo *t, struct census *census, const struct queue_rcpt *rcpt,
    bool expanded)
{
	char nexthop[ROUTE_NEXTHOP_MAX + 1];
	struct route route;
	const char *why;
	int transport;

	/* queue-send alone judges a recipient without a route or next hop. */
	if (route_lookup(t->routes, rcpt->address, expanded, &route) < 0 ||
	    route_nexthop(&route, rcpt->address, nexthop, &why) < 0)
		return;
	transport = conf_transport_find(t->conf, route.transport);
	if (transport >= 0)
		census_add(census, (uint32_t)transport, nexthop,
		    route_is_mailbox(&route) ? NULL : rcpt->address);
}

static int
count_pass(struct todo *t, struct census *census, int fd,
    const struct queue_file *file, uint32_t *ret_pending)
{
	struct queue_rcpt rcpt;
	int r;

	*ret_pending = 0;
	queue_rcpt_begin(&t->cursor, file);
	while ((r = queue_rcpt_next(&t->cursor, fd, &rcpt)) > 0) {
		if (rcpt.mark != RCPT_PENDING)
			continue;
		++*ret_pending;
		count_one(
		    t, census, &rcpt, (file->flags & QUEUE_FILE_EXPANDED) != 0);
	}
	return r;
}

static int
take_census(struct todo *t, int fd, struct examined *e)
{
	struct census census;
	int r = census_begin(&census, t->conf, e->file.rcpt_count);

	if (r < 0)
		return r;
	do
		r = count_pass(t, &census, fd, &e->file, &e->pending);
	while (r == 0 && census_pass_ends(&census));
	if (r == 0)
		r = census_rows(&census, &e->census);
	if (r == 0)
		census_names(&census, &e->destinations);
	census_done(&census);
	return r;
}

static int
inspect(struct todo *t, enum spool_dir dir, uint64_t inode, int fd,
    const struct stat *st, struct examined *e)
{
	int r;

	e->mtime_wall = todo_mtime(st);
	if (dir == SPOOL_INCOMING &&
	    offered_has(&t->offered, inode, e->mtime_wall, t->now))
		return -EALREADY;
	r = queue_file_hold(fd, &t->bytes);
	if (r == 0)
		r = queue_file_read(fd, &e->file);
	if (r == 0)
		r = queue_file_verify(fd, &e->file);
	if (r == 0)
		r = queue_file_sender(fd, &e->file, &e->sender);
	if (r == 0)
		r = take_census(t, fd, e);
	return r;
}

static int
open_settled(const struct todo *t, enum spool_dir dir, uint64_t inode,
    struct stat *ret_st)
{
	if (dir == SPOOL_INCOMING)
		return spool_open_settled(&t->sp, dir, inode, ret_st);
	return spool_open_stat(&t->sp, dir, inode, O_RDONLY, ret_st);
}

/* A file that a power cut left with two names loses one first, maybe this. */
static int
open_file(const struct todo *t, enum spool_dir dir, uint64_t inode,
    struct stat *ret_st)
{
	char leaf[SPOOL_PATH_MAX];
	int fd = open_settled(t, dir, inode, ret_st);

	if (fd != -EPERM)
		return fd;
	spool_leaf(&t->sp, dir, inode, leaf, sizeof(leaf));
	if (spool_keep_one_name(&t->sp, dir, leaf) < 0)
		return fd;
	return open_settled(t, dir, inode, ret_st);
}

int
examine(
    struct todo *t, enum spool_dir dir, uint64_t inode, struct examined *ret)
{
	struct examined e = { 0 };
	char path[SPOOL_PATH_MAX];
	struct stat st;
	int fd = open_file(t, dir, inode, &st);
	int r = fd < 0 ? fd : inspect(t, dir, inode, fd, &st, &e);

	queue_file_let_go();
	io_close(&fd);
	if (r == 0) {
		*ret = e;
		return 0;
	}
	examined_done(&e);
	if (r == -EBADMSG || r == -EPERM)
		return examine_corrupt(t, dir, inode, queue_file_reason());
	if (r != -EAGAIN && r != -EALREADY && r != -ENOENT && todo_say(t, r)) {
		spool_path(&t->sp, dir, inode, path, sizeof(path));
		log_error("%s/%s: %s: tried again later", t->sp.path, path,
		    strerror(-r));
	}
	return r;
}
