/* When the mail of users is counted. */
#include "tests/unit/todo-proc/world.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(waiting, .init = start, .fini = end, .timeout = 60);

/* At this time; true: a walk has begun. */
static bool
walks_at(usec_t now)
{
	w.t.now = now;
	(void)waiting_work(&w.t);
	return w.t.waiting.began_at == now;
}

Test(waiting, X6_no_walk_begins_when_a_message_is_about_to_move)
{
	const usec_t now = 3600 * USEC_PER_SEC;

	w.t.waiting.wanted = false;
	w.t.waiting.seen = true;
	w.t.waiting.quiet_at = USEC_NEVER;
	w.t.now = now;
	waiting_changed(&w.t);
	cr_expect_not(walks_at(now));
	cr_expect_not(walks_at(now + WAITING_EVERY - 1));
	waiting_changed(&w.t); /* puts nothing off */
	cr_expect(walks_at(now + WAITING_EVERY));
}

Test(waiting, X6_a_walk_waits_for_the_share_of_the_last_one)
{
	const usec_t now = 3600 * USEC_PER_SEC;

	w.t.waiting.wanted = false;
	w.t.waiting.seen = true;
	w.t.waiting.quiet_at = USEC_NEVER;
	w.t.waiting.not_before = now + 50 * USEC_PER_SEC;
	w.t.now = now;
	waiting_changed(&w.t);
	cr_expect_not(walks_at(now + 50 * USEC_PER_SEC - 1));
	cr_expect(walks_at(now + 50 * USEC_PER_SEC));
}

/* ---- whose mail is counted ---- */

#define USER  1001
#define OTHER 1002

/* An instance of root, whose users stand for the user of the system: this one,
 * or where root runs the test another one. */
static uid_t
share_queue(void)
{
	const uid_t own = getuid() == 0 ? 4711 : getuid();

	w.t.sp.private = false;
	w.t.sp.owner[SPOOL_INCOMING] = w.t.sp.owner[SPOOL_ACTIVE] = own;
	return own;
}

static uint32_t flags = QUEUE_FILE_EXPANDED;

/* A message with these flags and this uid in its trailer; as root a file of
 * `owner`. */
static uint64_t
put(enum spool_dir dir, uint32_t uid, uid_t owner)
{
	const struct accept_options options = { .dir = SPOOL_INCOMING,
		.flags = flags };
	struct queue_id id;
	struct accept a;

	cr_assert_eq(accept_begin(&a, &w.t.sp, &options, clock_wall(), uid), 0);
	cr_assert_eq(queue_file_add_content(&a.writer, "a\n", 2), 0);
	cr_assert_eq(queue_file_add_sender(&a.writer, "", 0), 0);
	cr_assert_eq(queue_file_add_rcpt(&a.writer, "r@d.test", 8), 0);
	if (getuid() == 0)
		cr_assert_eq(fchown(a.fd, owner, (gid_t)-1), 0);
	cr_assert_eq(accept_commit(&a, &id), 0);
	accept_end(&a);
	if (dir != SPOOL_INCOMING)
		cr_assert_eq(
		    spool_move(&w.t.sp, SPOOL_INCOMING, dir, id.inode), 0);
	return id.inode;
}

static void
finish_walk(void)
{
	do {
		w.t.now++;
		(void)waiting_work(&w.t);
	} while (w.t.waiting.running);
	w.t.waiting.published_at = 0;
	(void)waiting_work(&w.t);
}

static struct waiting_user
row_of(uid_t uid)
{
	struct waiting_user row;

	cr_assert_eq(waiting_read(&w.t.sp, uid, &row), 0);
	return row;
}

static void
expect_row(uid_t uid, uint64_t messages, uint64_t made)
{
	const struct waiting_user row = row_of(uid);

	cr_expect_eq(row.messages, messages, "%u: %u", (unsigned)uid,
	    (unsigned)row.messages);
	cr_expect_eq(
	    row.made, made, "%u: %u", (unsigned)uid, (unsigned)row.made);
	cr_expect_eq(row.bytes > 0, messages > 0);
}

/* mutation: the walk opens no file. */
Test(waiting, X20_a_file_of_the_system_counts_for_its_submitter)
{
	const uid_t own = share_queue();

	put(SPOOL_INCOMING, USER, own);
	put(SPOOL_ACTIVE, USER, own);
	put(SPOOL_DEFERRED, USER, own);
	put(SPOOL_HOLD, OTHER, own);
	put(SPOOL_DEFERRED, own, own);
	put(SPOOL_CORRUPT, USER, own);
	finish_walk();
	expect_row(USER, 3, 3);
	expect_row(OTHER, 1, 1);
	expect_row(own, 1, 1);
	expect_row(0, 0, 0);
	cr_expect(w.t.waiting.seen);
}

