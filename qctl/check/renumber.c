/* Files whose names are not their inodes, as after a restore from a backup.
 *
 * Two rounds, since the name that one message needs may be the one that another
 * still has: first each gets the name mend-INODE, with its reasons, then each
 * its own. What dies in between is found again by that name. Reasons keep it
 * until their message has its own, as a second name: a start removes reasons of
 * no message that have one name alone. */
#include "qctl/check/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/num.h"
#include "spool/prepared.h"
#include "spool/reason.h"

static const enum spool_dir reasons[] = { SPOOL_DEFER, SPOOL_BOUNCE };

bool
renumber_is(const char *name, uint64_t *ret_inode)
{
	return strncmp(name, SPOOL_MEND, strlen(SPOOL_MEND)) == 0 &&
	    num_u64(name + strlen(SPOOL_MEND), 1, UINT64_MAX, ret_inode) == 0;
}

static void
mend_leaf(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    char out[SPOOL_PATH_MAX])
{
	if (spool_dirs[dir].split)
		snprintf(out, SPOOL_PATH_MAX,
		    "%" PRIu64 "/" SPOOL_MEND "%" PRIu64, inode % sp->split,
		    inode);
	else
		snprintf(out, SPOOL_PATH_MAX, SPOOL_MEND "%" PRIu64, inode);
}

bool
renumber_left(const struct check *c, enum spool_dir dir, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;

	mend_leaf(&c->sp, dir, inode, leaf);
	return fstatat(c->sp.dir[dir], leaf, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int
rename_in(const struct spool *sp, enum spool_dir dir, const char *from,
    const char *to)
{
	return sp->sys->renameat(sp->dir[dir], from, sp->dir[dir], to) < 0
	    ? -errno
	    : 0;
}

/* ---- the first round ---- */

/* Has a message with this inode the name already? Then reasons of that name
 * are of that message. */
static bool
name_is_right(const struct spool *sp, uint64_t name)
{
	struct stat st;
	size_t i;

	for (i = 0; i < MESSAGE_STATES; i++) {
		const enum spool_dir dir = message_states[i];

		if (dir != SPOOL_MAILDROP && sp->dir[dir] >= 0 &&
		    spool_stat(sp, dir, name, &st) == 0 &&
		    (uint64_t)st.st_ino == name)
			return true;
	}
	return false;
}

static int
take_reasons(const struct spool *sp, uint64_t name, uint64_t inode)
{
	char from[SPOOL_PATH_MAX], to[SPOOL_PATH_MAX];
	size_t i;
	int r = 0;

	if (name == 0 || name_is_right(sp, name))
		return 0;
	for (i = 0; r == 0 && i < ARRAY_LEN(reasons); i++) {
		spool_leaf(sp, reasons[i], name, from, sizeof(from));
		mend_leaf(sp, reasons[i], inode, to);
		r = rename_in(sp, reasons[i], from, to);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

static int
begin_one(const struct spool *sp, const struct misnamed *m)
{
	char to[SPOOL_PATH_MAX];
	int r;

	mend_leaf(sp, m->dir, m->inode, to);
	if (strcmp(m->leaf, to) == 0)
		return 0; /* by a repair that did not end */
	r = take_reasons(sp, m->name, m->inode);
	return r < 0 ? r : rename_in(sp, m->dir, m->leaf, to);
}

/* ---- the second round ---- */

/* A file under the new name is of a message that is gone, or of a repair that
 * did not end. */
static int
give_reasons(const struct spool *sp, uint64_t inode)
{
	char from[SPOOL_PATH_MAX], to[SPOOL_PATH_MAX];
	struct stat st;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < ARRAY_LEN(reasons); i++) {
		const int dir = sp->dir[reasons[i]];

		mend_leaf(sp, reasons[i], inode, from);
		spool_leaf(sp, reasons[i], inode, to, sizeof(to));
		if (fstatat(dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = reason_clear(sp, reasons[i], inode);
		if (r == 0 && sp->sys->linkat(dir, from, dir, to, 0) < 0)
			r = -errno;
	}
	return r;
}

/* The next repair removes names that stay. */
static void
drop_second_names(const struct spool *sp, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(reasons); i++) {
		mend_leaf(sp, reasons[i], inode, leaf);
		(void)sp->sys->unlinkat(sp->dir[reasons[i]], leaf, 0);
	}
}

static int
finish_one(const struct spool *sp, const struct misnamed *m)
{
	const enum spool_dir dir = m->dir;
	const uint64_t inode = m->inode;
	char from[SPOOL_PATH_MAX], to[SPOOL_PATH_MAX];
	struct stat st;
	int r;

	mend_leaf(sp, dir, inode, from);
	spool_leaf(sp, dir, inode, to, sizeof(to));
	if (fstatat(sp->dir[dir], from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if ((uint64_t)st.st_ino != inode)
		return 0; /* the next check begins with it anew */
	r = give_reasons(sp, inode);
	if (r == 0)
		r = rename_in(sp, dir, from, to);
	if (r == 0)
		drop_second_names(sp, inode);
	return r;
}

/* ---- all of them ---- */

int
renumber_note(struct check *c, const struct place *p)
{
	const struct misnamed m = { p->dir, p->item.inode,
		(uint64_t)p->st.st_ino, strdup(p->leaf) };
	int r = m.leaf == NULL ? -ENOMEM
			       : array_add(&c->misnamed, &c->nmisnamed,
				     &c->misnamed_cap, &m, sizeof(m));

	if (r < 0)
		free(m.leaf);
	return r;
}

int
renumber_all(struct check *c)
{
	int (*const rounds[])(const struct spool *sp,
	    const struct misnamed *m) = { begin_one, finish_one };
	size_t i, round;
	int r, failed = 0;

	for (round = 0; round < ARRAY_LEN(rounds); round++)
		for (i = 0; i < c->nmisnamed; i++) {
			worker_step(c->w);
			r = rounds[round](&c->sp, &c->misnamed[i]);
			failed = r < 0 ? r : failed;
		}
	return failed;
}

void
renumber_done(struct check *c)
{
	while (c->nmisnamed > 0)
		free(c->misnamed[--c->nmisnamed].leaf);
	free(c->misnamed);
}

int
renumber_prepared(struct check *c, const struct place *p)
{
	char to[PREPARED_NAME_MAX];
	struct prepared prepared;
	const struct seen *parent;
	int r = prepared_parse(p->item.name, &prepared);

	if (r < 0)
		return r;
	parent = copies_find(c, &prepared.parent);
	if (parent == NULL)
		return -ENOENT;
	prepared.parent.inode = parent->inode;
	prepared_name(&prepared, to);
	return rename_in(&c->sp, p->dir, p->leaf, to);
}
