/* One submit, many messages: one after the other, and at the same time. */
#include "submit/submit.h"

#include "spool/spool.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct submit_origin origin = { 0, "mx.example", "\n", 0 };

static struct {
	char dir[96], base[112], conf_path[112];
	struct conf conf;
	struct submit *submit;
	int free_fd; /* the lowest descriptor that is free */
} s;

static int
lowest_fd(void)
{
	int fd = open("/", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void
write_conf(void)
{
	FILE *f = fopen(s.conf_path, "we");

	cr_assert_not_null(f);
	fprintf(f,
	    "queue_base = %s\ninstance = submit-%ld\nmyhostname = mx.example\n"
	    "queue_minfree_bytes = 0\nqueue_minfree_inodes = 0\n",
	    s.base, (long)getpid());
	cr_assert_eq(fclose(f), 0);
}

/* Queues 1 to 3, and no supervisor. */
static void
start(void)
{
	const struct spool_owner owner = { getuid(), getuid(), getgid(),
		getgid(), true };
	struct buf error = { 0 };
	uint32_t i;

	snprintf(s.dir, sizeof(s.dir), "/tmp/submit-XXXXXX");
	cr_assert_not_null(mkdtemp(s.dir));
	snprintf(s.base, sizeof(s.base), "%s/queue", s.dir);
	snprintf(s.conf_path, sizeof(s.conf_path), "%s/conf", s.dir);
	cr_assert_eq(mkdir(s.base, 0755), 0);
	for (i = 1; i <= 3; i++)
		cr_assert_eq(spool_create(s.base, i, 3, &owner), 0);
	unsetenv("QUEUE_BASE");
	unsetenv("QSCHED_INSTANCE");
	write_conf();
	cr_assert_eq(
	    conf_load(s.conf_path, &s.conf, &error), 0, "%s", buf_str(&error));
	cr_assert_eq(submit_new(&s.conf, &spool_sys_real, &s.submit), 0);
	s.free_fd = lowest_fd();
}

static void
end(void)
{
	submit_free(&s.submit);
	cr_expect_null(s.submit);
	cr_expect_eq(lowest_fd(), s.free_fd, "a descriptor is left open");
	conf_done(&s.conf);
	unit_remove_tree(s.dir);
}

TestSuite(submission, .init = start, .fini = end, .timeout = 60);

static struct submission *new (void)
{
	struct submission *m = NULL;

	cr_assert_eq(submission_new(s.submit, &m), 0);
	return m;
}

static void
begin(struct submission *m)
{
	cr_assert_eq(
	    submission_begin(m, &origin), 0, "%s", submission_reason(m));
	cr_assert_eq(submission_content(m, "x\n", 2), 0);
	cr_assert_eq(submission_sender(m, "", 0), 0);
	cr_assert_eq(submission_rcpt(m, "a@b", 3), 0);
}

static size_t
stored(void)
{
	size_t count = 0;
	uint32_t queue;

	for (queue = 1; queue <= 3; queue++) {
		struct spool_scan scan;
		struct spool_item item;
		struct spool sp;

		if (spool_open(&sp, &spool_sys_real, s.base, queue) == 0) {
			spool_scan_begin(&scan, &sp, SPOOL_INCOMING);
			while (spool_scan_next(&scan, false, &item) > 0)
				count++;
			spool_scan_done(&scan);
		}
		spool_close(&sp);
	}
	return count;
}

Test(submission, many_one_after_the_other)
{
	struct submission *m = new ();
	int i;

	for (i = 0; i < 30; i++) {
		struct queue_id id;

		begin(m);
		if (i % 3 == 2) {
			submission_abort(m, 0);
			continue;
		}
		cr_assert_eq(submission_commit(m, -1, &id), 0);
		cr_expect(id.queue >= 1 && id.queue <= 3);
	}
	cr_expect_eq(stored(), 20);
	submission_free(&m);
	cr_expect_null(m);
}

/* The queue, incoming/, and the file: no other directory is opened. */
Test(submission, three_descriptors_a_message)
{
	struct submission *m = new ();
	const unsigned before = unit_descriptors();

	begin(m);
	cr_expect_eq(unit_descriptors(), before + 3);
	submission_free(&m);
}

/* The failure of one does not close the queue that another writes to. */
Test(submission, many_at_the_same_time)
{
	struct submission *m[12];
	struct queue_id id;
	size_t i;

	for (i = 0; i < ARRAY_LEN(m); i++) {
		m[i] = new ();
		begin(m[i]);
	}
	for (i = 0; i < ARRAY_LEN(m); i += 2) {
		submission_abort(m[i], -ENOSPC);
		cr_expect_not_null(strstr(submission_reason(m[i]), "queue"));
	}
	cr_expect_eq(submission_again(m[0], -ENOSPC, &origin), -ENOSPC,
	    "each queue had one that failed");
	cr_expect_eq(submission_again(m[2], -EIO, &origin), -EIO);
	for (i = 1; i < ARRAY_LEN(m); i += 2)
		cr_expect_eq(submission_commit(m[i], -1, &id), 0);
	cr_expect_eq(stored(), ARRAY_LEN(m) / 2);
	/* The facts are read again: the queues are well. */
	begin(m[0]);
	cr_expect_eq(submission_commit(m[0], -1, &id), 0);
	begin(m[1]); /* and is left away */
	for (i = 0; i < ARRAY_LEN(m); i++)
		submission_free(&m[i]);
	cr_expect_eq(stored(), ARRAY_LEN(m) / 2 + 1);
}
