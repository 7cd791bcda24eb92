#include "sched/site.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int
number_compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int
entry_compare(const struct entry *a, const struct entry *b)
{
	int r = number_compare(a->arrival, b->arrival);

	return r != 0 ? r : number_compare(a->seq, b->seq);
}

static int
site_compare(const struct site *a, const struct site *b)
{
	int r = (int)a->per_rcpt - (int)b->per_rcpt;

	return r != 0 ? r : strcasecmp(a->name, b->name);
}

static int
ready_compare(const struct site *a, const struct site *b)
{
	int r = number_compare(a->head_arrival, b->head_arrival);

	return r != 0 ? r : number_compare(a->seq, b->seq);
}

TREE_GENERATE(entry_tree, entry, link, entry_compare)
TREE_GENERATE(site_tree, site, link, site_compare)
TREE_GENERATE(ready_tree, site, ready_link, ready_compare)

static struct site *
site_new(const struct site_name *name, size_t local_len)
{
	size_t host_len = strlen(name->nexthop);
	struct site *site;
	char *p;

	site = calloc(1, sizeof(*site) + local_len + 1 + host_len + 1);
	if (site == NULL)
		return NULL;
	p = site->name;
	if (name->address != NULL) {
		memcpy(p, name->address, local_len);
		p += local_len;
		*p++ = '@';
		site->per_rcpt = true;
	}
	memcpy(p, name->nexthop, host_len + 1);
	site->nexthop = p;
	RB_INIT(&site->waiting);
	return site;
}

struct site *
site_get(struct transport *t, const struct site_name *name, uint64_t seq)
{
	struct site *site, *there;

	site = site_new(name, name->address == NULL ? 0 : name->local_len);
	if (site == NULL)
		return NULL;
	there = RB_INSERT(site_tree, &t->sites, site);
	if (there != NULL) {
		free(site);
		return there;
	}
	site->transport = t;
	site->seq = seq;
	t->nsites++;
	return site;
}

void
site_release(struct site *site)
{
	if (site->busy > 0 || !RB_EMPTY(&site->waiting))
		return;
	ASSERT(!site->ready);
	RB_REMOVE(site_tree, &site->transport->sites, site);
	site->transport->nsites--;
	free(site);
}

static bool
site_has_room(const struct site *site)
{
	uint32_t limit = site->transport->params.destination_concurrency_limit;

	return limit == 0 || site->busy < limit;
}

void
site_update(struct site *site)
{
	struct entry *head = RB_MIN(entry_tree, &site->waiting);
	bool ready = head != NULL && site_has_room(site);

	if (site->ready && ready && site->head_arrival == head->arrival)
		return;
	if (site->ready)
		RB_REMOVE(ready_tree, &site->transport->ready, site);
	site->ready = ready;
	if (ready) {
		site->head_arrival = head->arrival;
		RB_INSERT(ready_tree, &site->transport->ready, site);
	}
}

void
transport_update(struct transport *t)
{
	struct site *site;

	RB_FOREACH (site, site_tree, &t->sites)
		site_update(site);
}

void
site_enqueue(struct site *site, struct entry *e)
{
	struct entry *there = RB_INSERT(entry_tree, &site->waiting, e);

	ASSERT(there == NULL);
	site_update(site);
}

void
site_dequeue(struct site *site, struct entry *e)
{
	RB_REMOVE(entry_tree, &site->waiting, e);
	site_update(site);
}

struct entry *
site_last_of(struct site *site, uint64_t arrival)
{
	struct entry key = { .arrival = arrival, .seq = UINT64_MAX }, *e;

	e = RB_NFIND(entry_tree, &site->waiting, &key);
	if (e == NULL)
		e = RB_MAX(entry_tree, &site->waiting);
	else
		e = RB_PREV(entry_tree, &site->waiting, e);
	return e != NULL && e->arrival == arrival ? e : NULL;
}

struct entry *
site_next(struct transport *t)
{
	struct site *site = RB_MIN(ready_tree, &t->ready);

	if (site == NULL)
		return NULL;
	return RB_MIN(entry_tree, &site->waiting);
}
