#include "base/subuid.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/line.h"
#include "base/num.h"

#define FILE_BYTES ((size_t)16 << 20)
#define LINE_BYTES 1024
#define UID_LAST   ((uint64_t)UINT32_MAX - 1) /* UINT32_MAX is no user */

struct subuid_range {
	uint64_t first, last;
	uint64_t owner;   /* uid; not yet looked up while name != NULL */
	const char *name; /* of the owner; in the text of the table */
};

/* ---- lines ---- */

/* Cuts the line. False: the line is wrong. */
static bool
range_parse(char *line, struct subuid_range *ret)
{
	char *first = strchr(line, ':');
	char *count = first == NULL ? NULL : strchr(first + 1, ':');
	uint64_t n;

	if (count == NULL || first == line)
		return false;
	*first++ = *count++ = '\0';
	if (num_u64(first, 0, UID_LAST, &ret->first) < 0 ||
	    num_u64(count, 1, UID_LAST - ret->first + 1, &n) < 0)
		return false;
	ret->last = ret->first + n - 1;
	ret->name = num_u64(line, 0, UID_LAST, &ret->owner) < 0 ? line : NULL;
	return true;
}

static int
read_ranges(struct subuid_table *table)
{
	struct subuid_range range;
	struct line_cursor c;
	const char *why;
	size_t room = 0;
	char *line;
	int r = 0, more;

	line_begin(&c, &table->text, LINE_BYTES);
	while (r == 0 && (more = line_next(&c, &line, &why)) != 0)
		if (more > 0 && range_parse(line_trim(line), &range))
			r = array_add(&table->ranges, &table->count, &room,
			    &range, sizeof(range));
	return r;
}

/* ---- order ---- */

static int
range_compare(const void *a, const void *b)
{
	const struct subuid_range *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->last > y->last ? -1 : x->last < y->last;
}

/* Leaves to each range the uids behind the ranges before it. */
static void
order_ranges(struct subuid_table *table)
{
	struct subuid_range *ranges = table->ranges;
	uint64_t next = 0; /* first uid that no range before has */
	size_t i, n = 0;

	if (table->count > 0)
		qsort(ranges, table->count, sizeof(*ranges), range_compare);
	for (i = 0; i < table->count; i++) {
		if (ranges[i].last < next)
			continue;
		if (ranges[i].first < next)
			ranges[i].first = next;
		next = ranges[i].last + 1;
		ranges[n++] = ranges[i];
	}
	table->count = n;
}

int
subuid_read(const char *path, struct subuid_table *ret)
{
	struct buf why = { 0 };
	int r;

	*ret = (struct subuid_table){ 0 };
	r = file_read(path, FILE_BYTES, &ret->text, &why);
	buf_done(&why);
	if (r == 0 && ret->text.len > 0)
		r = read_ranges(ret);
	if (r == 0)
		order_ranges(ret);
	else
		subuid_done(ret);
	return r == -ENOENT ? 0 : r;
}

void
subuid_done(struct subuid_table *table)
{
	free(table->ranges);
	buf_done(&table->text);
	*table = (struct subuid_table){ 0 };
}

/* ---- owners ---- */

/* The first uid of the range where the name is not found. */
static uint64_t
find_owner(const struct subuid_range *range)
{
	FILE *f = fopen("/etc/passwd", "re");
	uint64_t owner = range->first;
	const struct passwd *pw;

	if (f == NULL)
		return owner;
	while ((pw = fgetpwent(f)) != NULL)
		if (strcmp(pw->pw_name, range->name) == 0) {
			owner = pw->pw_uid;
			break;
		}
	(void)fclose(f);
	return owner;
}

uid_t
subuid_owner(const struct subuid_table *table, uid_t uid)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		struct subuid_range *range = &table->ranges[middle];

		if (uid > range->last) {
			low = middle + 1;
		} else if (uid < range->first) {
			high = middle;
		} else {
			if (range->name != NULL)
				range->owner = find_owner(range);
			range->name = NULL;
			return range->owner == 0 ? uid : (uid_t)range->owner;
		}
	}
	return uid;
}

uid_t
subuid_first(const struct subuid_table *table)
{
	return table->count == 0 ? (uid_t)-1 : (uid_t)table->ranges[0].first;
}
