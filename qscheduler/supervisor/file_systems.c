/* File systems of queues that cost time or mail: mounted with `discard`, the
 * kernel tells the device of each message that is removed, and the removal
 * waits; in memory, nothing survives a loss of power; without a journal, not
 * all does. The table of mounts and sysfs are read, and no disk of a queue. */
#include "qscheduler/supervisor/supervisor.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/io.h"
#include "spool/spool.h"

enum trouble {
	DISCARD,
	MEMORY,
	NO_JOURNAL,
	NTROUBLES,
};

static const char *const troubles[NTROUBLES] = {
	[DISCARD] =
	    "is mounted with discard: each removal of a message waits for the "
	    "device; mount it without, and let fstrim run by a timer",
	[MEMORY] =
	    "is in memory: accepted mail does not survive a loss of power",
	[NO_JOURNAL] =
	    "has no journal: a loss of power can lose accepted mail; give it "
	    "one (tune2fs -j), or take another file system",
};

struct file_system {
	char device[PATH_MAX], point[PATH_MAX];
	bool has[NTROUBLES];
};

/* Does the path lie on this mount point? */
static bool
is_below(const char *path, const char *point)
{
	const size_t len = strlen(point);

	return strcmp(point, "/") == 0 ||
	    (strncmp(path, point, len) == 0 &&
		(path[len] == '/' || path[len] == '\0'));
}

/* ".../vda", by the number of the device: the table of mounts may say
 * /dev/root, and /dev may lack the node. NULL: sysfs does not know it. The root
 * of what is mounted is in memory: no disk is asked. */
static char *
find_device(const char *sysfs, const char *point)
{
	struct buf path = { 0 };
	char *device = NULL;
	struct stat st;

	if (stat(point, &st) == 0 &&
	    buf_printf(&path, "%s/dev/block/%u:%u", sysfs, major(st.st_dev),
		minor(st.st_dev)) == 0)
		device = realpath(path.data, NULL);
	buf_done(&path);
	return device;
}

/* ext4 names the task that writes its journal in sysfs, or "<none>". False,
 * too, where it does not say. */
static bool
lacks_journal(const char *sysfs, const char *point)
{
	static const char none[] = "<none>";
	char *device = find_device(sysfs, point), said[sizeof(none)] = { 0 };
	struct buf path = { 0 };
	int fd = -1;

	if (device != NULL &&
	    buf_printf(&path, "%s/fs/ext4%s/journal_task", sysfs,
		strrchr(device, '/')) == 0)
		fd = open(path.data, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)io_read_all(fd, said, sizeof(none) - 1);
	io_close(&fd);
	buf_done(&path);
	free(device);
	return strcmp(said, none) == 0;
}

static void
judge_mount(const struct mntent *m, const char *sysfs, bool has[NTROUBLES])
{
	const char *discard = hasmntopt(m, "discard");

	/* discard=async lets no removal wait. */
	has[DISCARD] = discard != NULL && discard[strlen("discard")] != '=';
	has[MEMORY] = strcmp(m->mnt_type, "tmpfs") == 0 ||
	    strcmp(m->mnt_type, "ramfs") == 0;
	has[NO_JOURNAL] = strcmp(m->mnt_type, "ext2") == 0 ||
	    (strcmp(m->mnt_type, "ext4") == 0 &&
		lacks_journal(sysfs, m->mnt_dir));
}

static void
find_file_system(FILE *mounts, const char *sysfs, const char *path,
    struct file_system *ret_found)
{
	const struct mntent *m;

	*ret_found = (struct file_system){ 0 };
	rewind(mounts);
	while ((m = getmntent(mounts)) != NULL) {
		/* A later mount covers an earlier one at the same place. */
		if (!is_below(path, m->mnt_dir) ||
		    strlen(m->mnt_dir) < strlen(ret_found->point))
			continue;
		snprintf(ret_found->device, PATH_MAX, "%s", m->mnt_fsname);
		snprintf(ret_found->point, PATH_MAX, "%s", m->mnt_dir);
		judge_mount(m, sysfs, ret_found->has);
	}
}

int
file_systems_judge(
    FILE *mounts, const struct file_systems_of *of, struct buf *out)
{
	struct file_system found;
	char path[PATH_MAX], told[PATH_MAX] = "";
	size_t i, k;
	int r = 0;

	for (i = 0; r == 0 && i < of->count; i++) {
		snprintf(path, sizeof(path), "%s/queue%" PRIu32, of->real,
		    of->queues[i]);
		find_file_system(mounts, of->sysfs, path, &found);
		if (strcmp(found.point, told) == 0)
			continue;
		snprintf(told, sizeof(told), "%s", found.point);
		for (k = 0; r == 0 && k < NTROUBLES; k++)
			if (found.has[k])
				r = buf_printf(out,
				    "%s: queue %" PRIu32
				    ": its file system %s at %s %s\n",
				    of->base, of->queues[i], found.device,
				    found.point, troubles[k]);
	}
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
	char *real = real_place(conf->queue_base);
	const struct file_systems_of of = { conf->queue_base, real, queues,
		list_queues(conf, queues), "/sys" };
	FILE *mounts = fopen("/proc/self/mounts", "re");
	int r = 0;

	if (mounts != NULL && real != NULL)
		r = file_systems_judge(mounts, &of, out);
	if (mounts != NULL)
		fclose(mounts);
	free(real);
	return r;
}
