/* File systems that are full, out of inodes, read-only, or not mounted. */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/reason.h"

#define MANY 100000

static const struct accept_options plain = { .dir = SPOOL_INCOMING };
static char content[3 * 4096];

#define CHECK(test, cond)                                          \
	do {                                                       \
		if (!(cond))                                       \
			return disk_failed(                        \
			    test, "line %d: %s", __LINE__, #cond); \
	} while (0)

/* Accept until it is refused; the refusal is *ret_refused. */
static unsigned
accept_all(const struct spool *sp, const struct accept_options *opt, size_t len,
    int *ret_refused)
{
	struct queue_id id;
	unsigned n;

	for (n = 0; n < MANY; n++) {
		*ret_refused = queue_put(sp, opt, content, len, &id);
		if (*ret_refused < 0)
			break;
	}
	return n;
}

/* The messages there; each must be whole. *ret_last is one of them. */
static unsigned
count_whole(const struct spool *sp, unsigned *ret_bad, uint64_t *ret_last)
{
	struct spool_scan scan;
	struct spool_item item;
	struct queue_file file;
	unsigned n = 0;

	*ret_bad = 0;
	spool_scan_begin(&scan, sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) != 0) {
		n++;
		*ret_bad += queue_look(sp, item.inode, &file) < 0;
		*ret_last = item.inode;
	}
	spool_scan_done(&scan);
	return n;
}

static enum disk_result
d1_on(const struct disk_test *test, const char *base)
{
	unsigned accepted, whole, bad, i;
	uint64_t inode = 0;
	struct spool sp;
	int refused;

	CHECK(test, queue_open(base, &sp) == 0);
	/* Twice: what was refused must have given its space back. */
	for (i = 0; i < 2; i++) {
		accepted = accept_all(&sp, &plain, sizeof(content), &refused);
		CHECK(test, refused == -ENOSPC);
		whole = count_whole(&sp, &bad, &inode);
		CHECK(test, whole > 10 && bad == 0);
		CHECK(test, i > 0 || accepted == whole);
		CHECK(test,
		    spool_move(&sp, SPOOL_INCOMING, SPOOL_ACTIVE, inode) == 0);
		CHECK(test, spool_remove(&sp, SPOOL_ACTIVE, inode) == 0);
	}
	printf("disk: %s: %u messages, then refused, all of them whole\n",
	    test->name, whole);
	spool_close(&sp);
	return DISK_OK;
}

enum disk_result
full_d1(const struct disk_test *test)
{
	char where[PLACE_MAX], base[PLACE_MAX + 8];
	enum disk_result result;
	struct image im;
	const char *why;

	place("full", where);
	snprintf(base, sizeof(base), "%s/base", where);
	why = image_open(&im, &disk_ext4, 8);
	if (why != NULL)
		result = disk_skip(test, "%s", why);
	else if (image_mount(&im, where) < 0)
		result = disk_skip(test, "cannot mount an ext4 file system");
	else
		result = d1_on(test, base);
	unmount(where);
	image_close(&im);
	return result;
}

static enum disk_result
d5_on(const struct disk_test *test, const char *base)
{
	const struct accept_options careful = { .dir = SPOOL_INCOMING,
		.reserve.inodes = 20 };
	const struct reason reason = { 0, 0, "4.0.0", "none", "a", "later", 1 };
	unsigned accepted, whole, bad;
	uint64_t inode = 0;
	struct statvfs v;
	struct spool sp;
	int refused;

	CHECK(test, queue_open(base, &sp) == 0);
	accepted = accept_all(&sp, &careful, 100, &refused);
	CHECK(test, refused == -ENOSPC && accepted > 10);
	CHECK(test, statvfs(base, &v) == 0);
	CHECK(test, v.f_favail == careful.reserve.inodes - 1);
	whole = count_whole(&sp, &bad, &inode);
	CHECK(test, whole == accepted && bad == 0);
	/* The reserve is what the queue itself lives on. */
	CHECK(test, reason_add(&sp, SPOOL_DEFER, inode, &reason) == 0);
	CHECK(test, spool_set_due(&sp, inode, 1) == 0);
	CHECK(
	    test, spool_move(&sp, SPOOL_INCOMING, SPOOL_DEFERRED, inode) == 0);
	/* Without a reserve, to the last one. */
	accepted += accept_all(&sp, &plain, 100, &refused);
	CHECK(test, refused == -ENOSPC);
	CHECK(test, statvfs(base, &v) == 0 && v.f_favail == 0);
	whole = count_whole(&sp, &bad, &inode);
	CHECK(test, whole == accepted - 1 && bad == 0);
	CHECK(test, spool_remove(&sp, SPOOL_INCOMING, inode) == 0);
	CHECK(test, accept_all(&sp, &plain, 100, &refused) == 1);
	printf("disk: %s: %u messages, %ju inodes kept\n", test->name, whole,
	    (uintmax_t)careful.reserve.inodes);
	spool_close(&sp);
	return DISK_OK;
}

