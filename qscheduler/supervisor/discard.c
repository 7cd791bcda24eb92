/* File systems of queues that are mounted with `discard`: the kernel tells the
 * device of each message that is removed, and the removal waits. The table of
 * mounts is read, and no disk. */
#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "spool/spool.h"

#define MOUNTS_MAX ((size_t)1 << 20)

/* "\040" is a blank, in the table of mounts. */
static void
unescape(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++) {
		if (s[0] == '\\' && strspn(s + 1, "01234567") >= 3) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
			    (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static bool
has_option(char *options, const char *want)
{
	char *option;

	while ((option = strsep(&options, ",")) != NULL)
		if (strcmp(option, want) == 0)
			return true;
	return false;
}

/* Does the path lie on this mount point? */
static bool
is_below(const char *path, const char *point)
{
	const size_t len = strlen(point);

	return strcmp(point, "/") == 0 ||
	    (strncmp(path, point, len) == 0 &&
		(path[len] == '/' || path[len] == '\0'));
}

/* Fields of a line of mountinfo: point, and options of the file system behind
 * " - ". NULL: not such a line. */
static char *
take_fields(char *line, char **ret_options)
{
	char *rest = strstr(line, " - "), *point = NULL;
	int i;

	if (rest == NULL)
		return NULL;
	*rest = '\0';
	rest += 3;
	for (i = 0; i < 5 && line != NULL; i++)
		point = strsep(&line, " ");
	for (i = 0; i < 2 && rest != NULL; i++)
		(void)strsep(&rest, " ");
	if (point == NULL || rest == NULL)
		return NULL;
	unescape(point);
	*ret_options = rest;
	return point;
}

bool
discard_is_on(const char *mountinfo, const char *path)
{
	char *copy = strdup(mountinfo), *rest = copy, *line, *point, *options;
	size_t longest = 0;
	bool on = false;

	while ((line = strsep(&rest, "\n")) != NULL) {
		point = take_fields(line, &options);
		/* A later mount covers an earlier one at the same place. */
		if (point == NULL || !is_below(path, point) ||
		    strlen(point) < longest)
			continue;
		longest = strlen(point);
		on = has_option(options, "discard");
	}
	free(copy);
	return on;
}

static int
warn_queue(const char *mountinfo, const char *base, uint32_t queue,
    struct buf *out, bool *ret_said)
{
	struct buf path = { 0 };
	int r = buf_printf(&path, "%s/queue%" PRIu32, base, queue);

	if (r == 0 && discard_is_on(mountinfo, path.data)) {
		*ret_said = true;
		r = buf_printf(out,
		    "%s: its file system is mounted with discard: each removal "
		    "of a message waits for the device; mount it without, and "
		    "let fstrim run by a timer\n",
		    path.data);
	}
	buf_done(&path);
	return r;
}

/* Most queues lie on one file system: the first is named. */
int
discard_warnings(const struct conf *conf, struct buf *out)
{
	uint32_t queues[QUEUE_NUM_MAX];
	struct buf mounts = { 0 };
	const int count =
	    spool_list(conf->queue_base, queues, ARRAY_LEN(queues));
	bool said = false;
	int64_t n = 0;
	int i, fd, r = 0;

	if (count <= 0)
		return 0;
	fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && buf_reserve(&mounts, MOUNTS_MAX) == 0)
		n = io_read_all(fd, mounts.data, MOUNTS_MAX);
	io_close(&fd);
	if (n > 0)
		mounts.data[n] = '\0';
	for (i = 0; n > 0 && r == 0 && !said && i < count; i++)
		r = warn_queue(
		    mounts.data, conf->queue_base, queues[i], out, &said);
	buf_done(&mounts);
	return r;
}
