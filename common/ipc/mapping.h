/* ipc/mapping.h - shared memory whose file another process may truncate.
 *
 * A thread that touches a page behind the end of the mapped file gets SIGBUS,
 * which would end the process. For mappings made here, the handler of that
 * signal replaces the whole mapping by zeroed memory of this process: the
 * access completes, later writes stay in this process, and the mapping is
 * marked as lost. The owner checks the mark between two pieces of work, and
 * goes on without the object until there is a new one. A fault at any other
 * address keeps its earlier action, which ends the process with a core.
 *
 * A thread that uses a mapping must not block SIGBUS. System calls that are
 * given an address in a mapping fail with EFAULT instead of a signal.
 */
#ifndef IPC_MAPPING_H
#define IPC_MAPPING_H

#include "base/base.h"

/* Shared, readable and writable, from the beginning of the file. -EBADMSG: the
 * file is shorter, or is not regular; -ENFILE: MAPPINGS_MAX exist already;
 * -ENOMEM, ... */
#define MAPPINGS_MAX 256
int mapping_map(int fd, size_t size, void **ret_base);
/* NULL is accepted. */
void mapping_unmap(void *base, size_t size);
/* The file was truncated, and the mapping is now memory of this process. */
bool mapping_is_lost(const void *base);

#endif
