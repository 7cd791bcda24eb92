#include "spool/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir_names.h"
#include "base/io.h"
#include "base/num.h"

void
spool_scan_begin(
    struct spool_scan *s, const struct spool *sp, enum spool_dir dir)
{
	*s = (struct spool_scan){ .sp = sp, .dir = dir };
}

static bool
is_inside(const struct spool_scan *s)
{
	return s->names != NULL && s->names->fd >= 0;
}

static void
close_dir(struct spool_scan *s)
{
	if (is_inside(s))
		io_close(&s->names->fd);
}

void
spool_scan_done(struct spool_scan *s)
{
	close_dir(s);
	free(s->names);
	s->names = NULL;
}

/* This subdirectory was read, or cannot be read: the next one. */
static void
leave(struct spool_scan *s)
{
	close_dir(s);
	s->split++;
	s->end = !spool_dirs[s->dir].split || s->split >= s->sp->split;
}

/* Of a scan; no directory is open yet. */
static struct dir_names *
make_names(void)
{
	struct dir_names *names = malloc(sizeof(*names));

	if (names != NULL)
		dir_names_begin(names, -1);
	return names;
}

static int
enter(struct spool_scan *s)
{
	const struct spool_sys *sys = s->sp->sys;
	char name[16] = ".";
	int fd;

	if (s->names == NULL)
		s->names = make_names();
	if (s->names == NULL)
		return -ENOMEM;
	if (spool_dirs[s->dir].split)
		snprintf(name, sizeof(name), "%" PRIu32, s->split);
	fd = sys->openat(s->sp->dir[s->dir], name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	dir_names_begin(s->names, fd);
	return 0;
}

static bool
is_temp(const char *name)
{
	return strncmp(name, SPOOL_TEMP_PREFIX, strlen(SPOOL_TEMP_PREFIX)) == 0;
}

/* A file that is old already is looked at under a new name, which changes its
 * ctime alone. */
static usec_t
temp_since(const char *name, const struct stat *st)
{
	return strncmp(name, SPOOL_TEMP_LOST, strlen(SPOOL_TEMP_LOST)) == 0
	    ? (usec_t)st->st_ctim.tv_sec * USEC_PER_SEC
	    : clock_usec(st->st_mtim);
}

static void
sweep_temp(const struct spool_scan *s, const char *name)
{
	int fd = s->names->fd;
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    temp_since(name, &st) < clock_wall() - SPOOL_TEMP_AGE)
		s->sp->sys->unlinkat(fd, name, 0);
}

/* The inode of a name that belongs into this subdirectory, else 0. */
static uint64_t
inode_here(const struct spool_scan *s, const char *name)
{
	uint64_t inode;

	if (queue_file_parse(name, &inode) < 0)
		return 0;
	if (spool_dirs[s->dir].split && inode % s->sp->split != s->split)
		return 0;
	return inode;
}

/* Without a file in defer/ the message is due at once: its own mtime counts. */
static void
take_due_time(const struct spool *sp, struct spool_item *item)
{
	struct stat st;

	item->has_defer = spool_stat(sp, SPOOL_DEFER, item->inode, &st) == 0;
	if (item->has_defer)
		item->mtime_wall = clock_usec(st.st_mtim);
}

/* false: the file is gone already. */
static bool
fill(const struct spool_scan *s, const char *name, bool with_stat,
    struct spool_item *ret_item)
{
	struct stat st;

	memset(ret_item, 0, sizeof(*ret_item));
	snprintf(ret_item->name, sizeof(ret_item->name), "%s", name);
	ret_item->split = s->split;
	ret_item->inode = inode_here(s, name);
	if (!with_stat)
		return true;
	if (fstatat(s->names->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno != ENOENT;
	ret_item->size = (uint64_t)st.st_size;
	ret_item->mtime_wall = clock_usec(st.st_mtim);
	if (s->dir == SPOOL_DEFERRED || s->dir == SPOOL_DELETED)
		take_due_time(s->sp, ret_item);
	return true;
}

/* 1, 0 at the end of this subdirectory, or -errno. */
static int
read_one(struct spool_scan *s, bool with_stat, struct spool_item *ret_item)
{
	const char *name;
	int r;

	while ((name = dir_names_next(s->names, &r)) != NULL) {
		if (is_temp(name)) {
			sweep_temp(s, name);
			continue;
		}
		if (fill(s, name, with_stat, ret_item))
			return 1;
	}
	return r;
}

int
spool_scan_next(
    struct spool_scan *s, bool with_stat, struct spool_item *ret_item)
{
	int r;

	while (!s->end) {
		r = is_inside(s) ? 0 : enter(s);
		if (r == 0)
			r = read_one(s, with_stat, ret_item);
		if (r > 0)
			return 1;
		leave(s);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Exactly "queue7". */
static bool
queue_number(int dir, const char *name, uint64_t *ret_queue)
{
	const size_t prefix = strlen("queue");
	struct stat st;

	return strncmp(name, "queue", prefix) == 0 && name[prefix] != '0' &&
	    num_u64(name + prefix, 1, QUEUE_NUM_MAX, ret_queue) == 0 &&
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode);
}

int
spool_list(const char *base, uint32_t *ret_queues, size_t max)
{
	bool there[QUEUE_NUM_MAX + 1] = { false };
	const struct dirent *e;
	uint64_t queue;
	size_t n = 0;
	int r;
	DIR *dir = opendir(base);

	if (dir == NULL)
		return -errno;
	while (errno = 0, (e = readdir(dir)) != NULL)
		if (queue_number(dirfd(dir), e->d_name, &queue))
			there[queue] = true;
	r = -errno;
	closedir(dir);
	if (r < 0)
		return r;
	for (queue = 1; queue <= QUEUE_NUM_MAX && n < max; queue++)
		if (there[queue])
			ret_queues[n++] = (uint32_t)queue;
	return (int)n;
}
