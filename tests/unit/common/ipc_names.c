#include "ipc/names.h"

#include <criterion/criterion.h>
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

Test(ipc_names, the_longest_instance_has_room)
{
	char longest[64], name[IPC_NAME_MAX];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	ipc_name_queue(longest, UINT32_MAX, name);
	cr_expect_eq(strlen(name), 1u + 63u + 1u + 5u + 10u);
}
