/* What an expansion prepared: the parent alone decides, and each row of the
 * table of docs/ALIASES.md holds, however often it is asked. */
#include "spool/prepared.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/reason.h"
#include "spool_scratch.h"

static struct scratch s;

static void
open_scratch(void)
{
	scratch_open(&s);
}

static void
close_scratch(void)
{
	scratch_close(&s);
}

TestSuite(
    spool_prepared, .init = open_scratch, .fini = close_scratch, .timeout = 60);

static const char *
name_of(const struct queue_id *parent, uint32_t index, uint32_t number)
{
	static char name[PREPARED_NAME_MAX];

	prepared_name(
	    &(struct prepared){ .parent = *parent, index, number }, name);
	return name;
}

static uint64_t
prepare_for(const struct queue_id *parent, uint32_t index, uint32_t number)
{
	const struct accept_options opt = { .dir = SPOOL_PREPARED,
		.name = name_of(parent, index, number),
		.flags = QUEUE_FILE_EXPANDED };
	struct queue_id id = { 0 };
	int r = scratch_accept(&s, &opt, &scratch_mail, &id);

	cr_assert_eq(r, 0, "%s", strerror(-r));
	return id.inode;
}

/* A message in prepared/, of recipient 1 of the parent; its inode. */
static uint64_t
prepare(const struct queue_id *parent, uint32_t number)
{
	return prepare_for(parent, 1, number);
}

static int
settle(const struct queue_id *parent, uint32_t number, uint64_t *ret_inode)
{
	return spool_settle_prepared(
	    &s.sp, name_of(parent, 1, number), ret_inode);
}

static bool
is_prepared(const struct queue_id *parent, uint32_t number)
{
	return faccessat(s.sp.dir[SPOOL_PREPARED], name_of(parent, 1, number),
		   F_OK, 0) == 0;
}

static bool
is_in(enum spool_dir dir, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(&s.sp, dir, inode, leaf, sizeof(leaf));
	return faccessat(s.sp.dir[dir], leaf, F_OK, 0) == 0;
}

static void
mark(enum spool_dir dir, const struct queue_id *id, enum rcpt_mark mark)
{
	struct queue_rcpt rcpt;
	struct queue_file file;
	int fd = spool_open_file(&s.sp, dir, id->inode, O_RDWR);

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(prepared_find_rcpt(fd, &file, 1, &rcpt), 0);
	cr_assert_eq(queue_file_mark(s.sp.sys, fd, rcpt.offset, mark), 0);
	cr_expect_eq(prepared_find_rcpt(fd, &file, 2, &rcpt), -EBADMSG);
	close(fd);
}

Test(spool_prepared, names_are_read_as_they_are_written)
{
	static const char *const foreign[] = { "", "1", "core", "1.2", "a.b.c",
		"../queue", "tmp.1.2" };
	const struct queue_id id = { .arrival_wall = 1700000000123456,
		.nonce = 0xa5,
		.queue = 4095,
		.inode = UINT64_MAX };
	char longer[PREPARED_NAME_MAX + 2], name[PREPARED_NAME_MAX];
	struct prepared p = { .number = 77 };
	size_t i;

	snprintf(
	    name, sizeof(name), "%s", name_of(&id, UINT32_MAX, UINT32_MAX - 1));
	cr_assert_eq(prepared_parse(name, &p), 0);
	cr_expect_eq(p.parent.inode, id.inode);
	cr_expect_eq(p.parent.arrival_wall, id.arrival_wall);
	cr_expect_eq(p.parent.nonce, id.nonce);
	cr_expect_eq(p.parent.queue, id.queue);
	cr_expect_eq(p.index, UINT32_MAX);
	cr_expect_eq(p.number, UINT32_MAX - 1);
	snprintf(longer, sizeof(longer), "%s0", name_of(&id, 1, 2));
	cr_expect_eq(prepared_parse(longer, &p), 0, "number 20");
	snprintf(longer, sizeof(longer), "0%s", name_of(&id, 1, 2));
	cr_expect_eq(prepared_parse(longer, &p), -EINVAL);
	for (i = 0; i < ARRAY_LEN(foreign); i++)
		cr_expect_eq(
		    prepared_parse(foreign[i], &p), -EINVAL, "%s", foreign[i]);
}

