#include "todo-proc/backlog.h"

#include <errno.h>
#include <stdlib.h>

static int
candidate_compare(const struct candidate *a, const struct candidate *b)
{
	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return (a->inode > b->inode) - (a->inode < b->inode);
}

TREE_GENERATE(candidates, candidate, link, candidate_compare)

static void
empty(struct candidates *tree)
{
	struct candidate *c;

	while ((c = RB_MIN(candidates, tree)) != NULL) {
		RB_REMOVE(candidates, tree, c);
		free(c);
	}
}

void
backlog_init(struct backlog *b)
{
	*b = (struct backlog){ 0 };
	RB_INIT(&b->fresh);
	RB_INIT(&b->ready);
	RB_INIT(&b->later);
}

void
backlog_done(struct backlog *b)
{
	empty(&b->fresh);
	empty(&b->ready);
	empty(&b->later);
	backlog_init(b);
}

static void
leave_out_newest(struct backlog *b)
{
	struct candidate *newest = RB_MAX(candidates, &b->ready);

	RB_REMOVE(candidates, &b->ready, newest);
	free(newest);
	b->nready--;
	b->more = true;
}

/* Something older than this was left out already, or may have been. */
static bool
is_beyond(struct backlog *b, usec_t mtime_wall)
{
	const struct candidate *newest = RB_MAX(candidates, &b->ready);

	return b->more && (newest == NULL || mtime_wall >= newest->at);
}

/* 1, 0 when it is there, or -ENOMEM. */
static int
insert(struct candidates *tree, uint32_t *count, uint64_t inode, usec_t at,
    uint8_t tries)
{
	struct candidate *c = malloc(sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	*c = (struct candidate){ .at = at, .inode = inode, .tries = tries };
	if (RB_INSERT(candidates, tree, c) != NULL) {
		free(c);
		return 0;
	}
	++*count;
	return 1;
}

static struct candidate *
find(struct candidates *tree, uint64_t inode, usec_t mtime_wall)
{
	struct candidate key = { .inode = inode, .at = mtime_wall };

	return RB_FIND(candidates, tree, &key);
}

int
backlog_add(struct backlog *b, uint64_t inode, usec_t mtime_wall)
{
	int r;

	if (find(&b->fresh, inode, mtime_wall) != NULL ||
	    is_beyond(b, mtime_wall))
		return 0;
	r = insert(&b->ready, &b->nready, inode, mtime_wall, 0);
	b->more |= r < 0;
	if (b->nready > BACKLOG_MAX)
		leave_out_newest(b);
	return r;
}

int
backlog_ring(struct backlog *b, uint64_t inode, usec_t mtime_wall)
{
	struct candidate *c = find(&b->ready, inode, mtime_wall);
	int r;

	if (b->nfresh >= BACKLOG_MAX)
		return backlog_add(b, inode, mtime_wall);
	r = insert(&b->fresh, &b->nfresh, inode, mtime_wall, 0);
	b->more |= r < 0;
	if (r != 1 || c == NULL)
		return r;
	RB_REMOVE(candidates, &b->ready, c);
	b->nready--;
	free(c);
	return 0;
}

bool
backlog_has(const struct backlog *b, bool fresh_only)
{
	return b->nfresh > 0 || (!fresh_only && b->nready > 0);
}

static bool
take_first(struct candidates *tree, uint32_t *count, struct candidate *ret)
{
	struct candidate *c = RB_MIN(candidates, tree);

	if (c == NULL)
		return false;
	RB_REMOVE(candidates, tree, c);
	--*count;
	*ret = *c;
	free(c);
	return true;
}

bool
backlog_take(struct backlog *b, bool fresh_only, struct candidate *ret)
{
	bool ready = !fresh_only && b->nready > 0 && (b->turn || !b->nfresh);

	b->turn = !ready;
	return ready ? take_first(&b->ready, &b->nready, ret)
		     : take_first(&b->fresh, &b->nfresh, ret);
}

static bool
is_waiting(struct backlog *b, uint64_t inode)
{
	struct candidate *c;

	RB_FOREACH (c, candidates, &b->later)
		if (c->inode == inode)
			return true;
	return false;
}

void
backlog_later(
    struct backlog *b, const struct candidate *c, usec_t now, usec_t least)
{
	usec_t wait = BACKLOG_WAIT_MIN << (c->tries > 8 ? 8 : c->tries);
	struct candidate *copy;

	if (b->nlater >= BACKLOG_LATER_MAX || is_waiting(b, c->inode))
		return;
	copy = malloc(sizeof(*copy));
	if (copy == NULL)
		return;
	wait = wait > BACKLOG_WAIT_MAX ? BACKLOG_WAIT_MAX : wait;
	*copy = (struct candidate){
		.at = now + (wait < least ? least : wait),
		.inode = c->inode,
		.tries = (uint8_t)(c->tries + (c->tries < UINT8_MAX)),
	};
	RB_INSERT(candidates, &b->later, copy);
	b->nlater++;
}

usec_t
backlog_wake(struct backlog *b, usec_t now)
{
	struct candidate *c;

	while ((c = RB_MIN(candidates, &b->later)) != NULL) {
		if (c->at > now)
			return c->at;
		RB_REMOVE(candidates, &b->later, c);
		b->nlater--;
		(void)insert(&b->fresh, &b->nfresh, c->inode, 0, c->tries);
		free(c);
	}
	return USEC_NEVER;
}

void
backlog_scan_begins(struct backlog *b)
{
	b->more = false;
}

bool
backlog_is_low(const struct backlog *b)
{
	return b->more && b->nready < BACKLOG_LOW;
}
