/* maildrop/: what queue-drop left there, and what somebody else did. */
#include "tests/unit/todo-proc/world.h"

#include "base/clock.h"
#include "todo-proc/pickup_task.h"
#include "todo-proc/todo.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world w;

static void
link_up(void)
{
	world_link(&w);
	world_run(&w);
	world_credit(&w, 64);
}

static void
start(void)
{
	world_start(&w,
	    "message_size_limit = 1m\n"
	    "message_recipient_limit = 100\n");
	link_up();
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(pickup, .init = start, .fini = end, .timeout = 120);

static uint64_t
drop(uint32_t rcpts)
{
	return world_file(&w, SPOOL_MAILDROP, "d", rcpts);
}

static int
maildrop(void)
{
	return w.t.sp.dir[SPOOL_MAILDROP];
}

/* Of the drop with this inode. */
static void
name_of(uint64_t inode, char out[SPOOL_DROP_MAX])
{
	cr_assert(world_drop_name(&w, inode, out), "%llu is not in maildrop",
	    (unsigned long long)inode);
}

Test(pickup, D30_a_drop_is_moved_and_keeps_its_inode)
{
	uint64_t inode = drop(3);
	const struct msg_MESSAGE *m = &w.messages[0];
	struct queue_file file;
	char content[5];
	int fd;

	world_scan(&w);
	cr_assert_eq(world_count(&w, SPOOL_MAILDROP), 0);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_eq(
	    m->inode, inode, "the id that was told is that of the log");
	cr_assert_eq(m->recipients, 3);
	fd = spool_open_file(&w.t.sp, SPOOL_INCOMING, inode, O_RDWR);
	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(queue_file_verify(fd, &file), 0);
	cr_assert_eq(file.uid, getuid());
	cr_assert_eq(pread(fd, content, 5, (off_t)file.content_off), 5);
	cr_assert_eq(memcmp(content, "a\n\nb\n", 5), 0);
	close(fd);
}

Test(pickup, notified_without_a_scan)
{
	world_run(&w);
	w.t.maildrop.due_at = w.t.now + 3600 * USEC_PER_SEC;
	w.t.maildrop.not_before = 0;
	drop(1);
	world_run(&w);
	if (w.t.watch != NULL)
		cr_assert_eq(w.nmessages, 1);
}

Test(pickup, C8_limits_bind_at_acceptance_only)
{
	const struct accept_options options = { .dir = SPOOL_MAILDROP };
	static char block[65536];
	struct queue_id id;
	struct accept a;
	int i;

	cr_assert_eq(accept_begin(&a, &w.t.sp, &options, 1, getuid()), 0);
	for (i = 0; i < 40; i++)
		cr_assert_eq(accept_content(&a, block, sizeof(block)), 0);
	cr_assert_eq(queue_file_add_sender(&a.writer, "", 0), 0);
	for (i = 0; i < 101; i++)
		cr_assert_eq(queue_file_add_rcpt(&a.writer, "u@x", 3), 0);
	cr_assert_eq(accept_commit(&a, &id), 0);
	accept_end(&a);
	world_scan(&w);
	cr_assert_eq(w.t.counts.corrupt, 0);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_eq(w.messages[0].recipients, 101);
}

/* A clock that was stepped back since. */
Test(pickup, T2_an_arrival_in_the_future_is_no_damage)
{
	const struct accept_options options = { .dir = SPOOL_MAILDROP };
	struct queue_id id;
	struct accept a;

	cr_assert_eq(accept_begin(&a, &w.t.sp, &options,
			 clock_wall() + 3600 * USEC_PER_SEC, getuid()),
	    0);
	cr_assert_eq(queue_file_add_sender(&a.writer, "", 0), 0);
	cr_assert_eq(queue_file_add_rcpt(&a.writer, "u@x", 3), 0);
	cr_assert_eq(accept_commit(&a, &id), 0);
	accept_end(&a);
	world_scan(&w);
	cr_assert_eq(w.nmessages, 1);
}

/* ---- what is no drop ---- */

static void
spoil_size(const char *name)
{
	int fd = openat(maildrop(), name, O_WRONLY | O_CLOEXEC);

	cr_assert_eq(ftruncate(fd, (off_t)10 << 30), 0);
	close(fd);
}

static void
spoil_content(const char *name)
{
	int fd = openat(maildrop(), name, O_WRONLY | O_CLOEXEC);

	cr_assert_eq(pwrite(fd, "X", 1, 17), 1);
	close(fd);
}

static void
spoil_trailer(const char *name)
{
	int fd = openat(maildrop(), name, O_WRONLY | O_CLOEXEC);

	cr_assert_eq(ftruncate(fd, 40), 0);
	close(fd);
}

static void
spoil_mode(const char *name)
{
	cr_assert_eq(fchmodat(maildrop(), name, 0666, 0), 0);
}

static void
spoil_links(const char *name)
{
	cr_assert_eq(linkat(maildrop(), name, maildrop(), "other", 0), 0);
}

static void
spoil_owner(const char *name)
{
	char other[SPOOL_DROP_MAX];

	spool_drop_name(getuid() + 1, 7, other);
	cr_assert_eq(renameat(maildrop(), name, maildrop(), other), 0);
}

static void
be_directory(const char *name)
{
	cr_assert_eq(unlinkat(maildrop(), name, 0), 0);
	cr_assert_eq(mkdirat(maildrop(), name, 0700), 0);
}

static void
be_fifo(const char *name)
{
	cr_assert_eq(unlinkat(maildrop(), name, 0), 0);
	cr_assert_eq(mkfifoat(maildrop(), name, 0660), 0);
}

static void
be_link(const char *name)
{
	cr_assert_eq(unlinkat(maildrop(), name, 0), 0);
	cr_assert_eq(symlinkat("/etc/shadow", maildrop(), name), 0);
}

static void
be_empty(const char *name)
{
	int fd = openat(maildrop(), name, O_WRONLY | O_TRUNC | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	close(fd);
}

Test(pickup, X10_one_bad_drop_stops_no_other)
{
	static const struct {
		const char *what;
		void (*spoil)(const char *name);
	} rows[] = {
		{ "sparse", spoil_size },
		{ "content", spoil_content },
		{ "trailer", spoil_trailer },
		{ "mode", spoil_mode },
		{ "links", spoil_links },
		{ "another's", spoil_owner },
		{ "directory", be_directory },
		{ "fifo", be_fifo },
		{ "link", be_link },
		{ "empty", be_empty },
	};
	uint32_t good = 0;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		char name[SPOOL_DROP_MAX];

		good += world_where(&w, drop(1)) == SPOOL_MAILDROP;
		name_of(drop(1), name);
		rows[i].spoil(name);
		good += world_where(&w, drop(1)) == SPOOL_MAILDROP;
	}
	world_scan(&w);
	cr_assert_eq(good, 2 * ARRAY_LEN(rows));
	cr_expect_eq(w.nmessages, good);
	cr_expect_eq(w.t.counts.corrupt, ARRAY_LEN(rows));
	cr_expect_eq(world_count(&w, SPOOL_CORRUPT), ARRAY_LEN(rows));
	cr_expect_eq(world_count(&w, SPOOL_MAILDROP), 1, "the other link");
}

static struct spool_sys sys;
static char stuck[SPOOL_DROP_MAX];
static int stuck_error;

static int
rename_fails(int from, const char *old, int to, const char *name)
{
	if (strcmp(old, stuck) != 0)
		return spool_sys_real.renameat(from, old, to, name);
	errno = stuck_error;
	return -1;
}

static int
open_fails(int dir, const char *name, int flags, mode_t mode)
{
	if (strcmp(name, stuck) != 0)
		return spool_sys_real.openat(dir, name, flags, mode);
	errno = stuck_error;
	return -1;
}

Test(pickup, X10_one_that_cannot_be_had_or_moved_waits_alone)
{
	static const struct {
		bool open;
		int error;
	} rows[] = { { true, EIO }, { true, EMFILE }, { true, EACCES },
		{ false, EIO }, { false, ENOSPC }, { false, EISDIR },
		{ false, EROFS } };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t bad = drop(1);
		uint64_t good;

		name_of(bad, stuck);
		good = drop(1);
		stuck_error = rows[i].error;
		sys = spool_sys_real;
		if (rows[i].open)
			sys.openat = open_fails;
		else
			sys.renameat = rename_fails;
		w.t.sp.sys = &sys;
		world_scan(&w);
		cr_expect_eq(world_where(&w, bad), SPOOL_MAILDROP, "%zu", i);
		cr_expect_eq(world_where(&w, good), SPOOL_INCOMING, "%zu", i);
		w.t.sp.sys = &spool_sys_real;
		world_scan(&w);
		cr_expect_eq(world_where(&w, bad), SPOOL_INCOMING, "%zu", i);
	}
	cr_expect_eq(w.t.counts.corrupt, 0);
}

