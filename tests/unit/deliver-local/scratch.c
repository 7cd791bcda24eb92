#include "scratch.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

static char dir[256];

const char *
scratch(void)
{
	const char *tmp = getenv("TMPDIR");

	if (dir[0] != '\0')
		return dir;
	snprintf(dir, sizeof(dir), "%s/deliver-local-XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert(chmod(dir, 0755) == 0);
	return dir;
}

static int
remove_entry(const char *path, const struct stat *st UNUSED, int flag UNUSED,
    struct FTW *ftw UNUSED)
{
	return remove(path);
}

void
scratch_done(void)
{
	if (dir[0] != '\0')
		nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	dir[0] = '\0';
}

const char *
scratch_path(const char *format, ...)
{
	static char rooms[8][1024];
	static size_t next;
	char *room = rooms[next++ % ARRAY_LEN(rooms)];
	size_t used =
	    (size_t)snprintf(room, sizeof(rooms[0]), "%s/", scratch());
	va_list ap;

	va_start(ap, format);
	vsnprintf(room + used, sizeof(rooms[0]) - used, format, ap);
	va_end(ap);
	return room;
}

const char *
scratch_file(const char *name, const void *data, size_t len)
{
	const char *path = scratch_path("%s", name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert(fd >= 0 && io_write_all(fd, data, len) == 0);
	close(fd);
	return path;
}

int
scratch_read(const char *path, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char chunk[65536];
	int64_t n = 1;

	buf_reset(out);
	if (fd < 0)
		return -errno;
	while (n > 0) {
		n = io_read_all(fd, chunk, sizeof(chunk));
		if (n > 0)
			buf_add(out, chunk, (size_t)n);
	}
	close(fd);
	return (int)n;
}

int
scratch_count(const char *path, char *last)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	int count = 0;

	if (d == NULL)
		return -errno;
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		count++;
		if (last != NULL)
			snprintf(last, 256, "%s", e->d_name);
	}
	closedir(d);
	return count;
}

#define BEFORE "QSMAIL\r\n\1\0\0\0\0\0\0\0"
#define AFTER  "Sx\3\0s@x"

void
scratch_message(struct message *m, const char *sender, const char *recipient,
    const void *content, size_t len)
{
	char name[] = "/tmp/deliver-local-message-XXXXXX";
	int fd = mkstemp(name);

	cr_assert(fd >= 0);
	cr_assert(io_write_all(fd, BEFORE, 16) == 0);
	cr_assert(io_write_all(fd, content, len) == 0);
	cr_assert(io_write_all(fd, AFTER, 7) == 0);
	*m = (struct message){ .fd = open(name, O_RDONLY | O_CLOEXEC),
		.off = 16,
		.len = len,
		.sender = sender,
		.recipient = recipient };
	cr_assert(m->fd >= 0);
	unlink(name);
	close(fd);
}

void
scratch_message_done(struct message *m)
{
	message_done(m);
	io_close(&m->fd);
}

void
scratch_whole(
    const struct message *m, const void *content, size_t len, struct buf *out)
{
	buf_reset(out);
	buf_printf(out, "Return-Path: <%s>\nDelivered-To: %s\n", m->sender,
	    m->recipient);
	buf_add(out, content, len);
}
