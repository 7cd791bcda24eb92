#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "config/conf.h"

static int
judge(const char *path, int len)
{
	return len < PATH_MAX && access(path, X_OK) == 0 ? 0 : -ENOENT;
}

int
conf_find_program(const struct conf *conf, const char *name, char *path)
{
	static const char *const places[] = { "", "../libexec/qscheduler/" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	size_t i;
	int r = -ENOENT;

	if (conf->program_dir[0] != '\0')
		return judge(path,
		    snprintf(path, PATH_MAX, "%s/%s", conf->program_dir, name));
	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	if (slash == NULL)
		return -ENOENT;
	slash[1] = '\0';
	for (i = 0; r < 0 && i < ARRAY_LEN(places); i++)
		r = judge(path,
		    snprintf(path, PATH_MAX, "%s%s%s", self, places[i], name));
	return r;
}
