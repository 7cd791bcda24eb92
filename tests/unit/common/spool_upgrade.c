/* Drops of an earlier version, which any user could put there: a large one or a
 * hole is put aside before it costs disk. */
#include "spool/spool.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/format.h"
#include "spool_scratch.h"
#include "tests/unit/sync_seam.h"

#define HOLE (UINT64_C(64) << 20)

static const char *const rcpts[] = { "b@example.org", NULL };

static int
make_drop(const struct scratch *s, const char *name, char *ret_path)
{
	int fd;

	snprintf(ret_path, 256, "%s/queue1/maildrop", s->base);
	(void)mkdir(ret_path, 01733);
	snprintf(ret_path, 256, "%s/queue1/maildrop/%s", s->base, name);
	fd = open(ret_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	return fd;
}

/* A drop of this user, with a hole of so many bytes at the end of its content
 * that its trailer counts in. */
static void
put_drop(const struct scratch *s, const char *name, size_t size, uint64_t hole)
{
	struct scratch_mail mail = { .sender = "a@example.com",
		.rcpts = rcpts };
	char *content = calloc(1, size + 1), path[256];
	unsigned char trailer[QUEUE_FILE_TRAILER];
	struct queue_file file;
	int fd = make_drop(s, name, path);

	memset(content, 'x', size);
	mail.content = content;
	cr_assert_eq(scratch_write(fd, &fault_sys, &mail, &file), 0);
	free(content);
	cr_assert_eq(io_pread_all(fd, trailer, sizeof(trailer),
			 (int64_t)file.size - QUEUE_FILE_TRAILER),
	    sizeof(trailer));
	cr_assert_eq(format_get_trailer(trailer, &file), 0);
	file.uid = geteuid();
	file.content_len += hole;
	file.env_off += hole;
	file.rcpt_off += hole;
	file.size += hole;
	format_put_trailer(trailer, &file);
	cr_assert_eq(pwrite(fd, trailer, sizeof(trailer),
			 (off_t)file.size - QUEUE_FILE_TRAILER),
	    sizeof(trailer));
	cr_assert_eq(queue_file_read(fd, &file), 0);
	cr_assert_eq(close(fd), 0);
}

static unsigned
drops(const struct scratch *s, enum spool_dir dir)
{
	struct spool_scan scan;
	struct spool_item item;
	unsigned n = 0;

	spool_scan_begin(&scan, &s->sp, dir);
	while (spool_scan_next(&scan, false, &item) != 0)
		n++;
	spool_scan_done(&scan);
	return n;
}

/* mutation: common/spool/spool_upgrade.c: judge_size() is not called. */
Test(spool_upgrade, X10_a_hole_is_put_aside_before_it_is_copied)
{
	const struct rlimit small = { 4 << 20, 4 << 20 };
	struct scratch s;

	scratch_open(&s);
	put_drop(&s, "1", 0, HOLE);
	(void)signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	cr_expect_eq(spool_upgrade(s.base, 1, &s.owner, 0), 0);
	cr_expect_eq(drops(&s, SPOOL_CORRUPT), 1);
	cr_expect_eq(drops(&s, SPOOL_MAILDROP), 0);
	scratch_close(&s);
}

Test(spool_upgrade, X10_a_drop_above_the_limit_is_put_aside)
{
	const uint64_t limits[] = { 0, spool_largest(1000, 10) };
	struct scratch s;
	unsigned i;

	cr_expect_eq(spool_largest(0, 10), 0);
	for (i = 0; i < 2; i++) {
		scratch_open(&s);
		put_drop(&s, "1", (size_t)limits[1], 0);
		put_drop(&s, "2", 1000, 0);
		cr_expect_eq(spool_upgrade(s.base, 1, &s.owner, limits[i]), 0);
		cr_expect_eq(drops(&s, SPOOL_CORRUPT), i);
		cr_expect_eq(drops(&s, SPOOL_MAILDROP), 2 - i);
		scratch_close(&s);
	}
}

/* mutations: common/spool/spool_upgrade.c: fill_copy() does not sync;
 * copy_drop() does not sync the directory. */
Test(spool_upgrade, D12_a_copy_is_on_disk_before_the_old_drop_goes)
{
	struct scratch s;
	const char *calls;

	scratch_open(&s);
	put_drop(&s, "1", 10, 0);
	sync_seam_begin();
	cr_expect_eq(spool_upgrade(s.base, 1, &s.owner, 0), 0);
	calls = sync_seam_end();
	/* The copy, its name, the name on disk; the old drop, its directory. */
	cr_expect_str_eq(calls, "frduu", "%s", calls);
	cr_expect_eq(drops(&s, SPOOL_MAILDROP), 1);
	scratch_close(&s);
}