Test(spool_prepared, a_prepared_message_has_the_flag_and_its_name)
{
	const struct queue_id parent = scratch_put(&s);
	const uint64_t inode = prepare(&parent, 0);
	struct queue_file file;
	int fd = openat(s.sp.dir[SPOOL_PREPARED], name_of(&parent, 1, 0),
	    O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_expect_eq(queue_file_verify(fd, &file), 0);
	cr_expect_eq(file.flags, (uint32_t)QUEUE_FILE_EXPANDED);
	cr_expect_not(is_in(SPOOL_INCOMING, inode));
	close(fd);
}

/* Each row of the table, in each directory that a parent can be in. */
Test(spool_prepared, D35_the_mark_of_the_parent_decides)
{
	static const enum spool_dir dirs[] = { SPOOL_INCOMING, SPOOL_ACTIVE,
		SPOOL_DEFERRED, SPOOL_HOLD, SPOOL_CORRUPT };
	static const struct {
		enum rcpt_mark mark;
		int want;
	} rows[] = {
		{ RCPT_PENDING, SETTLED_AWAY },
		{ RCPT_DONE, SETTLED_INCOMING },
		{ RCPT_FAILED, SETTLED_AWAY },
	};
	uint64_t inode, moved;
	struct queue_id parent;
	size_t i, j;

	for (i = 0; i < ARRAY_LEN(dirs) * ARRAY_LEN(rows); i++) {
		j = i % ARRAY_LEN(rows);
		parent = scratch_put(&s);
		mark(SPOOL_INCOMING, &parent, rows[j].mark);
		inode = prepare(&parent, 3);
		if (dirs[i / ARRAY_LEN(rows)] != SPOOL_INCOMING)
			cr_assert_eq(
			    spool_move(&s.sp, SPOOL_INCOMING,
				dirs[i / ARRAY_LEN(rows)], parent.inode),
			    0);
		moved = 0;
		cr_expect_eq(
		    settle(&parent, 3, &moved), rows[j].want, "row %zu", i);
		cr_expect_not(is_prepared(&parent, 3), "row %zu", i);
		cr_expect_eq(is_in(SPOOL_INCOMING, inode),
		    rows[j].want == SETTLED_INCOMING, "row %zu", i);
		if (rows[j].want == SETTLED_INCOMING)
			cr_expect_eq(moved, inode);
		cr_expect_eq(settle(&parent, 3, &moved), -ENOENT, "again");
	}
}

/* In memory the removal is the mark of the last recipient: the mark in the
 * file, which is still open, says nothing.
 * mutation: common/spool/prepared.c: prepared_lock() looks at no links. */
Test(spool_prepared, D35_a_parent_that_has_gone_meanwhile_is_none)
{
	const struct queue_id id = scratch_put(&s);
	int fd = spool_open_file(&s.sp, SPOOL_INCOMING, id.inode, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(spool_remove(&s.sp, SPOOL_INCOMING, id.inode), 0);
	cr_expect_eq(prepared_lock(fd), -ENOENT);
	close(fd);
}

/* mutation: common/spool/prepared.c: take_parent() locks before it compares
 * the id. */
Test(spool_prepared, D35_without_its_parent_it_goes_on)
{
	struct queue_id parent = scratch_put(&s), other;
	uint64_t inode = prepare(&parent, 0), moved = 0;
	int fd;

	cr_assert_eq(spool_remove(&s.sp, SPOOL_INCOMING, parent.inode), 0);
	cr_expect_eq(settle(&parent, 0, &moved), SETTLED_INCOMING);
	cr_expect_eq(moved, inode);
	/* Its inode is another message's, which is pending, and is locked. */
	other = scratch_put(&s);
	fd = spool_open_file(&s.sp, SPOOL_INCOMING, other.inode, O_RDONLY);
	cr_assert_eq(prepared_lock(fd), 0);
	parent = other;
	parent.arrival_wall--;
	inode = prepare(&parent, 0);
	cr_expect_eq(settle(&parent, 0, &moved), SETTLED_INCOMING);
	cr_expect(is_in(SPOOL_INCOMING, inode));
	parent = other;
	parent.nonce++;
	prepare(&parent, 0);
	cr_expect_eq(settle(&parent, 0, &moved), SETTLED_INCOMING);
	parent = other;
	parent.queue++;
	prepare(&parent, 0);
	cr_expect_eq(settle(&parent, 0, &moved), SETTLED_INCOMING);
	prepare(&other, 0);
	cr_expect_eq(settle(&other, 0, &moved), -EAGAIN);
	close(fd);
	cr_expect_eq(settle(&other, 0, &moved), SETTLED_AWAY, "its own");
}

/* mutation: common/spool/prepared.c: take_parent() does not lock. */
Test(spool_prepared, D35_an_expansion_under_way_keeps_its_names)
{
	const struct queue_id parent = scratch_put(&s);
	int fd = spool_open_file(&s.sp, SPOOL_INCOMING, parent.inode, O_RDWR);
	uint64_t moved;

	prepare(&parent, 0);
	cr_assert_eq(prepared_lock(fd), 0);
	cr_expect_eq(settle(&parent, 0, &moved), -EAGAIN);
	mark(SPOOL_INCOMING, &parent, RCPT_DONE);
	cr_expect_eq(settle(&parent, 0, &moved), -EAGAIN);
	cr_expect(is_prepared(&parent, 0));
	close(fd);
	cr_expect_eq(settle(&parent, 0, &moved), SETTLED_INCOMING);
}

static void
damage(enum spool_dir dir, const struct queue_id *id)
{
	int fd = spool_open_file(&s.sp, dir, id->inode, O_RDWR);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 200), 0);
	close(fd);
}

