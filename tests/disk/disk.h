/* disk.h - tests that need a file system of their own: power cuts, full and
 * read-only ones.
 *
 * Root, loop devices, FUSE and the mkfs of each file system are needed; what is
 * not there is skipped.
 *
 * The program lives in a mount namespace of its own, images lie in a tmpfs of
 * that namespace, and loop devices are detached by their last close: however
 * the program ends, nothing stays mounted or attached.
 */
#ifndef TESTS_DISK_H
#define TESTS_DISK_H

#include "base/base.h"
#include "block.h"
#include "spool/accept.h"

struct cut_script;
struct disk_fs;

/* Of a recipient's mark and the move of its message. */
enum marks_order {
	MARKS_SYNCED,    /* fsync, then the move: ours */
	MARKS_UNSYNCED,  /* no sync at all */
	MARKS_FDATASYNC, /* the move, then fdatasync */
};

enum disk_result {
	DISK_OK,
	DISK_FAILED,
	DISK_SKIPPED,
};

struct disk_test {
	const char *name;
	enum disk_result (*run)(const struct disk_test *test);
	/* Power cuts alone: where, the order of calls, and whether it must
	 * lose mail. */
	const struct disk_fs *fs;
	const struct spool_sys *sys;
	bool strict, must_lose;
	const struct cut_script *script;
	enum marks_order order;
};

enum disk_result cut_run(const struct disk_test *test);
enum disk_result full_d1(const struct disk_test *test);
enum disk_result full_d5(const struct disk_test *test);
enum disk_result full_d9(const struct disk_test *test);
enum disk_result full_d19(const struct disk_test *test);

extern const struct spool_sys cut_sys_named, cut_sys_fsync_link,
    cut_sys_fsync_rename;

/* Print and answer: "FAILED name: text", "SKIP name: text". */
enum disk_result
disk_failed(const struct disk_test *test, const char *fmt, ...) PRINTF(2, 3);
enum disk_result
disk_skip(const struct disk_test *test, const char *fmt, ...) PRINTF(2, 3);

/* Leave the others' mounts; make a place for ours. NULL, or why not. */
const char *place_open(void);
void place_close(void);
#define PLACE_MAX 128
/* A path below it. */
void place(const char *name, char out[PLACE_MAX]);

struct disk_fs {
	const char *name;
	unsigned mbytes; /* as small as it may be */
	const char *options;
	const char *mkfs[6];
};
extern const struct disk_fs disk_ext4, disk_xfs, disk_btrfs;

/* A file system on a loop device on a disk whose power can go. */
struct image {
	const struct disk_fs *fs;
	struct block block;
	int file, loop;
	char device[32];
};
/* mbytes 0: as small as it may be. NULL, or what is missing here; either way
 * image_close() is due. */
const char *
image_open(struct image *im, const struct disk_fs *fs, unsigned mbytes);
int image_mount(const struct image *im, const char *where);
/* After the cut: mounted again from what was on the disk, without anything that
 * the kernel still remembers of it. */
int image_revive(struct image *im, const char *where);
void image_close(struct image *im);

int mount_tmpfs(const char *where, const char *options);
int mount_readonly(const char *where, bool readonly);
int unmount(const char *where);

/* A private queue 1 in base, made and open. 0 or -errno. */
int queue_open(const char *base, struct spool *sp);
/* One message; content of len bytes. */
int queue_put(const struct spool *sp, const struct accept_options *opt,
    const void *content, size_t len, struct queue_id *ret_id);
/* 0: whole, and *ret_file is set. */
int
queue_look(const struct spool *sp, uint64_t inode, struct queue_file *ret_file);

#endif
