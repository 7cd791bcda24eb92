#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void *
array_room(void *array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap < 16 ? 16 : *cap;
	void *moved;

	if (n < *cap)
		return array;
	if (__builtin_add_overflow(more, *cap, &more))
		return NULL;
	moved = reallocarray(array, more, size);
	if (moved != NULL)
		*cap = more;
	return moved;
}

int
array_add(void *array, size_t *n, size_t *cap, const void *element, size_t size)
{
	char *all;

	memcpy(&all, array, sizeof(all));
	all = array_room(all, *n, cap, size);
	if (all == NULL)
		return -ENOMEM;
	memcpy(array, &all, sizeof(all));
	memcpy(all + size * (*n)++, element, size);
	return 0;
}
