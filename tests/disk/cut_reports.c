/* D36: the power goes while reports are removed, made again under the same
 * name, and sent. None that was removed is back where it counts, or the order
 * was wrong. */
#include "cut.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "spool/prepared.h"
#include "spool/reason.h"

#define REMOVED 'A'
#define SENT    'B'
#define BATCH   16

static void
name_of(const struct queue_id *parent, char name[PREPARED_NAME_MAX])
{
	const struct prepared p = { .parent = *parent,
		.index = PREPARED_REPORT };

	prepared_name(&p, name);
}

static int
make(const struct trial *t, const struct spool *sp,
    const struct queue_id *parent, char letter, struct queue_id *ret_id)
{
	char name[PREPARED_NAME_MAX], content[1000] = { letter };
	const struct accept_options opt = { .dir = SPOOL_PREPARED,
		.name = name,
		.strict = letter == SENT && t->test->strict };

	name_of(parent, name);
	return queue_put(sp, &opt, content, sizeof(content), ret_id);
}

static int
begin(const struct trial *t, const struct spool *sp, struct queue_id *parent)
{
	const struct accept_options opt = { .dir = SPOOL_INCOMING };
	struct queue_id removed;
	int r = queue_put(sp, &opt, "parent", 6, parent);

	return r < 0 ? r : make(t, sp, parent, REMOVED, &removed);
}

static int
make_again(const struct trial *t, const struct spool *sp,
    const struct queue_id *parent)
{
	char name[PREPARED_NAME_MAX], leaf[SPOOL_PATH_MAX], id[QUEUE_ID_SIZE];
	struct queue_id made;
	int r;

	name_of(parent, name);
	if (unlinkat(sp->dir[SPOOL_PREPARED], name, 0) < 0)
		return -1;
	r = make(t, sp, parent, SENT, &made);
	if (r < 0)
		return r;
	queue_id_format(&made, id);
	r = reason_add_report(sp, parent->inode, clock_wall(), id);
	if (r < 0)
		return r;
	spool_leaf(sp, SPOOL_INCOMING, made.inode, leaf, sizeof(leaf));
	return renameat(
	    sp->dir[SPOOL_PREPARED], name, sp->dir[SPOOL_INCOMING], leaf);
}

static int
sync_all(const struct trial *t)
{
	int fd = open(t->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -1 : syncfs(fd);

	io_close(&fd);
	return r;
}

/* All that is to be removed is on disk first. */
static int
write_batch(struct trial *t, const struct spool *sp, struct ack *ack)
{
	struct queue_id parents[BATCH];
	size_t i;

	for (i = 0; i < BATCH; i++)
		if (begin(t, sp, &parents[i]) < 0)
			return -1;
	if (sync_all(t) < 0)
		return -1;
	for (i = 0; i < BATCH; i++) {
		if (make_again(t, sp, &parents[i]) < 0)
			return -1;
		ack->id = parents[i];
		cut_note(t->book, ack);
	}
	return 0;
}

static void
write_reports(struct trial *t, uint32_t writer)
{
	struct ack ack = { .stamp = { .cut = t->cut, .writer = writer } };
	struct spool sp;

	if (writer == CUT_WRITERS ||
	    spool_open(&sp, &spool_sys_real, t->base, 1) < 0)
		return;
	while (atomic_load(&t->book->nacks) < CUT_ACKS_MAX)
		if (write_batch(t, &sp, &ack) < 0)
			return;
}

static bool
is_removed(const struct spool *sp, const char *name)
{
	int fd = openat(
	    sp->dir[SPOOL_PREPARED], name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct queue_file file;
	char letter = '\0';

	if (fd >= 0 && queue_file_read(fd, &file) == 0)
		(void)!pread(fd, &letter, 1, (off_t)file.content_off);
	io_close(&fd);
	return letter == REMOVED;
}

/* By the rule of spool_settle_prepared(): it would be sent. */
static void
judge_name(struct trial *t, const struct spool *sp, const char *name)
{
	struct prepared p;
	uint32_t reports = 0;

	if (prepared_parse(name, &p) < 0 ||
	    reason_count_reports(sp, p.parent.inode, &reports) < 0)
		return;
	t->tally.named++;
	t->tally.lost += reports > 0 && is_removed(sp, name);
}

static void
clear(const struct spool *sp, enum spool_dir dir)
{
	struct spool_scan scan;
	struct spool_item item;

	spool_scan_begin(&scan, sp, dir);
	while (spool_scan_next(&scan, false, &item) != 0)
		spool_remove(sp, dir, item.inode);
	spool_scan_done(&scan);
}

static unsigned
judge_reports(struct trial *t, const struct spool *sp)
{
	unsigned lost = t->tally.lost;
	struct spool_scan scan;
	struct spool_item item;

	spool_scan_begin(&scan, sp, SPOOL_PREPARED);
	while (spool_scan_next(&scan, false, &item) != 0) {
		judge_name(t, sp, item.name);
		unlinkat(sp->dir[SPOOL_PREPARED], item.name, 0);
	}
	spool_scan_done(&scan);
	t->tally.accepted += atomic_load(&t->book->nacks);
	t->tally.late += atomic_load(&t->book->late);
	t->tally.lossy_cuts += t->tally.lost > lost;
	clear(sp, SPOOL_INCOMING);
	clear(sp, SPOOL_BOUNCE);
	return 0;
}

const struct cut_script cut_reports = { write_reports, judge_reports };
