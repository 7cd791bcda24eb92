/* spool/sys.h - the system calls of the spool that can fail for a reason
 * outside of the process, as a struct, so that a test makes the Nth one fail.
 * Programs pass &spool_sys_real. Functions return as the system calls do: -1
 * and errno. */
#ifndef SPOOL_SYS_H
#define SPOOL_SYS_H

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>

struct spool_sys {
	int (*openat)(int dir, const char *name, int flags, mode_t mode);
	ssize_t (*pread)(int fd, void *data, size_t len, off_t off);
	/* The next two never wait for a disk: -1 where they would have to, or
	 * where the kernel cannot say. */
	int (*open_cached)(int dir, const char *name, int flags);
	ssize_t (*pread_cached)(int fd, void *data, size_t len, off_t off);
	ssize_t (*write)(int fd, const void *data, size_t len);
	ssize_t (*pwrite)(int fd, const void *data, size_t len, off_t off);
	int (*ftruncate)(int fd, off_t len);
	int (*linkat)(int olddir, const char *old, int newdir, const char *name,
	    int flags);
	/* Fails with EEXIST if the new name is taken. */
	int (*renameat)(
	    int olddir, const char *old, int newdir, const char *name);
	/* Replaces the file of the new name, which is in the same directory. */
	int (*replaceat)(int dir, const char *old, const char *name);
	int (*unlinkat)(int dir, const char *name, int flags);
	int (*utimensat)(int dir, const char *name,
	    const struct timespec times[2], int flags);
	int (*flock)(int fd, int op);
	int (*fsync)(int fd);
	int (*syncfs)(int fd);
	int (*close)(int fd);
	int (*statx)(int dir, const char *name, int flags, unsigned mask,
	    struct statx *out);
	int (*fstatvfs)(int fd, struct statvfs *out);
};

extern const struct spool_sys spool_sys_real;

/* All of it, over interruptions and short writes: 0, -errno. */
int spool_write_all(
    const struct spool_sys *sys, int fd, const void *data, size_t len);
/* A few bytes in place, in one call: 0, -errno. */
int spool_write_at(const struct spool_sys *sys, int fd, const void *data,
    size_t len, off_t off);

#endif
