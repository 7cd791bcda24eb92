#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "site/shared_parts.h"

static int
compare_key(
    uint64_t hash, uint32_t transport, const char *name, const struct site *h)
{
	if (hash != h->hash)
		return hash < h->hash ? -1 : 1;
	if (transport != h->transport)
		return transport < h->transport ? -1 : 1;
	return strcasecmp(name, h->name + h->nexthop_at);
}

static int
handle_compare(const struct site *a, const struct site *b)
{
	return compare_key(a->hash, a->transport, a->name + a->nexthop_at, b);
}

TREE_GENERATE(shared_handle_tree, site, link, handle_compare)

/* The hash of transport/nexthop in lower case; never 0, which is a free slot.
 */
static uint64_t
hash_of(const struct shared *s, uint32_t transport, const char *name)
{
	uint64_t hash = site_hash(s->secret, s->names[transport]);

	hash = site_hash(site_hash(hash, "/"), name);
	return hash == 0 ? 1 : hash;
}

static void
place(struct shared *s, struct site *h)
{
	if (s->seg.base != NULL) /* no other table here uses the low bits */
		h->set = (uint32_t)(h->hash % s->seg.sets);
	RB_INSERT(shared_handle_tree, &s->handles, h);
}

static struct site *
find(struct shared *s, uint64_t hash, uint32_t transport, const char *name)
{
	struct site *h = RB_ROOT(&s->handles);
	int r;

	while (h != NULL) {
		r = compare_key(hash, transport, name, h);
		if (r == 0)
			break;
		h = r < 0 ? RB_LEFT(h, link) : RB_RIGHT(h, link);
	}
	return h;
}

static struct site *
make(struct shared *s, uint64_t hash, uint32_t transport, const char *name)
{
	size_t prefix = strlen(s->names[transport]), len = strlen(name);
	struct site *h = calloc(1, sizeof(*h) + prefix + 1 + len + 1);

	if (h == NULL)
		return NULL;
	h->shared = s;
	h->hash = hash;
	h->transport = (uint16_t)transport;
	h->nexthop_at = (uint16_t)(prefix + 1);
	memcpy(h->name, s->names[transport], prefix);
	h->name[prefix] = '/';
	memcpy(h->name + prefix + 1, name, len + 1);
	place(s, h);
	return h;
}

struct site *
shared_handle_get(struct shared *s, uint32_t transport, const char *name)
{
	uint64_t hash = hash_of(s, transport, name);
	struct site *h = find(s, hash, transport, name);

	return h != NULL ? h : make(s, hash, transport, name);
}

static void
handle_free(struct site *h)
{
	RB_REMOVE(shared_handle_tree, &h->shared->handles, h);
	shared_handle_set_ready(h, false);
	if (h->watched)
		LIST_REMOVE(h, watch);
	h->shared->watched -= h->watched;
	free(h->why);
	free(h);
}

static bool
owes(const struct site *h)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(h->owed); i++)
		if (h->owed[i] > 0)
			return true;
	return false;
}

void
shared_handle_release(struct site *h)
{
	if (h->opens == 0 && h->held == 0 && !h->has_ticket)
		handle_free(h);
}

void
shared_handle_watch(struct site *h)
{
	struct shared *s = h->shared;
	bool watched = h->waits || h->has_ticket || owes(h);

	if (watched == h->watched || s->sets == NULL)
		return;
	h->watched = watched;
	if (watched) {
		LIST_INSERT_HEAD(&s->sets[h->set].watched, h, watch);
		s->watched++;
	} else {
		LIST_REMOVE(h, watch);
		s->watched--;
	}
}

void
shared_handle_set_ready(struct site *h, bool ready)
{
	if (h->is_ready == ready)
		return;
	h->is_ready = ready;
	if (ready)
		TAILQ_INSERT_TAIL(&h->shared->ready, h, ready);
	else
		TAILQ_REMOVE(&h->shared->ready, h, ready);
}

static void
leave_segment(struct site *h)
{
	if (h->watched) {
		LIST_REMOVE(h, watch);
		h->shared->watched--;
	}
	h->watched = h->has_ticket = false;
	h->granted_at = 0;
	h->index = 0;
}

/* s->sets and s->secret are those of the new segment already. */
void
shared_handles_move(struct shared *s)
{
	struct shared_handle_tree old = s->handles;
	struct site *h;

	RB_INIT(&s->handles);
	while ((h = RB_ROOT(&old)) != NULL) {
		RB_REMOVE(shared_handle_tree, &old, h);
		leave_segment(h);
		h->hash = hash_of(s, h->transport, h->name + h->nexthop_at);
		place(s, h);
		shared_handle_watch(h);
	}
}

/* A look writes the cell. */
bool
shared_handles_count(struct shared *s, usec_t now)
{
	bool all = true;
	struct site *h;
	struct shared_access a;

	RB_FOREACH (h, shared_handle_tree, &s->handles) {
		if (h->held == 0)
			continue;
		if (!shared_access_begin(&a, h, now)) {
			all = false;
			continue;
		}
		all &= a.slot != NULL || h->held == 0;
		shared_access_end(&a);
	}
	return all;
}

void
shared_handles_free(struct shared *s)
{
	struct site *h;

	while ((h = RB_ROOT(&s->handles)) != NULL)
		handle_free(h);
}
