/* Messages are found by their id, also while they move. */
#include "spool/act.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/reason.h"
#include "spool_scratch.h"

static struct scratch s;
static uint64_t inode;
static bool back;

/* What a start of queue-send does, between two looks. */
static int
openat_behind(int dir, const char *name, int flags, mode_t mode)
{
	if (back && dir == s.sp.dir[SPOOL_ACTIVE]) {
		back = false;
		cr_assert_eq(
		    spool_move(&s.sp, SPOOL_ACTIVE, SPOOL_INCOMING, inode), 0);
	}
	return fault_sys.openat(dir, name, flags, mode);
}

/* mutation: common/spool/act.c: act_find() looks once. */
Test(spool_act, D36_a_message_that_moves_back_is_found)
{
	struct spool_sys sys = fault_sys;
	enum spool_dir dir;
	struct queue_id id;
	int fd;

	scratch_open(&s);
	id = scratch_put(&s);
	inode = id.inode;
	cr_assert_eq(spool_move(&s.sp, SPOOL_INCOMING, SPOOL_ACTIVE, inode), 0);
	sys.openat = openat_behind;
	s.sp.sys = &sys;
	back = true;
	fd = act_find(&s.sp, SPOOL_DEFERRED, &id, &dir);
	cr_expect_geq(fd, 0, "%s", strerror(-fd));
	cr_expect_not(back);
	cr_expect_eq(dir, SPOOL_INCOMING);
	close(fd);
	id.nonce++;
	cr_expect_eq(act_find(&s.sp, SPOOL_DEFERRED, &id, &dir), -ENOENT);
	s.sp.sys = &fault_sys;
	scratch_close(&s);
}

static enum spool_dir way_from, way_to;
static unsigned opened, moves_at;

/* A move between two looks. */
static int
openat_counted_move(int dir, const char *name, int flags, mode_t mode)
{
	if (++opened == moves_at)
		cr_assert_eq(spool_move(&s.sp, way_from, way_to, inode), 0);
	return fault_sys.openat(dir, name, flags, mode);
}

/* mutation: common/spool/act.c: act_find() looks once. */
Test(spool_act, A14_a_message_that_moves_at_any_look_is_found)
{
	static const enum spool_dir ways[][2] = {
		{ SPOOL_DEFERRED, SPOOL_ACTIVE },
		{ SPOOL_ACTIVE, SPOOL_DEFERRED },
		{ SPOOL_ACTIVE, SPOOL_INCOMING },
		{ SPOOL_INCOMING, SPOOL_ACTIVE },
		{ SPOOL_DEFERRED, SPOOL_HOLD },
		{ SPOOL_HOLD, SPOOL_DEFERRED },
		{ SPOOL_DELETED, SPOOL_HOLD },
		{ SPOOL_HOLD, SPOOL_DELETED },
	};
	struct spool_sys sys = fault_sys;
	enum spool_dir dir;
	struct queue_id id;
	unsigned i;
	int fd;

	scratch_open(&s);
	sys.openat = openat_counted_move;
	s.sp.sys = &sys;
	id = scratch_put(&s);
	inode = id.inode;
	dir = SPOOL_INCOMING;
	for (i = 0; i < ARRAY_LEN(ways) * 12; i++) {
		way_from = ways[i / 12][0];
		way_to = ways[i / 12][1];
		moves_at = 0;
		if (dir != way_from)
			cr_assert_eq(
			    spool_move(&s.sp, dir, way_from, inode), 0);
		opened = 0;
		moves_at = 1 + i % 12;
		fd = act_find(&s.sp, SPOOL_DEFERRED, &id, &dir);
		cr_expect_geq(fd, 0, "%s to %s at look %u: %s",
		    spool_dirs[way_from].name, spool_dirs[way_to].name,
		    moves_at, strerror(-fd));
		close(fd);
		dir = opened >= moves_at ? way_to : way_from;
	}
	s.sp.sys = &fault_sys;
	scratch_close(&s);
}

static unsigned scans;

static int
openat_counted(int dir, const char *name, int flags, mode_t mode)
{
	scans += dir == s.sp.dir[SPOOL_CORRUPT] && strcmp(name, ".") == 0;
	return fault_sys.openat(dir, name, flags, mode);
}

/* mutation: common/spool/corrupt.c: corrupt_find() always scans;
 * common/spool/act.c: act_find() looks into corrupt/ in each pass. */
