#include "ipc/page.h"

#include "base/clock.h"
#include "ipc/page_layout.h"
#include "ipc_scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(ipc_page, .fini = ipc_scratch_done);

static const struct page_owner own = { (uid_t)-1, (gid_t)-1, 0644 };
static char name[IPC_NAME_MAX];
static struct sched_page *sched;
static struct queue_page *queue;
static struct sched_page sched_copy;
static struct queue_page queue_copy;

static int
create_sched(int *ret_fd, uint32_t *ret_pid)
{
	void *page = NULL;
	int r;

	ipc_name_scheduler(ipc_scratch(), name);
	r = page_create(name, sizeof(*sched), SCHED_PAGE_MAGIC, &own, &page,
	    ret_fd, ret_pid);
	sched = page;
	return r;
}

static int
make_sched(void)
{
	uint32_t pid;
	int fd = -1;

	cr_assert_eq(create_sched(&fd, &pid), 0);
	return fd;
}

static int
make_queue(const struct page_owner *owner)
{
	void *page = NULL;
	uint32_t pid;
	int fd = -1;

	ipc_name_queue(ipc_scratch(), 1, name);
	cr_assert_eq(page_create(name, sizeof(*queue), QUEUE_PAGE_MAGIC, owner,
			 &page, &fd, &pid),
	    0);
	queue = page;
	return fd;
}

Test(ipc_page, published_and_read)
{
	struct stat st;
	int fd = make_sched();

	page_write_begin(&sched->head);
	sched->qcount = 5;
	sched->qconf = 6;
	sched->rows[0].state = QUEUE_STATE_CLOSING;
	page_write_end(&sched->head, 1000, 2000);
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
	int fd = make_sched();

	sched->qcount = 5;
	sched->qconf = 7;
	cr_assert_eq(pread(fd, two, sizeof(two), 0), (ssize_t)sizeof(two));
	cr_expect_eq(two[0], 5);
	cr_expect_eq(two[1], 7);
	fd = make_queue(&own);
	queue->local_used = 1;
	queue->remote_used = 2;
	queue->local_limit = 10;
	queue->remote_limit = 20;
	queue->disabled = 1;
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
	int fd = make_sched();
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

Test(ipc_page, P20_another_version_or_size_is_refused)
{
	make_sched();
	sched->head.version = PAGE_VERSION + 1;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EBADMSG);
	sched->head.version = PAGE_VERSION;
	sched->head.size--;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EBADMSG);
	sched->head.size++;
	sched->head.magic = QUEUE_PAGE_MAGIC;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EBADMSG);
	sched->head.magic = SCHED_PAGE_MAGIC;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
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
	fd = make_sched();
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
	make_queue(&qmails);
	cr_expect_eq(ipc_as_nobody(read_queue, instance), EPERM, "no page");
	fd = make_sched();
	sched->qmails_uid = 2;
	cr_expect_eq(ipc_as_nobody(read_queue, instance), EPERM, "another");
	sched->qmails_uid = 1;
	cr_expect_eq(ipc_as_nobody(read_queue, instance), 0);
	cr_expect_eq(queue_page_read(instance, 1, &queue_copy), 0);
	cr_assert_eq(fchown(fd, 3, 3), 0);
	cr_expect_eq(ipc_as_nobody(read_queue, instance), EPERM, "forged");
}

/* ---- creation ---- */

Test(ipc_page, I15_stale_of_this_process_and_of_a_dead_one)
{
	make_sched();
	sched->qcount = 99;
	make_sched();
	cr_expect_eq(sched->qcount, 0, "not begun anew");
	sched->head.pid = 0;
	make_sched();
	sched->head.pid = INT32_MAX; /* above pid_max */
	make_sched();
	sched->head.pid = UINT32_MAX;
	make_sched();
	sched->head.pid = (uint32_t)getppid(); /* lives, but is younger */
	sched->head.start_ticks = 1;
	make_sched();
}

Test(ipc_page, I15_busy_while_the_writer_lives)
{
	uint32_t pid = 0;
	int fd;

	make_sched();
	sched->head.pid = (uint32_t)getppid();
	sched->head.start_ticks = page_start_ticks(getppid());
	cr_assert_gt(sched->head.start_ticks, 0);
	cr_expect_eq(create_sched(&fd, &pid), -EBUSY);
	cr_expect_eq(pid, (uint32_t)getppid());
}

