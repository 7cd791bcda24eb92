/* maildrop/: what local users drop, well-meant or not. */
#include "tests/unit/todo-proc/world.h"

#include "base/io.h"
#include "todo-proc/pickup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w,
	    "message_size_limit = 1m\n"
	    "message_recipient_limit = 100\n");
	world_link(&w);
	world_run(&w);
	world_credit(&w, 64);
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(pickup, .init = start, .fini = end, .timeout = 60);

Test(pickup, a_drop_is_copied_and_removed)
{
	uint64_t drop = world_file(&w, SPOOL_MAILDROP, "d", 3);
	const struct msg_MESSAGE *m = &w.messages[0];
	struct queue_file file;
	char content[5];
	int fd;

	world_scan(&w);
	cr_assert_eq(world_count(&w, SPOOL_MAILDROP), 0);
	cr_assert_eq(world_count(&w, SPOOL_INCOMING), 1);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_neq(m->inode, drop);
	cr_assert_eq(m->recipients, 3);
	fd = spool_open_file(&w.t.sp, SPOOL_INCOMING, m->inode, O_RDONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(queue_file_verify(fd, &file), 0);
	cr_assert_eq(file.uid, getuid());
	cr_assert_eq(pread(fd, content, 5, (off_t)file.content_off), 5);
	cr_assert_eq(memcmp(content, "a\n\nb\n", 5), 0);
	close(fd);
	cr_assert_lt(faccessat(w.t.sp.dir[SPOOL_LOCK], "pickup", F_OK, 0), 0,
	    "the note is gone");
}

Test(pickup, notified_without_a_scan)
{
	world_run(&w);
	w.t.maildrop.due_at = w.t.now + 3600 * USEC_PER_SEC;
	w.t.maildrop.not_before = 0;
	world_file(&w, SPOOL_MAILDROP, "d", 1);
	world_run(&w);
	if (w.t.watch != NULL)
		cr_assert_eq(w.nmessages, 1);
}

static uint64_t
grown(off_t size)
{
	uint64_t inode = world_file(&w, SPOOL_MAILDROP, "d", 1);
	int fd = spool_open_file(&w.t.sp, SPOOL_MAILDROP, inode, O_RDWR);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, size), 0);
	close(fd);
	return inode;
}

/* A whole message of n bytes and recipients. */
static uint64_t
large(size_t bytes, uint32_t rcpts)
{
	const struct accept_options options = { .dir = SPOOL_MAILDROP };
	static char block[65536];
	struct queue_id id;
	struct accept a;

	cr_assert_eq(accept_begin(&a, &w.t.sp, &options, 1, getuid()), 0);
	for (; bytes > 0; bytes -= bytes < 65536 ? bytes : 65536)
		cr_assert_eq(queue_file_add_content(&a.writer, block,
				 bytes < 65536 ? bytes : 65536),
		    0);
	cr_assert_eq(queue_file_add_sender(&a.writer, "", 0), 0);
	while (rcpts-- > 0)
		cr_assert_eq(queue_file_add_rcpt(&a.writer, "u@x", 3), 0);
	cr_assert_eq(accept_commit(&a, &id), 0);
	accept_end(&a);
	return id.inode;
}

static uint64_t
named_by_inode(const char *from)
{
	int dir = w.t.sp.dir[SPOOL_MAILDROP];
	char to[32];
	struct stat st;

	cr_assert_eq(fstatat(dir, from, &st, AT_SYMLINK_NOFOLLOW), 0);
	snprintf(to, sizeof(to), "%llu", (unsigned long long)st.st_ino);
	cr_assert_eq(renameat(dir, from, dir, to), 0);
	return (uint64_t)st.st_ino;
}

