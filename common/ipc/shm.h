/* ipc/shm.h - names and memory of shared-memory segments, as those need them
 * that make one. Failure: -errno. */
#ifndef IPC_SHM_H
#define IPC_SHM_H

#include "base/base.h"

/* The name is free after it, whatever was there, or it was free before: root
 * sets aside what cannot be unlinked. -EPERM: it is somebody else's. */
int shm_remove(const char *name);
/* Memory for all of it: a full file system is an error here and not a SIGBUS
 * later. */
int shm_allocate(int fd, size_t size);

#endif
