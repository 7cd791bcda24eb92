#include "base_dir.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct base_dir base_dir;

void
base_dir_setup(void)
{
	struct base_dir *t = &base_dir;

	snprintf(t->dir, sizeof(t->dir), "/tmp/base-XXXXXX");
	cr_assert(mkdtemp(t->dir) != NULL);
	snprintf(t->path, sizeof(t->path), "%.*s/queue",
	    (int)sizeof(t->dir) - 1, t->dir);
	t->users = (struct daemon_users){
		.qmailq = geteuid(),
		.qmails = geteuid(),
		.qmailr = geteuid(),
		.qmail = getegid(),
		.private = true,
	};
}

static void
remove_tree(void)
{
	char *const argv[] = { (char[]){ "rm" }, (char[]){ "-rf" },
		base_dir.dir, NULL };

	execv("/bin/rm", argv);
	_exit(1);
}

void
base_dir_teardown(void)
{
	buf_done(&base_dir.error);
	if (fork() == 0)
		remove_tree();
}

int
base_dir_open(const char *path)
{
	buf_reset(&base_dir.error);
	return base_open(
	    &base_dir.base, path, &base_dir.users, &base_dir.error);
}
