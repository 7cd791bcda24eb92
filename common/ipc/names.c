#include "ipc/names.h"

#include <stdio.h>

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
ipc_name_sites(const char *instance, char out[IPC_NAME_MAX])
{
	snprintf(out, IPC_NAME_MAX, "/%s%sqscheduler.sites", instance,
	    dot(instance));
}

void
ipc_name_ask(const char *instance, char out[IPC_NAME_MAX])
{
	snprintf(
	    out, IPC_NAME_MAX, "/%s%sqscheduler.ask", instance, dot(instance));
}

void
ipc_name_queue(const char *instance, uint32_t queue, char out[IPC_NAME_MAX])
{
	snprintf(
	    out, IPC_NAME_MAX, "/%s%squeue%u", instance, dot(instance), queue);
}
