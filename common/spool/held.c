#include "spool/held.h"

#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "spool/queue_file.h"

/* All of a file. */
static _Thread_local struct {
	const struct queue_file_bytes *bytes; /* NULL: none */
	int fd;
	size_t len;
} whole;

/* Parts of one file, which another thread has read. */
static _Thread_local struct {
	struct {
		const char *bytes;
		uint64_t off;
		size_t len;
	} part[QUEUE_FILE_PARTS];
	unsigned n;
	int fd;
} given;

int
queue_file_hold(int fd, struct queue_file_bytes *room)
{
	ssize_t n;

	whole.bytes = NULL;
	if (given.n > 0 && given.fd == fd)
		return 0;
	n = pread(fd, room->data, sizeof(room->data), 0);
	if (n < 0)
		return -errno;
	whole.fd = fd;
	whole.len = (size_t)n;
	whole.bytes = whole.len < sizeof(room->data) ? room : NULL;
	return 0;
}

void
queue_file_give(int fd, uint64_t off, const void *bytes, size_t len)
{
	ASSERT(given.n < QUEUE_FILE_PARTS && (given.n == 0 || given.fd == fd));
	given.fd = fd;
	given.part[given.n].bytes = bytes;
	given.part[given.n].off = off;
	given.part[given.n++].len = len;
}

void
queue_file_let_go(void)
{
	whole.bytes = NULL;
	given.n = 0;
}

bool
held_whole(int fd, uint64_t *ret_size)
{
	if (whole.bytes == NULL || whole.fd != fd)
		return false;
	*ret_size = whole.len;
	return true;
}

const char *
held_find(int fd, size_t len, uint64_t off)
{
	uint64_t size;
	unsigned i;

	if (held_whole(fd, &size))
		return off <= size && len <= size - off
		    ? whole.bytes->data + off
		    : NULL;
	for (i = 0; fd == given.fd && i < given.n; i++) {
		const uint64_t from = given.part[i].off;

		if (off >= from && off - from <= given.part[i].len &&
		    len <= given.part[i].len - (off - from))
			return given.part[i].bytes + (off - from);
	}
	return NULL;
}
