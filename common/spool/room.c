#include "spool/room.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "spool/spool.h"

static uint64_t
free_bytes_of(const struct statvfs *v)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(
		(uint64_t)v->f_bavail, (uint64_t)v->f_frsize, &bytes))
		return UINT64_MAX;
	return bytes;
}

static const struct {
	unsigned quarters; /* of the reserve that the writer may use */
	const char *text;  /* behind the amount that has to stay free */
} writers[ROOM_NWRITERS] = {
	[ROOM_USER] = { 0, "" },
	[ROOM_SYSTEM] = { 1, " even of deliveries and reports" },
	[ROOM_ROOT] = { 2, " even of root" },
};

/* The amount of the reserve that has to stay free. */
static uint64_t
kept(uint64_t reserve, enum room_writer writer)
{
	return reserve - reserve / 4 * writers[writer].quarters;
}

static bool
lacks_bytes(
    const struct statvfs *v, const struct room_want *want, uint64_t to_come)
{
	const uint64_t have = free_bytes_of(v);
	const uint64_t keep = kept(want->bytes, want->writer);

	return have == 0 || have < keep || have - keep < to_come;
}

static bool
lacks_inodes(const struct statvfs *v, const struct room_want *want)
{
	return v->f_files > 0 &&
	    (v->f_favail == 0 ||
		v->f_favail < kept(want->inodes, want->writer));
}

int
room_judge(
    const struct statvfs *v, const struct room_want *want, uint64_t to_come)
{
	if ((v->f_flag & ST_RDONLY) != 0)
		return -EROFS;
	return lacks_bytes(v, want, to_come) || lacks_inodes(v, want) ? -ENOSPC
								      : 0;
}

bool
room_is_error(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EROFS ||
	    error == -EIO;
}

/* ---- the text ---- */

#define SIZE_TEXT 32

/* Rounded down, in the unit that leaves one to four digits. */
static void
format_size(uint64_t bytes, char out[SIZE_TEXT])
{
	static const char *const units[] = { "bytes", "KB", "MB", "GB", "TB" };
	size_t i = 0;

	for (; bytes >= 10240 && i + 1 < ARRAY_LEN(units); i++)
		bytes /= 1024;
	if (i == 1 && bytes >= 1024) {
		bytes /= 1024;
		i++;
	}
	snprintf(out, SIZE_TEXT, "%" PRIu64 " %s", bytes, units[i]);
}

static void
describe_bytes(const char *path, uint64_t have, const struct room_want *want,
    uint64_t to_come, char out[ROOM_TEXT_SIZE])
{
	const uint64_t keep = kept(want->bytes, want->writer);
	const char *writer = writers[want->writer].text;
	char has[SIZE_TEXT], wants[SIZE_TEXT], message[SIZE_TEXT];

	format_size(have, has);
	format_size(keep, wants);
	format_size(to_come, message);
	if (have == 0)
		snprintf(out, ROOM_TEXT_SIZE,
		    "mail system full: %.120s has no space free", path);
	else if (have < keep || to_come == 0)
		snprintf(out, ROOM_TEXT_SIZE,
		    "mail system full: %.120s has %s free, "
		    "queue_minfree_bytes wants %s%s",
		    path, has, wants, writer);
	else
		snprintf(out, ROOM_TEXT_SIZE,
		    "mail system full: %.120s has %s free, "
		    "queue_minfree_bytes wants %s%s beside this message of %s",
		    path, has, wants, writer, message);
}

static void
describe_error(const char *path, int error, char out[ROOM_TEXT_SIZE])
{
	const bool full = error == -ENOSPC || error == -EDQUOT;

	snprintf(out, ROOM_TEXT_SIZE, "%s: %.120s: %s",
	    full ? "mail system full" : "mail cannot be stored", path,
	    strerror(-error));
}

void
room_describe(int fd, const char *path, const struct room_want *want,
    uint64_t to_come, int error, char out[ROOM_TEXT_SIZE])
{
	struct statvfs v;

	if (error != -ENOSPC || fstatvfs(fd, &v) < 0)
		describe_error(path, error, out);
	else if (lacks_bytes(&v, want, to_come))
		describe_bytes(path, free_bytes_of(&v), want, to_come, out);
	else if (lacks_inodes(&v, want) && v.f_favail == 0)
		snprintf(out, ROOM_TEXT_SIZE,
		    "mail system full: %.120s has no inodes free", path);
	else if (lacks_inodes(&v, want))
		snprintf(out, ROOM_TEXT_SIZE,
		    "mail system full: %.120s has %" PRIu64
		    " inodes free, queue_minfree_inodes wants %" PRIu64 "%s",
		    path, (uint64_t)v.f_favail,
		    kept(want->inodes, want->writer),
		    writers[want->writer].text);
	else
		describe_error(path, error, out);
}

/* The text begins with a path, which ends at ": " or " has ". */
static const char *
path_end(const char *text)
{
	const char *colon = strstr(text, ": "), *has = strstr(text, " has ");

	if (colon == NULL || (has != NULL && has < colon))
		colon = has;
	return colon == NULL ? text + strlen(text) : colon;
}

void
room_shorten(const char *text, char *out, size_t size)
{
	const char *path = strstr(text, ": /");
	const char *from = path == NULL ? text : path + 2, *name, *end;
	size_t len = strlen(from);

	if (len < size) {
		snprintf(out, size, "%s", from);
		return;
	}
	end = path_end(from);
	from += len - (size - sizeof("..."));
	name = from < end ? memchr(from, '/', (size_t)(end - from)) : NULL;
	/* Without a name to begin at, never half a character. */
	while (name == NULL && ((unsigned char)*from & 0xc0) == 0x80)
		from++;
	snprintf(out, size, "...%s", name == NULL ? from : name);
}

void
room_describe_queue(const struct spool *sp, const struct room_want *want,
    uint64_t to_come, int error, char out[ROOM_TEXT_SIZE])
{
	char base[PATH_MAX], *slash;
	struct stat of_queue, of_base;

	snprintf(base, sizeof(base), "%s", sp->path);
	slash = strrchr(base, '/');
	if (slash != NULL && slash != base)
		*slash = '\0';
	if (fstat(sp->fd, &of_queue) < 0 || stat(base, &of_base) < 0 ||
	    of_queue.st_dev != of_base.st_dev)
		snprintf(base, sizeof(base), "%s", sp->path);
	room_describe(sp->fd, base, want, to_come, error, out);
}
