#include "queue-send/state/pure.h"

#include <ctype.h>

#define WAYS 4

/* Names of domains are the same in any case; those of users that differ in
 * nothing else share their rate. */
static uint64_t
hash_of(const struct told_rate *t, const struct told_to *to)
{
	const char *address = to->address;
	uint64_t h = (0xcbf29ce484222325u ^ t->seed ^ to->uid) * 0x100000001b3u;

	for (; *address != '\0'; address++)
		h = (h ^ (uint64_t)tolower((unsigned char)*address)) *
		    0x100000001b3u;
	h ^= h >> 32;
	return h == 0 ? 1 : h;
}

/* The place of the pair, or of the one that may have most. */
static struct told_pair *
place_of(struct told_rate *t, uint64_t hash)
{
	struct told_pair *way = &t->pairs[hash % (TOLD_PAIRS / WAYS) * WAYS];
	struct told_pair *idle = way;
	int i;

	for (i = 0; i < WAYS; i++) {
		if (way[i].hash == hash)
			return &way[i];
		if (way[i].full < idle->full)
			idle = &way[i];
	}
	*idle = (struct told_pair){ .hash = hash };
	return idle;
}

/* Until the next report may go; not above 0: at once. */
static usec_t
until_next(const struct told_pair *a, uint32_t limit, usec_t now)
{
	return a->full + TOLD_PERIOD / limit - (now + TOLD_PERIOD);
}

bool
told_is_above(
    struct told_rate *t, const struct told_to *to, uint32_t limit, usec_t now)
{
	return limit > 0 &&
	    until_next(place_of(t, hash_of(t, to)), limit, now) > 0;
}

usec_t
told_wait(
    struct told_rate *t, const struct told_to *to, uint32_t limit, usec_t now)
{
	struct told_pair *a;
	usec_t wait;

	if (limit == 0)
		return 0;
	a = place_of(t, hash_of(t, to));
	wait = until_next(a, limit, now);
	if (wait <= 0)
		return 0;
	/* Reports that wait already come first. */
	return wait + TOLD_PERIOD / limit * (usec_t)a->waiting++;
}

void
told_count(
    struct told_rate *t, const struct told_to *to, uint32_t limit, usec_t now)
{
	struct told_pair *a;

	if (limit == 0)
		return;
	a = place_of(t, hash_of(t, to));
	if (a->full < now) {
		a->full = now;
		a->waiting = 0;
	}
	a->full += TOLD_PERIOD / limit;
	if (a->waiting > 0)
		a->waiting--;
}

void
told_take_back(struct told_rate *t, const struct told_to *to, uint32_t limit)
{
	if (limit > 0)
		place_of(t, hash_of(t, to))->full -= TOLD_PERIOD / limit;
}