Test(spool_act, D44_corrupt_is_scanned_once_and_for_odd_names_alone)
{
	struct spool_sys sys = fault_sys;
	enum spool_dir dir, to;
	struct queue_id id;
	char name[QUEUE_FILE_MAX], leaf[SPOOL_PATH_MAX];
	int fd;

	scratch_open(&s);
	id = scratch_put(&s);
	queue_file_name(id.inode, name);
	spool_leaf(&s.sp, SPOOL_INCOMING, id.inode, leaf, sizeof(leaf));
	cr_assert_eq(renameat(s.sp.dir[SPOOL_INCOMING], leaf,
			 s.sp.dir[SPOOL_CORRUPT], name),
	    0);
	sys.openat = openat_counted;
	s.sp.sys = &sys;
	fd = act_find(&s.sp, SPOOL_DEFERRED, &id, &dir);
	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	cr_expect_eq(dir, SPOOL_CORRUPT);
	cr_expect_eq(act_move(&s.sp, ACT_DELETE, dir, id.inode, fd, 1, &to), 0);
	cr_expect_eq(to, SPOOL_DELETED);
	close(fd);
	cr_expect_eq(scans, 0u);
	id.inode++;
	cr_expect_eq(act_find(&s.sp, SPOOL_DEFERRED, &id, &dir), -ENOENT);
	cr_expect_eq(scans, 1u);
	s.sp.sys = &fault_sys;
	scratch_close(&s);
}

/* mutation: common/spool/act.c: ends_decision() asks whether the message was on
 * hold. */
Test(spool_act, a_later_act_ends_a_decision)
{
	static const struct {
		enum spool_act act;
		enum spool_dir dir;
		bool stands;
	} rows[] = {
		{ ACT_REQUEUE, SPOOL_INCOMING, false },
		{ ACT_REQUEUE, SPOOL_ACTIVE, false },
		{ ACT_REQUEUE, SPOOL_DEFERRED, false },
		{ ACT_REQUEUE, SPOOL_HOLD, false },
		{ ACT_RELEASE, SPOOL_HOLD, false },
		{ ACT_RELEASE_ALL, SPOOL_CORRUPT, false },
		{ ACT_EXPIRE, SPOOL_INCOMING, false },
		{ ACT_EXPIRE, SPOOL_ACTIVE, false },
		{ ACT_EXPIRE_HELD, SPOOL_HOLD, false },
		{ ACT_RETRY, SPOOL_DEFERRED, true },
		{ ACT_HOLD, SPOOL_INCOMING, true },
		{ ACT_DELETE, SPOOL_ACTIVE, true },
	};
	enum spool_dir dir, to;
	struct queue_id id;
	size_t i;
	int fd;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		id = scratch_put(&s);
		if (rows[i].dir != SPOOL_INCOMING)
			cr_assert_eq(spool_move(&s.sp, SPOOL_INCOMING,
					 rows[i].dir, id.inode),
			    0);
		cr_assert_eq(
		    reason_add_decision(&s.sp, &id, REASON_TO_DELETE, 1), 0);
		fd = act_find(&s.sp, rows[i].dir, &id, &dir);
		cr_assert_geq(fd, 0, "row %zu: %s", i, strerror(-fd));
		cr_assert_eq(dir, rows[i].dir);
		cr_assert_eq(
		    act_move(&s.sp, rows[i].act, dir, id.inode, fd, 1, &to), 0,
		    "row %zu", i);
		close(fd);
		cr_expect_eq(reason_marks(&s.sp, &id) & REASON_DECIDED,
		    rows[i].stands ? REASON_TO_DELETE : 0, "row %zu", i);
		cr_assert_eq(spool_remove(&s.sp, to, id.inode), 0);
		cr_assert_eq(reason_clear(&s.sp, SPOOL_BOUNCE, id.inode), 0);
	}
	scratch_close(&s);
}

/* ---- the order of calls ---- */

/* t: the due time is set; b, m: reasons, the message are synced; r: a move. */
static char calls[32];

static void
note(char letter)
{
	const size_t n = strlen(calls);

	cr_assert_lt(n + 1, sizeof(calls));
	calls[n] = letter;
}

static int
utimensat_noted(
    int dir, const char *name, const struct timespec times[2], int flags)
{
	const int r = fault_sys.utimensat(dir, name, times, flags);

	if (r == 0)
		note('t');
	return r;
}

