/* block.h - a disk whose power can go at any block write.
 *
 * A process serves one file, DIR/disk, by the kernel's FUSE protocol; a loop
 * device on it carries the file system. What the file system has flushed is
 * written to the image. At the cut, a part of what it has not, chosen block by
 * block, is written too, and everything after that is an error.
 *
 * The control page outlives the power and is shared by all: in memory for who
 * forks, and in a file for other programs (tests/disk/cuts.py has its fields).
 */
#ifndef TESTS_DISK_BLOCK_H
#define TESTS_DISK_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct block_control {
	_Atomic uint64_t writes;        /* seen, of blocks */
	_Atomic uint64_t cut_at;        /* of writes; 0: not yet */
	_Atomic uint64_t is_cut;        /* 1: image is what the disk has */
	_Atomic uint64_t seed;          /* of what is kept */
	_Atomic uint64_t flushes;       /* seen */
	_Atomic uint64_t kept, dropped; /* blocks, at the cut */
};

struct block {
	struct block_control *control;
	pid_t server;
	char dir[128];
};

/* Serve the image (a path) as `where`/disk. control: a path, made anew; NULL:
 * none is needed. 0 or -errno. */
int block_open(
    struct block *b, const char *image, const char *where, const char *control);
/* The power goes after so many block writes from now. */
void block_arm(struct block *b, uint64_t writes, uint64_t seed);
/* Until it is gone; what writes nothing more is cut at once. */
int block_wait(struct block *b);
/* With nothing on it open; the server ends. */
void block_close(struct block *b);
/* block_open() runs this in a child of its own. */
int block_serve(struct block_control *c, const char *image, int fuse_fd);

#endif
