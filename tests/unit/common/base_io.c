#include "base/io.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int
scratch_file(void)
{
	char path[] = "/tmp/base_io.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(unlink(path), 0);
	return fd;
}

Test(base_io, whole_reads_and_writes)
{
	int fd = scratch_file();
	char back[16] = "";

	cr_expect_eq(io_write_all(fd, "Jello", 5), 0);
	cr_expect_eq(io_pread_all(fd, back, 3, 2), 3);
	cr_expect_str_eq(back, "llo");
	cr_expect_eq(io_pread_all(fd, back, sizeof(back), 4), 1);
	cr_expect_eq(io_pread_all(fd, back, sizeof(back), 99), 0);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	cr_expect_eq(io_read_all(fd, back, sizeof(back)), 5);
	cr_expect_eq(memcmp(back, "Jello", 5), 0);
	io_close(&fd);
	cr_expect_eq(fd, -1);
	io_close(&fd);
}

Test(base_io, D10_a_pipe_that_takes_little_at_a_time)
{
	static char data[1 << 20], back[1 << 20];
	int p[2];
	size_t i;
	pid_t child;
	int status = 0;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		close(p[0]);
		_exit(io_write_all(p[1], data, sizeof(data)) == 0 ? 0 : 1);
	}
	io_close(&p[1]);
	cr_expect_eq(io_read_all(p[0], back, sizeof(back)), sizeof(back));
	cr_expect_eq(memcmp(data, back, sizeof(data)), 0);
	io_close(&p[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
}

Test(base_io, errors_come_back)
{
	char c = 0;
	int p[2];

	cr_expect_eq(io_write_all(-1, "x", 1), -EBADF);
	cr_expect_eq(io_read_all(-1, &c, 1), -EBADF);
	cr_expect_eq(io_pread_all(-1, &c, 1, 0), -EBADF);
	cr_expect_eq(io_pread_all(0, &c, 1, -1), -EINVAL);
	cr_expect_eq(io_nonblock(-1), -EBADF);
	cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
	cr_expect_eq(io_nonblock(p[0]), 0);
	cr_expect_eq(io_read_all(p[0], &c, 1), -EAGAIN);
	signal(SIGPIPE, SIG_IGN);
	io_close(&p[0]);
	cr_expect_eq(io_write_all(p[1], "x", 1), -EPIPE);
	io_close(&p[1]);
}

/* In a child: the test framework needs its own descriptors. */
Test(base_io, P18_closed_standard_descriptors_are_filled)
{
	int status = 0;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		int fd;

		close(0);
		close(2);
		if (io_std_fds() != 0 || fcntl(0, F_GETFD) < 0 ||
		    fcntl(2, F_GETFD) < 0)
			_exit(1);
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		_exit(fd > 2 ? 0 : 2);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
}

static void
on_signal(int sig)
{
	(void)sig;
}

/* mutation: io_default_but_write_signals() looks at those that are caught
 * alone; it does not look whether both of writes are ignored. */
Test(base_io, signals_that_are_caught_or_ignored_get_their_default)
{
	void (*const of_pipe[])(int) = { SIG_IGN, on_signal, SIG_DFL };
	struct sigaction sa;
	size_t i;
	int sig;

	for (i = 0; i < ARRAY_LEN(of_pipe); i++) {
		signal(SIGUSR1, on_signal);
		signal(SIGRTMAX, on_signal);
		signal(SIGHUP, SIG_IGN);
		signal(SIGXFSZ, SIG_IGN);
		signal(SIGPIPE, of_pipe[i]);
		io_default_but_write_signals();
		for (sig = 1; sig <= SIGRTMAX; sig++)
			if (sigaction(sig, NULL, &sa) == 0)
				cr_expect_eq(sa.sa_handler,
				    sig == SIGPIPE || sig == SIGXFSZ ? SIG_IGN
								     : SIG_DFL,
				    "%zu: %d", i, sig);
	}
}

/* mutation: common/base/io.c, io_open_straight() without RESOLVE_NO_SYMLINKS.
 */
Test(base_io, X13_a_straight_path_has_no_link)
{
	char dir[] = "/tmp/base-io-XXXXXX", path[PATH_MAX];
	int fd;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/d", dir);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/l", dir);
	cr_assert_eq(symlink("d", path), 0);
	cr_expect_eq(io_open_straight(path, O_RDONLY), -ELOOP);
	snprintf(path, sizeof(path), "%s/l/none", dir);
	cr_expect_eq(io_open_straight(path, O_RDONLY), -ELOOP);
	snprintf(path, sizeof(path), "%s/d", dir);
	fd = io_open_straight(path, O_RDONLY | O_DIRECTORY);
	cr_expect_geq(fd, 0);
	io_close(&fd);
	cr_expect_eq(io_open_straight("tmp", O_RDONLY), -EINVAL);
	cr_assert_eq(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/l", dir);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(rmdir(dir), 0);
}
