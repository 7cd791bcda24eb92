/* A message at the end of an mbox: whole or not at all. */
#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"

#define TEXT(s) (s), sizeof(s) - 1
#define PREFIX  "Return-Path: <s@x>\nDelivered-To: bob@y\n"

static struct message message;
static struct spool_sys sys;
static char path[256];
static int left;         /* octets until write fails with error */
static int error, syncs; /* of fsync: the call that fails; 0: none */

static ssize_t
seam_write(int fd, const void *data, size_t len)
{
	if (left >= 0 && len > (size_t)left)
		len = (size_t)left;
	if (len == 0) {
		errno = error;
		return -1;
	}
	left -= left >= 0 ? (int)len : 0;
	return write(fd, data, len);
}

static int
seam_fsync(int fd)
{
	if (syncs > 0 && --syncs == 0) {
		errno = EIO;
		return -1;
	}
	return fsync(fd);
}

static void
begin(void)
{
	sys = spool_sys_real;
	sys.write = seam_write;
	sys.fsync = seam_fsync;
	left = -1;
	syncs = 0;
	snprintf(path, sizeof(path), "%s", scratch_path("mbox"));
}

static void
end(void)
{
	scratch_done();
}

TestSuite(mbox, .init = begin, .fini = end, .timeout = 60);

static struct put box;
static struct mailbox_room room; /* of the next delivery */

static int
deliver_as(const char *sender, const char *content, size_t len)
{
	int r;

	box = (struct put){ .sys = &sys,
		.path = path,
		.own = true,
		.spool_group = (gid_t)-1,
		.room = room,
		.lock_limit = 200 * USEC_PER_MSEC };
	scratch_message(&message, sender, "bob@y", content, len);
	r = mbox_deliver(&box, &message);
	scratch_message_done(&message);
	return r;
}

static int
deliver(const char *content)
{
	return deliver_as("s@x", content, strlen(content));
}

/* Without the dates of the separators. */
static void
expect_file(const char *want)
{
	struct buf got = { 0 }, plain = { 0 };
	char *rest, *line;

	cr_assert_eq(scratch_read(path, &got), 0);
	rest = got.data;
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (strncmp(line, "From ", 5) == 0 && strlen(line) > 24)
			line[strlen(line) - 24] = '\0';
		buf_printf(&plain, "%s%s", line, rest == NULL ? "" : "\n");
	}
	cr_expect_str_eq(buf_str(&plain), want, "%s", buf_str(&plain));
	buf_done(&got);
	buf_done(&plain);
}

/* mutation: deliver-local/mbox.c, put_content() puts no `>`; put_gap() puts
 * nothing. */
Test(mbox, a_message_is_one_for_every_reader)
{
	static const struct {
		const char *before, *content, *want;
	} rows[] = {
		{ NULL, "a: b\n\nc\n", "From s@x \n" PREFIX "a: b\n\nc\n\n" },
		{ "", "x", "From s@x \n" PREFIX "x\n\n" },
		{ "old\n\n", "", "old\n\nFrom s@x \n" PREFIX "\n" },
		{ "half", "x\n", "half\n\nFrom s@x \n" PREFIX "x\n\n" },
		{ "half\n", "x\n", "half\n\nFrom s@x \n" PREFIX "x\n\n" },
		{ "\n", "x\n", "\n\nFrom s@x \n" PREFIX "x\n\n" },
		{ NULL, "a: b\n\nFrom me\nFromme\n>From x\nFrom",
		    "From s@x \n" PREFIX
		    "a: b\n\n>From me\nFromme\n>From x\nFrom\n\n" },
		{ NULL, "FroFrom \n\nF\nFrom \r\n",
		    "From s@x \n" PREFIX "FroFrom \n\nF\n>From \r\n\n" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].before != NULL)
			scratch_file(
			    "mbox", rows[i].before, strlen(rows[i].before));
		cr_expect_eq(
		    deliver(rows[i].content), 0, "%zu: %s", i, box.step);
		expect_file(rows[i].want);
		cr_expect_eq(unlink(path), 0);
	}
	cr_expect_eq(deliver_as("", TEXT("x\n")), 0);
	cr_expect_eq(deliver_as("\"a b\"@c", TEXT("y\n")), 0);
	expect_file(
	    "From MAILER-DAEMON \nReturn-Path: <>\nDelivered-To: bob@y\n"
	    "x\n\nFrom \"a-b\"@c \nReturn-Path: <\"a b\"@c>\n"
	    "Delivered-To: bob@y\ny\n\n");
	cr_expect_eq(scratch_count(scratch(), NULL), 1, "no lock is left");
}