enum disk_result
full_d5(const struct disk_test *test)
{
	char where[PLACE_MAX], base[PLACE_MAX + 8];
	enum disk_result result;
	int r;

	place("inodes", where);
	r = mount_tmpfs(where, "nr_inodes=200,size=16m");
	if (r < 0)
		return disk_skip(test, "no tmpfs: %s", strerror(-r));
	snprintf(base, sizeof(base), "%s/base", where);
	result = d5_on(test, base);
	unmount(where);
	return result;
}

static enum disk_result
d9_on(const struct disk_test *test, const char *where, const char *base)
{
	const struct reason reason = { 0, 0, "4.0.0", "none", "a", "later", 1 };
	struct queue_file file;
	struct queue_id id, again;
	struct spool sp;
	int fd, lock;

	CHECK(test, queue_open(base, &sp) == 0);
	CHECK(test, queue_put(&sp, &plain, content, 100, &id) == 0);
	lock = spool_lock(&sp, "queue-send", false);
	CHECK(test, lock >= 0);
	CHECK(test, mount_readonly(where, true) == 0);
	CHECK(test, queue_put(&sp, &plain, content, 100, &again) == -EROFS);
	CHECK(test, queue_look(&sp, id.inode, &file) == 0);
	CHECK(test,
	    spool_open_file(&sp, SPOOL_INCOMING, id.inode, O_RDWR) == -EROFS);
	CHECK(test,
	    spool_move(&sp, SPOOL_INCOMING, SPOOL_ACTIVE, id.inode) == -EROFS);
	CHECK(test, spool_remove(&sp, SPOOL_INCOMING, id.inode) == -EROFS);
	CHECK(test, reason_add(&sp, SPOOL_DEFER, id.inode, &reason) == -EROFS);
	CHECK(test, spool_set_due(&sp, id.inode, 1) == -EROFS);
	spool_close(&sp);
	/* The queue can even be opened: a restart meanwhile changes nothing. */
	CHECK(test, spool_open(&sp, &spool_sys_real, base, 1) == 0);
	CHECK(test, sp.dir[SPOOL_INCOMING] >= 0);
	CHECK(test, spool_lock(&sp, "queue-send", false) == -EAGAIN);
	close(lock);
	CHECK(test, mount_readonly(where, false) == 0);
	CHECK(test, queue_put(&sp, &plain, content, 100, &again) == 0);
	fd = spool_open_file(&sp, SPOOL_INCOMING, id.inode, O_RDWR);
	CHECK(test, fd >= 0);
	CHECK(test, queue_file_mark(sp.sys, fd, file.rcpt_off, RCPT_DONE) == 0);
	close(fd);
	CHECK(
	    test, spool_move(&sp, SPOOL_INCOMING, SPOOL_ACTIVE, id.inode) == 0);
	spool_close(&sp);
	return DISK_OK;
}

enum disk_result
full_d9(const struct disk_test *test)
{
	char where[PLACE_MAX], base[PLACE_MAX + 8];
	enum disk_result result;
	struct image im;
	const char *why;

	place("readonly", where);
	snprintf(base, sizeof(base), "%s/base", where);
	why = image_open(&im, &disk_ext4, 8);
	if (why != NULL)
		result = disk_skip(test, "%s", why);
	else if (image_mount(&im, where) < 0)
		result = disk_skip(test, "cannot mount an ext4 file system");
	else
		result = d9_on(test, where, base);
	unmount(where);
	image_close(&im);
	return result;
}

/* A file system for one queue: filled when it is mounted for the first time,
 * never on what lies below it. */
static enum disk_result
d19_on(const struct disk_test *test, const char *base)
{
	struct queue_id id;
	struct queue_file file;
	struct spool sp;
	char queue[PLACE_MAX + 8];

	snprintf(queue, sizeof(queue), "%s/queue1", base);
	CHECK(test, mkdir(base, 0700) == 0 && mkdir(queue, 0700) == 0);
	CHECK(test, queue_open(base, &sp) == -ENOENT);
	CHECK(test, mount_tmpfs(queue, "size=16m") == 0);
	CHECK(test, queue_open(base, &sp) == 0);
	CHECK(test, queue_put(&sp, &plain, content, 100, &id) == 0);
	CHECK(test, queue_look(&sp, id.inode, &file) == 0);
	spool_close(&sp);
	CHECK(test, unmount(queue) == 0);
	CHECK(test, spool_open(&sp, &spool_sys_real, base, 1) == -ENOENT);
	CHECK(test, queue_open(base, &sp) == -ENOENT);
	CHECK(test, rmdir(queue) == 0);
	return DISK_OK;
}

enum disk_result
full_d19(const struct disk_test *test)
{
	char base[PLACE_MAX];

	place("unmounted", base);
	return d19_on(test, base);
}
