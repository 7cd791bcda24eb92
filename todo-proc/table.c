#include "todo-proc/todo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MIN 64 /* a power of two */

struct user_row {
	uint64_t key; /* uid + 1 */
	struct waiting_user user;
};

void
table_clear(struct table *t)
{
	free(t->rows);
	*t = (struct table){ 0 };
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

static uint64_t *
row_at(const struct table *t, uint64_t place, size_t size)
{
	return (uint64_t *)(void *)(t->rows + (place & (t->places - 1)) * size);
}

/* The row of a key, or the free one that it would have. */
static uint64_t *
place_of(const struct table *t, uint64_t key, size_t size)
{
	uint64_t at = mix(0, key), *row;

	while (*(row = row_at(t, at, size)) != key && *row != 0)
		at++;
	return row;
}

/* At most half of the places have a row. */
static int
grow(struct table *t, size_t size)
{
	struct table more = {
		.places = t->places == 0 ? PLACES_MIN : t->places * 2,
		.count = t->count,
	};
	uint32_t i;

	more.rows = calloc(more.places, size);
	if (more.rows == NULL)
		return -ENOMEM;
	for (i = 0; i < t->places; i++)
		if (*row_at(t, i, size) != 0)
			memcpy(place_of(&more, *row_at(t, i, size), size),
			    row_at(t, i, size), size);
	free(t->rows);
	*t = more;
	return 0;
}

/* 1: the row is new; 0: it was there; -ENOMEM. */
static int
add(struct table *t, uint64_t key, size_t size, uint64_t **ret_row)
{
	if (t->count * 2 >= t->places && grow(t, size) < 0)
		return -ENOMEM;
	*ret_row = place_of(t, key, size);
	if (**ret_row == key)
		return 0;
	**ret_row = key;
	t->count++;
	return 1;
}

int
waiting_table_add(struct table *t, const struct waiting_user *more)
{
	struct waiting_user *user;
	uint64_t *row;
	int r;

	if (more->uid == (uid_t)-1) /* no user has this number */
		return 0;
	r = add(t, (uint64_t)more->uid + 1, sizeof(struct user_row), &row);
	if (r < 0)
		return r;
	user = &((struct user_row *)(void *)row)->user;
	user->uid = more->uid;
	user->messages += more->messages;
	user->bytes += more->bytes;
	user->made += more->made;
	return 0;
}

uint32_t
waiting_table_rows(const struct table *t, struct waiting_user *out)
{
	const struct user_row *rows = (const void *)t->rows;
	uint32_t i, n = 0;

	for (i = 0; i < t->places; i++)
		if (rows[i].key != 0)
			out[n++] = rows[i].user;
	return n;
}

bool
waiting_table_any(const struct table *t, const struct todo *todo,
    bool (*is)(const struct todo *todo, uid_t uid))
{
	const struct user_row *rows = (const void *)t->rows;
	uint32_t i;

	for (i = 0; i < t->places; i++)
		if (rows[i].key != 0 && is(todo, rows[i].user.uid))
			return true;
	return false;
}

int
waiting_met_add(struct table *t, uint64_t inode, const struct waiting_user *one)
{
	const uint64_t key = mix(mix(mix(0, inode), one->uid), one->bytes);
	uint64_t *row;

	return add(t, key == 0 ? 1 : key, sizeof(key), &row);
}