/* mutation: deliver-local/mbox.c, append() does not take_back(). */
Test(mbox, D47_a_failure_leaves_the_mailbox_as_it_was)
{
	char *large = malloc(200001);
	int i;

	cr_assert_not_null(large);
	memset(large, 'x', 200000);
	large[200000] = '\0';
	for (i = 0; i < 2; i++) {
		scratch_file("mbox", TEXT("old\n\n"));
		error = i == 0 ? ENOSPC : EDQUOT;
		left = 70000;
		cr_expect_eq(deliver(large), -error);
		cr_expect_str_eq(box.step, "write");
		left = -1;
		expect_file("old\n\n");
	}
	syncs = 1;
	cr_expect_eq(deliver("x\n"), -EIO);
	expect_file("old\n\n");
	cr_expect_eq(unlink(path), 0);
	for (i = 1; i <= 2; i++) {
		syncs = i;
		cr_expect_eq(deliver("x\n"), -EIO, "sync %d", i);
		expect_file("");
	}
	cr_expect_eq(scratch_count(scratch(), NULL), 1, "no lock is left");
	free(large);
}

static struct {
	bool locked; /* at the cut */
	int syncs;   /* behind it */
} cut;

static int
ftruncate_looked(int fd, off_t len)
{
	cut.locked = access(scratch_path("mbox.lock"), F_OK) == 0;
	cut.syncs = 0;
	return ftruncate(fd, len);
}

static int
fsync_counted(int fd)
{
	cut.syncs++;
	return fsync(fd);
}

/* Without the lock the mail of another program would be cut off, too; without
 * the sync a power cut brings the part of the message back.
 * mutations: deliver-local/mbox.c: append() drops the lock in front of
 * take_back(); take_back() does not sync. */
Test(mbox, D47_what_is_taken_back_is_locked_and_then_on_disk)
{
	scratch_file("mbox", TEXT("old\n\n"));
	sys.ftruncate = ftruncate_looked;
	sys.fsync = fsync_counted;
	error = ENOSPC;
	left = 10;
	cr_expect_eq(deliver("x\n"), -ENOSPC);
	expect_file("old\n\n");
	cr_expect(cut.locked);
	cr_expect_eq(cut.syncs, 1);
}

/* Another program puts a new file in the place of the one that was opened. */
static int
open_and_lose(int dir, const char *name, int flags, mode_t mode)
{
	int fd = openat(dir, name, flags, mode);

	if (strcmp(name, "mbox") == 0) {
		sys.openat = spool_sys_real.openat;
		cr_assert_eq(unlink(path), 0);
		scratch_file("mbox", TEXT("new\n\n"));
	}
	return fd;
}

/* The message would go with the old file.
 * mutation: deliver-local/mbox.c: open_locked() does not ask whether the name
 * stands for the file. */
Test(mbox, D47_a_mailbox_that_is_replaced_before_the_lock_gets_the_message)
{
	struct buf got = { 0 };

	scratch_file("mbox", TEXT("old\n\n"));
	sys.openat = open_and_lose;
	cr_expect_eq(deliver("x\n"), 0);
	cr_assert_eq(scratch_read(path, &got), 0);
	cr_expect_eq(strncmp(buf_str(&got), "new\n\nFrom s@x ", 14), 0, "%s",
	    buf_str(&got));
	buf_done(&got);
}

/* The separator has the date, and the message ends in an empty line.
 * mutation: deliver-local/room.c, mailbox_room_size() is 0;
 * deliver-local/mbox.c, flush() does not ask. */
