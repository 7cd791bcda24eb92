#include "ipc/names.h"

#include <stdio.h>

static void
name_of(const char *instance, const char *object, char out[IPC_NAME_MAX])
{
	snprintf(out, IPC_NAME_MAX, "/%s%s%s", instance,
	    instance[0] == '\0' ? "" : ".", object);
}

void
ipc_name_scheduler(const char *instance, char out[IPC_NAME_MAX])
{
	name_of(instance, "qscheduler", out);
}

void
ipc_name_sites(const char *instance, char out[IPC_NAME_MAX])
{
	name_of(instance, "qscheduler.sites", out);
}

void
ipc_name_ask(const char *instance, char out[IPC_NAME_MAX])
{
	name_of(instance, "qscheduler.ask", out);
}

void
ipc_name_queue(const char *instance, uint32_t queue, char out[IPC_NAME_MAX])
{
	char object[16];

	snprintf(object, sizeof(object), "queue%u", queue);
	name_of(instance, object, out);
}
