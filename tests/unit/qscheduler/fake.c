#include "fake.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "ipc/page.h"
#include "qscheduler/supervisor/supervisor.h"

#define LIMIT_MSEC 120000 /* finds what hangs, and measures nothing */

static struct stage st;

struct stage *
stage(void)
{
	return &st;
}

/* A pipe with a name, for records of one size. */
static void
open_said(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/said", st.dir);
	cr_assert_eq(mkfifo(path, 0600), 0);
	st.pipe = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	cr_assert(st.pipe >= 0);
	(void)fcntl(st.pipe, F_SETPIPE_SZ, 1 << 20);
}

static void
link_programs(void)
{
	char self[256], path[64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t role;

	cr_assert(n > 0);
	self[n] = '\0';
	snprintf(path, sizeof(path), "%s/bin", st.dir);
	cr_assert_eq(mkdir(path, 0755), 0);
	for (role = 0; role < stage_roles.n; role++) {
		snprintf(path, sizeof(path), "%s/bin/%s", st.dir,
		    stage_roles.rows[role].name);
		cr_assert_eq(symlink(self, path), 0);
	}
}

void
stage_init(void)
{
	static int number;

	snprintf(st.dir, sizeof(st.dir), "/tmp/qsched-unit-XXXXXX");
	cr_assert(mkdtemp(st.dir) != NULL);
	cr_assert_eq(chmod(st.dir, 0755), 0);
	snprintf(st.base, sizeof(st.base), "%s/queue", st.dir);
	snprintf(st.conf, sizeof(st.conf), "%s/conf", st.dir);
	snprintf(st.instance, sizeof(st.instance), "u%d-%d", (int)getpid(),
	    ++number);
	st.pid = 0;
	st.ready = st.log = -1;
	st.logged_len = st.nkept = 0;
	st.inherit = st.services = false;
	open_said();
	link_programs();
	setenv("QSCHED_FAKE", st.dir, 1);
	stage_conf("");
}

static void
remove_objects(const char *name)
{
	char full[128];

	snprintf(full, sizeof(full), "/%s.%s", st.instance, name);
	shm_unlink(full);
	mq_unlink(full);
}

/* Whatever a failed test left running or lying about. */
void
stage_done(void)
{
	char *const argv[] = { (char[]){ "rm" }, (char[]){ "-rf" }, st.dir,
		NULL };
	char name[32];
	pid_t pid;
	int i;

	if (st.pid > 0) {
		kill(st.pid, SIGKILL);
		waitpid(st.pid, NULL, 0);
	}
	io_close(&st.pipe);
	io_close(&st.ready);
	io_close(&st.log);
	remove_objects("qscheduler");
	remove_objects("qscheduler.sites");
	remove_objects("qscheduler.ask");
	for (i = 1; i <= 9; i++) {
		snprintf(name, sizeof(name), "queue%d", i);
		remove_objects(name);
	}
	pid = fork();
	if (pid == 0) {
		execv("/bin/rm", argv);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

void
stage_conf(const char *more)
{
	char temp[64];
	FILE *f;

	snprintf(temp, sizeof(temp), "%s.new", st.conf);
	f = fopen(temp, "w");
	cr_assert(f != NULL);
	fprintf(f,
	    "queue_base = %s\ninstance = %s\nprogram_dir = %s/bin\n"
	    "qmailq_user = uucp\nqmails_user = news\nqmailr_user = proxy\n"
	    "qmail_group = mail\nqdrop_group = irc\nqueue_split = 2\n%s\n",
	    st.base, st.instance, st.dir, more);
	if (strstr(more, "queue_count") == NULL)
		fputs("queue_count = 1\n", f);
	if (strstr(more, "stop_time_limit") == NULL)
		fputs("stop_time_limit = 5s\n", f);
	cr_assert_eq(fchmod(fileno(f), 0644), 0);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(rename(temp, st.conf), 0);
}

void
stage_mode(const char *role, const char *mode)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/mode.%s", st.dir, role);
	f = fopen(path, "w");
	cr_assert(f != NULL);
	fprintf(f, "%s\n", mode);
	cr_assert_eq(fchmod(fileno(f), 0644), 0);
	cr_assert_eq(fclose(f), 0);
}

static _Noreturn void
run_super(const char *option, int ready, int log)
{
	char *argv[] = { (char[]){ "qscheduler" }, (char *)(uintptr_t)option,
		(char[]){ "-c" }, st.conf, NULL };
	struct options options;
	struct buf error = { 0 };

	setpgid(0, 0);
	dup2(log, 2);
	if (st.services)
		role_table = stage_roles;
	if (st.inherit && fork() == 0)
		_exit(0);
	if (options_parse(4, argv, &options, &error) < 0)
		_exit(EXIT_PERMANENT);
	options.ready_fd = ready;
	exit(super_run(&options));
}

void
stage_start(const char *option)
{
	int ready[2], log[2];

	io_close(&st.ready);
	io_close(&st.log);
	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(log, O_CLOEXEC), 0);
	(void)fcntl(log[1], F_SETPIPE_SZ, 1 << 20);
	fflush(NULL);
	st.pid = fork();
	cr_assert(st.pid >= 0);
	if (st.pid == 0)
		run_super(option, ready[1], log[1]);
	close(ready[1]);
	close(log[1]);
	st.ready = ready[0];
	st.log = log[0];
	cr_assert_eq(io_nonblock(st.log), 0);
	st.logged_len = 0;
}

static void
read_log(void)
{
	ssize_t n;

	while (st.logged_len < sizeof(st.logged) - 1 &&
	    (n = read(st.log, st.logged + st.logged_len,
		 sizeof(st.logged) - 1 - st.logged_len)) > 0)
		st.logged_len += (size_t)n;
	st.logged[st.logged_len] = '\0';
}

bool
stage_logged(const char *part)
{
	read_log();
	return strstr(st.logged, part) != NULL;
}

void
stage_wait_log(const char *part)
{
	const usec_t end = clock_mono() + LIMIT_MSEC * USEC_PER_MSEC;

	while (!stage_logged(part)) {
		struct pollfd look = { st.log, POLLIN, 0 };

		cr_assert(
		    clock_mono() < end, "not logged: %s\n%s", part, st.logged);
		(void)poll(&look, 1, 1000);
	}
}

void
stage_wait_ready(void)
{
	struct pollfd look = { st.ready, POLLIN, 0 };
	char c;

	cr_assert_eq(poll(&look, 1, LIMIT_MSEC), 1, "not ready");
	read_log();
	cr_assert_eq(read(st.ready, &c, 1), 1, "ended:\n%s", st.logged);
	cr_assert_eq(c, '\n');
}

static bool
take_kept(const char *what)
{
	size_t i;

	for (i = 0; i < st.nkept; i++)
		if (strncmp(st.kept[i], what, strlen(what)) == 0) {
			memcpy(st.said, st.kept[i], sizeof(st.said));
			st.kept[i][0] = '\0';
			return true;
		}
	return false;
}

const char *
stage_hear(const char *what)
{
	const usec_t end = clock_mono() + LIMIT_MSEC * USEC_PER_MSEC;

	while (!take_kept(what)) {
		struct pollfd look = { st.pipe, POLLIN, 0 };

		read_log();
		cr_assert(
		    clock_mono() < end, "nobody said: %s\n%s", what, st.logged);
		if (poll(&look, 1, 1000) != 1)
			continue;
		cr_assert(st.nkept < ARRAY_LEN(st.kept), "too much is said");
		cr_assert_eq(
		    read(st.pipe, st.kept[st.nkept++], SAID_SIZE), SAID_SIZE);
	}
	return st.said;
}

pid_t
stage_pid(const char *said)
{
	return (pid_t)strtol(strrchr(said, ' ') + 1, NULL, 10);
}

int
stage_finish(void)
{
	const int fd = pidfd_open(st.pid, 0);
	struct pollfd look = { fd, POLLIN, 0 };
	int status, r = poll(&look, 1, LIMIT_MSEC);

	read_log();
	cr_assert_eq(r, 1, "does not end:\n%s", st.logged);
	close(fd);
	cr_assert_eq(waitpid(st.pid, &status, 0), st.pid);
	st.pid = 0;
	read_log();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int
stage_stop(void)
{
	cr_assert_eq(kill(st.pid, SIGTERM), 0);
	return stage_finish();
}

bool
stage_object_there(const char *name)
{
	char full[64];
	bool there = false;
	int fd;

	snprintf(full, sizeof(full), "/%s.%s", st.instance, name);
	fd = shm_open(full, O_RDONLY, 0);
	there |= fd >= 0;
	io_close(&fd);
	fd = mq_open(full, O_RDONLY | O_NONBLOCK);
	there |= fd >= 0;
	if (fd >= 0)
		mq_close(fd);
	return there;
}

void
stage_page(struct sched_page *ret_page)
{
	const usec_t end = clock_mono() + LIMIT_MSEC * USEC_PER_MSEC;
	int r;

	/* -EAGAIN: its writer does not get to run in the middle of a change. */
	do
		r = sched_page_read(st.instance, ret_page);
	while (r == -EAGAIN && clock_mono() < end);
	cr_assert_eq(r, 0, "%s", strerror(-r));
}
