/* The writer's side of the pages. */
#include "ipc/page.h"
#include "ipc/mapping.h"
#include "ipc/page_layout.h"
#include "ipc/shm.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 3

static struct page_head *
head_of(void *page, uint64_t magic)
{
	return (void *)((char *)page + page_head_offset(magic));
}

size_t
page_head_offset(uint64_t magic)
{
	ASSERT(magic == SCHED_PAGE_MAGIC || magic == QUEUE_PAGE_MAGIC);
	return magic == SCHED_PAGE_MAGIC ? offsetof(struct sched_page, head)
					 : offsetof(struct queue_page, head);
}

/* ---- the writer ---- */

/* The 22nd field of /proc/PID/stat, 0 when it cannot be read. The second field
 * is the command in parentheses, and may hold blanks and parentheses itself, so
 * the count begins behind the last one. -1 for a process that is dead but not
 * yet reaped. */
static int64_t
start_ticks(const char *stat)
{
	const char *p = strrchr(stat, ')');
	int field;

	if (p == NULL || p[1] != ' ')
		return 0;
	p += 2; /* field 3, the state */
	if (*p == 'Z' || *p == 'X')
		return -1;
	for (field = 3; field < 22; field++) {
		p = strchr(p, ' ');
		if (p == NULL)
			return 0;
		p++;
	}
	return strtoll(p, NULL, 10);
}

int64_t
page_start_ticks(pid_t pid)
{
	char path[64], stat[2048];
	int64_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = io_read_all(fd, stat, sizeof(stat) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	stat[n] = '\0';
	return start_ticks(stat);
}

bool
page_writer_lives(const struct page_head *head)
{
	const pid_t pid = (pid_t)head->pid;
	int64_t ticks;

	if (pid <= 0 || (kill(pid, 0) < 0 && errno == ESRCH))
		return false;
	ticks = page_start_ticks(pid);
	if (ticks < 0)
		return false;
	return ticks == 0 || head->start_ticks == 0 ||
	    ticks == head->start_ticks;
}

/* ---- a segment that is there already ---- */

static int
judge_writer(int fd, uint64_t magic, uint32_t *ret_pid)
{
	struct page_head head;
	int64_t n;

	n = io_pread_all(
	    fd, &head, sizeof(head), (int64_t)page_head_offset(magic));
	if (n != sizeof(head) || head.magic != magic ||
	    head.pid == (uint32_t)getpid() || !page_writer_lives(&head))
		return 0;
	*ret_pid = head.pid;
	return -EBUSY;
}

/* 0: it may be removed. */
static int
judge(int fd, uint64_t magic, uid_t owner, uint32_t *ret_pid)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid == geteuid() || st.st_uid == owner)
		return judge_writer(fd, magic, ret_pid);
	return geteuid() == 0 ? 0 : -EPERM;
}

/* Any user can put an object into this directory: a link is not followed, a
 * pipe not waited for. */
static int
remove_stale(const char *name, uint64_t magic, uid_t owner, uint32_t *ret_pid)
{
	int fd, r;

	fd = shm_open(name, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return errno == EACCES || errno == ELOOP || errno == ENXIO
		    ? shm_remove(name)
		    : -errno;
	r = judge(fd, magic, owner, ret_pid);
	close(fd);
	return r < 0 ? r : shm_remove(name);
}

static int
open_new(const char *name, uint64_t magic, uid_t owner, uint32_t *ret_pid)
{
	int i, fd, r;

	for (i = 0; i < TRIES; i++) {
		fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
		r = remove_stale(name, magic, owner, ret_pid);
		if (r < 0)
			return r;
	}
	return -EEXIST;
}

static int
shape(int fd, size_t size, const struct page_owner *owner)
{
	if (fchown(fd, owner->uid, owner->gid) < 0 ||
	    fchmod(fd, owner->mode) < 0)
		return -errno;
	return shm_allocate(fd, size);
}

int
page_create(const char *name, size_t size, uint64_t magic,
    const struct page_owner *owner, void **ret_page, int *ret_fd,
    uint32_t *ret_pid)
{
	struct page_head *head;
	void *page = NULL;
	int r, fd = open_new(name, magic, owner->uid, ret_pid);

	if (fd < 0)
		return fd;
	r = shape(fd, size, owner);
	if (r == 0)
		r = mapping_map(fd, size, &page);
	if (r < 0) {
		close(fd);
		shm_unlink(name);
		return r;
	}
	head = head_of(page, magic);
	head->version = page_version(magic);
	head->size = (uint32_t)size;
	page_own(head);
	__atomic_store_n(&head->magic, magic, __ATOMIC_RELEASE);
	*ret_page = page;
	*ret_fd = fd;
	return 0;
}

static bool
is_head_of(const struct page_head *head, size_t size, uint64_t magic)
{
	return head->magic == magic && head->version == page_version(magic) &&
	    head->size == size;
}

int
page_map(int fd, size_t size, uint64_t magic, void **ret_page)
{
	struct stat st;
	void *page = NULL;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size != (off_t)size)
		return -EBADMSG;
	r = mapping_map(fd, size, &page);
	if (r < 0)
		return r;
	if (!is_head_of(head_of(page, magic), size, magic)) {
		page_unmap(&page, size);
		return -EBADMSG;
	}
	*ret_page = page;
	return 0;
}

void
page_unmap(void **page, size_t size)
{
	mapping_unmap(*page, size);
	*page = NULL;
}

int
page_check(int fd, size_t size, uint64_t magic, const char **ret_why)
{
	struct page_head head;
	struct stat st;
	int64_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_why = "was taken away";
	if (st.st_nlink == 0)
		return -ENOENT;
	*ret_why = "was cut off";
	if (st.st_size != (off_t)size)
		return -EBADMSG;
	n = io_pread_all(
	    fd, &head, sizeof(head), (int64_t)page_head_offset(magic));
	*ret_why = "was written over";
	return n == sizeof(head) && is_head_of(&head, size, magic) ? 0
								   : -EBADMSG;
}

void
page_mend(struct page_head *head, size_t size, uint64_t magic)
{
	head->magic = magic;
	head->version = page_version(magic);
	head->size = (uint32_t)size;
	page_own(head);
}

bool
page_is_own(
    const struct page_head *head, size_t size, uint64_t magic, pid_t self)
{
	return is_head_of(head, size, magic) && head->pid == (uint32_t)self;
}

/* ---- the sequence lock ---- */

void
page_write_begin(struct page_head *head)
{
	const uint32_t seq = __atomic_load_n(&head->seq, __ATOMIC_RELAXED);

	/* The number is odd already if the last writer died between begin and
	 * end; it stays odd. */
	__atomic_store_n(&head->seq, seq | 1, __ATOMIC_RELAXED);
	page_fence_release(); /* the odd number before anything that changes */
}

void
page_write_end(struct page_head *head, usec_t now_mono, usec_t now_wall)
{
	const uint32_t seq = __atomic_load_n(&head->seq, __ATOMIC_RELAXED);

	head->beat_mono = now_mono;
	head->beat_wall = now_wall;
	__atomic_store_n(&head->seq, (seq | 1) + 1, __ATOMIC_RELEASE);
}

void
page_own(struct page_head *head)
{
	const int64_t ticks = page_start_ticks(getpid());

	page_write_begin(head);
	head->pid = (uint32_t)getpid();
	head->start_ticks = ticks > 0 ? ticks : 0;
	page_write_end(head, head->beat_mono, head->beat_wall);
}
