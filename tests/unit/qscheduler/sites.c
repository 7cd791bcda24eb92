/* The segment of destinations in the hands of the supervisor: made, linked
 * before any agent, kept for those who still use it, removed at a clean end. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "fake.h"
#include "ipc/names.h"
#include "site/shared.h"

/* There is no memory for what is very large; nothing else here is. */
#define LARGE     ((off_t)64 << 20)
/* What is full, in the directory of the stage: a user may change that while
 * the supervisor runs. */
#define NO_BYTES  "no-bytes"
#define NO_INODES "no-inodes"

static bool
is_full(const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", stage()->dir, what);
	return access(path, F_OK) == 0;
}

static void
set_full(const char *what, bool full)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", stage()->dir, what);
	if (!full) {
		cr_assert_eq(unlink(path), 0);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	close(fd);
}

/* Memory without a name has no file system that could be full. */
static bool
has_file_system(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

int
shm_open(const char *name, int flags, mode_t mode)
{
	char path[8 + IPC_NAME_MAX];

	if ((flags & O_CREAT) != 0 && is_full(NO_INODES)) {
		errno = ENOSPC;
		return -1;
	}
	snprintf(path, sizeof(path), "/dev/shm%s", name);
	return open(path, flags | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* The socket of requests. */
int
bind(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
	const struct sockaddr_un *un = to.__sockaddr_un__;

	if (un->sun_family == AF_UNIX &&
	    strncmp(un->sun_path, "/dev/shm/", 9) == 0 && is_full(NO_INODES)) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_bind, fd, un, len) < 0 ? -1 : 0;
}

int
posix_fallocate(int fd, off_t offset, off_t len)
{
	if (len >= LARGE || (has_file_system(fd) && is_full(NO_BYTES)))
		return ENOSPC;
	return fallocate(fd, 0, offset, len) < 0 ? errno : 0;
}

static void
unlink_segment(void)
{
	char name[IPC_NAME_MAX];

	ipc_name_sites(stage()->instance, name);
	shm_unlink(name);
}

TestSuite(sites, .init = stage_init, .fini = stage_done, .timeout = 100);

/* Which one is there; 0: none. */
static ino_t
segment(void)
{
	char name[IPC_NAME_MAX];
	struct stat st;
	int fd;

	ipc_name_sites(stage()->instance, name);
	fd = shm_open(name, O_RDONLY, 0);
	if (fd < 0)
		return 0;
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 07777, geteuid() == 0 ? 0640 : 0600);
	io_close(&fd);
	return st.st_ino;
}

/* Before what was waited for last. */
static bool
was_heard(const char *what)
{
	size_t i;

	for (i = 0; i < stage()->nkept; i++)
		if (strncmp(stage()->kept[i], what, strlen(what)) == 0)
			return true;
	return false;
}

/* The number at the end of "… LINK sites of 17 PID". */
static unsigned
generation(const char *said)
{
	const char *of = strstr(said, " of ");
	unsigned number = 0;

	cr_assert(of != NULL && sscanf(of, " of %u", &number) == 1);
	return number;
}

Test(sites, queue_send_gets_it_before_an_agent)
{
	stage_start("-s");
	stage_wait_ready();
	stage_hear("queue-send LINK");
	cr_expect(strstr(stage()->said, "LINK page") != NULL);
	stage_hear("queue-send LINK deliver-local");
	cr_expect(was_heard("queue-send LINK sites"));
	cr_expect_neq(segment(), 0);
	cr_expect_eq(stage_stop(), 0);
	cr_expect_eq(segment(), 0);
}

Test(sites, the_end_of_a_group_is_told_to_the_other_queues)
{
	unsigned first, second;
	pid_t pid;

	stage_conf("queue_count = 2");
	stage_start("-s");
	stage_wait_ready();
	first = generation(stage_hear("queue-send LINK sites"));
	second = generation(stage_hear("queue-send LINK sites"));
	pid = stage_pid(stage()->said);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	stage_hear("queue-send FORGET");
	cr_expect_neq(stage_pid(stage()->said), pid);
	/* Its next group has another number, and hears of nothing. */
	cr_expect_neq(generation(stage_hear("queue-send LINK sites")), second);
	cr_expect_neq(first, 0);
	cr_expect_eq(stage_stop(), 0);
}

Test(sites, one_of_a_supervisor_that_was_killed_is_kept)
{
	unsigned before;
	ino_t made;

	stage_start("-s");
	stage_wait_ready();
	before = generation(stage_hear("queue-send LINK sites"));
	made = segment();
	kill(stage()->pid, SIGKILL);
	cr_assert_eq(stage_finish(), -SIGKILL);
	cr_expect_eq(segment(), made);
	stage_start("-s");
	stage_wait_ready();
	cr_expect_neq(generation(stage_hear("queue-send LINK sites")), before,
	    "processes of the last one may still be told of by their number");
	cr_expect_eq(segment(), made);
	cr_expect_eq(stage_stop(), 0);
	cr_expect_eq(segment(), 0);
}

/* mutation: sites_tick() without renew() */
Test(sites, I11_one_that_is_taken_away_is_made_again_and_linked)
{
	ino_t before;

	stage_start("-s");
	stage_wait_ready();
	before = segment();
	stage_hear("queue-send LINK sites");
	unlink_segment();
	stage_wait_log("sites was taken away: made again");
	stage_hear("queue-send LINK sites");
	cr_expect_neq(segment(), 0);
	cr_expect_neq(segment(), before);
	cr_expect_eq(stage_stop(), 0);
	cr_expect_eq(segment(), 0);
}

/* What has the name at the end, and is not ours, stays: it takes the name while
 * the stop waits for a queue-send that hangs, when no lost table is renewed. */
Test(sites, what_is_not_ours_is_not_removed)
{
	const struct shared_shape shape = { .slots = 64, .members = 8 };
	const struct shared_owner owner = { (uid_t)-1,
		geteuid() == 0 ? getegid() : (gid_t)-1 };
	char name[IPC_NAME_MAX];
	pid_t hangs;
	ino_t theirs;
	int fd;

	stage_conf("stop_time_limit = 1h");
	stage_mode("queue-send", "hang");
	stage_start("-s");
	hangs = stage_pid(stage_hear("queue-send start"));
	stage_wait_ready();
	cr_assert_eq(kill(stage()->pid, SIGTERM), 0);
	stage_wait_log("qscheduler: stopping");
	unlink_segment();
	ipc_name_sites(stage()->instance, name);
	cr_assert_eq(shared_create(name, &shape, &owner, &fd), 0);
	theirs = segment();
	cr_assert_eq(kill(hangs, SIGKILL), 0);
	cr_expect_eq(stage_finish(), 0);
	cr_expect_eq(segment(), theirs);
	io_close(&fd);
}

Test(sites, without_a_segment_queues_run_and_wait)
{
	stage_conf("destination_table_size = 1048576");
	stage_start("-s");
	stage_wait_ready();
	cr_expect(stage_logged("ALERT: shared memory"), "%s", stage()->logged);
	stage_wait_log("no delivery: no table of destinations");
	cr_expect_not(was_heard("queue-send LINK sites"));
	cr_expect_eq(segment(), 0);
	cr_expect_eq(stage_stop(), 0);
}

static void
deliver_without_a_name(const char *what)
{
	set_full(what, true);
	stage_start("-s");
	stage_wait_ready();
	stage_hear("queue-send LINK");
	stage_hear("queue-send LINK deliver-local");
	cr_expect(was_heard("queue-send LINK sites"));
	cr_expect_eq(segment(), 0);
	cr_expect(stage_logged("sites: not enough room in /dev/shm: "));
	cr_expect_not(stage_logged("no delivery starts without it"));
	cr_expect(stage_logged("qscheduler: not enough room in /dev/shm: "));
	cr_expect(stage_logged("queue1: not enough room in /dev/shm: "));
	cr_expect_not(stage_object_there("qscheduler.sites"));
}

Test(sites, I19_without_bytes_the_table_has_no_name)
{
	deliver_without_a_name(NO_BYTES);
	cr_expect_eq(stage_stop(), 0);
}

/* The next supervisor makes another table. */
Test(sites, I19_without_inodes_the_table_has_no_name)
{
	deliver_without_a_name(NO_INODES);
	cr_expect(stage_logged("socket of requests: not enough room in "));
	kill(stage()->pid, SIGKILL);
	cr_assert_eq(stage_finish(), -SIGKILL);
	stage()->nkept = 0;
	stage_start("-s");
	stage_wait_ready();
	stage_hear("queue-send LINK sites");
	cr_expect_eq(stage_stop(), 0);
}

/* A table of the name would be another window for the next supervisor. */
Test(sites, I19_a_table_that_is_lost_when_there_is_no_room)
{
	stage_start("-s");
	stage_wait_ready();
	stage_hear("queue-send LINK sites");
	set_full(NO_BYTES, true);
	unlink_segment();
	stage_wait_log("sites was taken away: made again");
	stage_hear("queue-send LINK sites");
	cr_expect_eq(segment(), 0);
	cr_expect(stage_logged("sites: not enough room in /dev/shm: "));
	cr_expect_eq(stage_stop(), 0);
}

/* mutation: sites_collect() without name_again() */
Test(sites, I20_with_room_again_the_table_gets_its_name)
{
	deliver_without_a_name(NO_INODES);
	set_full(NO_INODES, false);
	cr_assert_eq(kill(stage()->pid, SIGHUP), 0);
	stage_wait_log("sites: made again");
	stage_hear("queue-send LINK sites");
	cr_expect_neq(segment(), 0);
	cr_expect_eq(stage_stop(), 0);
	cr_expect_eq(segment(), 0);
}
