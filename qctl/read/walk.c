/* The walk over the messages of a queue. */
#include "qctl/read/message.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"

#define PASSES 8 /* of a walk that misses no message */

/* Inodes of the messages that the walk has met. */
struct met {
	uint64_t *inodes;
	size_t count, sorted, cap;
};

struct walker {
	const struct message_walk *walk;
	const struct spool *sp;
	struct met met; /* with walk->complete */
	usec_t began_wall;
	bool again;    /* a pass after the first: messages that were met are
			  passed over */
	bool found;    /* this pass has met a message older than the walk */
	bool troubled; /* a directory that cannot be read was told */
};

static int
compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
met_sort(struct met *met)
{
	if (met->count > 0)
		qsort(met->inodes, met->count, sizeof(*met->inodes), compare);
	met->sorted = met->count;
}

static bool
met_has(const struct met *met, uint64_t inode)
{
	return met->sorted > 0 &&
	    bsearch(&inode, met->inodes, met->sorted, sizeof(inode), compare) !=
	    NULL;
}

/* A message that was taken back into a directory that was read before is not
 * met there again: it is looked for where it may be. */
static int
open_moved(struct message *m, const struct spool *sp, enum spool_dir dir,
    const struct spool_item *item)
{
	size_t i;
	int r = -ENOENT;

	for (i = 0; r == -ENOENT && message_states[i] != dir; i++)
		if (spool_dirs[message_states[i]].split) {
			message_close(m);
			r = message_open(m, sp, message_states[i], item);
		}
	return r;
}

/* A file that cannot be opened is told once. */
static int
note_met(struct walker *w, const struct message *m, uint64_t inode)
{
	if (!w->walk->complete || inode == 0)
		return 0;
	w->found |=
	    m->damage[0] == '\0' && m->file.arrival_wall <= w->began_wall;
	return array_add(
	    &w->met.inodes, &w->met.count, &w->met.cap, &inode, sizeof(inode));
}

static int
walk_item(struct walker *w, enum spool_dir dir, const struct spool_item *item)
{
	const struct message_walk *walk = w->walk;
	struct message m;
	int r = message_open(&m, w->sp, dir, item), error = 0;

	if (r == -ENOENT && item->inode != 0)
		r = open_moved(&m, w->sp, dir, item);
	if (r != -ENOENT && (r < 0 || (walk->states & 1u << m.dir) != 0))
		error = note_met(w, &m, item->inode);
	if (r == 0 && error == 0 && (walk->states & 1u << m.dir) != 0)
		r = walk->each(&m, walk->arg);
	else if (r < 0 && r != -ENOENT) {
		walk->trouble(item->name, r, walk->arg);
		r = 0;
	}
	message_close(&m);
	return error < 0 ? error : r == -ENOENT ? 0 : r;
}

static void
tell_trouble(struct walker *w, enum spool_dir dir, int error)
{
	if (!w->again || !w->troubled)
		w->walk->trouble(spool_dirs[dir].name, error, w->walk->arg);
	w->troubled = true;
}

static int
walk_dir(struct walker *w, enum spool_dir dir)
{
	const struct message_walk *walk = w->walk;
	struct spool_scan scan;
	struct spool_item item;
	int r = 0, n;

	spool_scan_begin(&scan, w->sp, dir);
	while (r == 0 && (n = spool_scan_next(&scan, false, &item)) != 0) {
		if (walk->step != NULL)
			walk->step(walk->arg);
		if (n < 0)
			tell_trouble(w, dir, n);
		else if (dir == SPOOL_MAILDROP)
			item.inode = 0;
		if (n > 0 && !(w->again && met_has(&w->met, item.inode)))
			r = walk_item(w, dir, &item);
	}
	spool_scan_done(&scan);
	return r;
}

/* Messages that leave maildrop/ go the way of the pass. A name in corrupt/ need
 * not be an inode. */
static bool
is_read(const struct walker *w, enum spool_dir dir)
{
	return (w->walk->states & 1u << dir) != 0 && w->sp->dir[dir] >= 0 &&
	    (!w->again || (dir != SPOOL_MAILDROP && dir != SPOOL_CORRUPT));
}

static int
pass(struct walker *w)
{
	size_t i;
	int r = 0;

	w->found = false;
	for (i = 0; r == 0 && i < MESSAGE_STATES; i++) {
		const enum spool_dir dir = message_states[i];

		if (is_read(w, dir))
			r = walk_dir(w, dir);
	}
	return r;
}

/* A message that goes from deferred/ to active/ between the looks at the two
 * is met in neither. Later passes open no message that was met, so each is
 * short: a message would have to go there and back within each of them. */
static int
pass_again(struct walker *w)
{
	unsigned n = 1;
	int r = 0;

	w->again = true;
	do {
		if (n++ == PASSES)
			return -EAGAIN;
		met_sort(&w->met);
		r = pass(w);
	} while (r == 0 && w->found);
	return r;
}

int
message_walk(const struct spool *sp, const struct message_walk *walk)
{
	struct walker w = {
		.walk = walk, .sp = sp, .began_wall = clock_wall()
	};
	int r = pass(&w);

	if (r == 0 && walk->complete)
		r = pass_again(&w);
	free(w.met.inodes);
	return r;
}
