/* Two files of one message: a backup that was restored beside what it was made
 * of. */
#include "qctl/check/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/io.h"

#define TRAILER QUEUE_FILE_TRAILER

int
copies_note(struct check *c, const struct place *p,
    const struct queue_file *file, uint32_t advanced)
{
	const struct seen seen = { .arrival_wall = file->arrival_wall,
		.inode = (uint64_t)p->st.st_ino,
		.queue = file->queue,
		.advanced = advanced,
		.nonce = file->nonce,
		.dir = (uint8_t)p->dir };

	return array_add(
	    &c->seen, &c->nseen, &c->seen_cap, &seen, sizeof(seen));
}

static int
compare_keys(const struct seen *a, const struct seen *b)
{
	if (a->arrival_wall != b->arrival_wall)
		return a->arrival_wall < b->arrival_wall ? -1 : 1;
	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	return a->nonce - b->nonce;
}

/* Nothing of such a message is sent before somebody asks for that. */
static bool
is_put_aside(const struct seen *s)
{
	return s->dir == SPOOL_HOLD || s->dir == SPOOL_DELETED;
}

/* The one that is further on comes first, and is kept; those that are put aside
 * come last. */
static int
compare_seen(const void *va, const void *vb)
{
	const struct seen *a = va, *b = vb;
	int r = compare_keys(a, b);

	if (r == 0)
		r = is_put_aside(a) - is_put_aside(b);
	if (r == 0 && a->advanced != b->advanced)
		r = a->advanced > b->advanced ? -1 : 1;
	if (r == 0 && a->inode != b->inode)
		r = a->inode < b->inode ? -1 : 1;
	return r;
}

static void
place_of(const struct seen *s, struct place *p)
{
	*p = (struct place){ .dir = (enum spool_dir)s->dir, .fd = -1 };
	p->item.inode = s->inode;
	queue_file_name(s->inode, p->item.name);
}

/* The sums of content and envelope are in the trailer. */
static bool
read_trailer(const struct check *c, const struct seen *s, char out[TRAILER])
{
	struct place p;
	bool read = false;

	place_of(s, &p);
	spool_leaf(&c->sp, p.dir, s->inode, p.leaf, SPOOL_PATH_MAX);
	if (place_open(c, &p) == 0 && p.fd >= 0 && p.st.st_size > TRAILER)
		read = pread(p.fd, out, TRAILER, p.st.st_size - TRAILER) ==
		    TRAILER;
	io_close(&p.fd);
	return read;
}

void
copies_judge(struct check *c)
{
	char first[TRAILER], other[TRAILER], why[QUEUE_FILE_MAX + 16];
	const struct seen *kept = NULL;
	struct place p;
	size_t i;

	if (c->nseen > 0)
		qsort(c->seen, c->nseen, sizeof(*c->seen), compare_seen);
	for (i = 0; i < c->nseen; i++) {
		const struct seen *s = &c->seen[i];

		if (kept == NULL || compare_keys(kept, s) != 0) {
			kept = s;
			continue;
		}
		if (kept->inode == s->inode || is_put_aside(kept) ||
		    is_put_aside(s) || !read_trailer(c, kept, first) ||
		    !read_trailer(c, s, other) ||
		    memcmp(first, other, TRAILER) != 0)
			continue;
		place_of(s, &p);
		spool_leaf(&c->sp, p.dir, s->inode, p.leaf, SPOOL_PATH_MAX);
		snprintf(why, sizeof(why), "of %" PRIu64, kept->inode);
		(void)flaw_found(c, FLAW_COPY, &p, why);
	}
}

/* Of equal messages the first is the one that is kept. */
const struct seen *
copies_find(const struct check *c, const struct queue_id *id)
{
	const struct seen key = { .arrival_wall = id->arrival_wall,
		.queue = id->queue,
		.nonce = id->nonce };
	size_t low = 0, high = c->nseen, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (compare_keys(&c->seen[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->nseen && compare_keys(&c->seen[low], &key) == 0
	    ? &c->seen[low]
	    : NULL;
}
