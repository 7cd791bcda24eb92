#include "todo-proc/pure.h"

#include <errno.h>
#include <stdlib.h>

static int
file_compare(const struct inbox_file *a, const struct inbox_file *b)
{
	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return (a->inode > b->inode) - (a->inode < b->inode);
}

TREE_GENERATE(inbox_tree, inbox_file, link, file_compare)

static void
empty(struct inbox_tree *tree)
{
	struct inbox_file *c;

	while ((c = RB_MIN(inbox_tree, tree)) != NULL) {
		RB_REMOVE(inbox_tree, tree, c);
		free(c);
	}
}

void
inbox_init(struct inbox *b)
{
	*b = (struct inbox){ 0 };
	RB_INIT(&b->fresh);
	RB_INIT(&b->ready);
	RB_INIT(&b->newest);
	RB_INIT(&b->later);
}

void
inbox_done(struct inbox *b)
{
	empty(&b->fresh);
	empty(&b->ready);
	empty(&b->newest);
	empty(&b->later);
	inbox_init(b);
}

/* A file older than this one was left out already, or may have been. */
static bool
is_beyond(struct inbox *b, usec_t mtime_wall)
{
	const struct inbox_file *newest = RB_MAX(inbox_tree, &b->ready);

	return b->more && (newest == NULL || mtime_wall >= newest->at);
}

static bool
is_heard(const struct inbox *b, uint64_t inode)
{
	uint32_t i;

	for (i = 0; i < b->nheard; i++)
		if (b->heard[(b->heard_first + i) % INBOX_HEARD_MAX] == inode)
			return true;
	return false;
}

