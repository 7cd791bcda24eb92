#include "ipc_page_scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(ipc_page, .fini = ipc_scratch_done, .timeout = 60);

static struct sched_page sched_copy;
static struct queue_page queue_copy;

Test(ipc_page, published_and_read)
{
	struct stat st;
	int fd = ipc_page_make_sched();

	page_write_begin(&ipc_page_sched->head);
	ipc_page_sched->qcount = 5;
	ipc_page_sched->qconf = 6;
	ipc_page_sched->rows[0].state = QUEUE_STATE_CLOSING;
	page_write_end(&ipc_page_sched->head, 1000, 2000);
	cr_assert_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
	cr_expect_eq(sched_copy.qcount, 5);
	cr_expect_eq(sched_copy.qconf, 6);
	cr_expect_eq(sched_copy.rows[0].state, QUEUE_STATE_CLOSING);
	cr_expect_eq(sched_copy.head.pid, (uint32_t)getpid());
	cr_expect_gt(sched_copy.head.start_ticks, 0);
	cr_expect_eq(sched_copy.head.beat_mono, 1000);
	cr_expect_eq(sched_copy.head.beat_wall, 2000);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0644u);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* What programs that know only the leading bytes see. */
Test(ipc_page, leading_bytes_as_old_readers_know_them)
{
	int32_t five[5];
	uint32_t two[2];
	int fd = ipc_page_make_sched();

	ipc_page_sched->qcount = 5;
	ipc_page_sched->qconf = 7;
	cr_assert_eq(pread(fd, two, sizeof(two), 0), (ssize_t)sizeof(two));
	cr_expect_eq(two[0], 5);
	cr_expect_eq(two[1], 7);
	fd = ipc_page_make_queue(&ipc_page_own);
	ipc_page_queue->local_used = 1;
	ipc_page_queue->remote_used = 2;
	ipc_page_queue->local_limit = 10;
	ipc_page_queue->remote_limit = 20;
	ipc_page_queue->disabled = 1;
	cr_assert_eq(pread(fd, five, sizeof(five), 0), (ssize_t)sizeof(five));
	cr_expect_eq(five[0], 1);
	cr_expect_eq(five[1], 2);
	cr_expect_eq(five[2], 10);
	cr_expect_eq(five[3], 20);
	cr_expect_eq(five[4], 1);
}

Test(ipc_page, I10_missing)
{
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -ENOENT);
	cr_expect_eq(queue_page_read(ipc_scratch(), 1, &queue_copy), -ENOENT);
}

Test(ipc_page, I10_I11_short_and_empty)
{
	static const off_t sizes[] = { 0, 1, 8, 20, sizeof(struct page_head),
		sizeof(struct sched_page) - 1 };
	int fd = ipc_page_make_sched();
	size_t i;

	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		cr_assert_eq(ftruncate(fd, sizes[i]), 0);
		cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy),
		    -EBADMSG, "%ld bytes", (long)sizes[i]);
	}
	/* Of the right size, but empty. */
	cr_assert_eq(ftruncate(fd, sizeof(struct sched_page)), 0);
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EBADMSG);
}

/* The supervisor reads pages of its own queues by their descriptors. */
Test(ipc_page, I11_one_that_shrank_under_its_reader_is_no_page)
{
	const struct queue_page want = { .queue = 7 };
	struct queue_page got = want;
	int fd = memfd_create("page", MFD_CLOEXEC);

	cr_assert_eq(ftruncate(fd, sizeof(got) / 2), 0);
	cr_expect_eq(queue_page_read_fd(fd, &got), -EBADMSG);
	cr_expect_eq(memcmp(&got, &want, sizeof(got)), 0, "untouched");
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_expect_eq(queue_page_read_fd(fd, &got), -EBADMSG);
	close(fd);
}

Test(ipc_page, P20_another_version_or_size_is_refused)
{
	ipc_page_make_sched();
	ipc_page_sched->head.version = SCHED_PAGE_VERSION + 1;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EBADMSG);
	ipc_page_sched->head.version = SCHED_PAGE_VERSION;
	ipc_page_sched->head.size--;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EBADMSG);
	ipc_page_sched->head.size++;
	ipc_page_sched->head.magic = QUEUE_PAGE_MAGIC;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EBADMSG);
	ipc_page_sched->head.magic = SCHED_PAGE_MAGIC;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
}

/* Of a supervisor that is older than its reader.
 * mutation: common/ipc/page_read.c: read_queue_page() reads one version. */
Test(ipc_page, P20_the_last_version_of_a_queue_page_is_read)
{
	struct page_head *head;
	struct queue_page *page;
	char name[IPC_NAME_MAX];
	int fd;

	ipc_name_queue(ipc_scratch(), 1, name);
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, QUEUE_PAGE_SIZE_3), 0);
	page = mmap(
	    NULL, QUEUE_PAGE_SIZE_3, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(page != MAP_FAILED);
	head = &page->head;
	*head = (struct page_head){ .magic = QUEUE_PAGE_MAGIC,
		.version = 3,
		.size = QUEUE_PAGE_SIZE_3 };
	page->untried = 7;
	memset(&queue_copy, 0xff, sizeof(queue_copy));
	cr_expect_eq(queue_page_read(ipc_scratch(), 1, &queue_copy), 0);
	cr_expect_eq(queue_copy.untried, 7);
	cr_expect_eq(queue_copy.disk_since_mono, 0);
	cr_expect_eq(queue_copy.disk_work, DISK_WORK_NONE);
	head->version = 2;
	cr_expect_eq(queue_page_read(ipc_scratch(), 1, &queue_copy), -EBADMSG);
	shm_unlink(name);
	close(fd);
}

