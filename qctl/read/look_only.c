#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "qctl/read/look.h"

#define WRITES                                                              \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |    \
	    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | \
	    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |     \
	    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |   \
	    LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)

/* Since the third version of Landlock; headers may be older than kernels. */
#define TRUNCATE         (UINT64_C(1) << 14)
#define TRUNCATE_VERSION 3

/* Workers have it as their standard descriptors. */
static int
allow_null(int rules)
{
	struct landlock_path_beneath_attr null = {
		.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE,
		.parent_fd = open("/dev/null", O_PATH | O_CLOEXEC),
	};
	int fd = null.parent_fd, r = 0;

	if (fd < 0 ||
	    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
		&null, 0) < 0)
		r = -errno;
	io_close(&fd);
	return r;
}

int
look_lock_down(void)
{
	const long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr attr = { .handled_access_fs = WRITES };
	int r, rules;

	/* Filters of containers refuse unknown calls with EPERM. */
	if (version < 0)
		return -EOPNOTSUPP;
	if (version >= TRUNCATE_VERSION)
		attr.handled_access_fs |= TRUNCATE;
	rules =
	    (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules < 0)
		return -errno;
	r = allow_null(rules);
	if (r == 0 &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		syscall(SYS_landlock_restrict_self, rules, 0) < 0))
		r = -errno;
	io_close(&rules);
	return r;
}