static int
fsync_noted(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	note((uint64_t)st.st_ino == inode ? 'm' : 'b');
	return fault_sys.fsync(fd);
}

static int
renameat_noted(int olddir, const char *old, int newdir, const char *name)
{
	note('r');
	return fault_sys.renameat(olddir, old, newdir, name);
}

/* A message with a reason, in this directory. */
static void
put_with_reason(enum spool_dir dir)
{
	const struct reason reason = { 0, 0, "5.1.1", "none", "a", "no", 0 };

	inode = scratch_put(&s).inode;
	cr_assert_eq(reason_add(&s.sp, SPOOL_BOUNCE, inode, &reason), 0);
	cr_assert_eq(spool_move(&s.sp, SPOOL_INCOMING, dir, inode), 0);
	memset(calls, 0, sizeof(calls));
}

static int
act_on(enum spool_act act, enum spool_dir dir)
{
	enum spool_dir to;
	int r, fd = spool_open_file(&s.sp, dir, inode, O_RDONLY);

	cr_assert_geq(fd, 0);
	r = act_move(&s.sp, act, dir, inode, fd, USEC_PER_SEC, &to);
	close(fd);
	return r;
}

static void
open_noted(struct spool_sys *sys)
{
	scratch_open(&s);
	*sys = fault_sys;
	sys->utimensat = utimensat_noted;
	sys->fsync = fsync_noted;
	sys->renameat = renameat_noted;
	s.sp.sys = sys;
}

/* The queue-send that left the message in active/ may not have synced what it
 * marked; a message in deleted/ without its time goes at once.
 * mutations: common/spool/act.c: act_move() syncs no marks; sync_marks() leaves
 * the reasons out; act_move() sets the due time behind the move. */
Test(spool_act, D32_P23_marks_and_due_time_are_written_before_the_move)
{
	static const struct {
		enum spool_act act;
		enum spool_dir dir;
		const char *calls;
	} rows[] = {
		{ ACT_HOLD, SPOOL_ACTIVE, "bmr" },
		{ ACT_REQUEUE, SPOOL_ACTIVE, "tbmr" },
		{ ACT_DELETE, SPOOL_ACTIVE, "tbmr" },
		{ ACT_DELETE, SPOOL_DEFERRED, "tr" },
		{ ACT_RELEASE, SPOOL_HOLD, "tr" },
		{ ACT_HOLD, SPOOL_DEFERRED, "r" },
	};
	struct spool_sys sys;
	size_t i;

	open_noted(&sys);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		put_with_reason(rows[i].dir);
		cr_assert_eq(act_on(rows[i].act, rows[i].dir), 0, "row %zu", i);
		cr_expect_str_eq(calls, rows[i].calls, "row %zu: %s", i, calls);
	}
	s.sp.sys = &fault_sys;
	scratch_close(&s);
}

/* mutation: common/spool/act.c: act_move() drops the error of sync_marks(). */
Test(spool_act, D7_D32_without_a_sync_the_message_stays)
{
	struct spool_sys sys;
	unsigned nth;

	open_noted(&sys);
	for (nth = 1; nth <= 2; nth++) {
		put_with_reason(SPOOL_ACTIVE);
		fault_reset();
		fail_nth(FAULT_FSYNC, nth, EIO);
		cr_expect_eq(act_on(ACT_HOLD, SPOOL_ACTIVE), -EIO);
		cr_expect_null(strchr(calls, 'r'), "%s", calls);
	}
	s.sp.sys = &fault_sys;
	scratch_close(&s);
}

/* A damaged message that is released is found damaged once more where its sum
 * is not right yet.
 * mutations: common/spool/corrupt.c: corrupt_release() moves first;
 * renew_sums() does not sync. */
Test(spool_act, D44_a_damaged_message_is_released_with_its_sum_on_disk)
{
	struct spool_sys sys;
	int fd;

	open_noted(&sys);
	put_with_reason(SPOOL_CORRUPT);
	fd = spool_open_file(&s.sp, SPOOL_CORRUPT, inode, O_RDWR);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, "!", 1, QUEUE_FILE_HEADER), 1);
	close(fd);
	cr_assert_eq(act_on(ACT_RELEASE_ALL, SPOOL_CORRUPT), 0);
	cr_expect_str_eq(calls, "tmr", "%s", calls);
	s.sp.sys = &fault_sys;
	scratch_close(&s);
}
