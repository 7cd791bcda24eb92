/* spool/room.h - room for new mail on a file system: the reserve of
 * queue_minfree_bytes and queue_minfree_inodes, the part of the reserve that
 * each writer may use, and the text for people.
 *
 * Soft: -errno. Never logs. */
#ifndef SPOOL_ROOM_H
#define SPOOL_ROOM_H

#include "base/base.h"

#include <sys/statvfs.h>

struct spool;

/* Writers, by the part of the reserve that they may use. Users who have filled
 * a file system leave a part for the delivery of their mail, which frees space
 * again; deliveries and reports, which users cause, leave a part for root. */
enum room_writer {
	ROOM_USER,   /* submits mail: nothing of the reserve */
	ROOM_SYSTEM, /* delivers, expands an alias, reports: a quarter */
	ROOM_ROOT,   /* submits mail as root: a half */
	ROOM_NWRITERS
};

/* The reserve: bytes and inodes that stay free, less the part of the writer. */
struct room_want {
	uint64_t bytes;
	uint64_t inodes;
	enum room_writer writer;
};

/* Judges the free space of a file system for a message of `to_come` bytes (0:
 * unknown). 0; -EROFS: the file system is read-only; -ENOSPC: less than the
 * wanted reserve and the message would be free, or nothing is free. A file
 * system that does not count inodes reports 0 of 0. */
int room_judge(
    const struct statvfs *v, const struct room_want *want, uint64_t to_come);
/* Is this error (-errno) one of a file system that takes no new data: ENOSPC,
 * EDQUOT, EROFS, EIO? */
bool room_is_error(int error);

#define ROOM_TEXT_SIZE 320
/* Describes such an error of the file system of `fd`:
 *	mail system full: PATH has 50 MB free, queue_minfree_bytes wants 64 MB
 *	mail system full: PATH has 20 MB free, queue_minfree_bytes wants 32 MB
 *	    even of root
 *	mail system full: PATH has 5 inodes free, queue_minfree_inodes wants 100
 *	mail system full: PATH: Disk quota exceeded
 *	mail cannot be stored: PATH: Read-only file system */
void room_describe(int fd, const char *path, const struct room_want *want,
    uint64_t to_come, int error, char out[ROOM_TEXT_SIZE]);
/* The text of room_describe() from PATH on. Where that does not fit, the
 * beginning of PATH is left out, with "..." in its place. */
void room_shorten(const char *text, char *out, size_t size);
/* room_describe() of a queue. PATH is QUEUE_BASE, or the directory of the queue
 * if that is on a file system of its own. */
void room_describe_queue(const struct spool *sp, const struct room_want *want,
    uint64_t to_come, int error, char out[ROOM_TEXT_SIZE]);

#endif
