#include "ipc/names.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(ipc_names, I16_the_instance_is_in_every_name)
{
	char name[IPC_NAME_MAX];

	ipc_name_scheduler("", name);
	cr_expect_str_eq(name, "/qscheduler");
	ipc_name_scheduler("t1", name);
	cr_expect_str_eq(name, "/t1.qscheduler");
	ipc_name_queue("", 3, name);
	cr_expect_str_eq(name, "/queue3");
	ipc_name_queue("t1", UINT32_MAX, name);
	cr_expect_str_eq(name, "/t1.queue4294967295");
}

Test(ipc_names, instance_check)
{
	static const struct {
		const char *instance;
		int want;
	} rows[] = {
		{ "", 0 },
		{ "a-B_9", 0 },
		{ ".", -EINVAL },
		{ "a.b", -EINVAL },
		{ "../x", -EINVAL },
		{ "a b", -EINVAL },
		{ "a\n", -EINVAL },
		{ "\xc3\xa4", -EINVAL },
	};
	char longest[IPC_INSTANCE_MAX + 1], name[IPC_NAME_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(ipc_instance_check(rows[i].instance), rows[i].want,
		    "\"%s\"", rows[i].instance);
	memset(longest, 'x', sizeof(longest));
	longest[IPC_INSTANCE_MAX] = '\0';
	cr_expect_eq(ipc_instance_check(longest), -EINVAL);
	longest[IPC_INSTANCE_MAX - 1] = '\0';
	cr_expect_eq(ipc_instance_check(longest), 0);
	ipc_name_queue(longest, UINT32_MAX, name);
	cr_expect_eq(strlen(name), 1u + 63u + 1u + 5u + 10u);
}