/* Killed and not reaped yet: its pid answers, and it writes no more. */
Test(ipc_page, I15_a_zombie_is_no_writer)
{
	siginfo_t info;
	int64_t ticks;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	ticks = page_start_ticks(pid);
	cr_assert_gt(ticks, 0);
	kill(pid, SIGKILL);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	cr_expect_eq(page_start_ticks(pid), -1);
	make_sched();
	sched->head.pid = (uint32_t)pid;
	sched->head.start_ticks = ticks;
	make_sched();
	waitpid(pid, NULL, 0);
}

/* A command may be named to look like the fields behind it. */
Test(ipc_page, start_time_of_a_process_with_a_hostile_name)
{
	const int64_t before = page_start_ticks(getpid());

	cr_assert_gt(before, 0);
	cr_assert_eq(prctl(PR_SET_NAME, "a) Z 1 1 1 (b"), 0);
	cr_expect_eq(page_start_ticks(getpid()), before);
}

static int
create_by_name(void *arg)
{
	void *page;
	uint32_t pid;
	int fd;

	return -page_create(arg, sizeof(struct sched_page), SCHED_PAGE_MAGIC,
	    &own, &page, &fd, &pid);
}

static int
squat_segment(void *arg)
{
	struct page_head head = {
		.magic = SCHED_PAGE_MAGIC, .pid = 1, /* lives for ever */
	};
	int fd = shm_open(arg, O_RDWR | O_CREAT | O_EXCL, 0666);

	return fd < 0 ||
	    pwrite(fd, &head, sizeof(head),
		(off_t)page_head_offset(SCHED_PAGE_MAGIC)) < 0;
}

static void
shm_path(const char *of, char path[256])
{
	snprintf(path, 256, "/dev/shm%s", of);
}

static int
squat_link(void *arg)
{
	char path[256];

	shm_path(arg, path);
	return symlink("/etc/passwd", path) < 0;
}

static int
squat_fifo(void *arg)
{
	char path[256];

	shm_path(arg, path);
	return mkfifo(path, 0666) < 0;
}

/* A directory that is not empty, which even root cannot unlink. */
static int
squat_dir(void *arg)
{
	char path[256], inner[300];

	shm_path(arg, path);
	snprintf(inner, sizeof(inner), "%s/x", path);
	return mkdir(path, 0777) < 0 || mkdir(inner, 0777) < 0;
}

static const struct {
	const char *name;
	int (*squat)(void *arg);
} squats[] = {
	{ "segment", squat_segment },
	{ "link", squat_link },
	{ "pipe", squat_fifo },
	{ "directory", squat_dir },
};

static void
clean_set_aside(void)
{
	cr_assert_eq(system("rm -rf /dev/shm/not-qscheduler.*"), 0);
}

Test(ipc_page, I14_X1_root_takes_squatted_names_back)
{
	struct stat st;
	size_t i;
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	ipc_name_scheduler(ipc_scratch(), name);
	for (i = 0; i < ARRAY_LEN(squats); i++) {
		cr_assert_eq(ipc_as_nobody(squats[i].squat, name), 0);
		fd = make_sched();
		cr_assert_eq(fstat(fd, &st), 0);
		cr_expect_eq(st.st_uid, 0u, "%s", squats[i].name);
		cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), 0,
		    "%s", squats[i].name);
		close(fd);
		shm_unlink(name);
	}
	clean_set_aside();
}

/* Root squats here, as the other user. */
Test(ipc_page, I14_another_user_is_told_and_readers_do_not_hang)
{
	static const int readers_see[] = { 0, -ELOOP, -EBADMSG, -EBADMSG };
	char path[256], command[400];
	size_t i;
	int r;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	ipc_name_scheduler(ipc_scratch(), name);
	shm_path(name, path);
	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	for (i = 1; i < ARRAY_LEN(squats); i++) {
		cr_assert_eq(squats[i].squat(name), 0);
		r = sched_page_read(ipc_scratch(), &sched_copy);
		cr_expect_eq(r, readers_see[i], "%s: %d", squats[i].name, r);
		r = ipc_as_nobody(create_by_name, name);
		cr_expect_eq(r, EPERM, "%s: %d", squats[i].name, r);
		cr_assert_eq(system(command), 0);
	}
}

