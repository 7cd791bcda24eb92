/* todo-proc/examine.h - one queue file is looked at before it is handed over:
 * what it is (D16), whether its writer is done, format, lengths, checksums
 * (D13, D14, D15), its recipients routed and counted.
 *
 * Damaged files are moved to corrupt/ with the reason logged, and counted.
 * One that cannot be read at the moment (EIO, D8) stays where it is. */
#ifndef TODO_PROC_EXAMINE_H
#define TODO_PROC_EXAMINE_H

#include "todo-proc/todo.h"

struct examined {
	struct queue_file file;
	usec_t mtime_wall;
	uint32_t pending; /* recipients without a mark */
	struct buf sender, census, destinations;
};

/* 0: *ret is filled, examined_done() frees it. Else nothing is to be freed:
 * -EAGAIN     its writer is not done, look again soon
 * -EALREADY   it was handed over just now
 * -ENOENT     it is not there
 * -EBADMSG    damaged, and moved to corrupt/
 * -errno      not to be had now; it lies where it lay */
int examine(
    struct todo *t, enum spool_dir dir, uint64_t inode, struct examined *ret);
void examined_done(struct examined *e);
/* Move what is named by this inode to corrupt/, for the reason that spool told
 * last. -EBADMSG, or -errno when it could not be moved. */
int examine_corrupt(
    struct todo *t, enum spool_dir dir, uint64_t inode, const char *why);
/* The same by name; split is the subdirectory, where there are some. */
int examine_corrupt_name(struct todo *t, enum spool_dir dir, uint32_t split,
    const char *name, const char *why);

#endif
