/* Whether the table can be believed: a process that finds damage takes no place
 * any more, and the supervisor puts another table in its place. */
#include "ipc/mapping.h"
#include "site/shared_parts.h"

void
shared_lose(struct shared *s, const char *why)
{
	if (s->lost != NULL)
		return;
	s->lost = why;
	shared_waker_kick(&s->waker); /* the caller asks for another table */
}

static bool
member_is_ours(const struct shared *s)
{
	return __atomic_load_n(
		   &shared_segment_member(&s->seg, s->member)->owner,
		   __ATOMIC_ACQUIRE) == s->owner;
}

/* Cheap: cache lines that nobody writes are read. */
bool
shared_is_lost(struct shared *shared)
{
	if (shared->owner == 0)
		return true;
	if (shared->lost == NULL && !shared_segment_is_sound(&shared->seg))
		shared_lose(shared,
		    mapping_is_lost(shared->seg.base)
			? "it was cut off"
			: "its head was written over");
	if (shared->lost == NULL && !member_is_ours(shared))
		shared_lose(shared, "a member was written over");
	return shared->lost != NULL;
}

const char *
shared_lost_why(const struct shared *shared)
{
	return shared->lost;
}
