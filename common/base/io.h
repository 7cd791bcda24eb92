/* base/io.h - whole reads and writes, and standard descriptors.
 * Every function loops over EINTR and short counts. Failure: -errno. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include "base/base.h"

int io_write_all(int fd, const void *data, size_t len);
/* The number of bytes read, less than len only at the end of the file. */
int64_t io_read_all(int fd, void *data, size_t len);
int64_t io_pread_all(int fd, void *data, size_t len, int64_t off);

/* Open an absolute path of which no part is a link, the last one included: else
 * -ELOOP. An old kernel, or a filter of calls that does not know this one:
 * -ENOSYS, -EPERM. So an error says nothing; another way has to be tried. */
int io_open_straight(const char *path, int flags);

/* Open /dev/null in the place of each of 0, 1, 2 that is closed, so that no
 * file opened later gets its number. */
int io_std_fds(void);
/* Every signal gets its default action: handlers that were inherited go. */
void io_default_signals(void);
/* SIGPIPE and SIGXFSZ are ignored: both show as errors of write. */
void io_ignore_write_signals(void);
/* Both, with fewer system calls: the kernel says what there is to change. For a
 * program whose /proc is the system's. */
void io_default_but_write_signals(void);
int io_nonblock(int fd);
/* close() unless fd < 0; then *fd = -1. */
void io_close(int *fd);

#endif
