#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Noreturn void
fuzz_fail(const char *cond, const char *file, int line)
{
	fprintf(stderr, "%s:%d: MUST(%s) does not hold\n", file, line, cond);
	abort();
}

/* ---- input ---- */

uint64_t
fuzz_number(struct fuzz_in *in, size_t bytes)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < bytes && in->left > 0; i++, in->left--)
		value |= (uint64_t)*in->next++ << 8 * i;
	return value;
}

static char *
take(struct fuzz_in *in, size_t len)
{
	char *copy = malloc(len + 1);

	MUST(copy != NULL);
	if (len > 0)
		memcpy(copy, in->next, len);
	copy[len] = '\0';
	in->next += len;
	in->left -= len;
	return copy;
}

char *
fuzz_string(struct fuzz_in *in)
{
	const uint8_t *nul =
	    in->left == 0 ? NULL : memchr(in->next, '\0', in->left);
	size_t len = nul == NULL ? in->left : (size_t)(nul - in->next);
	char *s = take(in, len);

	if (nul != NULL) {
		in->next++;
		in->left--;
	}
	return s;
}

char *
fuzz_rest(struct fuzz_in *in, size_t *ret_len)
{
	char *copy = malloc(in->left == 0 ? 1 : in->left);

	MUST(copy != NULL);
	if (in->left > 0)
		memcpy(copy, in->next, in->left);
	*ret_len = in->left;
	in->left = 0;
	return copy;
}

void
fuzz_args(struct fuzz_in *in, struct fuzz_args *ret_args)
{
	static char program[] = "program";

	*ret_args = (struct fuzz_args){ .argc = 1, .argv = { program } };
	while (in->left > 0 && ret_args->argc < FUZZ_ARGS_MAX)
		ret_args->argv[ret_args->argc++] = fuzz_string(in);
}

void
fuzz_args_done(struct fuzz_args *args)
{
	/* What a parser that reorders them has moved is freed all the same. */
	int i;

	for (i = 1; i < args->argc; i++)
		free(args->argv[i]);
}

/* ---- files ---- */

static char dir_path[128];
static int dir_fd = -1;

static struct {
	const char *name; /* a literal of the target */
	int fd;
} files[8];

static void
remove_dir(void)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(files) && files[i].name != NULL; i++)
		(void)unlinkat(dir_fd, files[i].name, 0);
	(void)unlinkat(dir_fd, "0", AT_REMOVEDIR);
	(void)rmdir(dir_path);
}

int
fuzz_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	if (dir_fd >= 0)
		return dir_fd;
	snprintf(dir_path, sizeof(dir_path), "%s/fuzz-%d",
	    tmp == NULL ? "/tmp" : tmp, (int)getpid());
	MUST(mkdir(dir_path, 0700) == 0);
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(dir_fd >= 0);
	MUST(atexit(remove_dir) == 0);
	return dir_fd;
}

int
fuzz_subdir(void)
{
	MUST(mkdirat(fuzz_dir(), "0", 0700) == 0 || errno == EEXIST);
	return dir_fd;
}

const char *
fuzz_dir_path(void)
{
	(void)fuzz_dir();
	return dir_path;
}

static int
open_file(const char *name)
{
	size_t i;

	for (i = 0; files[i].name != NULL; i++)
		if (strcmp(files[i].name, name) == 0)
			return files[i].fd;
	MUST(i + 1 < ARRAY_LEN(files));
	files[i].name = name;
	files[i].fd =
	    openat(fuzz_dir(), name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	MUST(files[i].fd >= 0);
	return files[i].fd;
}

int
fuzz_file(const char *name, const void *data, size_t len)
{
	int fd = open_file(name);

	MUST(ftruncate(fd, 0) == 0);
	MUST(len == 0 || pwrite(fd, data, len, 0) == (ssize_t)len);
	MUST(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

const char *
fuzz_path(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", fuzz_dir_path(), name);
	return path;
}

/* ---- judgements ---- */

/* The code point at s and its length; 0: none that is well-formed. */
static size_t
decode(const unsigned char *s, size_t left, uint32_t *ret_point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = *s < 0x80 ? 1
	    : *s >> 5 == 6   ? 2
	    : *s >> 4 == 14  ? 3
	    : *s >> 3 == 30  ? 4
			     : 0;
	uint32_t point = n == 1 ? *s : *s & (0xffu >> (n + 1));
	size_t i;

	if (n == 0 || n > left)
		return 0;
	for (i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		point = point << 6 | (s[i] & 0x3f);
	}
	*ret_point = point;
	return point < least[n] || point > 0x10ffff || point >> 11 == 0x1b ? 0
									   : n;
}

bool
fuzz_is_shown(const char *s, size_t len)
{
	size_t i, n;

	for (i = 0; i < len; i += n) {
		uint32_t point = 0;

		n = decode((const unsigned char *)s + i, len - i, &point);
		if (n == 0 || point < 0x20 || (point >= 0x7f && point < 0xa0))
			return false;
	}
	return true;
}

bool
fuzz_is_filled(const void *object, size_t size, unsigned char byte)
{
	const unsigned char *p = object;

	return *p == byte && memcmp(p, p + 1, size - 1) == 0;
}
