/* Room for a message in a maildir. */
#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"

static struct statvfs disk;      /* answer of the file system */
static struct mailbox_room room; /* of the next delivery */
static char why[ROOM_TEXT_SIZE]; /* of the last one */
static bool turns;

static int
seam_fstatvfs(int fd UNUSED, struct statvfs *out)
{
	*out = disk;
	return 0;
}

static bool held; /* nobody else gets the lock when the message has its name */

/* Another delivery ends while this one waits for the lock. */
static int
seam_flock(int fd, int op)
{
	if (turns)
		scratch_file("m/new/other", "x", 1);
	return flock(fd, op);
}

static int
seam_linkat(
    int olddir, const char *old, int newdir, const char *name, int flags)
{
	int fd = open(scratch_path("m"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return linkat(olddir, old, newdir, name, flags);
}

static int
deliver(const char *content)
{
	static uint64_t deliveries;
	struct spool_sys sys = spool_sys_real;
	struct put md = { .sys = &sys,
		.path = scratch_path("m"),
		.host = "host",
		.room = room,
		.delivery = deliveries++ };
	struct message m;
	int r;

	sys.fstatvfs = seam_fstatvfs;
	sys.flock = seam_flock;
	sys.linkat = seam_linkat;
	scratch_message(&m, "s@x", "bob@x", content, strlen(content));
	r = maildir_deliver(&md, &m);
	scratch_message_done(&m);
	memcpy(why, md.room.text, sizeof(why));
	return r;
}

static int
count(const char *sub)
{
	return scratch_count(scratch_path("m/%s", sub), NULL);
}

TestSuite(maildir_room, .fini = scratch_done);

/* Three files of 4096 octets at least. mutation: deliver-local/maildir.c,
 * check_room() counts new/ alone; deliver-local/room.c, a file counts its
 * size. */
Test(maildir_room, X25_the_mailbox_of_the_system_ends_at_its_limit)
{
	char name[256];

	room.size_limit = 3 * MAILBOX_ROOM_FILE;
	cr_assert_eq(deliver("a"), 0);
	cr_assert_eq(deliver("b"), 0);
	cr_assert_eq(scratch_count(scratch_path("m/new"), name), 2);
	cr_assert_eq(rename(scratch_path("m/new/%s", name),
			 scratch_path("m/cur/%s:2,S", name)),
	    0);
	cr_assert_eq(deliver("c"), 0);
	cr_expect_eq(deliver("d"), -EFBIG);
	cr_expect_str_eq(why,
	    "the mailbox is full: 12288 octets, and this message would exceed "
	    "mailbox_size_limit (12288); remove mail from the mailbox, or "
	    "raise the limit");
	cr_expect_eq(count("new"), 2);
	cr_expect_eq(count("tmp"), 0);
	cr_assert_eq(unlink(scratch_path("m/cur/%s:2,S", name)), 0);
	cr_expect_eq(deliver("d"), 0, "room again");
	room.size_limit = 0;
	cr_expect_eq(deliver("e"), 0, "no limit");
}

/* The name has the size, and a name without a size is looked up. mutation:
 * deliver-local/maildir.c, file_size() takes the field unread. */
Test(maildir_room, X25_a_size_is_in_the_name)
{
	static const struct {
		const char *name;
		int want;
	} rows[] = {
		{ "m/new/a,S=8193:2,S", -EFBIG },
		{ "m/new/a,S=8192:2,S", 0 },
		{ "m/new/a,S=99999999999999999999", -EFBIG },
		{ "m/new/a,S=:2,", 0 },
		{ "m/new/a,S=-1", 0 },
	};
	char name[256], want[64];
	struct stat st;
	size_t i;

	room.size_limit = 4 * MAILBOX_ROOM_FILE;
	cr_assert_eq(deliver("a"), 0);
	cr_assert_eq(scratch_count(scratch_path("m/new"), name), 1);
	cr_assert_eq(stat(scratch_path("m/new/%s", name), &st), 0);
	snprintf(want, sizeof(want), ".host,S=%lld", (long long)st.st_size);
	cr_expect_str_eq(strrchr(name, '.'), want);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		scratch_file(rows[i].name, "x", 1);
		cr_expect_eq(deliver("b"), rows[i].want, "%s", rows[i].name);
		cr_assert_eq(unlink(scratch_path("%s", rows[i].name)), 0);
		if (rows[i].want < 0)
			continue;
		cr_assert_eq(scratch_count(scratch_path("m/new"), name), 2);
		cr_assert_eq(unlink(scratch_path("m/new/%s", name)), 0);
	}
}

/* mutation: deliver-local/maildir.c, check_size() locks after it has counted,
 * or shares the lock. */
Test(maildir_room, X25_deliveries_take_turns)
{
	room.size_limit = 2 * MAILBOX_ROOM_FILE;
	cr_assert_eq(deliver("a"), 0);
	cr_expect(held);
	turns = true;
	cr_expect_eq(deliver("b"), -EFBIG, "the other message counts");
	room.size_limit = 0;
	turns = false;
	cr_expect_eq(deliver("c"), 0);
	cr_expect_not(held, "no limit, no lock");
}

/* mutation: deliver-local/maildir.c, check_room() does not ask
 * mailbox_room_disk(). */
Test(
    maildir, D49_a_maildir_leaves_the_reserve_of_its_disk, .fini = scratch_done)
{
	room.reserve = (struct room_want){ 400, 40, ROOM_SYSTEM };
	disk = (struct statvfs){ .f_frsize = 1,
		.f_blocks = 1000,
		.f_bavail = 301,
		.f_files = 1000,
		.f_favail = 30 };
	cr_expect_eq(deliver("x"), 0);
	disk.f_bavail = 300;
	cr_expect_eq(deliver("x"), -ENOSPC);
	cr_expect_neq(why[0], '\0');
	disk.f_bavail = 301;
	disk.f_favail = 29;
	cr_expect_eq(deliver("x"), -ENOSPC);
	disk.f_blocks = 0;
	cr_expect_eq(deliver("x"), 0, "size not told");
	disk.f_blocks = 1000;
	disk.f_favail = 30;
	disk.f_flag = ST_RDONLY;
	cr_expect_eq(deliver("x"), 0, "writing tells");
	cr_expect_eq(count("new"), 3);
}
