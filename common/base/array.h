/* base/array.h - arrays that grow.
 *
 * Room for one element more behind n of them, of size bytes each: returns the
 * array, moved perhaps, or NULL when memory is out and nothing has changed. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include "base/base.h"

void *array_room(void *array, size_t n, size_t *cap, size_t size);
/* A copy of the element behind the n others; `array' is the address of the
 * pointer to the first one. -ENOMEM: nothing has changed. */
int array_add(
    void *array, size_t *n, size_t *cap, const void *element, size_t size);

#endif