static int
read_sched(void *arg UNUSED)
{
	return -sched_page_read(arg, &sched_copy);
}

static int
read_queue(void *arg)
{
	return -queue_page_read(arg, 1, &queue_copy);
}

Test(ipc_page, I10_a_page_of_somebody_else_is_not_believed)
{
	char instance[32];
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	snprintf(instance, sizeof(instance), "%s", ipc_scratch());
	fd = ipc_page_make_sched();
	cr_expect_eq(ipc_as_nobody(read_sched, instance), 0, "root's");
	cr_assert_eq(fchown(fd, 1, 1), 0);
	cr_expect_eq(ipc_as_nobody(read_sched, instance), EPERM);
	cr_expect_eq(sched_page_read(instance, &sched_copy), -EPERM);
	cr_assert_eq(fchown(fd, ipc_nobody(), 0), 0);
	cr_expect_eq(ipc_as_nobody(read_sched, instance), 0, "its own");
}

/* Ordinary users believe a queue's page when root's page names its owner. */
Test(ipc_page, I10_queue_page_of_the_user_that_the_supervisor_names)
{
	const struct page_owner qmails = { 1, 1, 0644 };
	char instance[32];
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	snprintf(instance, sizeof(instance), "%s", ipc_scratch());
	ipc_page_make_queue(&qmails);
	cr_expect_eq(ipc_as_nobody(read_queue, instance), EPERM, "no page");
	fd = ipc_page_make_sched();
	ipc_page_sched->qmails_uid = 2;
	cr_expect_eq(ipc_as_nobody(read_queue, instance), EPERM, "another");
	ipc_page_sched->qmails_uid = 1;
	cr_expect_eq(ipc_as_nobody(read_queue, instance), 0);
	cr_expect_eq(queue_page_read(instance, 1, &queue_copy), 0);
	cr_assert_eq(fchown(fd, 3, 3), 0);
	cr_expect_eq(ipc_as_nobody(read_queue, instance), EPERM, "forged");
}

static int
read_queue_of_one(void *arg)
{
	return -queue_page_read_of(arg, 1, 1, &queue_copy);
}

/* The caller names the owner, and nobody else is believed for that. */
Test(ipc_page, I10_queue_page_of_the_user_that_the_caller_has_read)
{
	const struct page_owner qmails = { 1, 1, 0644 };
	char instance[32];
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	snprintf(instance, sizeof(instance), "%s", ipc_scratch());
	fd = ipc_page_make_queue(&qmails);
	cr_expect_eq(ipc_as_nobody(read_queue_of_one, instance), 0);
	cr_expect_eq(ipc_as_nobody(read_queue, instance), EPERM, "not named");
	cr_assert_eq(fchown(fd, 3, 3), 0);
	cr_expect_eq(
	    ipc_as_nobody(read_queue_of_one, instance), EPERM, "forged");
	ipc_page_make_sched();
	ipc_page_sched->qmails_uid = 3;
	cr_expect_eq(ipc_as_nobody(read_queue_of_one, instance), EPERM,
	    "what the caller has read is in force");
	cr_assert_eq(fchown(fd, 0, 0), 0);
	cr_expect_eq(ipc_as_nobody(read_queue_of_one, instance), 0, "root's");
}

Test(ipc_page, mapped_again_by_descriptor)
{
	void *again = NULL;
	struct queue_page *mine;
	int fd = ipc_page_make_queue(&ipc_page_own);

	cr_assert_eq(
	    page_map(fd, sizeof(*ipc_page_queue), QUEUE_PAGE_MAGIC, &again), 0);
	mine = again;
	page_own(&mine->head);
	cr_expect(page_is_own(
	    &mine->head, sizeof(*ipc_page_queue), QUEUE_PAGE_MAGIC, getpid()));
	cr_expect_not(page_is_own(
	    &mine->head, sizeof(*ipc_page_queue), QUEUE_PAGE_MAGIC, getppid()));
	page_write_begin(&mine->head);
	mine->incoming = 42;
	page_write_end(&mine->head, 1, 1);
	cr_assert_eq(queue_page_read(ipc_scratch(), 1, &queue_copy), 0);
	cr_expect_eq(queue_copy.incoming, 42);
	page_unmap(&again, sizeof(*ipc_page_queue));
	cr_expect_null(again);
	cr_expect_eq(
	    page_map(fd, sizeof(*ipc_page_queue) - 1, QUEUE_PAGE_MAGIC, &again),
	    -EBADMSG);
	ipc_page_queue->head.version++;
	cr_expect_eq(
	    page_map(fd, sizeof(*ipc_page_queue), QUEUE_PAGE_MAGIC, &again),
	    -EBADMSG);
	ipc_page_queue->head.version--;
	cr_assert_eq(ftruncate(fd, 10), 0);
	cr_expect_eq(
	    page_map(fd, sizeof(*ipc_page_queue), QUEUE_PAGE_MAGIC, &again),
	    -EBADMSG);
	cr_expect_null(again);
}

