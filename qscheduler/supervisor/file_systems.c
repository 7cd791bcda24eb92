/* File systems of queues that cost time or mail: mounted with `discard`, the
 * kernel tells the device of each message that is removed, and the removal
 * waits; in memory, nothing survives a loss of power; without a journal, not
 * all does. The table of mounts and sysfs are read, and no disk of a queue. */
#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

struct mount {
	char *device, *point, *type, *options; /* of the file system */
};

/* Fields of a line of mountinfo; behind " - " are those of the file system.
 * False: not such a line. */
static bool
take_fields(char *line, struct mount *ret_mount)
{
	char *rest = strstr(line, " - "), *fields[5] = { NULL };
	size_t i;

	if (rest == NULL)
		return false;
	*rest = '\0';
	rest += 3;
	for (i = 0; i < ARRAY_LEN(fields) && line != NULL; i++)
		fields[i] = strsep(&line, " ");
	ret_mount->device = fields[2];
	ret_mount->point = fields[4];
	ret_mount->type = strsep(&rest, " ");
	(void)strsep(&rest, " ");
	ret_mount->options = rest;
	if (fields[4] == NULL || rest == NULL)
		return false;
	unescape(ret_mount->point);
	return true;
}

static unsigned
troubles_of(const struct mount *mount)
{
	const bool memory = strcmp(mount->type, "tmpfs") == 0 ||
	    strcmp(mount->type, "ramfs") == 0;

	return (has_option(mount->options, "discard") ? FILE_SYSTEM_DISCARD
						      : 0) |
	    (memory ? FILE_SYSTEM_MEMORY : 0) |
	    (strcmp(mount->type, "ext2") == 0 ? FILE_SYSTEM_NO_JOURNAL : 0);
}

void
file_system_find(
    const char *mountinfo, const char *path, struct file_system *ret_found)
{
	char *copy = strdup(mountinfo), *rest = copy, *line;
	struct mount mount;
	size_t longest = 0;

	*ret_found = (struct file_system){ 0 };
	while ((line = strsep(&rest, "\n")) != NULL) {
		/* A later mount covers an earlier one at the same place. */
		if (!take_fields(line, &mount) ||
		    !is_below(path, mount.point) ||
		    strlen(mount.point) < longest)
			continue;
		longest = strlen(mount.point);
		snprintf(ret_found->device, sizeof(ret_found->device), "%s",
		    mount.device);
		ret_found->is_ext4 = strcmp(mount.type, "ext4") == 0;
		ret_found->troubles = troubles_of(&mount);
	}
	free(copy);
}

/* ---- the journal, by sysfs: the table of mounts does not tell of it ---- */

/* "vda" for "254:0", by the link of that name. */
static const char *
name_of_device(const char *sysfs, const char *device, char out[static PATH_MAX])
{
	char path[PATH_MAX], *slash;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/dev/block/%s", sysfs, device);
	n = readlink(path, out, PATH_MAX - 1);
	out[n < 0 ? 0 : n] = '\0';
	slash = strrchr(out, '/');
	return slash == NULL ? out : slash + 1;
}

/* ext4 names the task that writes its journal, or "<none>". False, too, where
 * it does not say. */
static bool
lacks_journal(const char *sysfs, const char *device)
{
	static const char none[] = "<none>";
	char name[PATH_MAX], path[2 * PATH_MAX], said[sizeof(none)] = { 0 };
	int64_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/fs/ext4/%s/journal_task", sysfs,
	    name_of_device(sysfs, device, name));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = io_read_all(fd, said, sizeof(none) - 1);
	io_close(&fd);
	return n > 0 && strcmp(said, none) == 0;
}

/* ---- warnings ---- */

static const struct {
	enum file_system_trouble trouble;
	const char *text;
} troubles[] = {
	{ FILE_SYSTEM_DISCARD,
	    "is mounted with discard: each removal of a message waits for the "
	    "device; mount it without, and let fstrim run by a timer" },
	{ FILE_SYSTEM_MEMORY,
	    "is in memory: accepted mail does not survive a loss of power" },
	{ FILE_SYSTEM_NO_JOURNAL,
	    "has no journal: a loss of power can lose accepted mail; give it "
	    "one (tune2fs -j), or take another file system" },
};

struct place {
	uint32_t queue;
	struct file_system on;
	unsigned untold; /* troubles */
};

/* Takes the queues that are on the same file system as the first: "queues 1-3,
 * 7", or "queue 1". */
