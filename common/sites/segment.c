#include "sites/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/shm.h"

#define TRIES 3
#define LINE  64 /* of a cache: sets do not share one */

static size_t
whole_lines(size_t size)
{
	return (size + LINE - 1) / LINE * LINE;
}

int
segment_layout(uint32_t slots, uint32_t columns, struct segment *ret)
{
	struct segment seg = { 0 };

	if (slots == 0 || slots > SLOTS_MAX || columns == 0 ||
	    columns > COLUMNS_MAX)
		return -EINVAL;
	seg.sets = (slots + SHARED_WAYS - 1) / SHARED_WAYS;
	seg.columns = columns;
	seg.column_size = whole_lines(
	    sizeof(struct column) + (seg.sets + 63) / 64 * sizeof(uint64_t));
	seg.slot_size = (offsetof(struct slot, cells) +
			    3 * sizeof(uint32_t) * columns + 7) /
	    8 * 8;
	seg.set_size =
	    whole_lines(sizeof(struct set) + SHARED_WAYS * seg.slot_size);
	seg.columns_at = whole_lines(sizeof(struct segment_head));
	seg.sets_at = seg.columns_at + columns * seg.column_size;
	seg.size = seg.sets_at + seg.sets * seg.set_size;
	*ret = seg;
	return 0;
}

int
segment_check(
    const struct segment_head *head, uint64_t size, struct segment *ret)
{
	struct segment seg;

	if (head->magic != SEGMENT_MAGIC || head->version != SEGMENT_VERSION ||
	    head->ways != SHARED_WAYS || head->size != size ||
	    head->sets > SLOTS_MAX / SHARED_WAYS)
		return -EBADMSG;
	if (segment_layout(head->sets * SHARED_WAYS, head->columns, &seg) < 0 ||
	    seg.size != size || seg.slot_size != head->slot_size ||
	    seg.set_size != head->set_size)
		return -EBADMSG;
	seg.secret = head->secret;
	*ret = seg;
	return 0;
}

int
segment_read_head(int fd, struct segment *ret)
{
	struct segment_head head;
	struct stat st;
	int64_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	n = io_pread_all(fd, &head, sizeof(head), 0);
	if (n < 0)
		return (int)n;
	if (n != sizeof(head))
		return -EBADMSG;
	return segment_check(&head, (uint64_t)st.st_size, ret);
}

static int
map(int fd, struct segment *seg)
{
	void *base =
	    mmap(NULL, seg->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	seg->base = base;
	return 0;
}

int
segment_map(int fd, struct segment *ret)
{
	struct segment seg;
	int r = segment_read_head(fd, &seg);

	if (r == 0)
		r = map(fd, &seg);
	if (r == 0)
		*ret = seg;
	return r;
}

void
segment_unmap(struct segment *seg)
{
	if (seg->base != NULL)
		munmap(seg->base, seg->size);
	*seg = (struct segment){ 0 };
}

/* ---- the supervisor ---- */

/* The names in it are as private as the mail in the spool. */
static mode_t
mode_of(const struct shared_owner *owner)
{
	return owner->gid == (gid_t)-1 ? 0600 : 0640;
}

/* One that is there and right. 0: none; the descriptor otherwise. */
static int
adopt(const char *name, const struct segment *want,
    const struct shared_owner *owner)
{
	uid_t uid = owner->uid == (uid_t)-1 ? geteuid() : owner->uid;
	struct segment seg;
	struct stat st;
	int fd = shm_open(name, O_RDWR | O_NONBLOCK, 0);

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && st.st_uid == uid && st.st_nlink == 1 &&
	    (st.st_mode & 0777 & ~mode_of(owner)) == 0 &&
	    segment_read_head(fd, &seg) == 0 && seg.size == want->size &&
	    seg.columns == want->columns &&
	    posix_fallocate(fd, 0, st.st_size) == 0)
		return fd;
	close(fd);
	return 0;
}

static int
locks_init(const struct segment *seg)
{
	uint32_t i;
	int r = 0;

	for (i = 0; r == 0 && i < seg->sets; i++)
		r = lock_init(&segment_set(seg, i)->lock);
	return r;
}

static void
head_init(const struct segment *seg)
{
	struct segment_head *head = (void *)seg->base;

	*head = (struct segment_head){
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.ways = SHARED_WAYS,
		.size = seg->size,
		.sets = seg->sets,
		.columns = seg->columns,
		.slot_size = (uint32_t)seg->slot_size,
		.set_size = (uint32_t)seg->set_size,
	};
	arc4random_buf(&head->secret, sizeof(head->secret));
}

/* It is mapped while nobody else can open it. */
static int
fill(int fd, struct segment *seg)
{
	int r = map(fd, seg);

	if (r < 0)
		return r;
	r = locks_init(seg);
	if (r == 0)
		head_init(seg);
	munmap(seg->base, seg->size);
	seg->base = NULL;
	return r;
}

static int
make(int fd, struct segment *seg, const struct shared_owner *owner)
{
	int r = shm_allocate(fd, seg->size);

	if (r == 0)
		r = fill(fd, seg);
	if (r == 0 &&
	    (fchown(fd, owner->uid, owner->gid) < 0 ||
		fchmod(fd, mode_of(owner)) < 0))
		r = -errno;
	return r;
}

static int
open_new(const char *name, const struct segment *want,
    const struct shared_owner *owner, bool *ret_adopted)
{
	int i, fd, r;

	for (i = 0; i < TRIES; i++) {
		fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
		*ret_adopted = false;
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
		fd = adopt(name, want, owner);
		*ret_adopted = true;
		if (fd > 0)
			return fd;
		r = shm_remove(name);
		if (r < 0)
			return r;
	}
	return -EEXIST;
}

int
shared_create(const char *name, const struct shared_shape *shape,
    const struct shared_owner *owner, int *ret_fd)
{
	struct segment seg;
	bool adopted;
	int fd, r = segment_layout(shape->slots, shape->columns, &seg);

	if (r < 0)
		return r;
	fd = open_new(name, &seg, owner, &adopted);
	if (fd < 0)
		return fd;
	r = adopted ? 0 : make(fd, &seg, owner);
	if (r < 0) {
		close(fd);
		shm_unlink(name);
		return r;
	}
	*ret_fd = fd;
	return 0;
}
