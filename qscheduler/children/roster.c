#include "qscheduler/children/children.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/page.h"
#include "ipc/shm.h"

#define ROSTER_MAGIC UINT64_C(0x314e444c494851) /* "QHILDN1" */
#define TRIES        3

_Static_assert(sizeof(struct roster_row) == 72, "docs/IPC.md");
_Static_assert(sizeof(struct roster) == 8 + 72 * 4096, "docs/IPC.md");

bool
roster_is_whole(int fd)
{
	struct stat st;
	uint64_t magic;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && st.st_nlink == 1 &&
	    (st.st_mode & 07777) == 0600 &&
	    st.st_size == sizeof(struct roster) &&
	    io_pread_all(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
	    magic == ROSTER_MAGIC;
}

static int
fill(int fd)
{
	const uint64_t magic = ROSTER_MAGIC;
	int r = shm_allocate(fd, sizeof(struct roster));

	if (r == 0 && pwrite(fd, &magic, sizeof(magic), 0) != sizeof(magic))
		r = -EIO;
	return r;
}

static int
make(const char *name, int *ret_fd)
{
	int r, fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return -errno;
	r = fill(fd);
	if (r == 0) {
		*ret_fd = fd;
		return 0;
	}
	io_close(&fd);
	(void)shm_unlink(name);
	return r;
}

static int
open_or_make(const char *name, int *ret_fd)
{
	int r, fd = shm_open(name, O_RDWR | O_NONBLOCK, 0);

	if (fd >= 0 && roster_is_whole(fd)) {
		*ret_fd = fd;
		return 0;
	}
	if (fd >= 0 || errno != ENOENT) {
		io_close(&fd);
		r = shm_remove(name);
		if (r < 0)
			return r;
	}
	return make(name, ret_fd);
}

int
roster_open(const char *name, int *ret_fd)
{
	int i, r = -EEXIST;

	for (i = 0; i < TRIES && r == -EEXIST; i++)
		r = open_or_make(name, ret_fd);
	return r;
}

int
roster_write(
    int fd, uint32_t queue, uint32_t generation, uint32_t place, pid_t pid)
{
	const int64_t ticks = page_start_ticks(pid);
	const off_t at = (off_t)(offsetof(struct roster, rows) +
	    queue * sizeof(struct roster_row));
	struct roster_row row;

	if (io_pread_all(fd, &row, sizeof(row), at) != sizeof(row) ||
	    row.generation != generation)
		row = (struct roster_row){ .generation = generation };
	row.records[place] = (struct roster_record){
		.pid = (uint32_t)pid,
		.start_ticks = ticks > 0 ? ticks : 0,
	};
	return pwrite(fd, &row, sizeof(row), at) == sizeof(row) ? 0 : -EIO;
}

int
roster_read(int fd, struct roster *ret_roster)
{
	int64_t n = io_pread_all(fd, ret_roster, sizeof(*ret_roster), 0);

	if (n < 0)
		return (int)n;
	return n == sizeof(*ret_roster) ? 0 : -EBADMSG;
}
