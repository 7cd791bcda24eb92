/* The disk's own process: requests of the kernel in, answers out. */
#include "block.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/io.h"

#define BLOCK     4096
#define WRITE_MAX (128 * 1024)
#define DISK_NODE 2

/* Blocks that were written and not flushed, in order. */
struct unflushed {
	struct unflushed *next;
	uint64_t off;
	uint32_t len;
	char data[];
};

struct disk {
	struct block_control *control;
	int image; /* the blocks that the disk is sure to have */
	char *now; /* the blocks that it claims to have */
	uint64_t size;
	struct unflushed *first, **last;
	uint64_t random;
	int fuse;
};

/* ---- writes, flushes, the cut ---- */

static bool
coin(struct disk *d, uint64_t of_eight)
{
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	d->random ^= d->random << 17;
	return d->random % 8 < of_eight;
}

/* Block by block: a part of a write is as likely as all of it. */
static void
settle(struct disk *d, uint64_t of_eight)
{
	struct unflushed *w;
	uint32_t at, n;

	while ((w = d->first) != NULL) {
		for (at = 0; at < w->len; at += n) {
			n = BLOCK - (uint32_t)((w->off + at) % BLOCK);
			n = n < w->len - at ? n : w->len - at;
			if (of_eight < 8 && !coin(d, of_eight)) {
				atomic_fetch_add(&d->control->dropped, 1);
				continue;
			}
			if (of_eight < 8)
				atomic_fetch_add(&d->control->kept, 1);
			if (pwrite(d->image, w->data + at, n,
				(off_t)(w->off + at)) != (ssize_t)n)
				abort();
		}
		d->first = w->next;
		free(w);
	}
	d->last = &d->first;
}

static bool
power_is_off(struct disk *d)
{
	struct block_control *c = d->control;
	uint64_t at = atomic_load(&c->cut_at);

	if (atomic_load(&c->is_cut) != 0)
		return true;
	if (at == 0 || atomic_load(&c->writes) < at)
		return false;
	d->random = atomic_load(&c->seed) * 2654435761u + 88172645463325252u;
	/* Often nothing of it, often most of it, and all between. */
	settle(d, d->random % 8);
	atomic_store(&c->is_cut, 1);
	return true;
}

static int
on_write(struct disk *d, const struct fuse_write_in *in, const char *data)
{
	struct unflushed *w;

	if (power_is_off(d))
		return -EIO;
	if (in->offset > d->size || in->size > d->size - in->offset)
		return -ENOSPC;
	w = malloc(sizeof(*w) + in->size);
	if (w == NULL)
		return -ENOMEM;
	*w = (struct unflushed){ .off = in->offset, .len = in->size };
	memcpy(w->data, data, in->size);
	*d->last = w;
	d->last = &w->next;
	memcpy(d->now + in->offset, data, in->size);
	atomic_fetch_add(&d->control->writes, 1);
	return 0;
}

static int
on_flush(struct disk *d)
{
	if (power_is_off(d))
		return -EIO;
	atomic_fetch_add(&d->control->flushes, 1);
	settle(d, 8);
	return 0;
}

/* ---- the protocol ---- */

static void
answer(struct disk *d, uint64_t unique, int error, const void *body, size_t len)
{
	static char out[sizeof(struct fuse_out_header) + WRITE_MAX];
	struct fuse_out_header head = {
		.len = (uint32_t)(sizeof(head) + (error == 0 ? len : 0)),
		.error = error,
		.unique = unique,
	};

	memcpy(out, &head, sizeof(head));
	if (error == 0 && len > 0)
		memcpy(out + sizeof(head), body, len);
	(void)!write(d->fuse, out, head.len);
}

static struct fuse_attr
attr_of(const struct disk *d, uint64_t node)
{
	bool is_disk = node == DISK_NODE;

	return (struct fuse_attr){
		.ino = node,
		.size = is_disk ? d->size : 0,
		.blocks = is_disk ? d->size / 512 : 0,
		.mode = is_disk ? S_IFREG | 0600u : S_IFDIR | 0700u,
		.nlink = 1,
		.blksize = BLOCK,
	};
}

static void
do_init(struct disk *d, const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_init_in *want = arg;
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION < want->minor
		    ? FUSE_KERNEL_MINOR_VERSION
		    : want->minor,
		.max_readahead = 0,
		.flags = FUSE_BIG_WRITES | FUSE_MAX_PAGES,
		.max_background = 64,
		.congestion_threshold = 48,
		.max_write = WRITE_MAX,
		.max_pages = WRITE_MAX / BLOCK,
	};

	answer(d, in->unique, 0, &out, sizeof(out));
}

