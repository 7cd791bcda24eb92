/* base/file.h - files that an operator writes and daemons believe:
 * configuration, routing, programs, control files.
 *
 * Read whole before anything is judged, so that a file replaced by rename is
 * the old one or the new (F7). Only regular files, opened without blocking: a
 * FIFO or a directory is an error at once (F1). For root the file and every
 * directory above it must be owned by root and writable by nobody else,
 * sticky directories excepted (F8).
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"

#include <sys/types.h>

/* Append the content to out. Failure: -errno with a reason that goes behind
 * the path in *ret_why ("is a directory"): -ENOENT, -EACCES, -EISDIR, -EINVAL
 * not a regular file, -EFBIG above max bytes, -EPERM not to be trusted. */
int
file_read(const char *path, size_t max, struct buf *out, struct buf *ret_why);

/* Put a file of ours in place, whole or not at all, and safe on disk: written
 * to NAME.new, then renamed; owner and directory are ours. -errno. */
int
file_replace(int dir, const char *name, mode_t mode, const struct buf *text);

#endif
