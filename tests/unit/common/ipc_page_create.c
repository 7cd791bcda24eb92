/* Creation: who may take a name, and from whom. */
#include "ipc/page_layout.h"
#include "ipc_page_scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(ipc_page_create, .fini = ipc_scratch_done, .timeout = 60);

static struct sched_page sched_copy;

Test(ipc_page_create, I15_stale_of_this_process_and_of_a_dead_one)
{
	ipc_page_make_sched();
	ipc_page_sched->qcount = 99;
	ipc_page_make_sched();
	cr_expect_eq(ipc_page_sched->qcount, 0, "not begun anew");
	ipc_page_sched->head.pid = 0;
	ipc_page_make_sched();
	ipc_page_sched->head.pid = INT32_MAX; /* above pid_max */
	ipc_page_make_sched();
	ipc_page_sched->head.pid = UINT32_MAX;
	ipc_page_make_sched();
	ipc_page_sched->head.pid =
	    (uint32_t)getppid(); /* lives, but is younger */
	ipc_page_sched->head.start_ticks = 1;
	ipc_page_make_sched();
}

Test(ipc_page_create, I15_busy_while_the_writer_lives)
{
	uint32_t pid = 0;
	int fd;

	ipc_page_make_sched();
	ipc_page_sched->head.pid = (uint32_t)getppid();
	ipc_page_sched->head.start_ticks = page_start_ticks(getppid());
	cr_assert_gt(ipc_page_sched->head.start_ticks, 0);
	cr_expect_eq(ipc_page_create_sched(&fd, &pid), -EBUSY);
	cr_expect_eq(pid, (uint32_t)getppid());
}

/* Killed and not reaped yet: its pid answers, and it writes no more. */
Test(ipc_page_create, I15_a_zombie_is_no_writer)
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
	ipc_page_make_sched();
	ipc_page_sched->head.pid = (uint32_t)pid;
	ipc_page_sched->head.start_ticks = ticks;
	ipc_page_make_sched();
	waitpid(pid, NULL, 0);
}

/* A command may be named to look like the fields behind it. */
Test(ipc_page_create, start_time_of_a_process_with_a_hostile_name)
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
	    &ipc_page_own, &page, &fd, &pid);
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

/* What any row of squats[] made. */
static void
remove_squat(const char *path)
{
	char inner[300];

	snprintf(inner, sizeof(inner), "%s/x", path);
	(void)rmdir(inner);
	if (unlink(path) < 0)
		cr_expect_eq(rmdir(path), 0, "%s", path);
}

static void
clean_set_aside(void)
{
	glob_t aside;
	size_t i;

	if (glob("/dev/shm/not-qscheduler.*", 0, NULL, &aside) != 0)
		return;
	for (i = 0; i < aside.gl_pathc; i++)
		remove_squat(aside.gl_pathv[i]);
	globfree(&aside);
}

Test(ipc_page_create, I14_X1_root_takes_squatted_names_back)
{
	struct stat st;
	size_t i;
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	ipc_name_scheduler(ipc_scratch(), ipc_page_name);
	for (i = 0; i < ARRAY_LEN(squats); i++) {
		cr_assert_eq(ipc_as_nobody(squats[i].squat, ipc_page_name), 0);
		fd = ipc_page_make_sched();
		cr_assert_eq(fstat(fd, &st), 0);
		cr_expect_eq(st.st_uid, 0u, "%s", squats[i].name);
		cr_expect_eq(sched_page_read(ipc_scratch(), &sched_copy), 0,
		    "%s", squats[i].name);
		close(fd);
		shm_unlink(ipc_page_name);
	}
	clean_set_aside();
}

/* Root squats here, as the other user. */
Test(ipc_page_create, I14_another_user_is_told_and_readers_do_not_hang)
{
	static const int readers_see[] = { 0, -ELOOP, -EBADMSG, -EBADMSG };
	char path[256];
	size_t i;
	int r;

	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	ipc_name_scheduler(ipc_scratch(), ipc_page_name);
	shm_path(ipc_page_name, path);
	for (i = 1; i < ARRAY_LEN(squats); i++) {
		cr_assert_eq(squats[i].squat(ipc_page_name), 0);
		r = sched_page_read(ipc_scratch(), &sched_copy);
		cr_expect_eq(r, readers_see[i], "%s: %d", squats[i].name, r);
		r = ipc_as_nobody(create_by_name, ipc_page_name);
		cr_expect_eq(r, EPERM, "%s: %d", squats[i].name, r);
		remove_squat(path);
	}
}

static int
meddle(void *arg)
{
	if (shm_open(arg, O_RDWR, 0) >= 0)
		return 1;
	return shm_unlink(arg) == 0 ? 2 : 0;
}

Test(ipc_page_create, X3_strangers_can_neither_write_nor_remove)
{
	if (geteuid() != 0)
		cr_skip_test("needs two users, that is root");
	ipc_page_make_sched();
	cr_expect_eq(ipc_as_nobody(meddle, ipc_page_name), 0);
}
