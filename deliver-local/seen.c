#include "deliver-local/expand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MIN 64u

/* Seeded, so that nobody chooses addresses that fall on one place. */
static uint64_t
hash(const struct seen *s, const char *string)
{
	uint64_t h = s->seed;

	for (; *string != '\0'; string++) {
		h = (h ^ (unsigned char)*string) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

/* The place of the string, or the free one where it belongs. */
static uint32_t
find(const struct seen *s, const char *string)
{
	uint32_t at = (uint32_t)(hash(s, string) >> 16) & (s->nplaces - 1);

	while (s->places[at] != 0 &&
	    strcmp(s->text.data + s->places[at] - 1, string) != 0)
		at = (at + 1) & (s->nplaces - 1);
	return at;
}

static int
grow(struct seen *s)
{
	const uint32_t *old = s->places;
	struct seen more = *s;
	uint32_t i;

	more.nplaces = s->nplaces == 0 ? PLACES_MIN : 2 * s->nplaces;
	if (more.nplaces == 0)
		return -ENOMEM;
	if (s->nplaces == 0)
		arc4random_buf(&more.seed, sizeof(more.seed));
	more.places = calloc(more.nplaces, sizeof(*more.places));
	if (more.places == NULL)
		return -ENOMEM;
	for (i = 0; i < s->nplaces; i++)
		if (old[i] != 0)
			more.places[find(&more, s->text.data + old[i] - 1)] =
			    old[i];
	free(s->places);
	*s = more;
	return 0;
}

int
seen_add(struct seen *s, const char *string)
{
	uint32_t at;
	int r;

	if (s->count >= s->nplaces / 2) {
		r = grow(s);
		if (r < 0)
			return r;
	}
	at = find(s, string);
	if (s->places[at] != 0)
		return 0;
	if (s->text.len >= UINT32_MAX - ADDRESS_FOLDED_MAX - 16)
		return -ENOMEM;
	r = buf_add(&s->text, string, strlen(string) + 1);
	if (r < 0)
		return r;
	s->places[at] = (uint32_t)(s->text.len - strlen(string));
	s->count++;
	return 1;
}

void
seen_done(struct seen *s)
{
	buf_done(&s->text);
	free(s->places);
	*s = (struct seen){ 0 };
}

int
seen_make_room(void **array, uint32_t count, size_t size)
{
	void *more;

	if (count != 0 && (count & (count - 1)) != 0)
		return 0;
	more = reallocarray(*array, count == 0 ? 1 : 2 * (size_t)count, size);
	if (more == NULL)
		return -ENOMEM;
	*array = more;
	return 0;
}