/* Local attack 7 and its kin: what is dropped can be anything. */
Test(pickup, X1_hostile_drops_only_hurt_themselves)
{
	int dir = w.t.sp.dir[SPOOL_MAILDROP];
	uint64_t inode[9], good;
	char name[32];
	size_t i;

	inode[0] = grown((off_t)10 << 30); /* sparse */
	inode[1] = world_raw_named(&w, SPOOL_MAILDROP, "hello", 5);
	inode[2] = world_raw_named(&w, SPOOL_MAILDROP, "", 0);
	cr_assert_eq(mkfifoat(dir, "fifo", 0666), 0);
	inode[3] = named_by_inode("fifo");
	cr_assert_eq(symlinkat("/etc/shadow", dir, "link"), 0);
	inode[4] = named_by_inode("link");
	inode[5] = world_file(&w, SPOOL_MAILDROP, "d", 1);
	snprintf(name, sizeof(name), "%llu", (unsigned long long)inode[5]);
	cr_assert_eq(linkat(dir, name, dir, "hard", 0), 0);
	inode[6] = large(1048576 + ACCEPT_ADDED_MAX + 1, 1);
	inode[7] = large(10, 101);
	inode[8] = world_file(&w, SPOOL_MAILDROP, "d", 1);
	snprintf(name, sizeof(name), "%llu", (unsigned long long)inode[8]);
	cr_assert_eq(fchmodat(dir, name, 0666, 0), 0);
	good = large(1048576 + ACCEPT_ADDED_MAX, 100);
	world_scan(&w);
	for (i = 0; i < ARRAY_LEN(inode); i++)
		cr_assert_eq(
		    world_where(&w, inode[i]), SPOOL_CORRUPT, "%zu", i);
	cr_assert_eq(world_where(&w, good), SPOOL_NDIRS);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_eq(w.messages[0].recipients, 100);
	cr_assert_eq(w.messages[0].content_len, 1048576 + ACCEPT_ADDED_MAX);
	cr_assert_eq(w.t.counts.corrupt, ARRAY_LEN(inode));
	cr_assert_eq(world_count(&w, SPOOL_MAILDROP), 1, "the other link");
}

Test(pickup, a_drop_that_is_being_written_is_left)
{
	uint64_t drop = world_file(&w, SPOOL_MAILDROP, "d", 1);
	int fd = spool_open_file(&w.t.sp, SPOOL_MAILDROP, drop, O_RDONLY);

	cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	world_scan(&w);
	cr_assert_eq(world_where(&w, drop), SPOOL_MAILDROP);
	cr_assert_eq(w.t.counts.maildrop, 1);
	cr_assert(w.t.drop_later);
	close(fd);
	world_scan(&w);
	cr_assert_eq(world_where(&w, drop), SPOOL_NDIRS);
	cr_assert_eq(w.nmessages, 1);
	world_scan(&w);
	cr_assert_eq(w.t.counts.maildrop, 0);
}

/* ---- what its owner does meanwhile ---- */

static struct spool_sys sys;
static uint64_t touched; /* a drop */

static ssize_t
write_and_touch(int fd, const void *data, size_t len)
{
	char name[32];

	snprintf(name, sizeof(name), "%llu", (unsigned long long)touched);
	cr_assert_eq(utimensat(w.t.sp.dir[SPOOL_MAILDROP], name, NULL, 0), 0);
	return spool_sys_real.write(fd, data, len);
}

/* Whole and right before and after, and yet not the same all the time. */
Test(pickup, a_drop_that_changes_while_it_is_read)
{
	touched = large(1000000, 1);
	sys = spool_sys_real;
	sys.write = write_and_touch;
	w.t.sp.sys = &sys;
	world_scan(&w);
	cr_assert_eq(world_where(&w, touched), SPOOL_CORRUPT);
	cr_assert_eq(world_count(&w, SPOOL_INCOMING), 0);
	cr_assert_eq(w.nmessages, 0);
}

/* ---- crashes ---- */

static int
unlink_fails(int dir, const char *name, int flags)
{
	if (dir != w.t.sp.dir[SPOOL_MAILDROP])
		return spool_sys_real.unlinkat(dir, name, flags);
	errno = EIO;
	return -1;
}

Test(pickup, P1_a_copied_drop_that_cannot_be_removed_is_not_copied_again)
{
	uint64_t drop = world_file(&w, SPOOL_MAILDROP, "d", 1), other;

	sys = spool_sys_real;
	sys.unlinkat = unlink_fails;
	w.t.sp.sys = &sys;
	world_scan(&w);
	other = world_file(&w, SPOOL_MAILDROP, "d", 1);
	world_scan(&w);
	cr_assert_eq(world_where(&w, drop), SPOOL_MAILDROP);
	cr_assert_eq(world_where(&w, other), SPOOL_MAILDROP, "nor another");
	cr_assert_eq(world_count(&w, SPOOL_INCOMING), 1);
	/* Nor by the next process, which has the note of this one. */
	world_again(&w);
	cr_assert_eq(world_where(&w, drop), SPOOL_NDIRS);
	world_link(&w);
	world_run(&w);
	world_credit(&w, 64);
	world_scan(&w);
	cr_assert_eq(world_where(&w, other), SPOOL_NDIRS);
	cr_assert_eq(world_count(&w, SPOOL_INCOMING), 2);
}

