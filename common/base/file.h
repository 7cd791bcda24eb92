/* base/file.h - files that an operator writes and daemons trust:
 * configuration, routing, programs, control files.
 *
 * A file is read whole before any of it is parsed, so that a file replaced by
 * rename is the old one or the new. Files are regular, and opened without
 * blocking: a FIFO or a directory is an error at once. For root the file and
 * every directory above it must be owned by root and writable by no other user,
 * sticky directories excepted.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"

#include <sys/stat.h>
#include <sys/types.h>

/* Append the content to out. Failure: -errno with a reason that goes behind
 * the path in *ret_why ("is a directory"): -ENOENT, -EACCES, -EISDIR, -EINVAL
 * not a regular file, -EFBIG above max bytes, -EPERM writable by others. */
int
file_read(const char *path, size_t max, struct buf *out, struct buf *ret_why);
/* With the owner of the file that was read. */
int file_read_owned(const char *path, size_t max, struct buf *out,
    uid_t *ret_owner, struct buf *ret_why);

/* May another user than root write to what has this owner and mode? */
bool file_others_may_write(const struct stat *st);
/* The length of the first directory above or at this absolute path that the
 * effective user may not search; 0: there is none. The file at the path itself
 * is judged only if it is a directory. Async-signal-safe. */
size_t path_closed(const char *path);

/* Writes a file of this process, whole or not at all, and synced: to NAME.new,
 * which is then renamed. -errno. */
int
file_replace(int dir, const char *name, mode_t mode, const struct buf *text);

#endif
