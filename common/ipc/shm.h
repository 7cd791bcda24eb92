/* ipc/shm.h - names and memory of shared-memory segments, for their makers.
 * Failure: -errno. */
#ifndef IPC_SHM_H
#define IPC_SHM_H

#include "base/base.h"

#define SHM_DIR "/dev/shm" /* where shm_open(3) of glibc keeps them */

/* Frees the name; root renames an object that cannot be unlinked. 0 also when
 * there was none. -EPERM: another user owns it. */
int shm_remove(const char *name);
/* Allocates all of it: a full file system is an error here, and not a SIGBUS
 * later. */
int shm_allocate(int fd, size_t size);

#endif