static int
meddle(void *arg)
{
	if (shm_open(arg, O_RDWR, 0) >= 0)
		return 1;
	return shm_unlink(arg) == 0 ? 2 : 0;
}

Test(ipc_page, X3_strangers_can_neither_write_nor_remove)
{
	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	make_sched();
	cr_expect_eq(ipc_as_nobody(meddle, name), 0);
}

Test(ipc_page, mapped_again_by_descriptor)
{
	void *again = NULL;
	struct queue_page *mine;
	int fd = make_queue(&own);

	cr_assert_eq(page_map(fd, sizeof(*queue), QUEUE_PAGE_MAGIC, &again), 0);
	mine = again;
	page_own(&mine->head);
	page_write_begin(&mine->head);
	mine->incoming = 42;
	page_write_end(&mine->head, 1, 1);
	cr_assert_eq(queue_page_read(ipc_scratch(), 1, &queue_copy), 0);
	cr_expect_eq(queue_copy.incoming, 42);
	page_unmap(&again, sizeof(*queue));
	cr_expect_null(again);
	cr_expect_eq(page_map(fd, sizeof(*queue) - 1, QUEUE_PAGE_MAGIC, &again),
	    -EBADMSG);
	queue->head.version++;
	cr_expect_eq(
	    page_map(fd, sizeof(*queue), QUEUE_PAGE_MAGIC, &again), -EBADMSG);
	queue->head.version--;
	cr_assert_eq(ftruncate(fd, 10), 0);
	cr_expect_eq(
	    page_map(fd, sizeof(*queue), QUEUE_PAGE_MAGIC, &again), -EBADMSG);
	cr_expect_null(again);
}

/* ---- the sequence lock ---- */

Test(ipc_page, I12_torn_is_not_given_out)
{
	make_sched();
	page_write_begin(&sched->head);
	sched->qcount = 1;
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), -EAGAIN);
	page_write_end(&sched->head, 1, 1);
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
}

/* The writer was killed while it wrote; its successor mends the page. */
Test(ipc_page, I12_a_half_written_page_is_taken_over)
{
	make_sched();
	page_write_begin(&sched->head);
	page_own(&sched->head);
	cr_expect_eq(sched->head.seq % 2, 0);
	cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
}

Test(ipc_page, I12_what_is_read_is_clamped)
{
	make_sched();
	sched->qcount = UINT32_MAX;
	sched->qconf = PAGE_QUEUES_MAX + 1;
	sched->rows[3].state = 77;
	memset(sched->answers, 'x', sizeof(sched->answers));
	cr_assert_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
	cr_expect_eq(sched_copy.qcount, PAGE_QUEUES_MAX);
	cr_expect_eq(sched_copy.qconf, PAGE_QUEUES_MAX);
	cr_expect_eq(sched_copy.rows[3].state, QUEUE_STATE_DISABLED);
	cr_expect_eq(strnlen(sched_copy.answers[0].text, 100), 51);
	make_queue(&own);
	queue->local_used = INT32_MIN;
	queue->remote_limit = -1;
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
	} rows[] = {
		{ "idle", 0, 10, 0, 20, 0 },
		{ "the larger: local", 9, 10, 2, 20, 90 },
		{ "the larger: remote", 1, 10, 20, 20, 100 },
		{ "rounded down", 1, 3, 0, 20, 33 },
		{ "no limit is no division", 5, 0, 5, 0, 0 },
		{ "negative used", -5, 10, INT32_MIN, 10, 0 },
		{ "negative limit", 5, -10, 5, INT32_MIN, 0 },
		{ "huge used", INT32_MAX, 1, 0, 1, 1000 },
		{ "all huge", INT32_MAX, INT32_MAX, 0, 0, 100 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct queue_page page = {
			.local_used = rows[i].local_used,
			.local_limit = rows[i].local_limit,
			.remote_used = rows[i].remote_used,
			.remote_limit = rows[i].remote_limit,
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
	make_sched();
	sched->qcount = 3;
	cr_expect_eq(sched_page_read("another-one", &sched_copy), -ENOENT);
	cr_assert_eq(sched_page_read(ipc_scratch(), &sched_copy), 0);
	cr_expect_eq(sched_copy.qcount, 3);
}
