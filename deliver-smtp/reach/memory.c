#include "deliver-smtp/reach/mx.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>

struct known {
	RB_ENTRY(known) node;
	TAILQ_ENTRY(known) entry; /* by age */
	char name[NEXTHOP_HOST_MAX];
	usec_t until;
	size_t size;
	unsigned char
	    set[]; /* a struct mx_set without the hosts that it has not */
};

struct mx_memory {
	RB_HEAD(known_tree, known) tree;
	TAILQ_HEAD(known_list, known) list;
	size_t count;
};

static int
compare(const struct known *a, const struct known *b)
{
	return strcmp(a->name, b->name);
}

TREE_GENERATE(known_tree, known, node, compare)

static struct known *
find(struct mx_memory *m, const char *name)
{
	struct known key;
	size_t len = strlen(name);

	if (len >= sizeof(key.name))
		return NULL;
	memcpy(key.name, name, len + 1);
	return RB_FIND(known_tree, &m->tree, &key);
}

static void
drop(struct mx_memory *m, struct known *k)
{
	RB_REMOVE(known_tree, &m->tree, k);
	TAILQ_REMOVE(&m->list, k, entry);
	m->count--;
	free(k);
}

struct mx_memory *
mx_memory_new(void)
{
	struct mx_memory *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	RB_INIT(&m->tree);
	TAILQ_INIT(&m->list);
	return m;
}

void
mx_memory_clear(struct mx_memory *m)
{
	struct known *k;

	while ((k = TAILQ_FIRST(&m->list)) != NULL)
		drop(m, k);
}

void
mx_memory_free(struct mx_memory **memory)
{
	struct mx_memory *m = *memory;

	*memory = NULL;
	if (m == NULL)
		return;
	mx_memory_clear(m);
	free(m);
}

void
mx_memory_forget(struct mx_memory *m, const char *name)
{
	struct known *k = find(m, name);

	if (k != NULL)
		drop(m, k);
}

void
mx_memory_put(
    struct mx_memory *m, const char *name, const struct mx_set *set, usec_t now)
{
	size_t used = offsetof(struct mx_set, hosts) +
	    set->nhosts * sizeof(set->hosts[0]);
	size_t len = strlen(name);
	struct known *k;

	mx_memory_forget(m, name);
	if (set->ttl == 0 || len >= NEXTHOP_HOST_MAX)
		return;
	k = malloc(sizeof(*k) + used);
	if (k == NULL)
		return;
	memcpy(k->name, name, len + 1);
	k->until = now + set->ttl * USEC_PER_SEC;
	k->size = used;
	memcpy(k->set, set, used);
	if (m->count == MX_MEMORY_MAX)
		drop(m, TAILQ_FIRST(&m->list));
	RB_INSERT(known_tree, &m->tree, k);
	TAILQ_INSERT_TAIL(&m->list, k, entry);
	m->count++;
}

bool
mx_memory_get(
    struct mx_memory *m, const char *name, usec_t now, struct mx_set *ret_set)
{
	struct known *k = find(m, name);

	if (k == NULL)
		return false;
	if (now >= k->until) {
		drop(m, k);
		return false;
	}
	memcpy(ret_set, k->set, k->size);
	ret_set->ttl = (uint32_t)((k->until - now) / USEC_PER_SEC);
	return true;
}

size_t
mx_memory_count(const struct mx_memory *m)
{
	return m->count;
}
