#include "spool/prepared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/num.h"
#include "spool/reason.h"

#define REPORT "report"

/* ---- names ---- */

void
prepared_name(const struct prepared *p, char out[PREPARED_NAME_MAX])
{
	char id[QUEUE_ID_SIZE];

	queue_id_format(&p->parent, id);
	if (p->index == PREPARED_REPORT)
		snprintf(out, PREPARED_NAME_MAX, "%s." REPORT ".%" PRIu32, id,
		    p->number);
	else
		snprintf(out, PREPARED_NAME_MAX, "%s.%" PRIu32 ".%" PRIu32, id,
		    p->index, p->number);
}

/* "ID.I.K" or "ID.report.K", and nothing that prepared_name() would write in
 * another way. */
int
prepared_parse(const char *name, struct prepared *ret)
{
	char id[QUEUE_ID_SIZE], again[PREPARED_NAME_MAX], *dot;
	const size_t len = strcspn(name, ".");
	char rest[PREPARED_NAME_MAX];
	uint64_t index, number;
	struct prepared p;

	if (len >= sizeof(id) || strlen(name) >= sizeof(again) ||
	    name[len] == '\0')
		return -EINVAL;
	snprintf(id, sizeof(id), "%.*s", (int)len, name);
	snprintf(rest, sizeof(rest), "%s", name + len + 1);
	dot = strchr(rest, '.');
	if (dot == NULL)
		return -EINVAL;
	*dot = '\0';
	index = PREPARED_REPORT;
	if (queue_id_parse(id, &p.parent) < 0 ||
	    (strcmp(rest, REPORT) != 0 &&
		num_u64(rest, 0, PREPARED_REPORT - 1, &index) < 0) ||
	    num_u64(dot + 1, 0, UINT32_MAX, &number) < 0)
		return -EINVAL;
	p.index = (uint32_t)index;
	p.number = (uint32_t)number;
	prepared_name(&p, again);
	if (strcmp(again, name) != 0)
		return -EINVAL;
	*ret = p;
	return 0;
}

/* ---- the parent ---- */

int
prepared_lock(int fd)
{
	struct stat st;
	int r;

	do
		r = flock(fd, LOCK_EX | LOCK_NB);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_nlink == 0 ? -ENOENT : 0;
}

int
prepared_find_rcpt(int fd, const struct queue_file *file, uint32_t index,
    struct queue_rcpt *ret_rcpt)
{
	struct queue_rcpt_cursor cursor;
	int r;

	queue_rcpt_begin(&cursor, file);
	while ((r = queue_rcpt_next(&cursor, fd, ret_rcpt)) > 0)
		if (ret_rcpt->index == index)
			return 0;
	return r < 0 ? r : -EBADMSG;
}

/* A parent that is open and locked; or the reason why there is none. */
struct parent {
	int fd;
	struct queue_file file;
	struct queue_id id;
	bool counted;     /* reports is known; the lock keeps the number */
	uint32_t reports; /* reports of the message so far */
};

/* -ENOENT: not there, or the inode is another message's. The lock comes after
 * the id: a lock on another message says nothing of ours. */
static int
take_parent(const struct spool *sp, enum spool_dir dir,
    const struct queue_id *id, struct parent *ret)
{
	struct parent p = { .id = *id };
	int r;

	p.fd = spool_open_file(sp, dir, id->inode, O_RDONLY);
	if (p.fd < 0)
		return p.fd;
	r = queue_file_read(p.fd, &p.file);
	if (r == 0 && !queue_file_is(&p.file, id))
		r = -ENOENT;
	if (r == 0)
		r = prepared_lock(p.fd);
	if (r < 0)
		io_close(&p.fd);
	else
		*ret = p;
	return r;
}

/* A message that moves while it is looked for can be missed in a pass, if it
 * leaves a directory that is still to come for one that was looked into. Each
 * such pass costs a move of its own, and a message moves once an attempt. */
#define PASSES 4

static int
find_parent(const struct spool *sp, const struct queue_id *id,
    struct parent *ret, enum spool_dir *ret_dir)
{
	static const enum spool_dir places[] = { SPOOL_ACTIVE, SPOOL_INCOMING,
		SPOOL_DEFERRED, SPOOL_HOLD, SPOOL_DELETED, SPOOL_CORRUPT };
	size_t i;
	int r;

