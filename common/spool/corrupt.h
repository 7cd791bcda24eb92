/* spool/corrupt.h - a file in corrupt/: its id, the check that it fails, and
 * its way back to deferred/ (docs/QCTL.md, "Corrupt messages").
 *
 * A name in corrupt/ need not be the inode of its file: the file is found by
 * its inode. Nothing about a failed check is stored; the file is checked again
 * on each question, so that the answer is there after a restart, too.
 *
 * Soft: -errno. */
#ifndef SPOOL_CORRUPT_H
#define SPOOL_CORRUPT_H

#include "spool/spool.h"

#define CORRUPT_WHY_MAX 128

/* The parts of a file that can be trusted, or read. */
struct corrupt_parts {
	struct queue_file file; /* with `trailer' */
	bool trailer;  /* trailer and header are whole: the content is found */
	bool readable; /* sender and all recipients can be read */
	bool content;  /* the checksum of the content is right */
	bool envelope; /* the checksum of sender and recipients is right */
	char why[CORRUPT_WHY_MAX]; /* the first check that fails; "": none */
};

/* The name in corrupt/ of the regular file with this inode. -ENOENT. */
int corrupt_find(
    const struct spool *sp, uint64_t inode, char *ret_name, size_t size);
/* Opens that file. -ENOENT; flags: O_RDONLY or O_RDWR. */
int corrupt_open(const struct spool *sp, uint64_t inode, int flags);
/* The id of a file in corrupt/ or deleted/ that may be damaged: by its trailer,
 * else by the time of its last change, which no move alters, and number 0. */
int corrupt_id(const struct spool *sp, int fd, struct queue_id *ret_id);
/* Makes every check that todo-proc makes of a file before it is delivered; the
 * whole content is read. name: of the file in corrupt/. -EIO, -ENOMEM. */
int corrupt_check(const struct spool *sp, int fd, const char *name,
    struct corrupt_parts *ret_parts);
/* Moves the file to deferred/, under its inode, after new checksums were
 * written where they differ, and synced. -EBADMSG: sender or recipients cannot
 * be read, or neither content nor envelope has the right checksum; -EPERM: its
 * owner or mode is not that of a queue file. */
int corrupt_release(const struct spool *sp, uint64_t inode);
/* Moves the file to another directory, under its inode. */
int corrupt_move(const struct spool *sp, enum spool_dir to, uint64_t inode);
/* Moves a file that may be damaged from deleted/ back to corrupt/. */
int corrupt_return(const struct spool *sp, uint64_t inode);

#endif
