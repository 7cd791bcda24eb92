/* Room for a message in a maildir. */
#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"

static struct statvfs disk;      /* answer of the file system */
static struct mailbox_room room; /* of the next delivery */
static char why[ROOM_TEXT_SIZE]; /* of the last one */

static int
seam_fstatvfs(int fd UNUSED, struct statvfs *out)
{
	*out = disk;
	return 0;
}

static int
deliver(const char *content)
{
	static uint64_t deliveries;
	struct spool_sys sys = spool_sys_real;
	struct maildir md = { .sys = &sys,
		.path = scratch_path("m"),
		.host = "host",
		.room = room,
		.delivery = deliveries++ };
	struct message m;
	int r;

	sys.fstatvfs = seam_fstatvfs;
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
Test(maildir_room, X35_the_mailbox_of_the_system_ends_at_its_limit)
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
	    "mailbox full: 12288 octets, and with this message more than "
	    "mailbox_size_limit (12288); remove mail from the mailbox, or "
	    "raise the limit");
	cr_expect_eq(count("new"), 2);
	cr_expect_eq(count("tmp"), 0);
	cr_assert_eq(unlink(scratch_path("m/cur/%s:2,S", name)), 0);
	cr_expect_eq(deliver("d"), 0, "room again");
	room.size_limit = 0;
	cr_expect_eq(deliver("e"), 0, "no limit");
}

/* mutation: deliver-local/maildir.c, check_room() does not ask
 * mailbox_room_disk(). */
Test(
    maildir, D61_a_maildir_leaves_the_reserve_of_its_disk, .fini = scratch_done)
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
