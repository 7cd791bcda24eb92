/* Processes of a supervisor that was killed. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "fake.h"
#include "ipc/names.h"
#include "ipc/page.h"

TestSuite(
    super_orphans, .init = stage_init, .fini = stage_done, .timeout = 100);

/* docs/IPC.md */
#define ROW  72
#define SMTP 3

static int
open_children(void)
{
	char name[IPC_NAME_MAX];
	int fd;

	ipc_name_children(stage()->instance, name);
	fd = shm_open(name, O_RDWR, 0);
	cr_assert_geq(fd, 0);
	return fd;
}

static off_t
record_at(uint32_t queue, int role)
{
	return 8 + (off_t)queue * ROW + 8 + (off_t)role * 16;
}

/* A supervisor that was killed has left this process as an agent of queue 1. */
static void
write_down(pid_t pid, int64_t ticks)
{
	const uint32_t number = (uint32_t)pid;
	int fd = open_children();
	const off_t at = record_at(1, SMTP);

	cr_assert_eq(pwrite(fd, &number, sizeof(number), at), 4);
	cr_assert_eq(pwrite(fd, &ticks, sizeof(ticks), at + 8), 8);
	io_close(&fd);
}

static void
kill_supervisor(void)
{
	kill(stage()->pid, SIGKILL);
	cr_assert_eq(stage_finish(), -SIGKILL);
}

/* One that does not hear SIGTERM, in a process group of its own. */
static pid_t
stubborn(void)
{
	int gate[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(gate), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)setpgid(0, 0);
		(void)signal(SIGTERM, SIG_IGN);
		(void)!write(gate[1], "x", 1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(gate[0], &c, 1), 1);
	close(gate[0]);
	close(gate[1]);
	return pid;
}

Test(super_orphans, children_are_written_down_before_they_hear_of_each_other)
{
	uint32_t pid = 0;
	struct stat st;
	int fd;

	stage_start("-s");
	stage_wait_ready();
	fd = open_children();
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	cr_assert_eq(pread(fd, &pid, sizeof(pid), record_at(1, 0)), 4);
	cr_expect_eq((pid_t)pid, stage_pid(stage_hear("queue-send start")));
	io_close(&fd);
	cr_expect_eq(stage_stop(), 0);
	cr_expect_not(stage_object_there("qscheduler.children"));
}

/* mutation: queue_is_clear() without orphans_of() */
Test(super_orphans, P1_P2_nothing_of_a_queue_starts_before_they_are_gone)
{
	pid_t pid;
	int status;

	stage_conf("queue_count = 2");
	stage_start("-s");
	stage_wait_ready();
	kill_supervisor();
	pid = stubborn();
	write_down(pid, page_start_ticks(pid));
	stage()->nkept = 0;
	stage_start("-s");
	stage_wait_log("of an earlier supervisor is still there");
	stage_wait_log("of an earlier supervisor does not end: killed");
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	stage_wait_ready();
	cr_expect(stage_logged("queue 1: the processes of an earlier "
			       "supervisor have ended"));
	cr_expect_eq(stage_stop(), 0);
}

/* Its number was used again.
 * mutation: identify() that looks at the pid alone */
Test(super_orphans, P16_another_process_with_the_pid_is_left_alone)
{
	char known[64];
	pid_t pid;

	stage_start("-s");
	stage_wait_ready();
	kill_supervisor();
	pid = stubborn();
	snprintf(known, sizeof(known), "(pid %ld) of an earlier", (long)pid);
	write_down(pid, page_start_ticks(pid) - 1);
	stage_start("-s");
	stage_wait_ready();
	cr_expect_not(stage_logged(known));
	cr_expect_eq(kill(pid, 0), 0);
	cr_expect_eq(waitpid(pid, NULL, WNOHANG), 0);
	cr_expect_eq(stage_stop(), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* mutation: roster_is_whole() that looks at the owner alone */
Test(super_orphans, I15_a_segment_that_is_damaged_is_replaced)
{
	static const uint64_t other = 1;
	ino_t before;
	struct stat st;
	int fd;

	stage_start("-s");
	stage_wait_ready();
	kill_supervisor();
	fd = open_children();
	cr_assert_eq(fstat(fd, &st), 0);
	before = st.st_ino;
	cr_assert_eq(pwrite(fd, &other, sizeof(other), 0), 8);
	stage_start("-s");
	stage_wait_ready();
	io_close(&fd);
	fd = open_children();
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_neq(st.st_ino, before);
	io_close(&fd);
	cr_expect_eq(stage_stop(), 0);
}
