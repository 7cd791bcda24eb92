/* ipc/mapping.h - shared memory that somebody else may cut off.
 *
 * A page of a mapping that lies behind the end of its file cannot be had: the
 * kernel sends SIGBUS to the thread that touches it, which would end the
 * process. For what is mapped here the handler of that signal puts zeroed
 * memory of this process in the place of the whole mapping: the access
 * completes, nobody else sees what is written from then on, and the mapping is
 * marked as lost. The owner looks at the mark between two pieces of work,
 * and does without the object until there is a new one. A fault at any other
 * address keeps the action that it had, which is the end with a core.
 *
 * A thread that uses a mapping must not block SIGBUS. System calls that are
 * given an address in a mapping fail with EFAULT instead of a signal.
 */
#ifndef IPC_MAPPING_H
#define IPC_MAPPING_H

#include "base/base.h"

/* Shared, readable and writable, from the beginning of the file. -EBADMSG: the
 * file is shorter, or no regular one; -ENFILE: there are MAPPINGS_MAX already;
 * -ENOMEM, ... */
#define MAPPINGS_MAX 256
int mapping_map(int fd, size_t size, void **ret_base);
/* NULL is none. */
void mapping_unmap(void *base, size_t size);
/* The file was cut off, and what is there now is memory of this process. */
bool mapping_is_lost(const void *base);

#endif
