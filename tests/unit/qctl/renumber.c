/* Names that become inodes, cut at every call. */
#include "cut_queue.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qctl/check/check.h"

#define COUNT 3

static struct cut_queue q;
static uint64_t inodes[COUNT];
static struct check check;

static void
start(void)
{
	cut_queue_open(&q);
}

static void
end(void)
{
	cut_queue_close(&q);
}

TestSuite(renumber, .init = start, .fini = end);

static void
rename_to(enum spool_dir dir, uint64_t old, uint64_t new)
{
	char from[SPOOL_PATH_MAX], to[SPOOL_PATH_MAX];

	spool_leaf(&q.sp, dir, old, from, sizeof(from));
	spool_leaf(&q.sp, dir, new, to, sizeof(to));
	cr_assert_eq(renameat(q.sp.dir[dir], from, q.sp.dir[dir], to), 0);
}

/* As after a restore: each has the name of the next one's inode, and its
 * reasons, which differ by their length, too. */
static void
restored(void)
{
	const uint64_t aside = UINT64_C(1) << 40;
	uint32_t i, k;

	for (i = 0; i < COUNT; i++) {
		inodes[i] = cut_queue_put(&q, 1, 0).inode;
		cr_assert_eq(spool_move(&q.sp, SPOOL_INCOMING, SPOOL_DEFERRED,
				 inodes[i]),
		    0);
		for (k = 0; k <= i; k++) {
			cut_queue_add_reason(&q, SPOOL_DEFER, inodes[i], i);
			cut_queue_add_reason(&q, SPOOL_BOUNCE, inodes[i], i);
		}
	}
	for (k = 0; k < 3; k++) {
		const enum spool_dir dirs[] = { SPOOL_DEFERRED, SPOOL_DEFER,
			SPOOL_BOUNCE };

		for (i = 0; i < COUNT; i++)
			rename_to(dirs[k], inodes[i], aside + i);
		for (i = 0; i < COUNT; i++)
			rename_to(dirs[k], aside + i, inodes[(i + 1) % COUNT]);
	}
}

/* What a look at the queue notes. */
static void
note_all(void)
{
	struct spool_scan scan;
	struct spool_item item;

	spool_scan_begin(&scan, &q.sp, SPOOL_DEFERRED);
	while (spool_scan_next(&scan, false, &item) > 0) {
		struct place p = {
			.dir = SPOOL_DEFERRED, .item = item, .fd = -1
		};

		(void)spool_name_leaf(
		    p.dir, p.item.split, p.item.name, p.leaf, sizeof(p.leaf));
		cr_assert_eq(fstatat(q.sp.dir[p.dir], p.leaf, &p.st,
				 AT_SYMLINK_NOFOLLOW),
		    0);
		if (p.item.inode != (uint64_t)p.st.st_ino)
			cr_assert_eq(renumber_note(&check, &p), 0);
	}
	spool_scan_done(&scan);
}

static void
repair(void)
{
	check = (struct check){
		.w = &(struct worker){ .fd = -1 }, .sp = q.sp, .repair = true
	};
	check.w->sent_mono = INT64_MAX / 2; /* it says nothing */
	note_all();
	(void)renumber_all(&check);
	renumber_done(&check);
}

/* The walk of queue-send: reasons of one name, and of no message, go. */
static void
start_of_the_queue(void)
{
	struct spool_scan scan;
	struct spool_item item;
	struct stat st;
	char leaf[SPOOL_PATH_MAX];

	spool_scan_begin(&scan, &q.sp, SPOOL_BOUNCE);
	while (spool_scan_next(&scan, false, &item) > 0) {
		spool_leaf(&q.sp, SPOOL_BOUNCE, item.inode, leaf, sizeof(leaf));
		if (item.inode == 0 || spool_has(&q.sp, item.inode) ||
		    fstatat(q.sp.dir[SPOOL_BOUNCE], leaf, &st, 0) < 0 ||
		    st.st_nlink > 1)
			continue;
		(void)spool_remove(&q.sp, SPOOL_BOUNCE, item.inode);
		(void)spool_remove(&q.sp, SPOOL_DEFER, item.inode);
	}
	spool_scan_done(&scan);
}

static void
each_has_its_reasons(unsigned nth)
{
	const enum spool_dir dirs[] = { SPOOL_DEFER, SPOOL_BOUNCE };
	char leaf[SPOOL_PATH_MAX];
	struct stat st;
	uint32_t i, k;

	for (i = 0; i < COUNT; i++) {
		spool_leaf(
		    &q.sp, SPOOL_DEFERRED, inodes[i], leaf, sizeof(leaf));
		cr_assert_eq(
		    fstatat(q.sp.dir[SPOOL_DEFERRED], leaf, &st, 0), 0);
		cr_expect_eq((uint64_t)st.st_ino, inodes[i]);
		cr_expect_eq(cut_queue_lines(&q, inodes[i], i, 0), i + 1,
		    "call %u: message %u", nth, i);
		for (k = 0; k < 2; k++) {
			spool_leaf(
			    &q.sp, dirs[k], inodes[i], leaf, sizeof(leaf));
			cr_expect_eq(fstatat(q.sp.dir[dirs[k]], leaf, &st, 0),
			    0, "call %u: message %u", nth, i);
		}
	}
}

Test(renumber, D24_death_at_every_call_and_a_start)
{
	unsigned nth;
	bool was_cut = true;

	for (nth = 1; was_cut; nth++) {
		restored();
		cut_queue_at(nth);
		repair();
		was_cut = cut_queue_was_cut();
		cut_queue_at(0);
		start_of_the_queue();
		repair();
		each_has_its_reasons(nth);
		cr_assert_lt(nth, 100);
		end();
		start();
	}
}

/* One message has the name of the other, whose own name is right, in another
 * directory.
 * mutation: qctl/check/renumber.c: name_is_right() answers no. */
Test(renumber, D22_D45_reasons_stay_with_the_message_whose_name_is_right)
{
	const uint64_t a = cut_queue_put(&q, 1, 0).inode;
	const uint64_t b = cut_queue_put(&q, 1, 0).inode;

	cr_assert_eq(spool_move(&q.sp, SPOOL_INCOMING, SPOOL_HOLD, b), 0);
	cut_queue_add_reason(&q, SPOOL_BOUNCE, b, 0);
	cr_assert_eq(spool_move(&q.sp, SPOOL_INCOMING, SPOOL_DEFERRED, a), 0);
	rename_to(SPOOL_DEFERRED, a, b);
	repair();
	cr_expect_eq(spool_remove(&q.sp, SPOOL_DEFERRED, a), 0);
	cr_expect_eq(cut_queue_lines(&q, b, 0, 0), 1);
	cr_expect_eq(cut_queue_lines(&q, a, 0, 0), 0);
}