/* Its copy is delivered by then. */
Test(pickup, P1_a_stuck_drop_is_not_copied_again_after_its_delivery)
{
	uint64_t drop = world_file(&w, SPOOL_MAILDROP, "d", 1);
	struct spool_scan scan;
	struct spool_item item;

	sys = spool_sys_real;
	sys.unlinkat = unlink_fails;
	w.t.sp.sys = &sys;
	world_scan(&w);
	world_scan(&w);
	spool_scan_begin(&scan, &w.t.sp, SPOOL_INCOMING);
	cr_assert_eq(spool_scan_next(&scan, false, &item), 1);
	spool_scan_done(&scan);
	w.t.sp.sys = &spool_sys_real;
	cr_assert_eq(spool_remove(&w.t.sp, SPOOL_INCOMING, item.inode), 0);
	world_again(&w);
	world_scan(&w);
	cr_expect_eq(world_where(&w, drop), SPOOL_NDIRS);
	cr_expect_eq(world_count(&w, SPOOL_INCOMING), 0, "no second copy");
	cr_expect_lt(faccessat(w.t.sp.dir[SPOOL_LOCK], SPOOL_PICKUP, F_OK, 0),
	    0, "nor a note");
}

static void
note(const char *format, uint64_t drop, uint64_t copy, usec_t arrival,
    unsigned nonce)
{
	char text[200];
	int fd = openat(w.t.sp.dir[SPOOL_LOCK], "pickup",
	    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	snprintf(text, sizeof(text), "%llu %llu %lld %u%s",
	    (unsigned long long)drop, (unsigned long long)copy,
	    (long long)arrival, nonce, format);
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void
identity(uint64_t inode, usec_t *arrival, unsigned *nonce)
{
	struct queue_file file;
	int fd = spool_open_file(&w.t.sp, SPOOL_INCOMING, inode, O_RDONLY);

	cr_assert_eq(queue_file_read(fd, &file), 0);
	close(fd);
	*arrival = file.arrival_wall;
	*nonce = file.nonce;
}

static void
again(void)
{
	world_again(&w);
	world_link(&w);
	world_run(&w);
	world_credit(&w, 64);
	world_scan(&w);
}

Test(pickup, P1_killed_between_link_and_unlink_makes_no_second_copy)
{
	uint64_t drop = world_file(&w, SPOOL_MAILDROP, "d", 1);
	uint64_t copy = world_file(&w, SPOOL_INCOMING, "d", 1);
	unsigned nonce;
	usec_t arrival;

	identity(copy, &arrival, &nonce);
	note("\n", drop, copy, arrival, nonce);
	again();
	cr_assert_eq(world_where(&w, drop), SPOOL_NDIRS);
	cr_assert_eq(w.nmessages, 1);
	cr_assert_eq(w.messages[0].inode, copy);
}

/* Local mail is not lost when the inode of a copy that never got its name is
 * by now another message's. */
Test(pickup, D22_killed_before_the_link_the_drop_is_copied_anew)
{
	uint64_t other = world_file(&w, SPOOL_INCOMING, "d", 1);
	static const char *const ends[] = { "\n", "", "x\n", " 1\n" };
	unsigned nonce;
	usec_t arrival;
	uint64_t drop;
	size_t i;

	identity(other, &arrival, &nonce);
	for (i = 0; i < ARRAY_LEN(ends); i++) {
		drop = world_file(&w, SPOOL_MAILDROP, "d", 1);
		note(ends[i], drop, other, arrival - (i == 0), nonce);
		again();
		cr_assert_eq(world_where(&w, drop), SPOOL_NDIRS);
		cr_assert_eq(world_count(&w, SPOOL_INCOMING), 2 + i, "%zu", i);
	}
}

Test(pickup, D24_a_note_of_nothing)
{
	note("\n", 4711, 4712, 5, 6);
	again();
	cr_assert_eq(w.nmessages, 0);
	cr_assert_lt(faccessat(w.t.sp.dir[SPOOL_LOCK], "pickup", F_OK, 0), 0);
}