Test(mbox, X25_a_mailbox_ends_at_its_limit)
{
	struct stat st;
	off_t size;

	memset(&room, 0, sizeof(room));
	cr_assert_eq(deliver("From x\nFrom y\n"), 0);
	cr_assert_eq(stat(path, &st), 0);
	size = st.st_size;
	cr_assert_eq(unlink(path), 0);

	scratch_file("mbox", TEXT("old\n\n"));
	room.size_limit = (uint64_t)size + 5;
	cr_expect_eq(deliver("From x\nFrom y\n"), 0, "as large as may be");
	cr_expect_eq(deliver(""), -EFBIG);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_size, size + 5);
	scratch_file("mbox", TEXT("old\n\n"));
	room.size_limit--;
	cr_expect_eq(deliver("From x\nFrom y\n"), -EFBIG, "an octet too large");
	expect_file("old\n\n");
	room.size_limit = 18;
	cr_expect_eq(deliver("From x\nFrom y\n"), -EFBIG, "before writing");
	cr_expect_str_eq(box.room.text,
	    "the mailbox is full: 5 octets, and this message would exceed "
	    "mailbox_size_limit (18); remove mail from the mailbox, or raise "
	    "the limit");
	expect_file("old\n\n");
	cr_expect_eq(scratch_count(scratch(), NULL), 1, "no lock is left");
}

/* mutation: deliver-local/mbox.c, append() does not ask
 * mailbox_room_disk(). */
Test(mbox, D49_a_mailbox_leaves_the_reserve_of_its_disk)
{
	room =
	    (struct mailbox_room){ .reserve = { UINT64_MAX, 0, ROOM_SYSTEM } };
	scratch_file("mbox", TEXT("old\n\n"));
	cr_expect_eq(deliver("x\n"), -ENOSPC);
	cr_expect_not_null(
	    strstr(box.room.text, "mail system full: the file system has "),
	    "%s", box.room.text);
	cr_expect_not_null(strstr(box.room.text, "queue_minfree_bytes wants "),
	    "%s", box.room.text);
	expect_file("old\n\n");
}

/* The file is made, and before the lock is taken another program appends a
 * message of its own under its lock. */
static int
make_and_lose(int dir, const char *name, int flags, mode_t mode)
{
	int fd = openat(dir, name, flags, mode);

	if (fd >= 0 && (flags & O_CREAT) != 0 && strcmp(name, "mbox") == 0) {
		scratch_file("mbox.lock", TEXT("1\n"));
		cr_assert_eq(write(fd, TEXT("theirs\n\n")), 8);
	}
	return fd;
}

static int
end_their_lock(void *arg UNUSED)
{
	(void)unlink(scratch_path("mbox.lock"));
	return 0;
}

/* mutation: deliver-local/mbox.c, take_back() removes a file that was made. */
Test(mbox, D47_mail_of_another_program_in_a_new_mailbox_stays)
{
	int i;

	sys.openat = make_and_lose;
	for (i = 0; i < 2; i++) {
		error = ENOSPC;
		left = i == 0 ? 20 : -1;
		syncs = i;
		box = (struct put){ .sys = &sys,
			.path = path,
			.own = true,
			.spool_group = (gid_t)-1,
			.lock_limit = 60 * USEC_PER_SEC,
			.progress = end_their_lock };
		scratch_message(&message, "s@x", "bob@y", TEXT("x\n"));
		cr_expect_eq(
		    mbox_deliver(&box, &message), i == 0 ? -ENOSPC : -EIO);
		scratch_message_done(&message);
		left = -1;
		expect_file("theirs\n\n");
		cr_assert_eq(unlink(path), 0);
	}
}

/* The lock is looked at, and made old, with each piece that is written. */
static int beats, stale;

static int
age_lock(void *arg UNUSED)
{
	const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };
	const char *lock = scratch_path("mbox.lock");
	struct stat st;

	cr_assert_eq(stat(lock, &st), 0);
	beats++;
	stale += st.st_mtim.tv_sec == 1;
	cr_assert_eq(utimensat(AT_FDCWD, lock, old, 0), 0);
	return 0;
}

static int
steal_lock(void *arg UNUSED)
{
	if (beats++ == 0) {
		cr_assert_eq(unlink(scratch_path("mbox.lock")), 0);
		scratch_file("mbox.lock", TEXT("theirs\n"));
	}
	return 0;
}