static int
add_queues(
    struct buf *out, struct place *places, size_t count, unsigned trouble)
{
	const char *device = places[0].on.device;
	uint32_t taken[QUEUE_NUM_MAX];
	size_t i, end, n = 0;
	int r;

	for (i = 0; i < count; i++)
		if ((places[i].untold & trouble) != 0 &&
		    strcmp(places[i].on.device, device) == 0) {
			places[i].untold &= ~trouble;
			taken[n++] = places[i].queue;
		}
	r = buf_add_str(out, n == 1 ? "queue" : "queues");
	for (i = 0; r == 0 && i < n; i = end) {
		for (end = i + 1; end < n && taken[end] == taken[end - 1] + 1;)
			end++;
		r = buf_printf(out, "%s %" PRIu32, i == 0 ? "" : ",", taken[i]);
		if (r == 0 && end > i + 1)
			r = buf_printf(out, "-%" PRIu32, taken[end - 1]);
	}
	return r < 0
	    ? r
	    : buf_printf(out, ": %s file system ", n == 1 ? "its" : "their");
}

static int
warn(const char *base, struct place *places, size_t count, struct buf *out)
{
	size_t i, k;
	int r = 0;

	for (k = 0; k < ARRAY_LEN(troubles); k++)
		for (i = 0; r == 0 && i < count; i++) {
			if ((places[i].untold & troubles[k].trouble) == 0)
				continue;
			r = buf_printf(out, "%s: ", base);
			if (r == 0)
				r = add_queues(out, places + i, count - i,
				    troubles[k].trouble);
			if (r == 0)
				r = buf_printf(out, "%s\n", troubles[k].text);
		}
	return r;
}

int
file_systems_judge(
    const char *mountinfo, const struct file_systems_of *of, struct buf *out)
{
	struct place *places = calloc(of->count + 1, sizeof(*places));
	struct buf path = { 0 };
	size_t i;
	int r = places == NULL ? -ENOMEM : 0;

	for (i = 0; r == 0 && i < of->count; i++) {
		buf_reset(&path);
		r = buf_printf(
		    &path, "%s/queue%" PRIu32, of->real, of->queues[i]);
		if (r < 0)
			break;
		places[i].queue = of->queues[i];
		file_system_find(mountinfo, path.data, &places[i].on);
		if (places[i].on.is_ext4 &&
		    lacks_journal(of->sysfs, places[i].on.device))
			places[i].on.troubles |= FILE_SYSTEM_NO_JOURNAL;
		places[i].untold = places[i].on.troubles;
	}
	if (r == 0)
		r = warn(of->base, places, of->count, out);
	buf_done(&path);
	free(places);
	return r;
}

/* Without links, by the nearest directory above that is there: what is not
 * there yet will be on its file system. The queues are not looked at: their
 * disks may hang. NULL: no memory. */
static char *
real_place(const char *base)
{
	char *copy = strdup(base), *real = NULL, *slash;

	while (copy != NULL && (real = realpath(copy, NULL)) == NULL &&
	    (slash = strrchr(copy, '/')) != NULL && slash != copy)
		*slash = '\0';
	free(copy);
	return real != NULL ? real : strdup("/");
}

/* The queues that are there; before the first start, those to come. */
static size_t
list_queues(const struct conf *conf, uint32_t queues[QUEUE_NUM_MAX])
{
	const int there = spool_list(conf->queue_base, queues, QUEUE_NUM_MAX);
	size_t n;

	if (there > 0)
		return (size_t)there;
	for (n = 0;
	     n < conf->queue_count && conf->queue_start + n <= QUEUE_NUM_MAX;
	     n++)
		queues[n] = conf->queue_start + (uint32_t)n;
	return n;
}

int
file_systems_warn(const struct conf *conf, struct buf *out)
{
	uint32_t queues[QUEUE_NUM_MAX];
	struct buf mounts = { 0 };
	char *real = real_place(conf->queue_base);
	const struct file_systems_of of = { conf->queue_base, real, queues,
		list_queues(conf, queues), "/sys" };
	int64_t n = 0;
	int fd, r = 0;

	fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && buf_reserve(&mounts, MOUNTS_MAX) == 0)
		n = io_read_all(fd, mounts.data, MOUNTS_MAX);
	io_close(&fd);
	if (n > 0 && real != NULL) {
		mounts.data[n] = '\0';
		r = file_systems_judge(mounts.data, &of, out);
	}
	buf_done(&mounts);
	free(real);
	return r;
}
