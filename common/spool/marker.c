#include "spool/marker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "base/num.h"
#include "spool/format.h"
#include "spool/spool.h"

#define VERSION_DIGITS 9
#define MARKER_KIND    "qscheduler queue "
#define MARKER_VERSION "1"
#define MARKER_PREFIX  MARKER_KIND MARKER_VERSION " split "

static int
refuse_version(const char *version, int len)
{
	static _Thread_local char text[256];

	snprintf(text, sizeof(text),
	    "layout version %.*s, this program reads version " MARKER_VERSION
	    "; nothing was changed: deliver its mail with the qscheduler that "
	    "made it, then remove the directory and its line in "
	    "QUEUE_BASE/queues",
	    len, version);
	format_refused(text);
	return -EMEDIUMTYPE;
}

/* Of another version the number alone is understood. */
static int
judge_version(const char *line)
{
	const size_t kind = sizeof(MARKER_KIND) - 1;
	const char *version = line + kind;
	size_t len;

	if (strncmp(line, MARKER_KIND, kind) != 0)
		return format_damaged("marker is not one of a queue");
	len = strspn(version, "0123456789");
	if (len == 0 || len > VERSION_DIGITS ||
	    (version[len] != ' ' && version[len] != '\n'))
		return format_damaged("marker has no version");
	if (len == 1 && version[0] == MARKER_VERSION[0])
		return 0;
	return refuse_version(version, (int)len);
}

static int
read_marker(int fd, uint32_t *ret_split)
{
	const size_t prefix = sizeof(MARKER_PREFIX) - 1;
	char line[64];
	struct stat st;
	int64_t len;
	uint64_t split;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return format_damaged("marker is not a regular file");
	len = io_read_all(fd, line, sizeof(line) - 1);
	if (len < 0)
		return (int)len;
	line[len] = '\0';
	r = judge_version(line);
	if (r < 0)
		return r;
	/* A line that fills the buffer is too long for a marker. */
	if (len == 0 || len == sizeof(line) - 1 || line[len - 1] != '\n' ||
	    strlen(line) != (size_t)len ||
	    strncmp(line, MARKER_PREFIX, prefix) != 0)
		return format_damaged("marker is not a line of version 1");
	line[len - 1] = '\0';
	if (num_u64(line + prefix, 1, SPOOL_SPLIT_MAX, &split) < 0)
		return format_damaged("marker: split out of range");
	*ret_split = (uint32_t)split;
	return 0;
}

int
marker_read(int dir, uint32_t *ret_split)
{
	int fd = openat(
	    dir, MARKER_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = read_marker(fd, ret_split);
	io_close(&fd);
	return r;
}

/* Readable for all: submitters need the split, and may not list. */
int
marker_write(int dir, uint32_t split)
{
	struct buf line = { 0 };
	int r = buf_printf(&line, MARKER_PREFIX "%" PRIu32 "\n", split);

	if (r == 0)
		r = file_replace(dir, MARKER_NAME, 0644, &line);
	buf_done(&line);
	return r;
}
