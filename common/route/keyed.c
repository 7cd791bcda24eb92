#include "route/keyed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/line_file.h"

static int
compare(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static const struct keyed *
row_at(const void *rows, size_t size, size_t i)
{
	return (const void *)((const char *)rows + i * size);
}

int
keyed_sort(void *rows, size_t n, size_t size, const char *path,
    struct wrong_lines *wrong, struct buf *ret_error)
{
	const struct keyed *first, *row;
	char why[40];
	size_t i;
	int r = 0;

	if (n > 0)
		qsort(rows, n, size, compare);
	for (i = 1; r == 0 && i < n; i++) {
		first = row_at(rows, size, i - 1);
		row = row_at(rows, size, i);
		if (strcmp(first->key, row->key) != 0)
			continue;
		snprintf(
		    why, sizeof(why), "is already in line %u", first->line);
		r = line_file_fail(ret_error, path, row->line, row->key, why);
		r = wrong_lines_go_on(wrong, row->line, r, ret_error);
	}
	return r;
}

static int
compare_key(const void *key, const void *row)
{
	return strcmp(key, ((const struct keyed *)row)->key);
}

const void *
keyed_find(const void *rows, size_t n, size_t size, const char *key)
{
	return n == 0 ? NULL : bsearch(key, rows, n, size, compare_key);
}
