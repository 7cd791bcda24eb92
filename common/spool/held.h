/* spool/held.h - bytes of a queue file that are in memory, for queue_file.h and
 * its readers alone (queue_file_hold(), queue_file_give()). Each thread has its
 * own. */
#ifndef SPOOL_HELD_H
#define SPOOL_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL: they are to be read. */
const char *held_find(int fd, size_t len, uint64_t off);
/* False: not all of the file is held. */
bool held_whole(int fd, uint64_t *ret_size);

#endif
