/* tests/tsan/drive/drive.h - the files of a spool and a pool of threads, which
 * does one task after the other on each file while their owner asks for the
 * next ones. Any error aborts. */
#ifndef TSAN_DRIVE_DRIVE_H
#define TSAN_DRIVE_DRIVE_H

#include "spool/spool.h"
#include "spool/sync_pool.h"

#define DRIVE_FILES 32

struct drive {
	const char *name;
	struct spool *sp; /* opened and closed by the drive */
	unsigned share;   /* of sync_pool_set_share(); 0: as it is */
	/* The task of a file behind the one that has ended; NULL: the first. */
	struct sync_task *(*next)(
	    const struct queue_id *id, const struct sync_task *before);
	/* Looks at each that has ended. */
	void (*ended)(const struct sync_task *task);
};

void drive_must(int r, const char *what);
/* The status of the program, which says how many tasks were done. */
int drive_run(const struct drive *d);

#endif