Test(spool_prepared, D35_a_parent_that_cannot_be_read_decides_nothing)
{
	const struct queue_id parent = scratch_put(&s);
	uint64_t moved;

	prepare(&parent, 0);
	fail_from(FAULT_OPENAT, 1, EIO);
	cr_expect_eq(settle(&parent, 0, &moved), -EIO);
	fault_reset();
	cr_expect(is_prepared(&parent, 0));
	damage(SPOOL_INCOMING, &parent);
	cr_expect_eq(settle(&parent, 0, &moved), -EBADMSG);
	cr_expect(is_prepared(&parent, 0));
	cr_assert_eq(
	    spool_move(&s.sp, SPOOL_INCOMING, SPOOL_CORRUPT, parent.inode), 0);
	cr_expect_eq(settle(&parent, 0, &moved), SETTLED_CORRUPT);
	cr_expect_not(is_prepared(&parent, 0));
	cr_expect_eq(
	    faccessat(s.sp.dir[SPOOL_CORRUPT], name_of(&parent, 1, 0), F_OK, 0),
	    0);
}

/* A parent that moves just before each look that would have found it. */
static struct {
	uint64_t inode;
	enum spool_dir at;
	unsigned moves;
} chased;

static int
chased_openat(int dir, const char *name, int flags, mode_t mode)
{
	const enum spool_dir to =
	    chased.at == SPOOL_ACTIVE ? SPOOL_DEFERRED : SPOOL_ACTIVE;

	if (dir == s.sp.dir[chased.at] && chased.moves > 0) {
		cr_assert_eq(spool_move(&s.sp, chased.at, to, chased.inode), 0);
		chased.at = to;
		chased.moves--;
	}
	return spool_sys_real.openat(dir, name, flags, mode);
}

/* mutation: common/spool/prepared.c: PASSES is 1. */
Test(spool_prepared, D35_a_parent_that_moves_is_not_gone)
{
	const struct queue_id parent = scratch_put(&s);
	struct spool_sys sys = spool_sys_real;
	uint64_t moved;
	unsigned n;

	cr_assert_eq(
	    spool_move(&s.sp, SPOOL_INCOMING, SPOOL_DEFERRED, parent.inode), 0);
	chased.at = SPOOL_DEFERRED;
	chased.inode = parent.inode;
	sys.openat = chased_openat;
	for (n = 1; n <= 3; n++) {
		prepare(&parent, n);
		chased.moves = n;
		s.sp.sys = &sys;
		cr_expect_eq(settle(&parent, n, &moved), SETTLED_AWAY, "%u", n);
		s.sp.sys = &fault_sys;
	}
}

Test(spool_prepared, foreign_names_stay)
{
	uint64_t moved;
	char path[256];

	snprintf(path, sizeof(path), "%s/prepared/core", s.sp.path);
	scratch_spill(path, "x");
	cr_expect_eq(spool_settle_prepared(&s.sp, "core", &moved), -EINVAL);
	cr_expect_eq(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/prepared/%s", s.sp.path,
	    name_of(&(struct queue_id){ .inode = 7 }, 0, 0));
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_expect_eq(
	    spool_settle_prepared(
		&s.sp, name_of(&(struct queue_id){ .inode = 7 }, 0, 0), &moved),
	    -EINVAL);
}

