/* Which paths the door believes. */
#include "tests/unit/files.h"

#include "base/guard.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static char top[64], base[256];

static const char *
path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static void
start(void)
{
	int fd;

	if (geteuid() != 0)
		cr_skip_test("believes root only");
	umask(022);
	snprintf(top, sizeof(top), "/tmp/door-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(top));
	cr_assert_eq(chmod(top, 0755), 0);
	cr_assert_eq(mkdir(path_of("base"), 0755), 0);
	snprintf(base, sizeof(base), "%s", path_of("base"));
	fd = open(path_of("base/conf"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0);
	close(fd);
}

static void
end(void)
{
	if (geteuid() == 0)
		unit_remove_tree(top);
}

TestSuite(guard, .init = start, .fini = end);

Test(guard, X10_only_what_root_alone_may_change)
{
	char other[256];

	cr_expect_eq(guard_trust(base, "conf"), 0);
	cr_expect_eq(guard_trust(base, "none"), -ENOENT);
	cr_expect_eq(guard_trust("/none", "conf"), -ENOENT);
	cr_expect_eq(guard_trust("base", "conf"), -EINVAL);
	cr_expect_eq(guard_trust("", "conf"), -EINVAL);
	snprintf(other, sizeof(other), "%s/base/../base", top);
	cr_expect_eq(guard_trust(other, "conf"), -EINVAL);
	snprintf(other, sizeof(other), "%s//base/", top);
	cr_expect_eq(guard_trust(other, "conf"), 0);
	cr_assert_eq(symlink(base, path_of("link")), 0);
	cr_expect_lt(guard_trust(path_of("link"), "conf"), 0);
	cr_assert_eq(symlink("base/conf", path_of("conf")), 0);
	cr_expect_eq(guard_trust(top, "conf"), -EPERM);
	cr_expect_eq(guard_trust(path_of("base/conf"), "conf"), -ENOTDIR);
}

Test(guard, X10_owners_and_modes_on_the_way)
{
	static const struct {
		const char *name;
		mode_t mode;
		uid_t uid;
		int want;
	} rows[] = {
		{ "base", 0755, 65534, -EPERM },
		{ "base", 0777, 0, -EPERM },
		{ "base", 01777, 0, 0 },
		{ "base", 01777, 65534, -EPERM },
		{ "base", 0775, 0, -EPERM },
		{ "base", 0700, 0, 0 },
		{ "base/conf", 0644, 65534, -EPERM },
		{ "base/conf", 0666, 0, -EPERM },
		{ "base/conf", 0664, 0, -EPERM },
		{ "base/conf", 01666, 0, -EPERM },
		{ "base/conf", 0600, 0, 0 },
		{ ".", 0777, 0, -EPERM },
		{ ".", 01777, 0, 0 },
		{ ".", 0755, 65534, -EPERM },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const char *path = path_of(rows[i].name);

		cr_assert_eq(
		    chown(path, rows[i].uid,
			rows[i].mode == 0775 || rows[i].mode == 0664 ? 65534
								     : 0),
		    0);
		cr_assert_eq(chmod(path, rows[i].mode), 0);
		cr_expect_eq(
		    guard_trust(base, "conf"), rows[i].want, "row %zu", i);
		cr_assert_eq(chown(path, 0, 0), 0);
		cr_assert_eq(chmod(path, 0755), 0);
	}
}

/* The exit code of the child: is the class of its caller gone? */
static int
be_guarded(void)
{
	const int idle = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0);

	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, idle) < 0)
		return 77;
	if (guard_process() != 0)
		return 1;
	return syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) ==
		IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IOPRIO_BE_NORM)
	    ? 0
	    : 2;
}

Test(guard_process, attack_8_no_idle_disk_is_waited_for)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(be_guarded());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		cr_skip_test("a kernel without these classes");
	cr_assert_eq(WEXITSTATUS(status), 0);
}
