#include "todo-proc/pure.h"

static uint64_t
hash_of(uint32_t where, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u ^ where;

	while (*name != '\0')
		hash = (hash ^ (unsigned char)*name++) * 0x100000001b3u;
	return hash == 0 ? 1 : hash;
}

bool
foreign_warn(struct foreign *f, uint32_t where, const char *name, usec_t now)
{
	uint64_t hash = hash_of(where, name);
	int64_t hour = now / (3600 * USEC_PER_SEC);
	uint32_t i;

	for (i = 0; i < FOREIGN_MAX; i++)
		if (f->last[i] == hash)
			return false;
	if (hour != f->hour) {
		f->hour = hour;
		f->said = 0;
	}
	if (f->said >= FOREIGN_SAID)
		return false;
	f->said++;
	f->last[f->next] = hash;
	f->next = (f->next + 1) % FOREIGN_MAX;
	return true;
}
