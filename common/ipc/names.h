/* ipc/names.h - names of the IPC objects of an instance (docs/IPC.md). */
#ifndef IPC_NAMES_H
#define IPC_NAMES_H

#include "base/base.h"

#define IPC_NAME_MAX     128
#define IPC_INSTANCE_MAX 64

/* [A-Za-z0-9_-]*, at most IPC_INSTANCE_MAX - 1: -EINVAL. "" is the nameless
 * instance. */
int ipc_instance_check(const char *instance);
/* "/qscheduler", "/INSTANCE.qscheduler"; shared memory and message queue. */
void ipc_name_scheduler(const char *instance, char out[IPC_NAME_MAX]);
/* "/queue3", "/INSTANCE.queue3". */
void
ipc_name_queue(const char *instance, uint32_t queue, char out[IPC_NAME_MAX]);

#endif
