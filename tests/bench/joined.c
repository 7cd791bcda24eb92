#include "tests/bench/joined.h"

#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int
joined_plain(const int *fds, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (fsync(fds[i]) < 0)
			return -1;
	return 0;
}

/* One ring for each process, made at its first use. */
static struct {
	int fd;
	struct io_uring_params params;
	unsigned char *rings; /* of both, in one mapping */
	struct io_uring_sqe *entries;
} ring = { .fd = -1 };

static _Atomic uint32_t *
field(uint32_t offset)
{
	return (_Atomic uint32_t *)(void *)(ring.rings + offset);
}

static int
make_ring(void)
{
	const struct io_uring_params *p = &ring.params;
	size_t size;
	void *rings, *entries;

	ring.fd = (int)syscall(SYS_io_uring_setup, JOINED_MAX, &ring.params);
	if (ring.fd < 0 || (p->features & IORING_FEAT_SINGLE_MMAP) == 0)
		return -1;
	size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	if (size < p->sq_off.array + p->sq_entries * sizeof(uint32_t))
		size = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
	    IORING_OFF_SQ_RING);
	entries = mmap(NULL, p->sq_entries * sizeof(struct io_uring_sqe),
	    PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
	if (rings == MAP_FAILED || entries == MAP_FAILED)
		return -1;
	ring.rings = rings;
	ring.entries = entries;
	return 0;
}

static void
submit_syncs(const int *fds, unsigned n)
{
	const struct io_sqring_offsets *off = &ring.params.sq_off;
	uint32_t mask = atomic_load(field(off->ring_mask)),
		 tail = atomic_load(field(off->tail));
	unsigned i;

	for (i = 0; i < n; i++, tail++) {
		ring.entries[tail & mask] =
		    (struct io_uring_sqe){ .opcode = IORING_OP_FSYNC,
			    .fd = fds[i] };
		atomic_store(field(off->array +
				 (tail & mask) * (uint32_t)sizeof(uint32_t)),
		    tail & mask);
	}
	atomic_store(field(off->tail), tail);
}

/* -1: one of n failed. */
static int
take_ends(unsigned n)
{
	const struct io_cqring_offsets *off = &ring.params.cq_off;
	uint32_t mask = atomic_load(field(off->ring_mask)),
		 head = atomic_load(field(off->head));
	int r = 0;

	for (; n > 0; n--, head++) {
		struct io_uring_cqe end;

		memcpy(&end,
		    ring.rings + off->cqes +
			(head & mask) * sizeof(struct io_uring_cqe),
		    sizeof(end));
		if (end.res < 0)
			r = -1;
	}
	atomic_store(field(off->head), head);
	return r;
}

int
joined_ring(const int *fds, unsigned n)
{
	if (ring.fd < 0 && make_ring() < 0)
		return -1;
	submit_syncs(fds, n);
	if (syscall(SYS_io_uring_enter, ring.fd, n, n, IORING_ENTER_GETEVENTS,
		NULL, 0) != (long)n)
		return -1;
	return take_ends(n);
}
