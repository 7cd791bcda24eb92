#include "tests/unit/files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

const char *
unit_put_file(const char *dir, const char *name, const char *text)
{
	static char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
	return path;
}

static int
remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED,
    struct FTW *ftw UNUSED)
{
	return remove(path);
}

void
unit_remove_tree(const char *top)
{
	cr_expect_eq(nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