Test(pickup, X10_each_cause_is_said_by_itself)
{
	w.t.now = 3600 * USEC_PER_SEC;
	memset(w.t.said, 0, sizeof(w.t.said));
	cr_expect(todo_say(&w.t, -EISDIR));
	cr_expect_not(todo_say(&w.t, -EISDIR));
	cr_expect(todo_say(&w.t, -EIO), "another cause is not muted");
	cr_expect(todo_say(&w.t, -4711));
	w.t.now += 61 * USEC_PER_SEC;
	cr_expect(todo_say(&w.t, -EISDIR));
}

Test(pickup, D22_a_foreign_file_in_its_place_makes_room)
{
	uint64_t inode = drop(1);
	char leaf[SPOOL_PATH_MAX];
	int fd;

	spool_leaf(&w.t.sp, SPOOL_INCOMING, inode, leaf, sizeof(leaf));
	fd = openat(w.t.sp.dir[SPOOL_INCOMING], leaf,
	    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
	world_scan(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_eq(w.messages[0].inode, inode);
	cr_assert_eq(world_count(&w, SPOOL_CORRUPT), 1);
}

/* A power cut may bring back the name from before the pick-up, and the walk of
 * maildrop/ may be the first to meet the message.
 * mutation: todo-proc/pickup_task.c: pickup_drop() keeps no one name. */
Test(pickup, D12_a_drop_that_has_a_name_in_incoming_is_no_damage)
{
	const uint64_t inode = drop(1);
	char name[SPOOL_DROP_MAX], leaf[SPOOL_PATH_MAX];
	struct picked picked;

	name_of(inode, name);
	spool_leaf(&w.t.sp, SPOOL_INCOMING, inode, leaf, sizeof(leaf));
	cr_assert_eq(
	    linkat(maildrop(), name, w.t.sp.dir[SPOOL_INCOMING], leaf, 0), 0);
	pickup_drop(&w.t.sp, name, &picked);
	cr_expect_eq(picked.error, -ENOENT);
	cr_expect_eq(world_count(&w, SPOOL_MAILDROP), 0);
	cr_expect_eq(world_count(&w, SPOOL_CORRUPT), 0);
	cr_expect_eq(world_where(&w, inode), SPOOL_INCOMING);
}

Test(pickup, a_drop_that_is_being_written_is_left)
{
	uint64_t inode = drop(1);
	char name[SPOOL_DROP_MAX];
	int fd;

	name_of(inode, name);
	fd = spool_drop_open(&w.t.sp, name);
	cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	world_scan(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_MAILDROP);
	cr_assert_eq(w.t.counts.maildrop, 1);
	cr_assert(w.t.drop_later);
	close(fd);
	world_scan(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_INCOMING);
	cr_assert_eq(w.nmessages, 1);
	world_scan(&w);
	cr_assert_eq(w.t.counts.maildrop, 0);
}

/* inotify instances had run out at the start. */
Test(pickup, D54_the_watch_of_maildrop_is_tried_again)
{
	const bool can = w.t.watch != NULL;

	watch_done(&w.t);
	w.t.unwatched = true;
	world_scan(&w);
	if (!can) /* they have run out on this host */
		return;
	cr_assert_not_null(w.t.watch);
	cr_expect_not(w.t.unwatched);
}
