#include "base/dir_names.h"
#include "base/num.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 2500 /* more than one buffer has room for */

static char path[] = "/tmp/dir_names.XXXXXX";
static struct dir_names names;

static int
open_scratch(void)
{
	int fd;

	cr_assert_not_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

/* mutation: dir_names_next() ends with the first buffer. */
Test(dir_names, each_name_once)
{
	static bool seen[FILES];
	int fd = open_scratch(), i, r = -1;
	const char *name;
	char text[32];
	uint64_t n;

	for (i = 0; i < FILES; i++) {
		snprintf(text, sizeof(text), "a-name-of-a-file-%d", i);
		cr_assert_eq(mknodat(fd, text, S_IFREG | 0600, 0), 0);
	}
	dir_names_begin(&names, fd);
	for (i = 0; (name = dir_names_next(&names, &r)) != NULL; i++) {
		cr_assert_eq(num_u64(name + strlen("a-name-of-a-file-"), 0,
				 FILES - 1, &n),
		    0, "%s", name);
		cr_assert_not(seen[n], "%s", name);
		seen[n] = true;
		cr_assert_eq(unlinkat(fd, name, 0), 0);
	}
	cr_expect_eq(r, 0);
	cr_expect_eq(i, FILES);
	cr_assert_eq(rmdir(path), 0);
	r = -1;
	dir_names_begin(&names, fd);
	cr_expect_null(dir_names_next(&names, &r));
	cr_expect_eq(r, 0, "removed: no names");
	close(fd);
}

Test(dir_names, what_is_no_directory)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), r = 0;

	dir_names_begin(&names, fd);
	cr_expect_null(dir_names_next(&names, &r));
	cr_expect_eq(r, -ENOTDIR);
	close(fd);
}
