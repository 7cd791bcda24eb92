/* QUEUE_BASE/queues: the numbers of all queues that were ever made. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "base/line.h"
#include "base/num.h"
#include "qscheduler/queues/base.h"

#define LIST_LOCK "queues.lock"
#define LIST_MAX  65536 /* bytes; all numbers fit in 20478 */

static int
parse_list(struct buf *text, bool listed[QUEUE_NUM_MAX + 1], uint32_t *ret_line)
{
	struct line_cursor c;
	const char *why;
	uint64_t queue;
	char *line;
	int r;

	line_begin(&c, text, 80);
	while ((r = line_next(&c, &line, &why)) > 0) {
		line_uncomment(line);
		line = line_trim(line);
		if (line[0] == '\0')
			continue;
		r = num_u64(line, 1, QUEUE_NUM_MAX, &queue);
		if (r < 0)
			break;
		listed[queue] = true;
	}
	*ret_line = c.number;
	return r < 0 ? -EBADMSG : 0;
}

static int
read_list(int dir, struct buf *ret_text)
{
	int fd = openat(
	    dir, BASE_LIST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int64_t n;
	int r;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = buf_reserve(ret_text, LIST_MAX);
	if (r == 0) {
		n = io_read_all(fd, ret_text->data, LIST_MAX);
		r = n < 0 ? (int)n : n == LIST_MAX ? -EFBIG : 0;
		if (r == 0) {
			ret_text->len = (size_t)n;
			ret_text->data[n] = '\0';
		}
	}
	io_close(&fd);
	return r;
}

int
base_read_list(struct base *b, struct buf *ret_error)
{
	bool listed[QUEUE_NUM_MAX + 1] = { false };
	struct buf text = { 0 };
	uint32_t line = 0;
	int r = read_list(b->fd, &text);

	if (r == 0 && text.len > 0)
		r = parse_list(&text, listed, &line);
	buf_done(&text);
	if (r == -EBADMSG)
		(void)buf_printf(ret_error,
		    "%s/" BASE_LIST ":%" PRIu32 ": not a queue number", b->path,
		    line);
	else if (r < 0)
		(void)buf_printf(
		    ret_error, "%s/" BASE_LIST ": %s", b->path, strerror(-r));
	else
		memcpy(b->listed, listed, sizeof(listed));
	return r;
}

static int
print_list(const bool listed[QUEUE_NUM_MAX + 1], struct buf *out)
{
	uint32_t queue;
	int r = buf_add_str(out,
	    "# queues ever made here; remove a line to have it made anew\n");

	for (queue = 1; r == 0 && queue <= QUEUE_NUM_MAX; queue++)
		if (listed[queue])
			r = buf_printf(out, "%" PRIu32 "\n", queue);
	return r;
}

static int
write_list(struct base *b, struct buf *ret_error)
{
	struct buf text = { 0 };
	int r = print_list(b->listed, &text);

	if (r == 0)
		r = file_replace(b->fd, BASE_LIST, 0644, &text);
	buf_done(&text);
	if (r < 0)
		(void)buf_printf(
		    ret_error, "%s/" BASE_LIST ": %s", b->path, strerror(-r));
	return r;
}

/* A lock of the list alone, until the descriptor is closed. The file
 * is one that no other user can open: a user who can open the list, or the
 * directory, could hold a lock of that for ever. */
static int
lock_list(const struct base *b, struct buf *ret_error)
{
	int fd = openat(b->fd, LIST_LOCK,
		O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600),
	    r;

	if (fd >= 0 && flock(fd, LOCK_EX) == 0)
		return fd;
	r = -errno;
	io_close(&fd);
	(void)buf_printf(ret_error, "%s: %s", b->path, strerror(-r));
	return r;
}

int
base_list_add(struct base *b, uint32_t queue, struct buf *ret_error)
{
	int lock = lock_list(b, ret_error), r;

	if (lock < 0)
		return lock;
	r = base_read_list(b, ret_error);
	if (r == 0 && !b->listed[queue]) {
		b->listed[queue] = true;
		r = write_list(b, ret_error);
		b->listed[queue] = r == 0;
	}
	io_close(&lock);
	return r;
}
