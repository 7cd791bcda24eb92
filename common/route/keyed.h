/* route/keyed.h - rows that are found by a key. Private to common/route.
 *
 * A row begins with its struct keyed; size is that of a row. */
#ifndef ROUTE_KEYED_H
#define ROUTE_KEYED_H

#include "base/wrong_lines.h"

struct keyed {
	const char *key;
	uint32_t line; /* of the file */
};

/* In the order of their keys, for keyed_find(). A key that stands twice is an
 * error of its second line, as base/line_file.h tells it. */
int keyed_sort(void *rows, size_t n, size_t size, const char *path,
    struct wrong_lines *wrong, struct buf *ret_error);
/* NULL: no row has the key. */
const void *
keyed_find(const void *rows, size_t n, size_t size, const char *key);

#endif
