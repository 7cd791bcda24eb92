/* spool/marker.h - the file `queue` that makes a directory a queue (D19): one
 * line, the version of the format and the split, written once and whole. */
#ifndef SPOOL_MARKER_H
#define SPOOL_MARKER_H

#include <stdbool.h>
#include <stdint.h>

#define MARKER_NAME "queue"

/* -ENOENT: there is none; -EBADMSG: it is not one of ours. */
int marker_read(int dir, uint32_t *ret_split);
/* Synced, also its name. */
int marker_write(int dir, uint32_t split);

/* A second file, empty: nothing comes into this queue any more. Both synced. */
int marker_set_closed(int dir, bool closed);
bool marker_is_closed(int dir);

#endif
