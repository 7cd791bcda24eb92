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
/* Words for an error of an object in SHM_DIR, which any user can fill: of
 * -ENOSPC the words name SHM_DIR, and the bytes and inodes that are free. */
#define SHM_TEXT_SIZE 160
const char *shm_describe(int error, char text[SHM_TEXT_SIZE]);
/* Is there room for the pages of an instance? -ENOSPC with such words. */
int shm_judge_room(char text[SHM_TEXT_SIZE]);

#endif
