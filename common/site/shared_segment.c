#include "site/shared_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/mapping.h"
#include "ipc/shm.h"

#define TRIES 3
#define LINE  64 /* bytes of a cache line: sets do not share one */
/* vm.memfd_noexec may refuse memory without this flag. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
/* Of a segment without a name: its size stays. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static size_t
whole_lines(size_t size)
{
	return (size + LINE - 1) / LINE * LINE;
}

int
shared_segment_layout(
    uint32_t slots, uint32_t members, struct shared_segment *ret)
{
	struct shared_segment seg = { 0 };

	if (slots == 0 || slots > SHARED_SLOTS_MAX || members == 0 ||
	    members > SHARED_MEMBERS_MAX)
		return -EINVAL;
	seg.sets = (slots + SHARED_SET_SLOTS - 1) / SHARED_SET_SLOTS;
	seg.members = members;
	seg.member_size = whole_lines(sizeof(struct shared_member) +
	    (seg.sets + 63) / 64 * sizeof(uint64_t));
	seg.slot_size = (offsetof(struct shared_slot, cells) +
			    (3 * members + 1) * sizeof(uint32_t) + 7) /
	    8 * 8;
	seg.set_size = whole_lines(
	    sizeof(struct shared_set) + SHARED_SET_SLOTS * seg.slot_size);
	seg.members_at = whole_lines(sizeof(struct shared_head));
	seg.sets_at = seg.members_at + members * seg.member_size;
	seg.size = seg.sets_at + seg.sets * seg.set_size;
	*ret = seg;
	return 0;
}

int
shared_segment_check(
    const struct shared_head *head, uint64_t size, struct shared_segment *ret)
{
	struct shared_segment seg;

	if (head->magic != SHARED_MAGIC || head->version != SHARED_VERSION ||
	    head->set_slots != SHARED_SET_SLOTS || head->size != size ||
	    head->sets > SHARED_SLOTS_MAX / SHARED_SET_SLOTS)
		return -EBADMSG;
	if (shared_segment_layout(
		head->sets * SHARED_SET_SLOTS, head->members, &seg) < 0 ||
	    seg.size != size || seg.slot_size != head->slot_size ||
	    seg.set_size != head->set_size)
		return -EBADMSG;
	seg.secret = head->secret;
	seg.number = head->number;
	seg.spool = head->spool;
	*ret = seg;
	return 0;
}

int
shared_segment_read_head(int fd, struct shared_segment *ret)
{
	struct shared_head head;
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
	return shared_segment_check(&head, (uint64_t)st.st_size, ret);
}

static int
map(int fd, struct shared_segment *seg)
{
	void *base = NULL;
	int r = mapping_map(fd, seg->size, &base);

	seg->base = base;
	return r;
}

int
shared_segment_map(int fd, struct shared_segment *ret)
{
	struct shared_segment seg;
	int r = shared_segment_read_head(fd, &seg);

	if (r == 0)
		r = map(fd, &seg);
	if (r == 0)
		*ret = seg;
	return r;
}

void
shared_segment_unmap(struct shared_segment *seg)
{
	mapping_unmap(seg->base, seg->size);
	*seg = (struct shared_segment){ 0 };
}

/* ---- the supervisor ---- */

/* The names in the table are as private as the mail in the spool. */
static mode_t
mode_of(const struct shared_owner *owner)
{
	return owner->gid == (gid_t)-1 ? 0600 : 0640;
}

bool
shared_lock_is_possible(const struct shared_segment *seg, uint32_t word)
{
	const uint32_t tid = word & FUTEX_TID_MASK;
	uint32_t i;

	for (i = 0; tid != 0 && i < seg->members; i++)
		if (__atomic_load_n(&shared_segment_member(seg, i)->tid,
			__ATOMIC_RELAXED) == tid)
			return true;
	return tid == 0;
}

static bool
slots_are_whole(const struct shared_segment *seg, struct shared_set *set)
{
	uint32_t index;

	for (index = 0; index < SHARED_SET_SLOTS; index++)
		if (set->hash[index] != 0 &&
		    !shared_slot_is_sealed(
			seg, shared_set_slot(seg, set, index)))
			return false;
	return true;
}

