/* From one queue into another: whole, whatever fails or where it is cut. */
#include "spool/spool.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/reason.h"
#include "spool_scratch.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/files.h"

#define DUE        (1700000000 * USEC_PER_SEC)
#define OTHER      2
#define OTHER_LEAF 5 /* its split differs */

struct pair {
	struct scratch s;   /* its queue 1 */
	struct spool there; /* queue 2 */
};

static void
pair_open(struct pair *p)
{
	scratch_open(&p->s);
	cr_assert_eq(
	    spool_create(p->s.base, OTHER, OTHER_LEAF, &p->s.owner), 0);
	cr_assert_eq(spool_open(&p->there, &fault_sys, p->s.base, OTHER), 0);
}

static void
pair_close(struct pair *p)
{
	spool_close(&p->there);
	scratch_close(&p->s);
}

static void
add_reason(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const char *text)
{
	const struct reason reason = {
		.dsn = "4.4.1",
		.relay = "none",
		.address = "b@example.org",
		.text = text,
	};

	cr_assert_eq(reason_add(sp, dir, inode, &reason), 0);
}

/* A message in this directory, with both kinds of reasons and a due time. */
static uint64_t
put(struct pair *p, enum spool_dir dir)
{
	const struct spool *sp = &p->s.sp;
	uint64_t inode = scratch_put(&p->s).inode;

	if (dir != SPOOL_INCOMING)
		cr_assert_eq(spool_move(sp, SPOOL_INCOMING, dir, inode), 0);
	add_reason(sp, SPOOL_DEFER, inode, "later");
	add_reason(sp, SPOOL_BOUNCE, inode, "never");
	cr_assert_eq(spool_set_due(sp, inode, DUE), 0);
	return inode;
}

static bool
is_there(const struct spool *sp, enum spool_dir dir, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];

	spool_leaf(sp, dir, inode, leaf, sizeof(leaf));
	return faccessat(sp->dir[dir], leaf, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int
same_text(const struct reason *reason, void *arg)
{
	const char **text = arg;

	return strcmp(reason->text, *text) == 0 ? 1 : -1;
}

static bool
has_reason(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const char *text)
{
	return reason_read(sp, dir, inode, same_text, &text) == 1;
}

static bool
is_due(const struct spool *sp, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;

	spool_leaf(sp, SPOOL_DEFER, inode, leaf, sizeof(leaf));
	return fstatat(sp->dir[SPOOL_DEFER], leaf, &st, 0) == 0 &&
	    st.st_mtim.tv_sec == DUE / USEC_PER_SEC;
}

/* The message with all that was put. */
static void
check_whole(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    const char *what)
{
	struct queue_file file;
	int fd = spool_open_file(sp, dir, inode, O_RDONLY);

	cr_assert_geq(fd, 0, "%s: %s", what, strerror(-fd));
	cr_expect_eq(queue_file_read(fd, &file), 0, "%s", what);
	cr_expect_eq(queue_file_verify(fd, &file), 0, "%s", what);
	cr_expect_eq(file.queue, 1, "%s: its id stays", what);
	cr_expect(has_reason(sp, SPOOL_DEFER, inode, "later"), "%s", what);
	cr_expect(has_reason(sp, SPOOL_BOUNCE, inode, "never"), "%s", what);
	cr_expect(is_due(sp, inode), "%s: due time", what);
	close(fd);
}

static unsigned nfiles;

static int
count_one(const char *path UNUSED, const struct stat *st UNUSED, int type,
    struct FTW *ftw UNUSED)
{
	nfiles += type != FTW_D && type != FTW_DNR;
	return 0;
}

/* Markers apart. */
static unsigned
files_of(const struct spool *sp)
{
	nfiles = 0;
	cr_assert_eq(nftw(sp->path, count_one, 16, FTW_PHYS), 0);
	return nfiles - 1 - spool_is_sealed(sp);
}

static const struct {
	enum spool_dir from, to;
} roads[] = {
	{ SPOOL_INCOMING, SPOOL_INCOMING },
	{ SPOOL_ACTIVE, SPOOL_INCOMING },
	{ SPOOL_DEFERRED, SPOOL_DEFERRED },
	{ SPOOL_HOLD, SPOOL_HOLD },
};

Test(hand_over, each_directory_with_its_reasons_and_its_due_time)
{
	struct pair p;
	uint64_t inode;
	unsigned fds;
	size_t i;

	pair_open(&p);
	fds = unit_descriptors();
	for (i = 0; i < ARRAY_LEN(roads); i++) {
		inode = put(&p, roads[i].from);
		cr_assert_eq(
		    spool_hand_over(&p.s.sp, &p.there, roads[i].from, inode),
		    0);
		check_whole(
		    &p.there, roads[i].to, inode, spool_dirs[roads[i].to].name);
	}
	cr_expect_eq(files_of(&p.s.sp), 0u, "nothing is left");
	cr_expect_eq(files_of(&p.there), 3 * ARRAY_LEN(roads));
	cr_expect_eq(unit_descriptors(), fds);
	pair_close(&p);
}

Test(hand_over, D22_reasons_of_nobody_are_not_inherited)
{
	struct pair p;
	uint64_t inode;

	pair_open(&p);
	inode = scratch_put(&p.s).inode;
	add_reason(&p.there, SPOOL_BOUNCE, inode, "of somebody else");
	add_reason(&p.there, SPOOL_DEFER, inode, "of somebody else");
	cr_assert_eq(
	    spool_hand_over(&p.s.sp, &p.there, SPOOL_INCOMING, inode), 0);
	cr_expect_eq(files_of(&p.there), 1u);
	pair_close(&p);
}

/* What it says, and that the message is where it was. */
Test(hand_over, what_cannot_be_moved_stays_whole)
{
	static const struct {
		const char *name;
		enum fault_call call;
		unsigned nth;
		int error;
	} rows[] = {
		{ "D2 no room for a name of a reason", FAULT_LINKAT, 1,
		    ENOSPC },
		{ "the second", FAULT_LINKAT, 2, EDQUOT },
		{ "another file system", FAULT_LINKAT, 1, EXDEV },
		{ "D2 no room", FAULT_RENAMEAT, 1, ENOSPC },
		{ "D9 read-only", FAULT_RENAMEAT, 1, EROFS },
		{ "another file system, no reasons", FAULT_RENAMEAT, 1, EXDEV },
		{ "taken meanwhile", FAULT_RENAMEAT, 1, EEXIST },
		{ "D7", FAULT_UNLINKAT, 1, EIO },
	};
	struct pair p;
	uint64_t inode;
	size_t i;

	pair_open(&p);
	inode = put(&p, SPOOL_DEFERRED);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		fault_reset();
		fail_nth(rows[i].call, rows[i].nth, rows[i].error);
		cr_expect_eq(
		    spool_hand_over(&p.s.sp, &p.there, SPOOL_DEFERRED, inode),
		    -rows[i].error, "%s", rows[i].name);
		fault_reset();
		check_whole(&p.s.sp, SPOOL_DEFERRED, inode, rows[i].name);
		cr_expect_eq(files_of(&p.there), 0u, "%s", rows[i].name);
	}
	pair_close(&p);
}

