#include "tests/unit/descriptors.h"

#include <criterion/criterion.h>
#include <dirent.h>

unsigned
unit_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	unsigned n = 0;

	cr_assert_not_null(dir);
	while ((e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n - 1; /* without that of the directory */
}
