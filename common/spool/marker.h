/* spool/marker.h - the file `queue` that makes a directory a queue (D19): one
 * line, the version of the format and the split, written once and whole. */
#ifndef SPOOL_MARKER_H
#define SPOOL_MARKER_H

#include <stdint.h>

#define MARKER_NAME "queue"

/* -ENOENT: there is none; -EBADMSG: it is not one of ours. */
int marker_read(int dir, uint32_t *ret_split);
/* Synced, also its name. */
int marker_write(int dir, uint32_t split);

#endif