/* 1: new, 0: it was there, -ENOMEM. */
static int
insert(struct inbox_tree *tree, uint32_t *count, uint64_t inode, usec_t at,
    uint8_t tries)
{
	struct inbox_file *c = malloc(sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	*c = (struct inbox_file){ .at = at, .inode = inode, .tries = tries };
	if (RB_INSERT(inbox_tree, tree, c) != NULL) {
		free(c);
		return 0;
	}
	++*count;
	return 1;
}

static struct inbox_file *
find(struct inbox_tree *tree, uint64_t inode, usec_t mtime_wall)
{
	struct inbox_file key = { .inode = inode, .at = mtime_wall };

	return RB_FIND(inbox_tree, tree, &key);
}

static void
take_out(struct inbox *b, struct inbox_tree *tree, uint32_t *count,
    struct inbox_file *c)
{
	if (c == NULL)
		return;
	RB_REMOVE(inbox_tree, tree, c);
	--*count;
	b->ndrops -= c->drop;
	free(c);
}

/* The file has no place among the oldest. 1: new; 0: known, or left out. */
static int
add_newest(struct inbox *b, uint64_t inode, usec_t mtime_wall)
{
	struct inbox_file *least;
	bool kept = true;
	int r;

	b->more = true;
	r = insert(&b->newest, &b->nnewest, inode, mtime_wall, 0);
	if (b->nnewest > INBOX_NEWEST) {
		least = RB_MIN(inbox_tree, &b->newest);
		kept = least != NULL && least->inode != inode;
		take_out(b, &b->newest, &b->nnewest, least);
	}
	return r == 1 && kept;
}

static void
leave_out_newest(struct inbox *b)
{
	struct inbox_file *c = RB_MAX(inbox_tree, &b->ready);

	if (c != NULL)
		(void)add_newest(b, c->inode, c->at);
	take_out(b, &b->ready, &b->nready, c);
}

int
inbox_add(struct inbox *b, uint64_t inode, usec_t mtime_wall)
{
	int r;

	if (find(&b->fresh, inode, mtime_wall) != NULL ||
	    find(&b->newest, inode, mtime_wall) != NULL || is_heard(b, inode))
		return 0;
	if (is_beyond(b, mtime_wall))
		return add_newest(b, inode, mtime_wall);
	r = insert(&b->ready, &b->nready, inode, mtime_wall, 0);
	b->more |= r < 0;
	if (b->nready > INBOX_MAX)
		leave_out_newest(b);
	return r;
}

int
inbox_ring(struct inbox *b, uint64_t inode, usec_t mtime_wall)
{
	struct inbox_file *old = find(&b->ready, inode, mtime_wall),
			  *late = find(&b->newest, inode, mtime_wall);
	int r;

	if (is_heard(b, inode))
		return 0;
	if (b->nfresh >= INBOX_MAX)
		return inbox_add(b, inode, mtime_wall);
	r = insert(&b->fresh, &b->nfresh, inode, mtime_wall, 0);
	b->more |= r < 0;
	if (r != 1 || (old == NULL && late == NULL))
		return r;
	take_out(b, &b->ready, &b->nready, old);
	take_out(b, &b->newest, &b->nnewest, late);
	return 0;
}

void
inbox_note_drop(struct inbox *b, uint64_t inode, usec_t mtime_wall)
{
	struct inbox_file *c = find(&b->fresh, inode, mtime_wall);

	if (c == NULL)
		c = find(&b->ready, inode, mtime_wall);
	if (c == NULL)
		c = find(&b->newest, inode, mtime_wall);
	if (c == NULL || c->drop)
		return;
	c->drop = true;
	b->ndrops++;
}

int
inbox_hear(struct inbox *b, uint64_t inode)
{
	if (is_heard(b, inode))
		return 0;
	if (b->nheard == INBOX_HEARD_MAX)
		return -ENOSPC;
	b->heard[(b->heard_first + b->nheard++) % INBOX_HEARD_MAX] = inode;
	return 1;
}

static uint64_t
take_first_heard(struct inbox *b)
{
	const uint64_t inode = b->heard[b->heard_first];

	b->heard_first = (b->heard_first + 1) % INBOX_HEARD_MAX;
	b->nheard--;
	return inode;
}

bool
inbox_has(const struct inbox *b, bool fresh_only)
{
	return b->nfresh > 0 || b->nheard > 0 ||
	    (!fresh_only && (b->nready > 0 || b->nnewest > 0));
}

static bool
take_file(struct inbox *b, struct inbox_tree *tree, uint32_t *count, bool last,
    struct inbox_file *ret)
{
	struct inbox_file *c =
	    last ? RB_MAX(inbox_tree, tree) : RB_MIN(inbox_tree, tree);

	if (c == NULL)
		return false;
	*ret = *c;
	take_out(b, tree, count, c);
	return true;
}

static bool
take_new(struct inbox *b, struct inbox_file *ret)
{
	const bool heard = b->nheard > 0 && (b->heard_turn || b->nfresh == 0);

	b->heard_turn = !heard;
	if (!heard)
		return take_file(b, &b->fresh, &b->nfresh, false, ret);
	*ret =
	    (struct inbox_file){ .inode = take_first_heard(b), .heard = true };
	return true;
}

/* Of many, the oldest and the newest in turn: mail that came shortly before the
 * start does not wait for all that lay there. */
static bool
take_ready(struct inbox *b, struct inbox_file *ret)
{
	const bool newest =
	    b->newest_turn && b->nready + b->nnewest > INBOX_FEW;

	b->newest_turn = !newest;
	if (b->nready == 0 || (newest && b->nnewest > 0))
		return take_file(b, &b->newest, &b->nnewest, newest, ret);
	return take_file(b, &b->ready, &b->nready, newest, ret);
}

bool
inbox_take(struct inbox *b, bool fresh_only, struct inbox_file *ret)
{
	const bool none_new = b->nfresh == 0 && b->nheard == 0;
	bool ready =
	    !fresh_only && b->nready + b->nnewest > 0 && (b->turn || none_new);

	b->turn = !ready;
	return ready ? take_ready(b, ret) : take_new(b, ret);
}

static bool
is_waiting(struct inbox *b, uint64_t inode)
{
	struct inbox_file *c;

	RB_FOREACH (c, inbox_tree, &b->later)
		if (c->inode == inode)
			return true;
	return false;
}

void
inbox_later(
    struct inbox *b, const struct inbox_file *c, usec_t now, usec_t least)
{
	usec_t wait = INBOX_WAIT_MIN << (c->tries > 8 ? 8 : c->tries);
	struct inbox_file *copy;

	if (b->nlater >= INBOX_LATER_MAX || is_waiting(b, c->inode))
		return;
	copy = malloc(sizeof(*copy));
	if (copy == NULL)
		return;
	wait = wait > INBOX_WAIT_MAX ? INBOX_WAIT_MAX : wait;
	*copy = (struct inbox_file){
		.at = now + (wait < least ? least : wait),
		.inode = c->inode,
		.tries = (uint8_t)(c->tries + (c->tries < UINT8_MAX)),
	};
	RB_INSERT(inbox_tree, &b->later, copy);
	b->nlater++;
}

usec_t
inbox_wake(struct inbox *b, usec_t now)
{
	struct inbox_file *c;

	while ((c = RB_MIN(inbox_tree, &b->later)) != NULL) {
		if (c->at > now)
			return c->at;
		RB_REMOVE(inbox_tree, &b->later, c);
		b->nlater--;
		(void)insert(&b->fresh, &b->nfresh, c->inode, 0, c->tries);
		free(c);
	}
	return USEC_NEVER;
}

void
inbox_scan_begins(struct inbox *b)
{
	b->more = false;
}

bool
inbox_is_low(const struct inbox *b)
{
	return b->more && b->nready < INBOX_LOW;
}