/* Its message may be just moving there, and not be seen. */
Test(hand_over, D22_on_another_file_system_reasons_are_a_strangers)
{
	char base[] = "/dev/shm/qsched-unit-XXXXXX";
	struct stat here, there;
	struct spool foreign;
	struct pair p;
	uint64_t inode;

	pair_open(&p);
	inode = put(&p, SPOOL_DEFERRED);
	cr_assert_not_null(mkdtemp(base));
	cr_assert_eq(stat(p.s.base, &here) + stat(base, &there), 0);
	cr_assert_eq(spool_create(base, OTHER, OTHER_LEAF, &p.s.owner), 0);
	cr_assert_eq(spool_open(&foreign, &fault_sys, base, OTHER), 0);
	add_reason(&foreign, SPOOL_DEFER, inode, "of another message");
	if (here.st_dev != there.st_dev) {
		cr_expect_eq(
		    spool_hand_over(&p.s.sp, &foreign, SPOOL_DEFERRED, inode),
		    -EXDEV);
		check_whole(&p.s.sp, SPOOL_DEFERRED, inode, "it stays");
		cr_expect(has_reason(
		    &foreign, SPOOL_DEFER, inode, "of another message"));
	}
	spool_close(&foreign);
	unit_remove_tree(base);
	pair_close(&p);
}