/* Seals are right, and every lock can be given back. */
static bool
sets_are_whole(const struct shared_segment *seg)
{
	uint32_t i;

	for (i = 0; i < seg->sets; i++) {
		struct shared_set *set = shared_segment_set(seg, i);

		if (!shared_set_is_sealed(seg, i) ||
		    !shared_lock_is_possible(seg, set->lock) ||
		    !slots_are_whole(seg, set))
			return false;
	}
	return true;
}

/* All sets are checked: places of a damaged one would not be counted. */
static bool
is_whole(int fd, const struct shared_segment *want)
{
	struct shared_segment seg;
	bool whole;

	if (shared_segment_map(fd, &seg) < 0)
		return false;
	whole = seg.size == want->size && seg.members == want->members &&
	    seg.spool == want->spool && sets_are_whole(&seg) &&
	    !mapping_is_lost(seg.base);
	shared_segment_unmap(&seg);
	return whole;
}

/* The segment that is there, if it is right: its descriptor, else 0. */
static int
adopt(const char *name, const struct shared_segment *want,
    const struct shared_owner *owner)
{
	uid_t uid = owner->uid == (uid_t)-1 ? geteuid() : owner->uid;
	struct stat st;
	int fd = shm_open(name, O_RDWR | O_NONBLOCK, 0);

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && st.st_uid == uid && st.st_nlink == 1 &&
	    (st.st_mode & 0777 & ~mode_of(owner)) == 0 && is_whole(fd, want) &&
	    posix_fallocate(fd, 0, st.st_size) == 0)
		return fd;
	close(fd);
	return 0;
}

static void
sets_init(const struct shared_segment *seg)
{
	uint32_t i;

	for (i = 0; i < seg->sets; i++)
		shared_segment_set(seg, i)->seal =
		    shared_segment_set(seg, i)->last_seal =
			shared_set_seal(seg, i);
}

static void
head_init(const struct shared_segment *seg)
{
	*shared_segment_head(seg) = (struct shared_head){
		.magic = SHARED_MAGIC,
		.version = SHARED_VERSION,
		.set_slots = SHARED_SET_SLOTS,
		.size = seg->size,
		.secret = seg->secret,
		.sets = seg->sets,
		.members = seg->members,
		.slot_size = (uint32_t)seg->slot_size,
		.set_size = (uint32_t)seg->set_size,
		.number = seg->number,
		.spool = seg->spool,
	};
}

/* The new segment is filled while its mode lets no other user open it. */
static int
fill(int fd, const struct shared_segment *seg)
{
	struct shared_segment mapped = *seg;
	int r = map(fd, &mapped);

	if (r < 0)
		return r;
	sets_init(&mapped);
	head_init(&mapped);
	shared_segment_unmap(&mapped);
	return 0;
}

static int
make(int fd, const struct shared_segment *seg, const struct shared_owner *owner)
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
open_new(const char *name, const struct shared_segment *want,
    const struct shared_owner *owner, bool *adopted)
{
	const bool may_adopt = *adopted;
	int i, fd, r;

	for (i = 0; i < TRIES; i++) {
		fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
		*adopted = false;
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
		fd = may_adopt ? adopt(name, want, owner) : 0;
		*adopted = true;
		if (fd > 0)
			return fd;
		r = shm_remove(name);
		if (r < 0)
			return r;
	}
	return -EEXIST;
}

/* Memory of no file system, so no user can fill what it is taken from. */
static int
open_unnamed(void)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("sites", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) /* a kernel before 6.3 */
		fd = memfd_create("sites", flags);
	return fd < 0 ? -errno : fd;
}

