/* The capabilities that are left. */
#include "deliver-local/local.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEEDED                                                   \
	(UINT32_C(1) << CAP_SETUID | UINT32_C(1) << CAP_SETGID | \
	    UINT32_C(1) << CAP_KILL)

static struct __user_cap_header_struct head = {
	.version = _LINUX_CAPABILITY_VERSION_3
};

static void
get(struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3])
{
	if (syscall(SYS_capget, &head, data) < 0)
		_exit(100);
}

static int
in_child(int (*act)(void))
{
	int status = 0;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(act());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
drop_and_look(void)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	const char *missing = NULL;

	if (privileges_drop(&missing) != 0 || strcmp(missing, "") != 0)
		return 1;
	get(data);
	if (data[0].permitted != NEEDED || data[0].effective != NEEDED ||
	    data[0].inheritable != 0 || data[1].permitted != 0 ||
	    data[1].effective != 0)
		return 2;
	data[0].permitted = data[0].effective = UINT32_MAX;
	return syscall(SYS_capset, &head, data) == 0 ? 4 : 0;
}

/* mutation: deliver-local/privileges.c, keep gets another bit. */
Test(privileges, X8_three_capabilities_are_left)
{
	if (geteuid() != 0)
		cr_skip("needs root");
	cr_expect_eq(in_child(drop_and_look), 0);
}

static int
drop_with_fewer(void)
{
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	const char *missing = NULL;

	get(data);
	data[0].permitted &= ~(UINT32_C(1) << CAP_KILL);
	data[0].effective = data[0].permitted;
	if (syscall(SYS_capset, &head, data) < 0)
		return 1;
	if (privileges_drop(&missing) != 0 ||
	    strstr(missing, "CAP_KILL is missing") == NULL)
		return 2;
	return 0;
}

static int
drop_with_none(void)
{
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	const char *missing = NULL;

	if (syscall(SYS_capset, &head, none) < 0)
		return 1;
	if (privileges_drop(&missing) != 0 ||
	    strncmp(missing, "cannot switch to the recipient's user: ", 39) !=
		0)
		return 2;
	return 0;
}

/* mutation: deliver-local/privileges.c, `keep &= permitted` left out. */
Test(privileges, X8_with_fewer_than_those_it_goes_on)
{
	if (geteuid() != 0)
		cr_skip("needs root");
	cr_expect_eq(in_child(drop_with_fewer), 0);
	cr_expect_eq(in_child(drop_with_none), 0);
}