Test(hand_over, what_is_not_here_and_what_is_there_already)
{
	struct pair p;
	char leaf[SPOOL_PATH_MAX], path[256];
	uint64_t inode;
	size_t i;

	pair_open(&p);
	cr_expect_eq(
	    spool_hand_over(&p.s.sp, &p.there, SPOOL_HOLD, 4711), -ENOENT);
	inode = put(&p, SPOOL_HOLD);
	for (i = 0; i < ARRAY_LEN(roads); i++) {
		spool_path(&p.there, roads[i].from, inode, leaf, sizeof(leaf));
		snprintf(path, sizeof(path), "%s/%s", p.there.path, leaf);
		scratch_spill(path, "");
		add_reason(&p.there, SPOOL_BOUNCE, inode, "its own");
		cr_expect_eq(
		    spool_hand_over(&p.s.sp, &p.there, SPOOL_HOLD, inode),
		    -EEXIST, "%s", leaf);
		cr_expect(has_reason(&p.there, SPOOL_BOUNCE, inode, "its own"));
		cr_assert_eq(spool_remove(&p.there, roads[i].from, inode), 0);
		cr_assert_eq(reason_clear(&p.there, SPOOL_BOUNCE, inode), 0);
	}
	check_whole(&p.s.sp, SPOOL_HOLD, inode, "still here");
	pair_close(&p);
}

Test(hand_over, D19_a_target_that_went_away)
{
	struct pair p;
	uint64_t inode;
	char path[160];

	pair_open(&p);
	inode = scratch_put(&p.s).inode;
	snprintf(path, sizeof(path), "%s/incoming/%u", p.there.path,
	    (unsigned)(inode % OTHER_LEAF));
	cr_assert_eq(rmdir(path), 0);
	cr_expect_eq(
	    spool_hand_over(&p.s.sp, &p.there, SPOOL_INCOMING, inode), -ESTALE);
	cr_expect(is_there(&p.s.sp, SPOOL_INCOMING, inode));
	pair_close(&p);
}

/* ---- a target that is closed ---- */

static void
close_there(enum fault_call call, void *arg)
{
	const struct pair *p = arg;

	if (call != FAULT_RENAMEAT)
		return;
	fault_watch(NULL, NULL);
	cr_assert_eq(spool_set_sealed(p->s.base, OTHER, true), 0);
}

Test(hand_over, a_target_that_is_closed_before_or_meanwhile)
{
	struct pair p;
	uint64_t inode;

	pair_open(&p);
	inode = put(&p, SPOOL_DEFERRED);
	cr_assert_eq(spool_set_sealed(p.s.base, OTHER, true), 0);
	cr_expect_eq(spool_hand_over(&p.s.sp, &p.there, SPOOL_DEFERRED, inode),
	    -ESHUTDOWN);
	cr_assert_eq(spool_set_sealed(p.s.base, OTHER, false), 0);
	fault_watch(close_there, &p);
	cr_expect_eq(spool_hand_over(&p.s.sp, &p.there, SPOOL_DEFERRED, inode),
	    -ESHUTDOWN);
	check_whole(&p.s.sp, SPOOL_DEFERRED, inode, "back again");
	cr_expect_eq(files_of(&p.there), 0u, "nothing in a closed queue");
	pair_close(&p);
}

static uint64_t handed;

/* The queue-send over there is quicker than our second look. */
static void
take_there(enum fault_call call, void *arg)
{
	const struct pair *p = arg;

	if (call != FAULT_RENAMEAT)
		return;
	fault_watch(NULL, NULL);
	cr_assert_eq(spool_set_sealed(p->s.base, OTHER, true), 0);
	cr_assert_eq(
	    spool_move(&p->there, SPOOL_DEFERRED, SPOOL_ACTIVE, handed), 0);
}

Test(hand_over, what_was_taken_over_there_stays_there)
{
	struct pair p;

	pair_open(&p);
	handed = put(&p, SPOOL_DEFERRED);
	fault_watch(take_there, &p);
	cr_expect_eq(
	    spool_hand_over(&p.s.sp, &p.there, SPOOL_DEFERRED, handed), 0);
	check_whole(&p.there, SPOOL_ACTIVE, handed, "over there");
	cr_expect_eq(files_of(&p.s.sp), 0u);
	pair_close(&p);
}

/* ---- cut ---- */

/* Dead at each call: afterwards it is in one queue and whole, and the next
 * attempt brings all of it over and leaves nothing. */