/* Root alone can make files of others. */
Test(waiting, X20_a_file_of_a_user_counts_for_its_owner)
{
	(void)share_queue();
	if (getuid() != 0)
		cr_skip_test("needs root");
	put(SPOOL_DEFERRED, USER, OTHER);
	put(SPOOL_DEFERRED, 0, OTHER);
	put(SPOOL_DEFERRED, USER, 0);
	finish_walk();
	expect_row(USER, 0, 0);
	expect_row(OTHER, 2, 0);
	expect_row(0, 1, 0);
}

/* mutation: waiting_offered() does nothing. */
Test(waiting, X21_what_the_system_made_counts_when_it_is_offered)
{
	const uid_t own = share_queue();

	finish_walk();
	world_link(&w);
	world_bell(&w, put(SPOOL_INCOMING, USER, own));
	world_bell(&w, put(SPOOL_INCOMING, USER, own));
	world_credit(&w, 2);
	cr_assert_eq(w.nmessages, 2);
	w.t.waiting.published_at = 0;
	w.t.waiting.not_before = USEC_NEVER / 2; /* no walk */
	(void)waiting_work(&w.t);
	expect_row(USER, 2, 2);
	cr_expect(w.t.waiting.wanted, "a walk");
}

/* mutation: waiting_offered() counts each file of the system as an expansion.
 */
Test(waiting, X23_a_report_is_no_expansion)
{
	const uid_t own = share_queue();

	flags = QUEUE_FILE_REPORT;
	put(SPOOL_DEFERRED, USER, own);
	finish_walk();
	expect_row(USER, 1, 0);
	world_link(&w);
	world_bell(&w, put(SPOOL_INCOMING, OTHER, own));
	world_credit(&w, 1);
	w.t.waiting.published_at = 0;
	w.t.waiting.not_before = USEC_NEVER / 2; /* no walk */
	(void)waiting_work(&w.t);
	expect_row(OTHER, 1, 0);
}

/* The walk has passed incoming/ when the message comes there from prepared/. */
Test(waiting, X21_what_came_behind_a_walk_asks_for_another)
{
	const uid_t own = share_queue();
	const uint64_t inode = put(SPOOL_INCOMING, USER, own);

	todo_tick(&w.t);
	finish_walk();
	w.t.waiting.wanted = w.t.waiting.seen = false;
	world_link(&w);
	world_bell(&w, inode);
	w.t.waiting.not_before = USEC_NEVER / 2; /* no walk */
	world_credit(&w, 1);
	cr_assert_eq(w.nmessages, 1);
	cr_expect(w.t.waiting.wanted);
}

Test(waiting, X21_what_a_walk_has_counted_is_not_counted_again)
{
	const uid_t own = share_queue();
	uint64_t inode = put(SPOOL_INCOMING, USER, own);

	todo_tick(&w.t);
	finish_walk();
	expect_row(USER, 1, 1);
	world_link(&w);
	world_bell(&w, inode);
	world_credit(&w, 1);
	cr_assert_eq(w.nmessages, 1);
	w.t.waiting.not_before = USEC_NEVER;
	w.t.waiting.published_at = 0;
	(void)waiting_work(&w.t);
	expect_row(USER, 1, 1);
}

/* mutation: row_of() has no room for the 65th. */
Test(waiting, X22_every_user_is_counted)
{
	const uid_t own = share_queue();
	uint32_t i;

	for (i = 0; i < 300; i++)
		put(SPOOL_DEFERRED, 100000 + 7 * i, own);
	finish_walk();
	for (i = 0; i < 300; i++)
		expect_row(100000 + 7 * i, 1, 1);
}

Test(waiting, X22_counts_outlive_the_process)
{
	const uid_t own = share_queue();

	put(SPOOL_DEFERRED, USER, own);
	finish_walk();
	world_again(&w);
	(void)share_queue();
	w.t.waiting.not_before = USEC_NEVER; /* no walk yet */
	waiting_picked_up(&w.t, 4711, OTHER, 7);
	(void)waiting_work(&w.t);
	expect_row(USER, 1, 1);
	expect_row(OTHER, 1, 0);
}

Test(waiting, X6_where_no_user_has_limits_walks_are_seldom)
{
	const uid_t own = share_queue();
	usec_t at;

	put(SPOOL_DEFERRED, own, own);
	finish_walk();
	cr_expect_not(w.t.waiting.seen);
	w.t.waiting.wanted = false;
	at = w.t.waiting.not_before + WAITING_SELDOM;
	cr_expect_not(walks_at(at - 1));
	cr_expect(walks_at(at));
}

/* ---- what happens while a walk is under way ---- */

/* A walk has passed incoming/. */
static void
begin_walk(void)
{
	w.t.now++;
	(void)waiting_work(&w.t);
	cr_assert(w.t.waiting.running);
	cr_assert_eq(w.t.waiting.dir, 1);
}