/* ---- the sequence lock ---- */

Test(ipc_page, I12_torn_is_not_given_out)
{
	ipc_page_make_sched();
	page_write_begin(&ipc_page_sched->head);
	ipc_page_sched->qcount = 1;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EAGAIN);
	page_write_begin(&ipc_page_sched->head); /* of one that died */
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EAGAIN);
	page_write_end(&ipc_page_sched->head, 1, 1);
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
}

/* The writer was killed while it wrote; its successor mends the page. */
Test(ipc_page, I12_a_half_written_page_is_taken_over)
{
	ipc_page_make_sched();
	page_write_begin(&ipc_page_sched->head);
	page_own(&ipc_page_sched->head);
	cr_expect_eq(ipc_page_sched->head.seq % 2, 0);
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
}

Test(ipc_page, I12_what_is_read_is_clamped)
{
	ipc_page_make_sched();
	ipc_page_sched->qcount = UINT32_MAX;
	ipc_page_sched->qconf = PAGE_QUEUES_MAX + 1;
	ipc_page_sched->rows[3].state = 77;
	memset(ipc_page_sched->change, 'x', sizeof(ipc_page_sched->change));
	cr_assert_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
	cr_expect_eq(sched_copy.qcount, PAGE_QUEUES_MAX);
	cr_expect_eq(sched_copy.qconf, PAGE_QUEUES_MAX);
	cr_expect_eq(sched_copy.rows[3].state, QUEUE_STATE_DISABLED);
	cr_expect_eq(strnlen(sched_copy.change, 200), SCHED_CHANGE_SIZE - 1);
	ipc_page_make_queue(&ipc_page_own);
	ipc_page_queue->local_used = INT32_MIN;
	ipc_page_queue->remote_limit = -1;
	cr_assert_eq(queue_page_read(ipc_scratch(), 1, &queue_copy), 0);
	cr_expect_eq(queue_copy.local_used, 0);
	cr_expect_eq(queue_copy.remote_limit, 0);
}

Test(ipc_page, I12_load)
{
	static const struct {
		const char *name;
		int32_t local_used, local_limit, remote_used, remote_limit;
		uint32_t want;
		int32_t busiest;
	} rows[] = {
		{ "idle", 0, 10, 0, 20, 0, 0 },
		{ "the larger: local", 9, 10, 2, 20, 90, 0 },
		{ "the larger: remote", 1, 10, 20, 20, 100, 0 },
		{ "rounded down", 1, 3, 0, 20, 33, 0 },
		{ "no limit is no division", 5, 0, 5, 0, 0, 0 },
		{ "negative used", -5, 10, INT32_MIN, 10, 0, 0 },
		{ "negative limit", 5, -10, 5, INT32_MIN, 0, 0 },
		{ "huge used", INT32_MAX, 1, 0, 1, 1000, 0 },
		{ "all huge", INT32_MAX, INT32_MAX, 0, 0, 100, 0 },
		{ "one of two transports is full", 0, 9, 100, 200, 100, 100 },
		{ "the sum is larger", 9, 10, 0, 9, 90, 50 },
		{ "busiest is negative", 1, 10, 0, 9, 10, INT32_MIN },
		{ "busiest is huge", 1, 10, 0, 9, 1000, INT32_MAX },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct queue_page page = {
			.local_used = rows[i].local_used,
			.local_limit = rows[i].local_limit,
			.remote_used = rows[i].remote_used,
			.remote_limit = rows[i].remote_limit,
			.busiest_pct = rows[i].busiest,
		};
		cr_expect_eq(
		    queue_page_load(&page), rows[i].want, "%s", rows[i].name);
	}
}

Test(ipc_page, I12_stale)
{
	static const struct {
		const char *name;
		int64_t beat, now;
		bool want;
	} rows[] = {
		{ "never published", 0, 5, true },
		{ "now", 100, 100, false },
		{ "10 s", 1, 1 + PAGE_STALE, false },
		{ "more than 10 s", 1, 2 + PAGE_STALE, true },
		{ "read before it was published", 200, 100, false },
		{ "far future", INT64_MAX, 100, true },
		{ "negative", INT64_MIN, INT64_MAX, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct page_head head = { .beat_mono = rows[i].beat };

		cr_expect_eq(page_stale(&head, rows[i].now), rows[i].want, "%s",
		    rows[i].name);
	}
}

Test(ipc_page, I16_two_instances_do_not_meet)
{
	ipc_page_make_sched();
	ipc_page_sched->qcount = 3;
	cr_expect_eq(sched_page_read("another-one", &sched_copy), -ENOENT);
	cr_assert_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
	cr_expect_eq(sched_copy.qcount, 3);
}