Test(hand_over, P1_cut_at_every_call)
{
	struct pair p;
	unsigned nth;
	bool cut = true;
	size_t i;

	pair_open(&p);
	for (i = 0; i < ARRAY_LEN(roads); i++, cut = true)
		for (nth = 1; cut; nth++) {
			enum spool_dir from = roads[i].from, to = roads[i].to;
			uint64_t inode = put(&p, from);
			bool here;
			char what[64];

			snprintf(what, sizeof(what), "%s, call %u",
			    spool_dirs[from].name, nth);
			fault_reset();
			fault_cut(nth);
			(void)spool_hand_over(&p.s.sp, &p.there, from, inode);
			cut = fault_was_cut();
			fault_reset();
			here = is_there(&p.s.sp, from, inode);
			cr_assert_neq(
			    here, is_there(&p.there, to, inode), "%s", what);
			check_whole(here ? &p.s.sp : &p.there, here ? from : to,
			    inode, what);
			if (here)
				cr_assert_eq(spool_hand_over(&p.s.sp, &p.there,
						 from, inode),
				    0, "%s", what);
			check_whole(&p.there, to, inode, what);
			cr_assert_eq(spool_remove(&p.there, to, inode), 0);
			cr_assert_eq(
			    reason_clear(&p.s.sp, SPOOL_DEFER, inode), 0);
			cr_assert_eq(
			    reason_clear(&p.s.sp, SPOOL_BOUNCE, inode), 0);
			cr_assert_eq(
			    reason_clear(&p.there, SPOOL_DEFER, inode), 0);
			cr_assert_eq(
			    reason_clear(&p.there, SPOOL_BOUNCE, inode), 0);
			cr_assert_lt(nth, 50u);
		}
	cr_expect_eq(files_of(&p.s.sp) + files_of(&p.there), 0u);
	pair_close(&p);
}

/* ---- names without an order ---- */

static char calls[32];

static void
note_call(enum fault_call call, void *arg UNUSED)
{
	static const char letters[FAULT_NCALLS] = {
		[FAULT_LINKAT] = 'l',
		[FAULT_SYNCFS] = 's',
		[FAULT_RENAMEAT] = 'r',
		[FAULT_UNLINKAT] = 'u',
	};
	const size_t len = strlen(calls);

	if (letters[call] != '\0' && len + 1 < sizeof(calls))
		calls[len] = letters[call];
}

static void
hand_over_by(struct pair *p, enum spool_dir from, uint64_t inode, bool order,
    const char *want)
{
	memset(calls, 0, sizeof(calls));
	p->s.sp.keeps_order = p->there.keeps_order = order;
	fault_watch(note_call, NULL);
	cr_assert_eq(spool_hand_over(&p->s.sp, &p->there, from, inode), 0);
	fault_watch(NULL, NULL);
	cr_expect_str_eq(calls, want);
}

/* A power cut may keep any one of two changes of names, on btrfs.
 * mutation: common/spool/spool_hand_over.c: sync_names() syncs nothing. */
Test(hand_over, D36_btrfs_syncs_around_the_move_of_a_failure)
{
	struct pair p;
	uint64_t inode;

	pair_open(&p);
	hand_over_by(
	    &p, SPOOL_DEFERRED, put(&p, SPOOL_DEFERRED), true, "llruu");
	inode = put(&p, SPOOL_DEFERRED);
	hand_over_by(&p, SPOOL_DEFERRED, inode, false, "llsrsuu");
	check_whole(&p.there, SPOOL_DEFERRED, inode, "handed over");
	inode = put(&p, SPOOL_DEFERRED);
	cr_assert_eq(reason_clear(&p.s.sp, SPOOL_BOUNCE, inode), 0);
	hand_over_by(&p, SPOOL_DEFERRED, inode, false, "lru");
	pair_close(&p);
}

/* The note of a hold is in defer/.
 * mutation: sync_names() looks for failures alone. */
Test(hand_over, D12_btrfs_syncs_around_the_move_of_a_hold)
{
	struct pair p;
	uint64_t inode;

	pair_open(&p);
	inode = put(&p, SPOOL_HOLD);
	cr_assert_eq(reason_clear(&p.s.sp, SPOOL_BOUNCE, inode), 0);
	hand_over_by(&p, SPOOL_HOLD, inode, false, "lsrsu");
	pair_close(&p);
}

/* mutation: spool_hand_over() removes names whatever the sync says. */
Test(hand_over, D36_btrfs_keeps_the_reasons_when_a_sync_fails)
{
	struct pair p;
	uint64_t inode;

	pair_open(&p);
	inode = put(&p, SPOOL_DEFERRED);
	p.there.keeps_order = false;
	fail_nth(FAULT_SYNCFS, 1, EIO);
	cr_expect_eq(
	    spool_hand_over(&p.s.sp, &p.there, SPOOL_DEFERRED, inode), -EIO);
	check_whole(&p.s.sp, SPOOL_DEFERRED, inode, "before the move");
	fault_reset();
	fail_nth(FAULT_SYNCFS, 2, EIO);
	cr_expect_eq(
	    spool_hand_over(&p.s.sp, &p.there, SPOOL_DEFERRED, inode), 0);
	check_whole(&p.there, SPOOL_DEFERRED, inode, "behind the move");
	cr_expect(has_reason(&p.s.sp, SPOOL_BOUNCE, inode, "never"));
	pair_close(&p);
}
