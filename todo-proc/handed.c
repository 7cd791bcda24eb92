#include "todo-proc/handed.h"

void
handed_add(struct handed *h, uint64_t inode, usec_t mtime_wall, usec_t now)
{
	h->last[h->next].inode = inode;
	h->last[h->next].mtime_wall = mtime_wall;
	h->last[h->next].at = now;
	h->next = (h->next + 1) % HANDED_MAX;
}

bool
handed_has(
    const struct handed *h, uint64_t inode, usec_t mtime_wall, usec_t now)
{
	uint32_t i;

	for (i = 0; i < HANDED_MAX; i++)
		if (h->last[i].inode == inode &&
		    h->last[i].mtime_wall == mtime_wall)
			return now - h->last[i].at < HANDED_TIME;
	return false;
}

void
handed_forget(struct handed *h)
{
	*h = (struct handed){ 0 };
}
