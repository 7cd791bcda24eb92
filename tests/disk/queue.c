#include "disk.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"

int
queue_open(const char *base, struct spool *sp)
{
	const struct spool_owner owner = {
		.qmailq = geteuid(),
		.qmails = geteuid(),
		.qmail = getegid(),
		.private = true,
	};
	int r = spool_create(base, 1, 5, &owner);

	return r < 0 ? r : spool_open(sp, &spool_sys_real, base, 1);
}

int
queue_put(const struct spool *sp, const struct accept_options *opt,
    const void *content, size_t len, struct queue_id *ret_id)
{
	struct accept a;
	int r = accept_begin(&a, sp, opt, clock_wall(), 0);

	if (r == 0)
		r = queue_file_add_content(&a.writer, content, len);
	if (r == 0)
		r = queue_file_add_sender(&a.writer, "a@example.com", 13);
	if (r == 0)
		r = queue_file_add_rcpt(&a.writer, "b@example.org", 13);
	if (r == 0)
		r = accept_commit(&a, ret_id);
	accept_end(&a);
	return r;
}

int
queue_look(const struct spool *sp, uint64_t inode, struct queue_file *ret_file)
{
	int r, fd = spool_open_file(sp, SPOOL_INCOMING, inode, O_RDONLY);

	if (fd < 0)
		return fd;
	r = queue_file_read(fd, ret_file);
	if (r == 0)
		r = queue_file_verify(fd, ret_file);
	close(fd);
	return r;
}