	for (i = 0; i < PASSES * ARRAY_LEN(places); i++) {
		*ret_dir = places[i % ARRAY_LEN(places)];
		r = take_parent(sp, *ret_dir, id, ret);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

/* ---- one name ---- */

/* A file there that has the name of our inode is not named by its own: it is
 * foreign, and goes to corrupt/. */
static int
release(const struct spool *sp, const char *name, uint64_t *ret_inode)
{
	char leaf[SPOOL_PATH_MAX], file[QUEUE_FILE_MAX];
	const int from = sp->dir[SPOOL_PREPARED];
	struct stat st;
	uint64_t inode;
	int i, r = -EEXIST;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	inode = (uint64_t)st.st_ino;
	spool_leaf(sp, SPOOL_INCOMING, inode, leaf, sizeof(leaf));
	queue_file_name(inode, file);
	for (i = 0; r == -EEXIST && i < 2; i++) {
		r = sp->sys->renameat(
			from, name, sp->dir[SPOOL_INCOMING], leaf) < 0
		    ? -errno
		    : SETTLED_INCOMING;
		if (r == -EEXIST && i == 0)
			(void)spool_move_corrupt(sp, SPOOL_INCOMING,
			    (uint32_t)(inode % sp->split), file);
	}
	*ret_inode = inode;
	return r;
}

static int
remove_name(const struct spool *sp, const char *name)
{
	return sp->sys->unlinkat(sp->dir[SPOOL_PREPARED], name, 0) < 0
	    ? -errno
	    : SETTLED_AWAY;
}

/* 1: it was done; 0: it was not. */
static int
was_expanded(const struct prepared *p, const struct parent *parent)
{
	struct queue_rcpt rcpt;
	int r = prepared_find_rcpt(parent->fd, &parent->file, p->index, &rcpt);

	return r < 0 ? r : rcpt.mark == RCPT_DONE;
}

static int
was_reported(
    const struct spool *sp, const struct prepared *p, struct parent *parent)
{
	int r = parent->counted
	    ? 0
	    : reason_count_reports(sp, parent->id.inode, &parent->reports);

	parent->counted = r == 0;
	return r < 0 ? r : p->number < parent->reports;
}

/* By the mark of the recipient, or by the reports; the parent is locked. */
static int
settle_by(const struct spool *sp, const char *name, const struct prepared *p,
    struct parent *parent, uint64_t *ret_inode)
{
	int r = p->index == PREPARED_REPORT ? was_reported(sp, p, parent)
					    : was_expanded(p, parent);

	if (r < 0)
		return r;
	return r > 0 ? release(sp, name, ret_inode) : remove_name(sp, name);
}

/* Only regular files with one link; of two names that a power cut left, this is
 * the one that goes. */
static int
judge(const struct spool *sp, const char *name)
{
	struct stat st;

	if (fstatat(sp->dir[SPOOL_PREPARED], name, &st, AT_SYMLINK_NOFOLLOW) <
	    0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_nlink == 1)
		return 0;
	if (spool_keep_one_name(sp, SPOOL_PREPARED, name) < 0)
		return -EINVAL;
	return faccessat(
		   sp->dir[SPOOL_PREPARED], name, F_OK, AT_SYMLINK_NOFOLLOW) < 0
	    ? -errno
	    : 0;
}

int
spool_settle_prepared(
    const struct spool *sp, const char *name, uint64_t *ret_inode)
{
	struct prepared p;
	struct parent parent;
	enum spool_dir dir;
	int r = prepared_parse(name, &p);

	if (r == 0)
		r = judge(sp, name);
	if (r < 0)
		return r;
	r = find_parent(sp, &p.parent, &parent, &dir);
	if (r == -ENOENT)
		return release(sp, name, ret_inode);
	if (dir == SPOOL_CORRUPT && (r == -EBADMSG || r == -EPERM)) {
		r = spool_move_corrupt(sp, SPOOL_PREPARED, 0, name);
		return r < 0 ? r : SETTLED_CORRUPT;
	}
	if (r < 0)
		return r;
	r = settle_by(sp, name, &p, &parent, ret_inode);
	io_close(&parent.fd);
	return r;
}

/* ---- all names of a message ---- */

/* Calls each() for the names of a message. The first error; the walk goes on.
 */
static int
walk_names(const struct spool *sp, const struct queue_id *parent,
    int (*each)(const struct spool *sp, const char *name,
	const struct prepared *p, void *arg),
    void *arg)
{
	struct spool_scan scan;
	struct spool_item item;
	struct prepared p;
	int r, bad = 0;

	spool_scan_begin(&scan, sp, SPOOL_PREPARED);
	while ((r = spool_scan_next(&scan, false, &item)) != 0) {
		if (r > 0)
			r = prepared_parse(item.name, &p) == 0 &&
				queue_id_is(&p.parent, parent)
			    ? each(sp, item.name, &p, arg)
			    : 0;
		bad = bad == 0 && r < 0 && r != -ENOENT ? r : bad;
	}
	spool_scan_done(&scan);
	return bad;
}

struct settling {
	struct parent parent;
	void (*each)(void *arg, uint64_t inode);
	void *arg;
};

static int
settle_one(const struct spool *sp, const char *name, const struct prepared *p,
    void *arg)
{
	struct settling *s = arg;
	uint64_t released = 0;
	int r = settle_by(sp, name, p, &s->parent, &released);

	if (r == SETTLED_INCOMING && s->each != NULL)
		s->each(s->arg, released);
	return r;
}

int
spool_settle_message(const struct spool *sp, int fd,
    const struct queue_file *file, uint64_t inode,
    void (*each)(void *arg, uint64_t inode), void *arg)
{
	struct settling s = {
		.parent = { .fd = fd,
		    .file = *file,
		    .id = queue_file_id(file, inode) },
		.each = each,
		.arg = arg,
	};

	return walk_names(sp, &s.parent.id, settle_one, &s);
}

static int
drop_one(const struct spool *sp, const char *name, const struct prepared *p,
    void *index)
{
	return p->index == *(const uint32_t *)index ? remove_name(sp, name) : 0;
}

int
spool_drop_prepared(
    const struct spool *sp, const struct queue_id *parent, uint32_t index)
{
	return walk_names(sp, parent, drop_one, &index);
}
