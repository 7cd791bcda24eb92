/* spool/marker.h - the file `queue` that makes a directory a queue: one line,
 * the version of the format and the split, written once and whole. */
#ifndef SPOOL_MARKER_H
#define SPOOL_MARKER_H

#include <stdbool.h>
#include <stdint.h>

#define MARKER_NAME "queue"

/* -ENOENT: there is none; -EBADMSG: not a marker; -EMEDIUMTYPE: of another
 * version, with queue_file_reason(). */
int marker_read(int dir, uint32_t *ret_split);
/* The file and its name are synced. */
int marker_write(int dir, uint32_t split);

#endif
