/* ipc/names.h - names of the IPC objects of an instance (docs/IPC.md), whose
 * name is "" or one that common/config accepts: at most 63 of [A-Za-z0-9_-]. */
#ifndef IPC_NAMES_H
#define IPC_NAMES_H

#include "base/base.h"

#define IPC_NAME_MAX 128

/* "/qscheduler", "/INSTANCE.qscheduler"; shared memory and message queue. */
void ipc_name_scheduler(const char *instance, char out[IPC_NAME_MAX]);
/* "/qscheduler.sites": the table of destinations. */
void ipc_name_sites(const char *instance, char out[IPC_NAME_MAX]);
/* "/qscheduler.ask": the socket of requests, where shared memory has its names.
 */
void ipc_name_ask(const char *instance, char out[IPC_NAME_MAX]);
/* "/queue3", "/INSTANCE.queue3". */
void
ipc_name_queue(const char *instance, uint32_t queue, char out[IPC_NAME_MAX]);

#endif
