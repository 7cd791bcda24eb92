/* Two names of a message after a power cut: one stays, the same whoever looks;
 * what cannot be explained is not touched. */
#include "spool/spool.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "spool_scratch.h"

#define OTHER 2

static bool
is_there(const struct spool *sp, enum spool_dir dir, const char *leaf)
{
	return faccessat(sp->dir[dir], leaf, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
leaf_of(const struct spool *sp, enum spool_dir dir, uint64_t inode,
    char leaf[SPOOL_PATH_MAX])
{
	spool_leaf(sp, dir, inode, leaf, SPOOL_PATH_MAX);
}

/* mutation: common/spool/spool_links.c: is_before() answers the opposite. */
Test(spool_links, D12_of_two_names_in_a_queue_the_one_further_on_stays)
{
	static const struct {
		enum spool_dir from, keep;
	} rows[] = {
		{ SPOOL_INCOMING, SPOOL_DEFERRED },
		{ SPOOL_ACTIVE, SPOOL_INCOMING },
		{ SPOOL_ACTIVE, SPOOL_DEFERRED },
		{ SPOOL_ACTIVE, SPOOL_HOLD },
		{ SPOOL_DEFERRED, SPOOL_HOLD },
		{ SPOOL_INCOMING, SPOOL_CORRUPT },
	};
	char a[SPOOL_PATH_MAX], b[SPOOL_PATH_MAX], first[SPOOL_PATH_MAX];
	struct scratch s;
	uint64_t inode;
	size_t i;
	int look;

	scratch_open(&s);
	for (i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		const enum spool_dir from = rows[i / 2].from,
				     keep = rows[i / 2].keep;

		inode = scratch_put(&s).inode;
		leaf_of(&s.sp, SPOOL_INCOMING, inode, first);
		leaf_of(&s.sp, from, inode, a);
		leaf_of(&s.sp, keep, inode, b);
		cr_assert_eq(linkat(s.sp.dir[SPOOL_INCOMING], first,
				 s.sp.dir[keep == SPOOL_INCOMING ? from : keep],
				 keep == SPOOL_INCOMING ? a : b, 0),
		    0);
		if (from != SPOOL_INCOMING && keep != SPOOL_INCOMING)
			cr_assert_eq(
			    spool_move(&s.sp, SPOOL_INCOMING, from, inode), 0);
		/* Whichever of the two is looked at. */
		look = spool_keep_one_name(
		    &s.sp, i % 2 == 0 ? from : keep, i % 2 == 0 ? a : b);
		cr_expect_eq(look, 0, "%zu", i);
		cr_expect(is_there(&s.sp, keep, b), "%zu", i);
		cr_expect_not(is_there(&s.sp, from, a), "%zu", i);
		/* One name: nothing to do. */
		cr_expect_eq(
		    spool_keep_one_name(&s.sp, keep, b), -EPERM, "%zu", i);
		cr_assert_eq(unlinkat(s.sp.dir[keep], b, 0), 0, "%zu", i);
	}
	scratch_close(&s);
}

/* mutation: common/spool/spool_links.c: find_here() looks for no drops. */
Test(spool_links, D12_a_drop_that_was_picked_up_is_no_drop_any_more)
{
	char leaf[SPOOL_PATH_MAX];
	struct scratch s;
	uint64_t inode;

	scratch_open(&s);
	inode = scratch_put(&s).inode;
	leaf_of(&s.sp, SPOOL_INCOMING, inode, leaf);
	cr_assert_eq(linkat(s.sp.dir[SPOOL_INCOMING], leaf,
			 s.sp.dir[SPOOL_MAILDROP], "1000.abcdef", 0),
	    0);
	cr_expect_eq(
	    spool_keep_one_name(&s.sp, SPOOL_MAILDROP, "1000.abcdef"), 0);
	cr_expect(is_there(&s.sp, SPOOL_INCOMING, leaf));
	cr_expect_not(is_there(&s.sp, SPOOL_MAILDROP, "1000.abcdef"));
	scratch_close(&s);
}

/* mutation: common/spool/spool_links.c: find_in_others() is not called. */
Test(spool_links, D12_a_message_that_was_handed_over_is_in_one_queue)
{
	char here[SPOOL_PATH_MAX], there[SPOOL_PATH_MAX];
	const struct spool *looks;
	struct spool other;
	struct scratch s;
	uint64_t inode;
	int i;

	scratch_open(&s);
	cr_assert_eq(spool_create(s.base, OTHER, 5, &s.owner), 0);
	cr_assert_eq(spool_open(&other, &fault_sys, s.base, OTHER), 0);
	for (i = 0; i < 2; i++) {
		inode = scratch_put(&s).inode;
		leaf_of(&s.sp, SPOOL_INCOMING, inode, here);
		leaf_of(&other, SPOOL_INCOMING, inode, there);
		cr_assert_eq(linkat(s.sp.dir[SPOOL_INCOMING], here,
				 other.dir[SPOOL_INCOMING], there, 0),
		    0);
		looks = i == 0 ? &s.sp : &other;
		cr_expect_eq(spool_keep_one_name(
				 looks, SPOOL_INCOMING, i == 0 ? here : there),
		    0);
		cr_expect(is_there(&s.sp, SPOOL_INCOMING, here));
		cr_expect_not(is_there(&other, SPOOL_INCOMING, there));
	}
	spool_close(&other);
	scratch_close(&s);
}

/* mutation: common/spool/spool_links.c: is_explained() compares no two names.
 */
Test(spool_links, X10_a_drop_with_a_second_name_beside_it_is_not_explained)
{
	char leaf[SPOOL_PATH_MAX];
	struct scratch s;
	uint64_t inode;

	scratch_open(&s);
	inode = scratch_put(&s).inode;
	leaf_of(&s.sp, SPOOL_INCOMING, inode, leaf);
	cr_assert_eq(s.sp.sys->renameat(s.sp.dir[SPOOL_INCOMING], leaf,
			 s.sp.dir[SPOOL_MAILDROP], "1000.abcdef"),
	    0);
	cr_assert_eq(linkat(s.sp.dir[SPOOL_MAILDROP], "1000.abcdef",
			 s.sp.dir[SPOOL_MAILDROP], "1000.abcdeg", 0),
	    0);
	cr_expect_eq(
	    spool_keep_one_name(&s.sp, SPOOL_MAILDROP, "1000.abcdef"), -EPERM);
	cr_expect(is_there(&s.sp, SPOOL_MAILDROP, "1000.abcdef"));
	cr_expect(is_there(&s.sp, SPOOL_MAILDROP, "1000.abcdeg"));
	scratch_close(&s);
}

/* mutation: common/spool/spool_links.c: n.count is not compared. */
Test(spool_links, D16_a_link_from_elsewhere_is_not_touched)
{
	char leaf[SPOOL_PATH_MAX], path[128];
	struct scratch s;
	uint64_t inode;

	scratch_open(&s);
	inode = scratch_put(&s).inode;
	leaf_of(&s.sp, SPOOL_INCOMING, inode, leaf);
	snprintf(path, sizeof(path), "%s/elsewhere", s.top);
	cr_assert_eq(
	    linkat(s.sp.dir[SPOOL_INCOMING], leaf, AT_FDCWD, path, 0), 0);
	cr_expect_eq(spool_keep_one_name(&s.sp, SPOOL_INCOMING, leaf), -EPERM);
	cr_expect(is_there(&s.sp, SPOOL_INCOMING, leaf));
	cr_expect_eq(access(path, F_OK), 0);
	cr_expect_eq(
	    spool_keep_one_name(&s.sp, SPOOL_INCOMING, "0/1"), -ENOENT);
	scratch_close(&s);
}

struct keeper {
	const struct spool *sp;
	const char *leaf;
	int r;
};

static void *
keep(void *arg)
{
	struct keeper *k = arg;

	k->r = spool_keep_one_name(k->sp, SPOOL_ACTIVE, k->leaf);
	return NULL;
}

/* The first process removes the old name and the message moves to that very
 * name: the second must not remove it there.
 * mutation: common/spool/spool_links.c: the file is not locked. */
Test(spool_links, D12_two_processes_never_remove_both_names)
{
	char leaf[SPOOL_PATH_MAX];
	struct keeper second;
	struct scratch s;
	pthread_t thread;
	uint64_t inode;
	int first;

	scratch_open(&s);
	inode = scratch_put(&s).inode;
	leaf_of(&s.sp, SPOOL_INCOMING, inode, leaf);
	cr_assert_eq(linkat(s.sp.dir[SPOOL_INCOMING], leaf,
			 s.sp.dir[SPOOL_ACTIVE], leaf, 0),
	    0);
	first = openat(s.sp.dir[SPOOL_INCOMING], leaf, O_RDONLY | O_CLOEXEC);
	cr_assert_eq(flock(first, LOCK_EX), 0);
	second = (struct keeper){ &s.sp, leaf, -1 };
	cr_assert_eq(pthread_create(&thread, NULL, keep, &second), 0);
	usleep(100000);
	cr_expect(is_there(&s.sp, SPOOL_ACTIVE, leaf), "not waited for");
	cr_assert_eq(unlinkat(s.sp.dir[SPOOL_ACTIVE], leaf, 0), 0);
	cr_assert_eq(spool_move(&s.sp, SPOOL_INCOMING, SPOOL_ACTIVE, inode), 0);
	cr_assert_eq(close(first), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(second.r, 0);
	cr_expect(is_there(&s.sp, SPOOL_ACTIVE, leaf));
	scratch_close(&s);
}