static void
do_lookup(struct disk *d, const struct fuse_in_header *in, const void *arg)
{
	struct fuse_entry_out out = {
		.nodeid = DISK_NODE,
		.entry_valid = 3600,
		.attr_valid = 3600,
		.attr = attr_of(d, DISK_NODE),
	};

	answer(d, in->unique, strcmp(arg, "disk") == 0 ? 0 : -ENOENT, &out,
	    sizeof(out));
}

static void
do_getattr(
    struct disk *d, const struct fuse_in_header *in, const void *arg UNUSED)
{
	struct fuse_attr_out out = {
		.attr_valid = 3600,
		.attr = attr_of(d, in->nodeid),
	};

	answer(d, in->unique, 0, &out, sizeof(out));
}

static void
do_open(struct disk *d, const struct fuse_in_header *in, const void *arg UNUSED)
{
	struct fuse_open_out out = { .open_flags = FOPEN_KEEP_CACHE };

	answer(d, in->unique, 0, &out, sizeof(out));
}

static void
do_read(struct disk *d, const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_read_in *want = arg;
	uint64_t len = want->size;

	if (power_is_off(d) || want->offset > d->size || len > WRITE_MAX) {
		answer(d, in->unique, -EIO, NULL, 0);
		return;
	}
	len = len < d->size - want->offset ? len : d->size - want->offset;
	answer(d, in->unique, 0, d->now + want->offset, len);
}

static void
do_write(struct disk *d, const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_write_in *what = arg;
	struct fuse_write_out out = { .size = what->size };
	int r = on_write(d, what, (const char *)(what + 1));

	answer(d, in->unique, r, &out, sizeof(out));
}

static void
do_fsync(
    struct disk *d, const struct fuse_in_header *in, const void *arg UNUSED)
{
	answer(d, in->unique, on_flush(d), NULL, 0);
}

static void
do_nothing(
    struct disk *d, const struct fuse_in_header *in, const void *arg UNUSED)
{
	answer(d, in->unique, 0, NULL, 0);
}

static void
do_silence(struct disk *d UNUSED, const struct fuse_in_header *in UNUSED,
    const void *arg UNUSED)
{
}

typedef void
handler(struct disk *d, const struct fuse_in_header *in, const void *arg);

static handler *const handlers[] = {
	[FUSE_LOOKUP] = do_lookup,
	[FUSE_FORGET] = do_silence,
	[FUSE_GETATTR] = do_getattr,
	[FUSE_SETATTR] = do_getattr,
	[FUSE_OPEN] = do_open,
	[FUSE_READ] = do_read,
	[FUSE_WRITE] = do_write,
	[FUSE_RELEASE] = do_nothing,
	[FUSE_FSYNC] = do_fsync,
	[FUSE_FLUSH] = do_nothing,
	[FUSE_INIT] = do_init,
	[FUSE_INTERRUPT] = do_silence,
	[FUSE_DESTROY] = do_nothing,
	[FUSE_BATCH_FORGET] = do_silence,
};

static void
serve(struct disk *d)
{
	static _Alignas(8) char request[WRITE_MAX + 8192];
	const struct fuse_in_header *in = (const void *)request;
	ssize_t n;

	for (;;) {
		n = read(d->fuse, request, sizeof(request));
		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < (ssize_t)sizeof(*in)) /* unmounted */
			return;
		if (in->opcode >= ARRAY_LEN(handlers) ||
		    handlers[in->opcode] == NULL)
			answer(d, in->unique, -ENOSYS, NULL, 0);
		else
			handlers[in->opcode](d, in, in + 1);
	}
}

static int
read_image(struct disk *d)
{
	off_t at = 0, end;

	while ((at = lseek(d->image, at, SEEK_DATA)) >= 0) {
		end = lseek(d->image, at, SEEK_HOLE);
		if (end < 0 ||
		    io_pread_all(
			d->image, d->now + at, (size_t)(end - at), at) < 0)
			return -EIO;
		at = end;
	}
	return errno == ENXIO ? 0 : -errno;
}

int
block_serve(struct block_control *c, const char *image, int fuse_fd)
{
	struct disk d = { .control = c, .fuse = fuse_fd };
	struct stat st;

	d.last = &d.first;
	d.image = open(image, O_RDWR | O_CLOEXEC);
	if (d.image < 0 || fstat(d.image, &st) < 0)
		return -errno;
	d.size = (uint64_t)st.st_size;
	d.now = mmap(NULL, d.size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (d.now == MAP_FAILED || read_image(&d) < 0)
		return -EIO;
	serve(&d);
	/* Unmounted in peace: nothing is lost. */
	if (atomic_load(&c->is_cut) == 0)
		settle(&d, 8);
	return 0;
}
