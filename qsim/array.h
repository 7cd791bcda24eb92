/* qsim/array.h - arrays that grow.
 *
 * Room for one element more behind n of them, of size bytes each: returns the
 * array, moved perhaps, or NULL when memory is out and nothing has changed. */
#ifndef QSIM_ARRAY_H
#define QSIM_ARRAY_H

#include "base/base.h"

void *array_room(void *array, uint32_t n, uint32_t *cap, size_t size);

#endif
