/* Everything that can be wrong with a queue, and its repair. */
#include "qctl/check/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"
#include "spool/prepared.h"
#include "spool/reason.h"

/* ---- mending ---- */

static int
to_corrupt(struct check *c, const struct place *p)
{
	return spool_move_corrupt(&c->sp, p->dir, p->item.split, p->item.name);
}

static int
keep_one(struct check *c, const struct place *p)
{
	int r = spool_keep_one_name(&c->sp, p->dir, p->leaf);

	return r == -EPERM ? to_corrupt(c, p) : r;
}

/* The submitter stays the owner where users share the queue. */
static int
own_message(struct check *c, const struct place *p)
{
	const uid_t uid =
	    c->sp.private ? c->sp.owner[SPOOL_INCOMING] : (uid_t)-1;
	const gid_t gid = c->sp.private ? (gid_t)-1 : c->sp.group;

	if (fchown(p->fd, uid, gid) < 0 ||
	    fchmod(p->fd, c->sp.private ? 0600 : 0660) < 0)
		return -errno;
	return 0;
}

/* The other name of a file may be anywhere: the user of the queue may have made
 * this one. */
static int
own_reason(struct check *c, const struct place *p)
{
	if (p->st.st_nlink > 1)
		return -EPERM;
	return fchown(p->fd, c->sp.owner[p->dir], c->sp.group) < 0 ? -errno : 0;
}

static int
clear_reason(struct check *c, const struct place *p)
{
	return c->sp.sys->unlinkat(c->sp.dir[p->dir], p->leaf, 0) < 0 ? -errno
								      : 0;
}

/* By the rule of the queue: what was meant to be sent goes to incoming/. */
static int
settle(struct check *c, const struct place *p)
{
	uint64_t inode;
	int r = spool_settle_prepared(&c->sp, p->item.name, &inode);

	return r < 0 ? r : 0;
}

static int
put_on_hold(struct check *c, const struct place *p)
{
	return p->dir == SPOOL_HOLD
	    ? 0
	    : spool_move(&c->sp, p->dir, SPOOL_HOLD, p->item.inode);
}

static int
unmark(struct check *c, const struct place *p)
{
	uint32_t count = 0;
	int fd = openat(c->sp.dir[p->dir], p->leaf,
	    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int r = fd < 0
	    ? -errno
	    : reason_compare_marks(&c->sp, fd, p->item.inode, true, &count);

	io_close(&fd);
	return r;
}

/* ---- the table ---- */

static const struct row {
	const char *text;
	int (*mend)(struct check *c, const struct place *p);
	const char *mended; /* or what will mend it, without a function */
} rows[NFLAWS] = {
	[FLAW_DIRECTORY] = { "wrong directory", NULL,
	    "made right by the next start of the instance" },
	[FLAW_KIND] = { "no file of the queue", to_corrupt,
	    "moved to corrupt/" },
	[FLAW_LINKS] = { "more than one name", keep_one, "one name is left" },
	[FLAW_DAMAGE] = { "damaged", to_corrupt, "moved to corrupt/" },
	[FLAW_OWNER] = { "wrong owner or mode", own_message, "set" },
	[FLAW_NAME] = { "its name is not its inode", renumber_note, "renamed" },
	[FLAW_MARK] = { "recipients failed without a reason", unmark,
	    "they are pending" },
	[FLAW_COPY] = { "a copy of another message", put_on_hold, "on hold" },
	[FLAW_FOREIGN] = { "a name that no program here made", NULL,
	    "left for you" },
	[FLAW_DROP] = { "a drop that is none", NULL,
	    "moved to corrupt/ when it is picked up" },
	[FLAW_REASON_ORPHAN] = { "reasons of a message that is not there",
	    clear_reason, "removed" },
	[FLAW_REASON_OWNER] = { "reasons with a wrong owner", own_reason,
	    "set" },
	[FLAW_PREPARED] = { "prepared for a message that is not there", settle,
	    "settled" },
	[FLAW_PARENT] = { "prepared for a message under its earlier name",
	    renumber_prepared, "renamed" },
};

static void
tell(struct check *c, const struct place *p, const struct row *row,
    const char *why, const char *end)
{
	struct buf line = { 0 };

	buf_printf(&line, "queue %u: %s%s", c->sp.queue,
	    spool_dirs[p->dir].name, p->leaf[0] == '\0' ? "" : "/");
	out_clean(&line, p->leaf, 280);
	buf_printf(&line, ": %s", row->text);
	if (why != NULL)
		buf_printf(&line, " (%s)", why);
	if (end != NULL)
		buf_printf(&line, ": %s", end);
	buf_add_str(&line, "\n");
	(void)out_send(&line, c->w);
	worker_message(c->w, 0);
	buf_done(&line);
}

int
flaw_found(
    struct check *c, enum flaw flaw, const struct place *p, const char *why)
{
	const struct row *row = &rows[flaw];
	char end[160] = "";
	int r;

	if (!c->repair || row->mend == NULL) {
		c->tally.refused++;
		tell(c, p, row, why, c->repair ? row->mended : NULL);
		return 0;
	}
	r = row->mend(c, p);
	if (r == -ENOENT)
		return 0; /* gone meanwhile: no flaw any more */
	if (r < 0)
		snprintf(end, sizeof(end), "not mended: %s",
		    r == -EBADMSG ? queue_file_reason() : strerror(-r));
	c->tally.done += r == 0;
	c->tally.refused += r < 0;
	tell(c, p, row, why, r < 0 ? end : row->mended);
	return 0;
}