/* mutation: waiting_met_add() returns 1 for an inode that is there. */
Test(waiting, X6_a_message_that_moves_ahead_of_a_walk_counts_once)
{
	const uid_t own = share_queue();
	uint64_t inodes[WALK_PART_MAX / 2];
	uint32_t i;

	for (i = 0; i < ARRAY_LEN(inodes); i++)
		inodes[i] = put(SPOOL_INCOMING, USER, own);
	begin_walk();
	for (i = 0; i < ARRAY_LEN(inodes); i++)
		cr_assert_eq(spool_move(&w.t.sp, SPOOL_INCOMING, SPOOL_DEFERRED,
				 inodes[i]),
		    0);
	put(SPOOL_DEFERRED, USER, own);
	finish_walk();
	expect_row(USER, ARRAY_LEN(inodes) + 1, ARRAY_LEN(inodes) + 1);
}

/* The size of a message file in bytes. */
static uint64_t
size_of(enum spool_dir dir, uint64_t inode)
{
	char leaf[SPOOL_PATH_MAX];
	struct stat st;

	spool_leaf(&w.t.sp, dir, inode, leaf, sizeof(leaf));
	cr_assert_eq(fstatat(w.t.sp.dir[dir], leaf, &st, 0), 0);
	return (uint64_t)st.st_size;
}

Test(waiting, X6_a_drop_that_is_told_during_a_walk_counts_once)
{
	const uid_t own = share_queue();
	const uint64_t met = put(SPOOL_INCOMING, USER, own);
	const uint64_t ahead = put(SPOOL_ACTIVE, USER, own);
	const uint64_t bytes = size_of(SPOOL_ACTIVE, ahead);

	begin_walk();
	waiting_picked_up(&w.t, met, USER, bytes);
	waiting_picked_up(&w.t, ahead, USER, bytes);
	waiting_picked_up(&w.t, ahead + met, USER, 7); /* behind the walk */
	finish_walk();
	expect_row(USER, 3, 1);
}

/* A thread moves a drop, and the walk ends before the thread says so.
 * mutation: came() counts what is_new() knows. */
Test(waiting, X6_a_drop_that_is_told_behind_the_walk_counts_once)
{
	const uid_t own = share_queue();
	const uint64_t met = put(SPOOL_INCOMING, USER, own);

	finish_walk();
	waiting_picked_up(&w.t, met, USER, size_of(SPOOL_INCOMING, met));
	waiting_picked_up(&w.t, met + 1, USER, 7); /* of after the walk */
	w.t.waiting.published_at = 0;
	(void)waiting_work(&w.t);
	expect_row(USER, 2, 1);
}

/* The counts of the last walk hold while the next one reads. */
Test(waiting, X6_a_drop_that_only_the_walk_under_way_met_is_told)
{
	const uid_t own = share_queue();
	uint64_t met;

	finish_walk();
	w.t.now += 3600 * USEC_PER_SEC;
	met = put(SPOOL_INCOMING, USER, own);
	begin_walk();
	waiting_picked_up(&w.t, met, USER, size_of(SPOOL_INCOMING, met));
	w.t.waiting.published_at = 0;
	(void)waiting_work(&w.t);
	expect_row(USER, 1, 0);
	finish_walk();
	expect_row(USER, 1, 1);
}

/* A file that is removed leaves its inode to the next one.
 * mutation: waiting_met_add() knows a file by its inode alone. */
Test(waiting, X6_an_inode_that_has_two_files_during_a_walk_counts_for_both)
{
	(void)share_queue();
	put(SPOOL_DEFERRED, USER, w.t.sp.owner[SPOOL_ACTIVE]);
	begin_walk();
	waiting_picked_up(&w.t, 4711, USER, 7);
	waiting_picked_up(&w.t, 4711, OTHER, 7);
	waiting_picked_up(&w.t, 4711, OTHER, 1000000);
	finish_walk();
	expect_row(USER, 2, 1);
	expect_row(OTHER, 2, 0);
}

/* mutation: kinds[] has active/ once. */
Test(waiting, X6_a_message_that_is_tried_again_during_a_walk_counts)
{
	const uid_t own = share_queue();
	const uint64_t again = put(SPOOL_DEFERRED, USER, own);

	put(SPOOL_ACTIVE, own, own);
	begin_walk();
	while (w.t.waiting.dir < 2) {
		w.t.now++;
		(void)waiting_work(&w.t);
	}
	cr_assert_eq(
	    spool_move(&w.t.sp, SPOOL_DEFERRED, SPOOL_ACTIVE, again), 0);
	finish_walk();
	expect_row(USER, 1, 1);
	expect_row(own, 1, 1); /* no limits: not in the set */
}
