#include "base/array.h"

#include <stdlib.h>

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
