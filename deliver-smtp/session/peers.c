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

/* PEERS_MAX: it is not there, or has expired. */
static size_t
place_of(const struct peers *p, uint64_t name, usec_t now)
{
	size_t i;

	for (i = 0; i < PEERS_MAX; i++)
		if (p->names[i] == name && now < p->until[i])
			break;
	return i;
}

void
peers_add(struct peers *p, const char *relay, uint32_t value, usec_t now)
{
	uint64_t name = hash(relay);
	size_t i = place_of(p, name, now);

	if (i == PEERS_MAX) {
		i = p->next;
		p->next = (p->next + 1) % PEERS_MAX;
	}
	p->names[i] = name;
	p->values[i] = value;
	p->until[i] = now + PEERS_KEEP;
}

uint32_t
peers_find(const struct peers *p, const char *relay, usec_t now)
{
	size_t i = place_of(p, hash(relay), now);

	return i == PEERS_MAX ? 0 : p->values[i];
}
