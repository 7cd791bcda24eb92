#include "deliver-smtp/session/session.h"

/* FNV-1a. */
static uint64_t
hash(const char *s)
{
	uint64_t h = 14695981039346656037u;

	for (; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return h;
}

void
peers_add(struct peers *p, const char *relay, usec_t now)
{
	p->names[p->next] = hash(relay);
	p->until[p->next] = now + PEERS_KEEP;
	p->next = (p->next + 1) % PEERS_MAX;
}

bool
peers_has(const struct peers *p, const char *relay, usec_t now)
{
	uint64_t name = hash(relay);
	size_t i;

	for (i = 0; i < PEERS_MAX; i++)
		if (p->names[i] == name && now < p->until[i])
			return true;
	return false;
}