/* mutation: deliver-local/mbox.c, progress() does not touch the lock;
 * drop_dot_lock() removes the lock of another program. */
Test(mbox, the_lock_of_a_long_write_stays_fresh)
{
	static char large[400000];
	size_t i;

	memset(large, 'x', sizeof(large));
	for (i = 0; i < 2; i++) {
		beats = stale = 0;
		box = (struct put){ .sys = &sys,
			.path = path,
			.spool_group = (gid_t)-1,
			.lock_limit = USEC_PER_SEC,
			.progress = i == 0 ? age_lock : steal_lock };
		scratch_message(&message, "s@x", "bob@y", large, sizeof(large));
		cr_expect_eq(mbox_deliver(&box, &message), 0);
		scratch_message_done(&message);
		cr_expect_gt(beats, 3);
		cr_expect_eq(stale, 0);
		cr_expect_eq(access(scratch_path("mbox.lock"), F_OK),
		    i == 0 ? -1 : 0, "%zu", i);
	}
}

/* mutation: deliver-local/mbox.c, judge_file() is always 0. */
Test(mbox, a_file_of_another_kind_or_user_is_refused)
{
	char other[256];

	cr_assert_eq(mkdir(path, 0700), 0);
	cr_expect_lt(deliver("x\n"), 0);
	cr_assert_eq(rmdir(path), 0);
	snprintf(other, sizeof(other), "%s", scratch_file("other", TEXT("")));
	cr_assert_eq(symlink(other, path), 0);
	cr_expect_eq(deliver("x\n"), -ELOOP);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(link(other, path), 0);
	cr_expect_eq(deliver("x\n"), -EPERM);
	cr_expect_str_eq(box.step, "it has more than one name");
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_eq(deliver("x\n"), -EPERM);
	cr_assert_eq(unlink(path), 0);
	if (geteuid() == 0) {
		scratch_file("mbox", TEXT(""));
		cr_assert_eq(chown(path, 1, 1), 0);
		cr_expect_eq(deliver("x\n"), -EPERM);
		cr_expect_str_eq(box.step, "it belongs to another user");
	}
}

/* mutation: deliver-local/mbox.c, take_dot_lock() answers 1; drop_stale_lock()
 * does nothing. */
Test(mbox, locks_of_others_are_waited_for)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };
	int fd, fds[2], status;
	char c;
	pid_t pid;

	scratch_file("mbox", TEXT("old\n\n"));
	scratch_file("mbox.lock", TEXT("1\n"));
	cr_expect_eq(deliver("x\n"), -ETIMEDOUT);
	expect_file("old\n\n");
	cr_expect_eq(access(scratch_path("mbox.lock"), F_OK), 0);
	cr_assert_eq(utimensat(AT_FDCWD, scratch_path("mbox.lock"), old, 0), 0);
	cr_expect_eq(deliver("x\n"), 0, "a stale lock");
	cr_expect_eq(access(scratch_path("mbox.lock"), F_OK), -1);
	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		fd = open(path, O_RDWR);
		if (fd < 0 || fcntl(fd, F_SETLK, &whole) < 0 ||
		    write(fds[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	cr_assert_eq(read(fds[0], &c, 1), 1);
	cr_expect_eq(deliver("y\n"), -ETIMEDOUT);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(deliver("y\n"), 0);
	close(fds[0]);
	close(fds[1]);
}

/* A mailbox in a directory that its user may not write is locked by the kernel
 * alone; one of a spool gets the group and the mode of the spool. */
Test(mbox, directories)
{
	struct stat st;

	cr_assert_eq(deliver("x\n"), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600u);
	if (geteuid() != 0) {
		cr_assert_eq(chmod(scratch(), 0500), 0);
		cr_expect_eq(deliver("y\n"), 0, "%s", box.step);
		cr_assert_eq(chmod(scratch(), 0700), 0);
	}
	cr_assert_eq(unlink(path), 0);
	box.spool_group = getegid();
	scratch_message(&message, "s@x", "bob@y", TEXT("x\n"));
	cr_expect_eq(mbox_deliver(&box, &message), 0);
	scratch_message_done(&message);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0660u);
}