/* mutation: common/spool/spool_links.c: prepared/ is not in `order`. */
Test(spool_prepared, D12_of_two_names_the_one_in_prepared_goes)
{
	const struct queue_id parent = scratch_put(&s);
	const uint64_t inode = prepare(&parent, 0);
	char leaf[SPOOL_PATH_MAX];
	uint64_t moved;

	spool_leaf(&s.sp, SPOOL_INCOMING, inode, leaf, sizeof(leaf));
	cr_assert_eq(linkat(s.sp.dir[SPOOL_PREPARED], name_of(&parent, 1, 0),
			 s.sp.dir[SPOOL_INCOMING], leaf, 0),
	    0);
	cr_expect_eq(settle(&parent, 0, &moved), -ENOENT);
	cr_expect_not(is_prepared(&parent, 0));
	cr_expect(is_in(SPOOL_INCOMING, inode));
}

Test(spool_prepared, a_foreign_file_under_the_name_goes_to_corrupt)
{
	const struct queue_id parent = scratch_put(&s);
	const uint64_t inode = prepare(&parent, 0);
	uint64_t moved;

	mark(SPOOL_INCOMING, &parent, RCPT_DONE);
	scratch_spill(scratch_path(&s, SPOOL_INCOMING, inode), "x");
	cr_expect_eq(settle(&parent, 0, &moved), SETTLED_INCOMING);
	cr_expect(is_in(SPOOL_CORRUPT, inode));
}

static void
count(void *arg, uint64_t inode)
{
	cr_expect(is_in(SPOOL_INCOMING, inode));
	++*(unsigned *)arg;
}

Test(spool_prepared, all_of_a_message_and_of_no_other)
{
	const struct queue_id parent = scratch_put(&s), other = scratch_put(&s);
	struct queue_file file;
	unsigned n = 0, i;
	int fd;

	for (i = 0; i < 5; i++)
		prepare(&parent, i);
	prepare(&other, 0);
	mark(SPOOL_INCOMING, &parent, RCPT_DONE);
	fd = spool_open_file(&s.sp, SPOOL_INCOMING, parent.inode, O_RDONLY);
	cr_assert_eq(prepared_lock(fd), 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_expect_eq(
	    spool_settle_message(&s.sp, fd, &file, parent.inode, count, &n), 0);
	cr_expect_eq(n, 5u);
	cr_expect(is_prepared(&other, 0));
	for (i = 0; i < 5; i++)
		prepare(&parent, i);
	cr_expect_eq(spool_drop_prepared(&s.sp, &parent, 0), 0);
	cr_expect(is_prepared(&parent, 4));
	cr_expect_eq(spool_drop_prepared(&s.sp, &parent, 1), 0);
	for (i = 0; i < 5; i++)
		cr_expect_not(is_prepared(&parent, i));
	cr_expect(is_prepared(&other, 0));
	close(fd);
}

static unsigned reads_of_bounce;

static int
openat_counted(int dir, const char *name, int flags, mode_t mode)
{
	reads_of_bounce += dir == s.sp.dir[SPOOL_BOUNCE];
	return fault_sys.openat(dir, name, flags, mode);
}

/* mutation: common/spool/prepared.c: was_reported() never sets `counted`. */
Test(spool_prepared, C15_reports_of_a_message_are_counted_once)
{
	const struct queue_id parent = scratch_put(&s);
	struct spool_sys sys = fault_sys;
	struct queue_file file;
	unsigned n = 0, i;
	int fd;

	for (i = 0; i < 5; i++)
		prepare_for(&parent, PREPARED_REPORT, i);
	for (i = 0; i < 3; i++)
		cr_assert_eq(
		    reason_add_rcpt_report(&s.sp, parent.inode, 0, "r", i), 0);
	fd = spool_open_file(&s.sp, SPOOL_INCOMING, parent.inode, O_RDONLY);
	cr_assert_eq(prepared_lock(fd), 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	sys.openat = openat_counted;
	s.sp.sys = &sys;
	cr_expect_eq(
	    spool_settle_message(&s.sp, fd, &file, parent.inode, count, &n), 0);
	s.sp.sys = &fault_sys;
	cr_expect_eq(n, 3u);
	cr_expect_eq(reads_of_bounce, 1u);
	for (i = 0; i < 5; i++)
		cr_expect_lt(faccessat(s.sp.dir[SPOOL_PREPARED],
				 name_of(&parent, PREPARED_REPORT, i), F_OK, 0),
		    0);
	close(fd);
}
