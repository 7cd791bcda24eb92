#include "todo-proc/pure.h"

void
offered_add(struct offered *h, uint64_t inode, usec_t mtime_wall, usec_t now)
{
	h->last[h->next].inode = inode;
	h->last[h->next].mtime_wall = mtime_wall;
	h->last[h->next].at = now;
	h->next = (h->next + 1) % OFFERED_MAX;
}

bool
offered_has(
    const struct offered *h, uint64_t inode, usec_t mtime_wall, usec_t now)
{
	uint32_t i;

	for (i = 0; i < OFFERED_MAX; i++)
		if (h->last[i].inode == inode &&
		    h->last[i].mtime_wall == mtime_wall)
			return now - h->last[i].at < OFFERED_TIME;
	return false;
}

void
offered_forget(struct offered *h)
{
	*h = (struct offered){ 0 };
}
