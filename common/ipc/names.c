#include "ipc/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "0123456789_-";

int
ipc_instance_check(const char *instance)
{
	size_t len = strnlen(instance, IPC_INSTANCE_MAX);

	if (len >= IPC_INSTANCE_MAX || instance[strspn(instance, allowed)])
		return -EINVAL;
	return 0;
}

static const char *
dot(const char *instance)
{
	return instance[0] == '\0' ? "" : ".";
}

void
ipc_name_scheduler(const char *instance, char out[IPC_NAME_MAX])
{
	snprintf(out, IPC_NAME_MAX, "/%s%sqscheduler", instance, dot(instance));
}

void
ipc_name_queue(const char *instance, uint32_t queue, char out[IPC_NAME_MAX])
{
	snprintf(
	    out, IPC_NAME_MAX, "/%s%squeue%u", instance, dot(instance), queue);
}
