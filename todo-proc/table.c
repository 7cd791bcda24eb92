#include "todo-proc/todo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MIN 64 /* a power of two */

void
waiting_table_clear(struct waiting_table *t)
{
	free(t->rows);
	*t = (struct waiting_table){ 0 };
}

/* The place of a user: its row, or the free one that it would have. A row holds
 * uid + 1, since 0 is free. */
static struct waiting_user *
place_of(const struct waiting_table *t, uid_t key)
{
	uint32_t at = (uint32_t)key * 2654435761u;

	for (;; at++) {
		struct waiting_user *row = &t->rows[at & (t->places - 1)];

		if (row->uid == key || row->uid == 0)
			return row;
	}
}

/* At most half of the places have a row. */
static int
grow(struct waiting_table *t)
{
	const uint32_t places = t->places == 0 ? PLACES_MIN : t->places * 2;
	struct waiting_table more = { .places = places, .count = t->count };
	uint32_t i;

	more.rows = calloc(places, sizeof(*more.rows));
	if (more.rows == NULL)
		return -ENOMEM;
	for (i = 0; i < t->places; i++)
		if (t->rows[i].uid != 0)
			*place_of(&more, t->rows[i].uid) = t->rows[i];
	free(t->rows);
	*t = more;
	return 0;
}

int
waiting_table_add(struct waiting_table *t, const struct waiting_user *more)
{
	struct waiting_user *row;

	if (more->uid == (uid_t)-1) /* no user has this number */
		return 0;
	if (t->count * 2 >= t->places && grow(t) < 0)
		return -ENOMEM;
	row = place_of(t, more->uid + 1);
	if (row->uid == 0) {
		row->uid = more->uid + 1;
		t->count++;
	}
	row->messages += more->messages;
	row->bytes += more->bytes;
	row->made += more->made;
	return 0;
}

uint32_t
waiting_table_rows(const struct waiting_table *t, struct waiting_user *out)
{
	uint32_t i, n = 0;

	for (i = 0; i < t->places; i++)
		if (t->rows[i].uid != 0) {
			out[n] = t->rows[i];
			out[n++].uid--;
		}
	return n;
}

/* ---- files ---- */

void
waiting_met_clear(struct waiting_met *m)
{
	free(m->keys);
	*m = (struct waiting_met){ 0 };
}

/* Steps of the finalizer of SplitMix64: each bit of each part counts. */
static uint64_t
mix(uint64_t bits, uint64_t more)
{
	bits = (bits ^ more) + 0x9e3779b97f4a7c15u;
	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
	return bits ^ bits >> 31;
}

/* The place of a key, or the free one that it would have. */
static uint64_t *
met_place(const struct waiting_met *m, uint64_t key)
{
	uint64_t at = key;

	while (m->keys[at & (m->places - 1)] != key &&
	    m->keys[at & (m->places - 1)] != 0)
		at++;
	return &m->keys[at & (m->places - 1)];
}

/* At most half of the places are taken. */
static int
met_grow(struct waiting_met *m)
{
	const uint32_t places = m->places == 0 ? PLACES_MIN : m->places * 2;
	struct waiting_met more = { .places = places, .count = m->count };
	uint32_t i;

	more.keys = calloc(places, sizeof(*more.keys));
	if (more.keys == NULL)
		return -ENOMEM;
	for (i = 0; i < m->places; i++)
		if (m->keys[i] != 0)
			*met_place(&more, m->keys[i]) = m->keys[i];
	free(m->keys);
	*m = more;
	return 0;
}

int
waiting_met_add(
    struct waiting_met *m, uint64_t inode, const struct waiting_user *one)
{
	uint64_t key = mix(mix(mix(0, inode), one->uid), one->bytes);
	uint64_t *place;

	if (key == 0)
		key = 1;
	if (m->count * 2 >= m->places && met_grow(m) < 0)
		return -ENOMEM;
	place = met_place(m, key);
	if (*place == key)
		return 0;
	*place = key;
	m->count++;
	return 1;
}
