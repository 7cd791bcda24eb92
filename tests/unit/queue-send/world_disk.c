/* What lies in the spool of a world. */
#include "tests/unit/queue-send/world.h"

#include "spool/reason.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum spool_dir
world_where(const struct world *w, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	int dir;

	for (dir = SPOOL_MAILDROP; dir <= SPOOL_DELETED; dir++) {
		spool_leaf(
		    &w->s.sp, (enum spool_dir)dir, inode, leaf, sizeof(leaf));
		if (faccessat(w->s.sp.dir[dir], leaf, F_OK, 0) == 0)
			return (enum spool_dir)dir;
	}
	return SPOOL_NDIRS;
}

const char *
world_marks(const struct world *w, enum spool_dir dir, uint64_t inode)
{
	static struct queue_rcpt_cursor cursor;
	static char marks[256];
	struct queue_rcpt rcpt;
	struct queue_file file;
	int fd = spool_open_file(&w->s.sp, dir, inode, O_RDONLY);
	size_t n = 0;

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	queue_rcpt_begin(&cursor, &file);
	while (
	    n + 1 < sizeof(marks) && queue_rcpt_next(&cursor, fd, &rcpt) == 1)
		marks[n++] = (char)rcpt.mark;
	marks[n] = '\0';
	close(fd);
	return marks;
}

struct wanted {
	uint32_t index;
	char text[256];
};

static int
each_reason(const struct reason *reason, void *arg)
{
	struct wanted *want = arg;

	if (reason->index == want->index)
		snprintf(want->text, sizeof(want->text), "%s %s", reason->dsn,
		    reason->text);
	return 0;
}

const char *
world_reason(
    const struct world *w, enum spool_dir dir, uint64_t inode, uint32_t index)
{
	static struct wanted want;

	want = (struct wanted){ .index = index };
	(void)reason_read(&w->s.sp, dir, inode, each_reason, &want);
	return want.text;
}

uint32_t
world_count(const struct world *w, enum spool_dir dir)
{
	struct spool_scan scan;
	struct spool_item item;
	uint32_t n = 0;

	spool_scan_begin(&scan, &w->s.sp, dir);
	while (spool_scan_next(&scan, false, &item) == 1)
		n++;
	spool_scan_done(&scan);
	return n;
}
