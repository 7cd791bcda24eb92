#include "qctl/check/check.h"

#include <errno.h>
#include <fcntl.h>

int
place_open(const struct check *c, struct place *p)
{
	const int dir = c->sp.dir[p->dir];

	p->fd = -1;
	if (fstatat(dir, p->leaf, &p->st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(p->st.st_mode))
		return 0;
	p->fd = openat(dir, p->leaf,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (p->fd < 0 || fstat(p->fd, &p->st) < 0)
		return -errno;
	return 0;
}