static int
create_unnamed(const struct shared_segment *seg,
    const struct shared_owner *owner, int *ret_fd)
{
	int r, fd = open_unnamed();

	if (fd < 0)
		return fd;
	r = make(fd, seg, owner);
	if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		r = -errno;
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

static int
create(const char *name, const struct shared_segment *seg,
    const struct shared_owner *owner, bool may_adopt, int *ret_fd)
{
	bool adopted = may_adopt;
	int r, fd;

	if (name == NULL)
		return create_unnamed(seg, owner, ret_fd);
	fd = open_new(name, seg, owner, &adopted);
	if (fd < 0)
		return fd;
	r = adopted ? 0 : make(fd, seg, owner);
	if (r < 0) {
		close(fd);
		shm_unlink(name);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

int
shared_create(const char *name, const struct shared_shape *shape,
    const struct shared_owner *owner, int *ret_fd)
{
	struct shared_segment seg;
	int r = shared_segment_layout(shape->slots, shape->members, &seg);

	if (r < 0)
		return r;
	arc4random_buf(&seg.secret, sizeof(seg.secret));
	seg.number = arc4random() / 2;
	seg.spool = shape->spool;
	return create(name, &seg, owner, true, ret_fd);
}

int
shared_create_alone(uint32_t slots, uint64_t secret, int *ret_fd)
{
	struct shared_segment seg;
	int fd, r = shared_segment_layout(slots, 1, &seg);

	if (r < 0)
		return r;
	seg.secret = secret;
	fd = open_unnamed();
	if (fd < 0)
		return fd;
	r = ftruncate(fd, (off_t)seg.size) < 0 ? -errno : fill(fd, &seg);
	if (r < 0)
		close(fd);
	else
		*ret_fd = fd;
	return r;
}

/* With the same secret a site has the same set, so all sites that were in use
 * find a slot again. */
int
shared_renew(const char *name, const struct shared_shape *shape,
    const struct shared_owner *owner, const struct shared_id *old, int *ret_fd)
{
	struct shared_segment seg;
	int r = shared_segment_layout(shape->slots, shape->members, &seg);

	if (r < 0)
		return r;
	seg.secret = old->secret;
	seg.number = old->number + 1;
	seg.spool = shape->spool;
	return create(name, &seg, owner, false, ret_fd);
}

/* ---- a segment that is there ---- */

/* A file of a tmpfs can be sealed against seals alone. */
static bool
is_named(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);

	return seals < 0 || (seals & F_SEAL_SHRINK) == 0;
}

int
shared_identify(int fd, struct shared_id *ret)
{
	struct shared_head head;
	int64_t n = io_pread_all(fd, &head, sizeof(head), 0);
	struct shared_segment seg;
	int r;

	if (n < 0)
		return (int)n;
	if (n != sizeof(head))
		return -EBADMSG;
	r = shared_segment_check(&head, head.size, &seg);
	if (r == 0)
		*ret = (struct shared_id){ seg.secret, seg.number,
			head.open == 1, is_named(fd) };
	return r;
}

int
shared_open_up(int fd)
{
	const uint32_t open = 1;
	ssize_t n =
	    pwrite(fd, &open, sizeof(open), offsetof(struct shared_head, open));

	return n < 0 ? -errno : n == sizeof(open) ? 0 : -EIO;
}

int
shared_check(int fd, const struct shared_id *id, const char **ret_why)
{
	struct shared_segment seg;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_why = "was taken away";
	if (id->named && st.st_nlink == 0)
		return -ENOENT;
	*ret_why = "was cut off or written over";
	if (shared_segment_read_head(fd, &seg) < 0 ||
	    seg.number != id->number || seg.secret != id->secret)
		return -EBADMSG;
	return 0;
}

static int
free_column(int fd, off_t at)
{
	const uint64_t none = 0;

	return pwrite(fd, &none, sizeof(none), at) == sizeof(none) ? 0 : -EIO;
}

int
shared_owners(int fd,
    bool (*visit)(void *ctx, uint32_t queue, uint32_t generation), void *ctx)
{
	struct shared_segment seg;
	uint64_t owner;
	uint32_t i;
	int r = shared_segment_read_head(fd, &seg);

	for (i = 0; r == 0 && i < seg.members; i++) {
		const off_t at = (off_t)(seg.members_at + i * seg.member_size);

		if (io_pread_all(fd, &owner, sizeof(owner), at) !=
		    sizeof(owner))
			return -EBADMSG;
		if (owner != 0 &&
		    !visit(ctx, (uint32_t)(owner >> 32) - 1, (uint32_t)owner))
			r = free_column(fd, at);
	}
	return r;
}
